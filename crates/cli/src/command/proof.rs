//! `varve proof`: that a transaction is in a block, for those who have the block's header alone.

use anyhow::{Context as _, Result, bail};
use hex_conservative::DisplayHex as _;
use varve::types::proof::TscProof;
use varve_server::json;

use crate::args::{Global, Proof, ProofFormat};
use crate::data_dir::DataDir;
use crate::output::print_json;

/// Runs the command.
pub(crate) fn run(args: &Proof, global: &Global) -> Result<()> {
    let is_tsc = args.format == ProofFormat::Tsc;
    if !is_tsc && (args.target.is_some() || args.full_tx) {
        bail!("--target and --full-tx are for TSC proofs; pass --format tsc too");
    }
    let snapshot = DataDir::new(global).open_node()?.snapshot();
    let found = snapshot.proof(args.txid)?;
    let proof =
        found.with_context(|| format!("transaction {} is in no stored block", args.txid))?;
    let tsc = is_tsc.then(|| tsc(&proof, args));
    if global.json {
        return match &tsc {
            Some(tsc) => print_json(&json::TscProof::from(tsc)),
            None => print_json(&json::ElectrumProof::from(&proof)),
        };
    }
    let block = &proof.tx.block;
    println!("  txid       {}", proof.tx.txid);
    println!("  block      {} at height {}", block.hash, block.height);
    if !block.confirmed {
        println!("  confirmed  no: the block is on a stale branch, or is not valid");
    }
    println!("  merkle     {}", block.merkle_root);
    println!("  position   {}", proof.tx.position);
    for (level, node) in proof.branch.siblings.iter().enumerate() {
        println!("  {:<10} {}", format!("node {level}"), varve::Txid::from_bytes(*node));
    }
    if let Some(tsc) = tsc {
        let mut bytes = Vec::new();
        tsc.encode(&mut bytes);
        println!("  tsc        {}", bytes.to_lower_hex_string());
    }
    Ok(())
}

fn tsc(proof: &varve::Proof, args: &Proof) -> TscProof {
    let tsc = proof.tsc(args.target.map(Into::into).unwrap_or_default());
    if args.full_tx { tsc.with_transaction(proof.tx.bytes().to_vec()) } else { tsc }
}

//! An output with every input that spends it, and proofs that a transaction is in a block.

use axum::extract::{Path, State};
use hex_conservative::DisplayHex as _;
use serde::Serialize;
use utoipa::ToSchema;
use varve::types::Network;
use varve::{BlockHash, Outpoint, ProofTarget, Snapshot, Txid};

use super::Shared;
use super::reply::{Refusals, Refused, Reply, Tip, hash};
use super::script_text::OutputScript;
use super::tx::{SpentBy, unconfirmed};
use crate::json::{ElectrumProof, TscProof};

/// An output and its spends.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OutpointAnswer {
    tip: Tip,
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    txid: Txid,
    vout: u32,
    value: u64,
    script: OutputScript,
    /// The height of its block; `null` while it is unconfirmed.
    height: Option<u32>,
    /// Whether a block of the confirmed chain has it.
    confirmed: bool,
    coinbase: bool,
    /// Whether the confirmed chain, or an unconfirmed transaction, spends it.
    spent: bool,
    /// Inputs of blocks that spend it, on every branch, newest first.
    spends: Vec<SpentBy>,
    /// The unconfirmed input that spends it.
    unconfirmed: Option<SpentBy>,
}

/// An output, with the inputs of every branch that spend it.
#[utoipa::path(get, path = "/outpoint/{txid}/{vout}", tag = "varve",
    params(("txid" = String, Path, description = "A txid"),
        ("vout" = u32, Path, description = "The place of the output in it")),
    responses((status = 200, body = OutpointAnswer), Refusals))]
pub(super) async fn outpoint(
    State(own): State<Shared>,
    Path((txid, vout)): Path<(String, String)>,
) -> Result<Reply<OutpointAnswer>, Refused> {
    let txid = hash(&txid, "a txid")?;
    let vout =
        vout.parse().map_err(|_| Refused::bad("write the place of the output as a number"))?;
    let outpoint = Outpoint::new(txid, vout);
    own.ask(move |_, snapshot| {
        let mempool = snapshot.mempool();
        let found = match snapshot.output(outpoint)? {
            Some(output) => Some((
                output.value.to_sat(),
                OutputScript::new(&output.script, snapshot.network()),
                (Some(output.height.to_u32()), output.confirmed, output.coinbase),
            )),
            None => waiting(mempool.as_deref(), outpoint, snapshot.network()),
        };
        let missing = || Refused::not_found(format!("output {outpoint} is in no stored block"));
        let (value, script, (height, confirmed, coinbase)) = found.ok_or_else(missing)?;
        let spends: Vec<SpentBy> = snapshot.spends(outpoint)?.iter().map(SpentBy::from).collect();
        let unconfirmed = unconfirmed(mempool.as_deref(), &outpoint);
        Ok(OutpointAnswer {
            tip: snapshot.tip().into(),
            txid,
            vout,
            value,
            script,
            height,
            confirmed,
            coinbase,
            spent: unconfirmed.is_some() || spends.iter().any(SpentBy::is_confirmed),
            spends,
            unconfirmed,
        })
    })
    .await
}

type Found = (u64, OutputScript, (Option<u32>, bool, bool));

/// An output of an unconfirmed transaction.
fn waiting(
    mempool: Option<&varve::Mempool>,
    outpoint: Outpoint,
    network: Network,
) -> Option<Found> {
    let tx = mempool?.entry(&outpoint.txid)?.transaction().view();
    let output = tx.outputs().nth(outpoint.vout as usize)?;
    let script = OutputScript::new(output.script, network);
    Some((output.value.to_sat(), script, (None, false, false)))
}

/// A proof that a transaction is in a block, in the two forms that wallets read.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProofAnswer {
    tip: Tip,
    /// The block that it proves.
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    block: BlockHash,
    height: u32,
    /// Whether that is in the confirmed chain.
    confirmed: bool,
    /// The 80 bytes of the block's header in hex.
    header: String,
    /// As Electrum's `blockchain.transaction.get_merkle` gives it.
    #[schema(value_type = Object)]
    electrum: ElectrumProof,
    /// In the TSC standard format.
    #[schema(value_type = Object)]
    tsc: TscProof,
}

/// A proof that a transaction is in a block: the confirmed one, else the newest.
#[utoipa::path(get, path = "/proof/{txid}", tag = "varve",
    params(("txid" = String, Path, description = "A txid")),
    responses((status = 200, body = ProofAnswer), Refusals))]
pub(super) async fn proof(
    State(own): State<Shared>,
    Path(txid): Path<String>,
) -> Result<Reply<ProofAnswer>, Refused> {
    let txid: Txid = hash(&txid, "a txid")?;
    own.ask(move |_, snapshot| proven(snapshot, txid)).await
}

fn proven(snapshot: &Snapshot, txid: Txid) -> Result<ProofAnswer, Refused> {
    let missing = || Refused::not_found(format!("no stored block holds transaction {txid}"));
    let proof = snapshot.proof(txid)?.ok_or_else(missing)?;
    let block = &proof.tx.block;
    Ok(ProofAnswer {
        tip: snapshot.tip().into(),
        block: block.hash,
        height: block.height.to_u32(),
        confirmed: block.confirmed,
        header: proof.header().bytes().to_lower_hex_string(),
        electrum: ElectrumProof::from(&proof),
        tsc: TscProof::from(&proof.tsc(ProofTarget::default())),
    })
}

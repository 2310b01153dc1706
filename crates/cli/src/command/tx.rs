//! `varve tx`: a transaction, where it is, what it spends and what it pays.

use anyhow::{Context as _, Result};
use hex_conservative::DisplayHex as _;
use serde_json::json;
use varve_archive::{ArchiveError, HeaderLink, Output, TxPlace, TxSize};
use varve_node::ArchiveView;
use varve_types::{Amount, Outpoint, Tx, Txid};

use crate::address::described;
use crate::args::Global;
use crate::data_dir::DataDir;
use crate::date::utc;

/// Runs the command.
pub(crate) fn run(txid: Txid, global: &Global) -> Result<()> {
    let node = DataDir::new(global)?.read_node()?;
    let view = node.view();
    let place = view.to_tx(txid)?;
    let place = place.with_context(|| format!("transaction {txid} is in no stored block"))?;
    let bytes = view.raw_tx(place.link)?.context("its block has not come")?;
    let mut blocks = Vec::new();
    for link in blocks_of(&view, &place)? {
        blocks.push(view.header(link)?.hash.to_string());
    }
    let hash = view.header(place.block)?.hash.to_string();
    if global.json {
        let answer = json!({
            "txid": txid.to_string(),
            "hex": bytes.to_lower_hex_string(),
            "height": place.height.to_u32(),
            "blockhash": hash,
            "confirmed": place.confirmed,
            "blocks": blocks,
        });
        println!("{answer}");
        return Ok(());
    }
    let tx = Tx::parse(&bytes, global.network.format()).context("run `varve verify`")?;
    let tip = node.tip().0.to_u32();
    print_place(&view, (&place, tip), &blocks)?;
    print_parts(&view, &tx, global)
}

/// The blocks that hold the transaction, as far as is known: others may be pruned.
fn blocks_of(view: &ArchiveView, place: &TxPlace) -> Result<Vec<HeaderLink>> {
    match view.blocks_of(place.txid) {
        Err(ArchiveError::Pruned { .. }) => Ok(vec![place.block]),
        found => Ok(found?.into_iter().map(|(link, _)| link).collect()),
    }
}

/// Where the transaction is: its block, how deep that is, and the blocks of other branches.
fn print_place(view: &ArchiveView, (place, tip): (&TxPlace, u32), blocks: &[String]) -> Result<()> {
    let header = view.header(place.block)?;
    let height = place.height.to_u32();
    println!("  txid       {}", place.txid);
    println!("  block      {} at height {height}", header.hash);
    println!("  time       {}", utc(header.time));
    match place.confirmed {
        true => println!("  confirmed  {} times", tip.saturating_sub(height) + 1),
        false => println!("  confirmed  no: the block is on a branch that lost, or is not valid"),
    }
    let hash = header.hash.to_string();
    for other in blocks.iter().filter(|other| **other != hash) {
        println!("  also in    {other}");
    }
    Ok(())
}

/// The sizes, the fee, every input and every output.
fn print_parts(view: &ArchiveView, tx: &Tx<'_>, global: &Global) -> Result<()> {
    let size = TxSize { base: tx.base_len() as u64, total: tx.bytes().len() as u64 };
    match global.network.is_bsv() {
        true => println!("  size       {} bytes", size.total),
        false => println!(
            "  size       {} bytes, {} virtual, weight {}",
            size.total,
            size.virtual_size(),
            size.weight()
        ),
    }
    println!("  version    {}, lock time {}", tx.version(), tx.lock_time());
    let mut spent = Vec::new();
    for input in tx.inputs().filter(|_| !tx.is_coinbase()) {
        spent.push(spent_output(view, input.outpoint)?);
    }
    if let Some(fee) = fee(tx, &spent) {
        println!("  fee        {fee}, {}", rate(fee, size.virtual_size()));
    }
    for (vin, input) in tx.inputs().enumerate() {
        let label = format!("input {vin}");
        if tx.is_coinbase() {
            println!("  {label:<10} coinbase {}", input.script.to_lower_hex_string());
            continue;
        }
        println!("  {label:<10} {}", input.outpoint);
        if let Some(Some(output)) = spent.get(vin) {
            let script = described(&output.script, global.network);
            println!("             {} from {script}", output.value);
        }
    }
    for (vout, output) in tx.outputs().enumerate() {
        let label = format!("output {vout}");
        println!("  {label:<10} {} to {}", output.value, described(output.script, global.network));
    }
    Ok(())
}

/// An output that is spent, as far as it is known: its block may be pruned.
fn spent_output(view: &ArchiveView, outpoint: Outpoint) -> Result<Option<Output>> {
    match view.output(outpoint) {
        Err(ArchiveError::Pruned { .. } | ArchiveError::BelowBase { .. }) => Ok(None),
        found => Ok(found?),
    }
}

/// What the inputs have more than the outputs, where all inputs are known.
fn fee(tx: &Tx<'_>, spent: &[Option<Output>]) -> Option<Amount> {
    if tx.is_coinbase() {
        return None;
    }
    let mut fee = Amount::ZERO;
    for output in spent {
        fee = fee.checked_add(output.as_ref()?.value)?;
    }
    tx.outputs().try_fold(fee, |fee, output| fee.checked_sub(output.value))
}

/// A fee by size, with one decimal.
fn rate(fee: Amount, size: u64) -> String {
    let tenths = fee.to_sat().saturating_mul(10) / size.max(1);
    format!("{}.{} satoshi a virtual byte", tenths / 10, tenths % 10)
}

//! `varve tx`: a transaction, where it is, what it spends and what it pays.

use anyhow::{Context as _, Result};
use hex_conservative::DisplayHex as _;
use varve::types::Tx;
use varve::{Amount, Network, Output, Snapshot, Transaction, Txid};
use varve_server::json;

use crate::address::described;
use crate::args::Global;
use crate::data_dir::DataDir;
use crate::date::utc;
use crate::output::print_json;

/// Runs the command.
pub(crate) fn run(txid: Txid, global: &Global) -> Result<()> {
    let snapshot = DataDir::new(global).open_node()?.snapshot();
    let found = snapshot.tx(txid)?;
    let found = found.with_context(|| format!("transaction {txid} is in no stored block"))?;
    if global.json {
        return print_json(&json::Tx::new(&found, snapshot.tip()));
    }
    print_place(&found, snapshot.tip().height.to_u32());
    let tx = found.parse().context("run `varve verify`")?;
    print_parts(&snapshot, &tx)
}

/// Where the transaction is: its block, how deep that is, and the blocks of other branches.
fn print_place(tx: &Transaction, tip: u32) {
    let Transaction { txid, block, blocks, .. } = tx;
    println!("  txid       {txid}");
    println!("  block      {} at height {}", block.hash, block.height);
    println!("  time       {}", utc(block.time));
    match tx.is_confirmed() {
        true => println!("  confirmed  {} times", tip.saturating_sub(block.height.to_u32()) + 1),
        false => println!("  confirmed  no: the block is on a stale branch, or is not valid"),
    }
    for other in blocks.iter().filter(|other| **other != block.hash) {
        println!("  also in    {other}");
    }
}

/// The sizes, the fee, every input and every output.
fn print_parts(snapshot: &Snapshot, tx: &Tx<'_>) -> Result<()> {
    let network = snapshot.network();
    let size = virtual_size(tx);
    print_size(tx, network, size);
    println!("  version    {}, lock time {}", tx.version(), tx.lock_time());
    let spent = snapshot.spent_outputs(tx)?;
    if let Some(fee) = fee(tx, &spent) {
        println!("  fee        {fee}, {}", rate(fee, size));
    }
    for (vin, (input, spent)) in tx.inputs().zip(&spent).enumerate() {
        let label = format!("input {vin}");
        if tx.is_coinbase() {
            println!("  {label:<10} coinbase {}", input.script.to_lower_hex_string());
            continue;
        }
        println!("  {label:<10} {}", input.outpoint);
        if let Some(output) = spent {
            let script = described(&output.script, network);
            println!("             {} from {script}", output.value);
        }
    }
    for (vout, output) in tx.outputs().enumerate() {
        let label = format!("output {vout}");
        println!("  {label:<10} {} to {}", output.value, described(output.script, network));
    }
    Ok(())
}

fn print_size(tx: &Tx<'_>, network: Network, size: u64) {
    let bytes = tx.bytes().len();
    match network.is_bsv() {
        true => println!("  size       {bytes} bytes"),
        false => println!("  size       {bytes} bytes, {size} virtual, weight {}", weight(tx)),
    }
}

/// The weight (BIP141): bytes without witness count four times.
fn weight(tx: &Tx<'_>) -> u64 {
    3 * tx.base_len() as u64 + tx.bytes().len() as u64
}

fn virtual_size(tx: &Tx<'_>) -> u64 {
    weight(tx).div_ceil(4)
}

/// The sum of the inputs less that of the outputs, where all inputs are known.
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

//! `varve address`: what an address was paid, has spent and holds.

use anyhow::{Result, bail};
use varve::types::address;
use varve::{Mempool, Network, Order, ScriptHash};
use varve_server::json;

use crate::args::{self, Global};
use crate::data_dir::DataDir;
use crate::output::print_json;

/// Runs the command.
pub(crate) fn run(args: &args::Address, global: &Global) -> Result<()> {
    let snapshot = DataDir::new(global).open_node()?.snapshot();
    let hash = script_hash(&args.script, snapshot.network())?;
    let script = snapshot.script(hash)?;
    let script = match args.at {
        Some(height) => script.at(height)?,
        None => script,
    };
    let summary = script.summary()?;
    let page = script.history(Order::Ascending, args.cursor, args.limit)?;
    // The first page alone lists them.
    let utxos = if args.cursor.is_none() { script.unspent()? } else { Vec::new() };
    let mempool = if args.at.is_none() { snapshot.stored_mempool()? } else { None };
    if global.json {
        let answer = json::Address::new(&script, &summary, (&page.txs, page.cursor), &utxos);
        return print_json(&match &mempool {
            Some(mempool) => answer.with_mempool(mempool, args.cursor.is_none()),
            None => answer,
        });
    }
    println!("script hash  {hash}");
    println!("balance      {} satoshi", summary.balance.to_sat());
    if args.at.is_none() {
        let delta = mempool.as_ref().map(|mempool| mempool.script_delta(hash).balance());
        println!("unconfirmed  {:+} satoshi", delta.unwrap_or_default());
    }
    println!(
        "counts       {} outputs funded, {} spent, {} transactions",
        summary.funded, summary.spent, summary.txs
    );
    println!(
        "as of        {}",
        args.at.map_or_else(|| script.tip().to_string(), |at| format!("height {at}"))
    );
    for tx in &page.txs {
        let (received, sent) = (tx.received.to_sat(), tx.sent.to_sat());
        println!("  {:>8}  {}  +{received} -{sent}", tx.height, tx.txid);
    }
    match (page.cursor, &mempool) {
        (Some(cursor), _) => println!("more: pass --cursor {cursor}"),
        (None, Some(mempool)) => print_unconfirmed(mempool, hash),
        (None, None) => {}
    }
    if !utxos.is_empty() {
        println!("unspent");
    }
    for output in &utxos {
        println!("  {:>8}  {}  {}", output.height, output.outpoint, output.value.to_sat());
    }
    Ok(())
}

/// Transactions that no block has yet.
fn print_unconfirmed(mempool: &Mempool, hash: ScriptHash) {
    for tx in mempool.moves(hash) {
        let (received, sent) = (tx.received.to_sat(), tx.sent.to_sat());
        println!("  mempool   {}  +{received} -{sent}", tx.item.txid);
    }
}

/// A script hash of 64 digits as Electrum writes it, or else an address of the network.
fn script_hash(text: &str, network: Network) -> Result<ScriptHash> {
    if let Ok(hash) = text.parse() {
        return Ok(hash);
    }
    match address::decode(text, network) {
        Ok(script) => Ok(ScriptHash::of(&script)),
        Err(error) => bail!("{error}; a script hash has 64 hexadecimal digits"),
    }
}

//! Opens a chain and looks a transaction up: `cargo run --example look_up -- FOLDER TXID`.

use std::env;

use anyhow::{Context as _, Result};
use varve::{Node, Outpoint, Txid};

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().context("usage: look_up FOLDER TXID")?;
    let txid: Txid = arguments.next().context("usage: look_up FOLDER TXID")?.parse()?;

    let node = Node::open(folder)?;
    let snapshot = node.snapshot(); // one moment: all answers below are of the same tip
    println!("at {}", snapshot.tip());

    let tx = snapshot.tx(txid)?.context("no stored block has that transaction")?;
    println!("{txid} is in block {} at height {}", tx.block.hash, tx.block.height);
    for (vout, output) in (0..).zip(tx.parse()?.outputs()) {
        match snapshot.spender(Outpoint::new(txid, vout))? {
            Some(spender) => println!("  {vout}: {}, spent by {}", output.value, spender.txid),
            None => println!("  {vout}: {}, unspent", output.value),
        }
    }
    Ok(())
}

//! `varve invalidate` and `varve reconsider`: an operator's verdict on a block, and its reversal.

use anyhow::Result;
use varve::{BlockHash, Error, Node, Verdict};
use varve_server::json;

use crate::args::Global;
use crate::data_dir::DataDir;
use crate::output::print_json;

/// Runs `varve invalidate`.
pub(crate) fn invalidate(block: BlockHash, global: &Global) -> Result<()> {
    run(block, Node::invalidate, global)
}

/// Runs `varve reconsider`.
pub(crate) fn reconsider(block: BlockHash, global: &Global) -> Result<()> {
    run(block, Node::reconsider, global)
}

fn run(
    block: BlockHash,
    judge: impl FnOnce(&Node, BlockHash) -> Result<Verdict, Error>,
    global: &Global,
) -> Result<()> {
    let node = DataDir::new(global).open_node()?;
    let verdict = judge(&node, block)?;
    for (hash, reason) in &verdict.refused {
        eprintln!("block {hash} is refused: {reason}");
    }
    if global.json {
        return print_json(&json::Verdict::new(block, &verdict));
    }
    println!("at {}", verdict.tip);
    Ok(())
}

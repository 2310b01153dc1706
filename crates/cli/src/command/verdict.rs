//! `varve invalidate` and `varve reconsider`: verdicts that an operator gives and takes back.

use anyhow::Result;
use serde_json::json;
use varve_node::Report;
use varve_types::BlockHash;

use crate::args::Global;
use crate::data_dir::DataDir;

/// What becomes of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// It is marked as invalid.
    Invalidate,
    /// Its mark is taken back, and those of all below and above it.
    Reconsider,
}

/// Runs the command.
pub(crate) fn run(block: BlockHash, verdict: Verdict, global: &Global) -> Result<()> {
    let mut node = DataDir::new(global)?.open_node()?;
    let mut refused = 0_u64;
    let report = &mut |report: Report<'_>| {
        if let Report::Refused { hash, reason } = report {
            refused += 1;
            eprintln!("block {hash} is refused: {reason}");
        }
    };
    match verdict {
        Verdict::Invalidate => node.invalidate(block, report)?,
        Verdict::Reconsider => node.reconsider(block, report)?,
    }
    let (height, hash) = node.snapshot().tip;
    let invalid = node.invalid(&block).map(|invalid| invalid.reason.to_string());
    if global.json {
        let answer = json!({
            "block": block.to_string(),
            "invalid": invalid,
            "height": height.to_u32(),
            "bestblock": hash.to_string(),
            "refused": refused,
        });
        println!("{answer}");
    } else {
        println!("at height {height}, block {hash}");
    }
    Ok(())
}

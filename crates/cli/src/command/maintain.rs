//! `varve verify` and `varve repair`: is everything whole, and if not, make it anew.

use anyhow::Result;
use serde_json::json;

use crate::args::Global;
use crate::data_dir::DataDir;
use crate::progress::Progress;

/// Runs `varve verify`.
pub(crate) fn verify(global: &Global) -> Result<()> {
    let node = DataDir::new(global)?.open_node()?;
    let mut progress = Progress::start_counting("verify", "blocks and coins", 0);
    let verified = node.verify(&mut |done, all| {
        progress.set_length(all);
        progress.set(done, 0);
    })?;
    progress.finish(0);
    let (height, hash) = node.snapshot().tip;
    if global.json {
        let answer = json!({
            "height": height.to_u32(),
            "bestblock": hash.to_string(),
            "blocks": verified.blocks,
            "pruned": verified.pruned,
            "transactions": verified.transactions,
            "inputs": verified.inputs,
            "txouts": verified.coins,
        });
        println!("{answer}");
    } else {
        println!(
            "all is whole at height {height}, block {hash}: {} blocks, {} transactions, {} inputs, \
             {} unspent outputs",
            verified.blocks, verified.transactions, verified.inputs, verified.coins
        );
        if verified.pruned > 0 {
            println!(
                "{} blocks are pruned: what takes their bytes was not compared",
                verified.pruned
            );
        }
    }
    Ok(())
}

/// Runs `varve repair`.
pub(crate) fn repair(global: &Global) -> Result<()> {
    let node = DataDir::new(global)?.repair_node()?;
    let (height, hash) = node.snapshot().tip;
    let blocks = node.snapshot().blocks.count();
    if global.json {
        let answer = json!({
            "height": height.to_u32(),
            "bestblock": hash.to_string(),
            "blocks": blocks,
        });
        println!("{answer}");
    } else {
        println!("made anew from {blocks} blocks, at height {height}, block {hash}");
    }
    Ok(())
}

//! `varve verify` and `varve repair`: check every store, and rebuild what derives from blocks.

use anyhow::Result;
use varve_server::json;

use crate::args::Global;
use crate::data_dir::DataDir;
use crate::output::print_json;
use crate::progress::Progress;

/// Runs `varve verify`.
pub(crate) fn verify(global: &Global) -> Result<()> {
    let node = DataDir::new(global).open_node()?;
    let mut progress = Progress::start_counting("verify", "blocks and coins", 0);
    let verified = node.verify(&mut |done, all| {
        progress.set_length(all);
        progress.set(done, 0);
    })?;
    progress.finish(0);
    let tip = node.snapshot().tip();
    if global.json {
        return print_json(&json::Verify::new(tip, &verified));
    }
    println!(
        "no fault found at {tip}: {} blocks, {} transactions, {} inputs, {} unspent outputs",
        verified.blocks, verified.transactions, verified.inputs, verified.coins
    );
    if verified.pruned > 0 {
        println!("{} blocks are pruned; what needs their bytes was not checked", verified.pruned);
    }
    Ok(())
}

/// Runs `varve repair`.
pub(crate) fn repair(global: &Global) -> Result<()> {
    let node = DataDir::new(global).builder_showing("repair").repair()?;
    let (tip, blocks) = (node.snapshot().tip(), node.status()?.stores.blocks);
    if global.json {
        return print_json(&json::Repair::new(tip, blocks));
    }
    println!("rebuilt from {blocks} blocks, at {tip}");
    Ok(())
}

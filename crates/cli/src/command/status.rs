//! `varve status`: which chain is stored, how far it goes, and what the stores hold.

use anyhow::Result;
use indicatif::BinaryBytes;
use varve::records::RecordStore;
use varve::{Budget, IndexStatus, Invalid, MemorySplit, Prune, ScriptsChecked, Status};
use varve_server::json;

use crate::args::Global;
use crate::data_dir::DataDir;
use crate::output::print_json;

/// Runs the command.
pub(crate) fn run(global: &Global) -> Result<()> {
    let data = DataDir::new(global);
    let status = data.open_node()?.status()?;
    let records = data.builder().records_path().ok();
    let records = records.and_then(|path| RecordStore::index_memory(&path, global.memory));
    if global.json {
        return print_json(&json::Status::new(&status, records));
    }
    print_chain(&status);
    print_kept(&status);
    if let Some((budget, set)) = status.memory {
        print_memory(&budget, &set);
    }
    if let Some(records) = records {
        println!("  records    index of {} in memory, beside the above", BinaryBytes(records));
    }
    for tip in status.chain_tips.iter().filter(|tip| tip.branch_length > 0) {
        let (height, length) = (tip.height, tip.branch_length);
        println!("  branch     {} at height {height}, {length} blocks long", tip.hash);
    }
    for Invalid { block, reason } in &status.invalid {
        println!("  refused    {block}: {reason}");
    }
    Ok(())
}

fn print_chain(status: &Status) {
    let Status { network, tip, headers, stores, .. } = status;
    println!("  network    {network}");
    println!("  tip        {} at height {}, headers up to {headers}", tip.hash, tip.height);
    println!("  stored     {} blocks, {} transactions", stores.blocks, stores.transactions);
    println!("  unspent    {} outputs", stores.coins);
    println!("  scripts    {}", scripts_line(status.scripts, status.can_check_scripts()));
}

/// How far scripts were checked. A later sync can check the rest, or not.
fn scripts_line(scripts: ScriptsChecked, can_be_checked: bool) -> String {
    let ScriptsChecked { checked_to, assumed_to, unchecked } = scripts;
    let assumed = match assumed_to {
        Some(height) => format!(", assumed to be valid up to {height}"),
        None => String::new(),
    };
    match unchecked {
        0 => format!("checked up to height {checked_to}{assumed}"),
        _ if !can_be_checked => {
            format!("checked up to height {checked_to}{assumed}; not of {unchecked} blocks")
        }
        _ => format!(
            "checked up to height {checked_to}{assumed}; not of {unchecked} blocks, which `varve \
             sync --verify scripts` checks"
        ),
    }
}

/// How much of the blocks is kept, and the optional indexes.
fn print_kept(status: &Status) {
    if let Prune::To(bytes) = status.prune {
        println!("  prune      to {bytes} bytes of blocks");
    }
    if let Some(height) = status.pruned_below {
        println!("  pruned     the bytes of blocks below height {height}");
    }
    for IndexStatus { index, height, damaged, .. } in &status.indexes {
        match (height, damaged) {
            (_, Some(what)) => {
                println!("  index      {index}, damaged: {what}; `varve repair` rebuilds it");
            }
            (Some(height), None) => println!("  index      {index}, up to height {height}"),
            (None, None) => println!("  index      {index}, not begun; the next sync builds it"),
        }
    }
}

fn print_memory(budget: &Budget, set: &MemorySplit) {
    let size = |bytes: usize| BinaryBytes(bytes as u64);
    println!(
        "  memory     {}: program {}, headers {}, archive {}, blocks on their way {}, unspent set \
         {}",
        size(budget.memory),
        size(budget.program),
        size(budget.headers),
        size(budget.archive),
        size(budget.blocks),
        size(budget.set)
    );
    println!(
        "  set        {}: window {}, index {}, blocks being joined {}, undo records {}, page \
         buffers {}",
        size(budget.set),
        size(set.window),
        size(set.index + set.merge),
        size(set.joining),
        size(set.undo),
        size(set.buffers)
    );
}

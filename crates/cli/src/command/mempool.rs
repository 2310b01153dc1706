//! `varve mempool`: the unconfirmed transactions that the last sync has left in the folder.

use anyhow::Result;
use varve::{FeeBin, Mempool};
use varve_server::json;

use crate::args::Global;
use crate::data_dir::DataDir;
use crate::date::utc;
use crate::output::print_json;

/// Targets that estimates are printed for.
const TARGETS: [u32; 4] = [1, 3, 6, 144];
/// Transactions that are listed.
const LISTED: usize = 10;

/// Runs the command.
pub(crate) fn run(global: &Global) -> Result<()> {
    let snapshot = DataDir::new(global).open_node()?.snapshot();
    let mempool = snapshot.stored_mempool()?;
    if global.json {
        return print_json(&json::Mempool::new(mempool.as_deref(), snapshot.tip()));
    }
    match mempool {
        Some(mempool) => print(&mempool),
        None => println!(
            "this folder keeps no unconfirmed transactions; `varve sync --follow` takes them from \
             --peer or --rpc once it has caught up"
        ),
    }
    println!("as of          {}", snapshot.tip());
    Ok(())
}

fn print(mempool: &Mempool) {
    let totals = mempool.totals();
    println!("transactions   {}", totals.sum.count);
    println!("size           {} virtual bytes, {} in memory", totals.sum.vsize, totals.memory);
    println!("fees           {} satoshi", totals.sum.fees.to_sat());
    println!("lowest rate    {}", totals.min_rate);
    for target in TARGETS {
        println!("within {target:<7} {}", mempool.estimate(target));
    }
    let bins = mempool.esplora_histogram();
    for FeeBin { rate, vsize } in &bins {
        println!("  from {rate}: {vsize} virtual bytes");
    }
    for entry in mempool.best(LISTED) {
        let time = u32::try_from(entry.time()).unwrap_or(u32::MAX);
        println!("  {}  {}, {} vB, {}", entry.txid(), entry.rate(), entry.vsize(), utc(time));
    }
}

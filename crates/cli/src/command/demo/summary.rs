//! What the demo prints at its end.

use std::cmp::Reverse;

use varve::{Statistics, shown_hash};

use super::{Rates, Reading, WARM_UP};

/// The figures of the chain that was simulated, synced and checked.
pub(super) fn print(reading: &Reading, counted: &Statistics, rates: &Rates) {
    let stats = &reading.stats;
    println!();
    println!("  tip        {}", reading.tip);
    println!("  chain      {} blocks, {} transactions", reading.blocks, reading.transactions);
    println!("  parsed     {:.0} MB/s with every txid and merkle root, one thread", rates.parse);
    println!("  synced     {:.0} MB/s, checked, stored and archived", rates.sync);
    println!("  unspent    {} outputs, as the simulator's own model says:", counted.txouts);
    println!("             {}", counted.hash.map(shown_hash).unwrap_or_default());
    if stats.transactions == 0 {
        println!("  (too short for figures: try more than {WARM_UP} blocks)");
        return;
    }
    println!("  a block    {} transactions", stats.transactions / stats.blocks.max(1));
    println!(
        "  each       {} inputs, {} outputs, {} bytes",
        average(stats.inputs, stats.transactions),
        average(stats.outputs, stats.transactions),
        stats.transaction_bytes / stats.transactions,
    );
    let mut classes: Vec<_> = stats.classes.iter().collect();
    classes.sort_by_key(|&(class, count)| (Reverse(*count), *class));
    let mix: Vec<String> = classes
        .iter()
        .map(|&(class, &count)| format!("{class} {}", percent(count, stats.outputs)))
        .collect();
    println!("  outputs    {}", mix.join(", "));
    let [same_block, young, older] = stats.ages;
    println!(
        "  spent      {} in their own block, {} within 144 blocks, {} later",
        percent(same_block, stats.inputs),
        percent(young, stats.inputs),
        percent(older, stats.inputs),
    );
}

/// A quotient with two decimals.
fn average(sum: u64, count: u64) -> String {
    let hundredths = sum * 100 / count.max(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// A share in percent with one decimal.
fn percent(part: u64, whole: u64) -> String {
    let tenths = part * 1000 / whole.max(1);
    format!("{}.{}%", tenths / 10, tenths % 10)
}

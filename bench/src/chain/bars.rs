//! What was measured, as a table, and the bars.

use anyhow::Result;
use varve_bench::figures::Figures;
use varve_bench::ratio::Ratio;

use super::Results;
use super::peer::Took;

const SPEED: [&str; 2] = ["chain.mb_per_s", "chain.core"];
/// The limit for the archive.
const BYTES_A_TRANSACTION: f64 = 60.0;
const BYTES_AN_INPUT: f64 = 16.0;

/// Prints the head of the table of runs.
pub(super) fn print_head() {
    println!(
        "{:16} {:>9} {:>9} {:>9} {:>8} {:>9} {:>10}",
        "side", "seconds", "MB/s", "cpu s", "others", "write MB", "memory MiB"
    );
}

/// Prints a run of ours.
pub(super) fn print_side(side: &str, figures: &Figures) -> Result<()> {
    let number = |name| figures.number(name);
    println!(
        "{side:16} {:9.2} {:9.1} {:9.2} {:7.0}% {:9.0} {:10.0}{}",
        number("seconds")?,
        number("bytes")? / number("seconds")? / 1e6,
        number("cpu")?,
        number("others")? * 100.0,
        number("written")? / 1e6,
        number("resident")? / f64::from(1 << 20),
        if number("disturbed")? == 0.0 { "" } else { "  disturbed" },
    );
    Ok(())
}

/// Prints a run of the real node.
pub(super) fn print_peer(took: &Took) {
    let Took { measured, to_tip } = took;
    println!(
        "{:16} {:9.2} {:>9} {:9.2} {:7.0}% {:9.0} {:>10}{}",
        "bitcoind",
        measured.wall,
        "",
        measured.cpu,
        measured.others() * 100.0,
        measured.written as f64 / 1e6,
        "",
        if measured.is_disturbed() { "  disturbed" } else { "" },
    );
    println!("  of which {to_tip:.2} s to the tip, the rest writing its cache");
}

/// All bars. Prints the figures behind them.
pub(super) fn of(results: &Results) -> Result<Vec<Ratio>> {
    let Results { varve, peer, recovered, reorg } = results;
    let number = |name| varve.number(name);
    let seconds = number("seconds")?;
    let rate = number("bytes")? / seconds / 1e6;
    let mut bars = vec![Ratio::at_least("chain.mb_per_s", rate, 200.0)];
    match peer {
        Some(took) => bars.push(Ratio::at_least("chain.core", took.measured.wall / seconds, 5.0)),
        None => println!("chain.core is not measured: there is no bitcoind"),
    }
    bars.push(size(varve)?);
    for (name, figure) in
        [("chain.tx_lookup", "tx_lookup"), ("chain.spender_lookup", "spender_lookup")]
    {
        bars.push(Ratio::at_least(name, number(figure)?, 500_000.0));
    }
    println!(
        "lookups a second: {:.2} million transactions, {:.2} million spenders one by one ({:.2} \
         with the txid), {:.2} million 64 at a time",
        number("tx_lookup")? / 1e6,
        number("spender_lookup")? / 1e6,
        number("spender_txid")? / 1e6,
        number("spender_batch")? / 1e6,
    );
    let turned = reorg.number("reorg6")?;
    println!("the slowest of {} reorganisations: {:.0} ms", reorg.text("reorgs")?, turned * 1e3);
    bars.push(Ratio::at_most("chain.reorg6", turned, 0.25));
    let opened = recovered.number("recover")?;
    println!("after a kill: {opened:.2} s to open, at height {}", recovered.text("recovered_to")?);
    bars.push(Ratio::at_most("chain.recover", opened, 5.0));
    Ok(bars)
}

/// Whether a profile of the sync shows what limits the bar.
pub(super) fn is_of_speed(bar: &Ratio) -> bool {
    SPEED.contains(&bar.name())
}

fn size(varve: &Figures) -> Result<Ratio> {
    let number = |name| varve.number(name);
    let (transactions, inputs) = (number("transactions")?, number("inputs")?);
    let (archive, index) = (number("archive_bytes")?, number("index_bytes")?);
    let allowed = BYTES_A_TRANSACTION * transactions + BYTES_AN_INPUT * inputs;
    println!(
        "{transactions} transactions, {inputs} inputs: {:.1} MB of archive, {:.1} MB of block \
         index, {:.1} MB allowed",
        archive / 1e6,
        index / 1e6,
        allowed / 1e6
    );
    Ok(Ratio::at_most("chain.archive_bytes", archive + index, allowed))
}

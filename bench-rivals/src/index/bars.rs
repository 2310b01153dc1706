//! The bars, from what was measured.

use anyhow::{Context as _, Result};
use varve_bench::ratio::Ratio;

use super::rows::{ROWS, TXS};
use super::table::{parts, seconds};
use crate::child::Outcome;

/// Bytes a transaction for its place, which these tables do not have: an allowance. The archive
/// stores lengths in about ten bits each (`tx_len`), and a block row for all of a block.
const PLACE: f64 = 2.0;

/// Everything that was measured.
#[derive(Debug)]
pub(super) struct Results {
    /// The large tables.
    pub(super) built: Outcome,
    pub(super) cold: Outcome,
    /// The race against the rivals.
    pub(super) varve: Outcome,
    pub(super) rocksdb: [Outcome; 2],
    pub(super) fjall: Outcome,
    /// On tables of 5 million transactions: with young rows, and with runs.
    pub(super) warm: [Outcome; 2],
}

/// A bar, and whether a profile of the race shows what limits it.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) ratio: Ratio,
    pub(super) speed: bool,
}

/// All bars. Prints the figures behind them.
pub(super) fn of(results: &Results) -> Result<Vec<Bar>> {
    let Results { built, cold, warm, .. } = results;
    let number = |name| built.figures.number(name);
    let mut bars = Vec::new();
    let mut push = |ratio, speed| bars.push(Bar { ratio, speed });
    push(flat(built)?, true);
    let rate = number("rows")? / seconds(built)? / 1e6;
    push(Ratio::at_least("index.rows", rate, 6.0), true);
    for ratio in rivals(results)? {
        push(ratio, true);
    }
    push(bytes(built)?, false);
    let written = number("written")?.max(number("written_by_tables")?);
    push(Ratio::at_most("index.write_amp", written / number("bytes")?, 4.0), false);
    for (bar, figure) in [("index.cold", "cold_found"), ("index.cold_absent", "cold_absent")] {
        let figures = &cold.figures;
        let reads = figures.number(figure)?;
        println!(
            "{bar}: {:.3} pages a txid by the table's count, {:.3} by the kernel's; {:.0} µs",
            figures.number(&format!("{figure}_by_table"))?,
            figures.number(&format!("{figure}_by_kernel"))?,
            figures.number(&format!("{figure}_us"))?
        );
        push(Ratio::at_most(bar, reads, 1.3), false);
    }
    let mut slower = f64::MAX;
    for (of, outcome) in ["young rows", "runs"].into_iter().zip(warm) {
        let [one, many] = ["warm_1", "warm_64"].map(|name| outcome.figures.number(name));
        let (one, many) = (one?, many?);
        println!(
            "{of} in memory: {:.2} million txids a second one by one, {:.2} million 64 at a time",
            one / 1e6,
            many / 1e6
        );
        slower = slower.min(one);
    }
    push(Ratio::at_least("index.warm", slower, 500_000.0), false);
    Ok(bars)
}

fn flat(built: &Outcome) -> Result<Ratio> {
    let rows = built.figures.number("rows")?;
    let parts = parts(built)?;
    let each = rows / parts.len() as f64;
    let times: Vec<String> = parts.iter().map(|part| format!("{:.0}", part / each * 1e9)).collect();
    let number = |name| built.figures.number(name);
    println!(
        "ns a row, tenth by tenth: {}; {:.1} s after the last row, {:.1} of them for one run",
        times.join(" "),
        number("finish")?,
        number("tidied")?
    );
    println!(
        "{} runs; {:.0} MB of directories and filters in memory",
        number("runs")?,
        number("index")? / 1e6
    );
    let (first, last) = parts.first().zip(parts.last()).context("a race has parts")?;
    Ok(Ratio::at_most("index.flat", last / first, 1.3))
}

fn rivals(results: &Results) -> Result<[Ratio; 2]> {
    let Results { varve, rocksdb, fjall, .. } = results;
    let size = |outcome: &Outcome| outcome.figures.number("bytes");
    let [level, universal] = rocksdb;
    let fastest = seconds(level)?.min(seconds(universal)?);
    let smallest = size(level)?.min(size(universal)?);
    println!(
        "fjall takes {:.1} times our time and {:.1} times our bytes",
        seconds(fjall)? / seconds(varve)?,
        size(fjall)? / size(varve)?
    );
    Ok([
        Ratio::at_least("index.rocksdb", fastest / seconds(varve)?, 8.0),
        Ratio::at_least("index.rocksdb_size", smallest / size(varve)?, 1.5),
    ])
}

fn bytes(built: &Outcome) -> Result<Ratio> {
    let txs = built.figures.number("rows")? / ROWS as f64 * f64::from(TXS);
    let [tx, spend] = ["bytes_tx", "bytes_spend"].map(|name| built.figures.number(name));
    let (tx, spend) = (tx? / txs, spend? / txs);
    println!(
        "bytes a transaction: {tx:.2} for the txid, {spend:.2} for spenders, {PLACE} allowed for \
         its place (not measured here)"
    );
    Ok(Ratio::at_most("index.bytes", tx + spend + PLACE, 24.0))
}

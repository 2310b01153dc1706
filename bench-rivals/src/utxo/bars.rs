//! The bars, from what was measured.

use anyhow::Result;
use varve_bench::ratio::Ratio;
use varve_utxo::Parameters;
use varve_utxo::parts::Forecast;

use super::Results;
use super::table::seconds;
use crate::child::Outcome;

/// Blocks that the forecast of writing goes over.
const FORECAST_BLOCKS: u32 = 100_000;
/// How many blocks old mainnet's coins are, about.
const COIN_AGE: u32 = 300_000;

/// A bar, and the side whose profile shows what limits it.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) ratio: Ratio,
    /// A side, or nothing when a profile does not help.
    pub(super) limited_by: &'static str,
}

/// All bars. Prints the figures behind them.
pub(super) fn of(results: &Results) -> Result<Vec<Bar>> {
    let mut bars = Vec::new();
    speed(results, &mut bars)?;
    cold(results, &mut bars)?;
    size(results, &mut bars)?;
    going_back(results, &mut bars)?;
    others(results, &mut bars)?;
    Ok(bars)
}

fn push(bars: &mut Vec<Bar>, ratio: Ratio, limited_by: &'static str) {
    bars.push(Bar { ratio, limited_by });
}

fn number(outcome: &Outcome, name: &str) -> Result<f64> {
    outcome.figures.number(name)
}

fn speed(results: &Results, bars: &mut Vec<Bar>) -> Result<()> {
    let Results { varve, map, rocksdb, lmdb, fjall, small, .. } = results;
    let ours = seconds(varve)?;
    let against = [
        ("utxo.rocksdb", rocksdb, 10.0),
        ("utxo.lmdb", lmdb, 10.0),
        ("utxo.fjall", fjall, 5.0),
        ("utxo.ram", map, 1.5),
    ];
    for (name, rival, goal) in against {
        push(bars, Ratio::at_least(name, seconds(rival)? / ours, goal), "varve");
    }
    let flat = number(varve, "block_ms")? / number(small, "block_ms")?;
    push(bars, Ratio::at_most("utxo.flat", flat, 1.3), "varve");
    for threads in ["lookups_1", "lookups_2"] {
        let rate = number(varve, threads)? / 1e6;
        println!("{threads}: {rate:.2} million coins a second from memory");
    }
    Ok(())
}

fn cold(results: &Results, bars: &mut Vec<Bar>) -> Result<()> {
    let Results { varve_cold, rocksdb_cold, .. } = results;
    let ratio = seconds(rocksdb_cold)? / seconds(varve_cold)?;
    push(bars, Ratio::at_least("utxo.rocksdb_cold", ratio, 3.0), "varve-cold");
    let (coins, device) = (number(varve_cold, "cold_reads")?, number(varve_cold, "device_reads")?);
    let least = number(varve_cold, "device_reads_least")?;
    println!("cold: {coins:.0} coins a second; the device {device:.0} pages ({least:.0} at worst)");
    push(bars, Ratio::at_least("utxo.device", coins / device, 0.7), "varve-cold");
    Ok(())
}

fn size(results: &Results, bars: &mut Vec<Bar>) -> Result<()> {
    let Results { varve, block_bytes, .. } = results;
    let memory = number(varve, "memory_per_coin")?;
    let (disk, snapshot) = (number(varve, "disk_per_coin")?, number(varve, "snapshot_per_coin")?);
    println!("a coin: {memory:.2} bytes of memory, {disk:.1} of disk, {snapshot:.1} in a snapshot");
    push(bars, Ratio::at_most("utxo.memory_per_coin", memory, 1.5), "");
    push(bars, Ratio::at_most("utxo.disk", disk / snapshot, 1.2), "");
    let parts = ["flushed", "merged", "windows", "undo"];
    let mut measured = 0.0;
    let mut shares = Vec::new();
    for part in parts {
        let bytes = number(varve, &format!("written_{part}"))? / block_bytes;
        measured += bytes;
        shares.push(format!("{part} {bytes:.2}"));
    }
    println!("written for a byte of block data: {measured:.2} measured ({})", shares.join(", "));
    let forecast = Forecast::of(&Parameters::default(), FORECAST_BLOCKS, COIN_AGE);
    let Forecast { flushed, merged, windows, undo, most_runs, .. } = forecast;
    let total = forecast.total();
    println!(
        "  {total:.2} over {FORECAST_BLOCKS} blocks from 170 million coins (flushed {flushed:.2}, \
         merged {merged:.2}, windows {windows:.2}, undo {undo:.2}), {most_runs} runs at most"
    );
    let (debt, runs) = (number(varve, "debt_bytes")? / 1e6, number(varve, "runs")?);
    println!("merge debt at the end: {debt:.0} MB; {runs} runs");
    push(bars, Ratio::at_most("utxo.write_amp", total.max(measured), 1.0), "");
    Ok(())
}

fn going_back(results: &Results, bars: &mut Vec<Bar>) -> Result<()> {
    let Results { varve, recovered, .. } = results;
    println!(
        "after a kill: {:.2} s to open, {} blocks connected again",
        number(recovered, "crash_open")?,
        number(recovered, "replayed")?
    );
    let times = [
        ("utxo.reopen", number(varve, "reopen")?, 1.0),
        ("utxo.crash_reopen", number(recovered, "crash_reopen")?, 5.0),
        ("utxo.rewind6", number(varve, "rewind6")?, 0.05),
        ("utxo.rewind500", number(varve, "rewind500")?, 5.0),
    ];
    for (name, time, most) in times {
        println!("{name}: {:.1} ms", time * 1e3);
        push(bars, Ratio::at_most(name, time, most), "");
    }
    Ok(())
}

fn others(results: &Results, bars: &mut Vec<Bar>) -> Result<()> {
    let Results { scripts: [one, two], hostile, .. } = results;
    let (one, two) = (number(one, "blocks_per_second")?, number(two, "blocks_per_second")?);
    println!("with script checks: {one:.1} blocks a second on one processor, {two:.1} on two");
    push(bars, Ratio::at_least("utxo.cpus", two / one, 1.8), "scripts");
    let (import, lookup) = (number(hostile, "hostile_import")?, number(hostile, "hostile_lookup")?);
    println!(
        "hostile keys: import {import:.2} times, lookup {lookup:.2} times that of random ones"
    );
    push(bars, Ratio::at_most("utxo.hostile", import.max(lookup), 2.0), "");
    Ok(())
}

//! The size of the set: memory a coin, disk against Core's snapshot, and the debt of merges.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use varve_bench::figures::Figures;
use varve_io::{BLOCK, Disk, Storage};
use varve_utxo::Database;
use varve_utxo::parts::{RunNumber, Written, merge_runs};

use crate::stock::NETWORK;

/// The number of the merged run, which no other run has.
const MERGED: RunNumber = RunNumber(u64::MAX >> 1);

/// Reports `memory_per_coin`, `disk_per_coin` (when all runs are merged) and `snapshot_per_coin`,
/// the `runs` and the `debt_bytes` of merges that are due, and `written_…` by part since it was
/// opened.
pub(crate) fn report(set: &Database, scratch: &Path) -> Result<()> {
    let version = set.snapshot();
    let runs = version.runs();
    let infos = runs.infos();
    let coins: u64 = infos.iter().map(|run| run.adds).sum::<u64>()
        - infos.iter().map(|run| run.deletes).sum::<u64>();
    Figures::report("memory_per_coin", runs.memory() as f64 / coins as f64);
    Figures::report("debt_bytes", set.merge_debt());
    Figures::report("runs", infos.len());
    let Written { flushed, merged, windows, undo } = set.written();
    Figures::report("written_flushed", flushed);
    Figures::report("written_merged", merged);
    Figures::report("written_windows", windows);
    Figures::report("written_undo", undo);
    let waits = set.waits();
    Figures::report("waits", format!("{}+{}", waits.for_memory, waits.for_runs));

    let mut snapshot = Counter(0);
    let exported = version.export(NETWORK, &mut snapshot, &mut |_, _| ())?;
    Figures::report("snapshot_per_coin", snapshot.0 as f64 / exported as f64);

    std::fs::create_dir_all(scratch)?;
    let storage: Arc<dyn Storage> = Arc::new(Disk::open(scratch)?);
    let merged = merge_runs(&storage, *runs.key(), MERGED, runs.as_slice(), true)?;
    let merged = merged.context("the set is empty")?.info();
    let bytes = merged.pages * BLOCK as u64;
    Figures::report("disk_per_coin", bytes as f64 / merged.adds as f64);
    drop(storage);
    Ok(std::fs::remove_dir_all(scratch)?)
}

/// Counts what is written to it.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! Lookups by txid in the table that a race left: pages read for one, and how many a second.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use rustix::fs::{Advice, fadvise};
use varve_archive::search::{Fingerprint, SearchReader};
use varve_bench::clock::Clock;
use varve_bench::figures::Figures;
use varve_io::BLOCK;

use super::rows::{Kind, Probe, probes};
use super::varve::{at_rest, reopen};

/// Txids that are looked up from the disk.
const COLD_PROBES: usize = 20_000;
/// Txids that are looked up from memory.
const WARM_PROBES: usize = 400_000;
const THREADS: usize = 2;
const ROUNDS: usize = 3;
/// Txids looked up at once in the batched measurement: about what a page of an explorer shows.
const BATCH: usize = 64;

/// Reports `cold_found` and `cold_absent`: pages read from the disk for one txid. Each is the
/// larger of what the kernel counts and what the table counts.
pub(super) fn cold(folder: &Path, blocks: u32) -> Result<()> {
    let reader = at_rest(folder, Kind::Tx, blocks)?;
    for (name, present) in [("cold_found", true), ("cold_absent", false)] {
        let probes = probes(Kind::Tx, blocks, COLD_PROBES, present);
        drop_cache(&folder.join(Kind::Tx.name()))?;
        let before = reader.page_reads().pages;
        let mut clock = Clock::new();
        clock.start();
        find_all(&reader, &probes, 1)?;
        clock.stop();
        let counted = (reader.page_reads().pages - before) as f64;
        let read = clock.measured().read as f64 / BLOCK as f64;
        let count = probes.len() as f64;
        Figures::report(name, counted.max(read) / count);
        Figures::report(&format!("{name}_by_table"), counted / count);
        Figures::report(&format!("{name}_by_kernel"), read / count);
        Figures::report(&format!("{name}_us"), clock.measured().wall * 1e6 / count);
    }
    Ok(())
}

/// Reports `warm_1` and `warm_64`: txids a second looked up one by one, and 64 at a time. Each is
/// looked up once before the clock starts; then two threads look up one half each, three times, and
/// the fastest time counts.
pub(super) fn warm(folder: &Path, blocks: u32) -> Result<()> {
    let table = reopen(folder, Kind::Tx, blocks)?;
    let reader = table.reader();
    let probes = probes(Kind::Tx, blocks, WARM_PROBES, true);
    find_all(&reader, &probes, BATCH)?;
    for batch in [1, BATCH] {
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            std::thread::scope(|scope| {
                let reader = &reader;
                let part = |part| scope.spawn(move || find_all(reader, part, batch));
                let parts = probes.chunks(probes.len().div_ceil(THREADS));
                let threads: Vec<_> = parts.map(part).collect();
                threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
            })?;
            best = best.min(begun.elapsed().as_secs_f64());
        }
        Figures::report(&format!("warm_{batch}"), probes.len() as f64 / best);
    }
    Ok(())
}

/// Looks up all probes, `batch` at a time. Each must be found at its link.
fn find_all(reader: &SearchReader, probes: &[Probe], batch: usize) -> Result<()> {
    let (mut keys, mut found) = (Vec::new(), Vec::new());
    for probes in probes.chunks(batch) {
        keys.clear();
        found.clear();
        keys.extend(probes.iter().map(|probe| Fingerprint::new(probe.hash)));
        reader.find(&keys, &mut found)?;
        let mut right = 0;
        for (key, link) in &found {
            let probe = probes.get(*key);
            right += usize::from(probe.is_some_and(|probe| probe.link == Some(link.to_u64())));
        }
        let expected = probes.iter().filter(|probe| probe.link.is_some()).count();
        ensure!(right == expected, "{right} of {expected} txids are found");
    }
    Ok(())
}

/// Evicts the files of a folder from the page cache, except what is mapped.
fn drop_cache(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let file = File::open(entry?.path())?;
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

//! Lookups without changes: from memory on one and two threads, and from the disk against the disk.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use varve_bench::figures::Figures;
use varve_io::{
    AlignedBuffer, BLOCK, BatchReader, Caching, Disk, File, FileOffset, Method, ReadRequest,
    Storage as _,
};
use varve_types::Outpoint;
use varve_utxo::{Database, Version};

use crate::block_maker::COINS;
use varve_testdata::Random;

/// Reads in flight at once, as many as the set itself has: `READ_DEPTH` in its version.
const DEPTH: u16 = 64;
/// How long the device is measured, before and after ours.
const DEVICE_TIME: Duration = Duration::from_secs(2);

/// Reports `lookups_1` and `lookups_2`: lookups a second of coins in memory.
pub(crate) fn warm(set: &Database, probes: &[Outpoint]) -> Result<()> {
    let version = set.snapshot();
    get_all(&version, probes)?;
    for threads in [1, 2] {
        let start = Instant::now();
        std::thread::scope(|scope| {
            let parts = probes.chunks(probes.len().div_ceil(threads));
            let threads: Vec<_> = parts
                .map(|part| {
                    let version = &version;
                    scope.spawn(move || get_all(version, part))
                })
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
        })?;
        let rate = probes.len() as f64 / start.elapsed().as_secs_f64();
        Figures::report(&format!("lookups_{threads}"), rate);
    }
    Ok(())
}

/// Reports `cold_reads`, coins a second read from the disk, and `device_reads`, pages a second that
/// the disk delivers at the same depth from the same file. The set must be one whose pages are read
/// past the cache.
pub(crate) fn cold(set: &Database, probes: &[Outpoint]) -> Result<()> {
    let version = set.snapshot();
    let runs = version.runs().as_slice();
    let largest = runs.iter().max_by_key(|run| run.info().pages).context("there is no run")?;
    let before = device(largest.path(), largest.info().pages)?;
    let start = Instant::now();
    get_all(&version, probes)?;
    let rate = probes.len() as f64 / start.elapsed().as_secs_f64();
    let after = device(largest.path(), largest.info().pages)?;
    Figures::report("cold_reads", rate);
    Figures::report("device_reads", before.max(after));
    Figures::report("device_reads_least", before.min(after));
    Ok(())
}

/// Looks up all probes, as many at a time as a block has inputs.
fn get_all(version: &Arc<Version>, probes: &[Outpoint]) -> Result<()> {
    for part in probes.chunks(COINS) {
        let coins = version.get(part)?;
        ensure!(coins.iter().all(|coin| coin.is_some()), "a probe is not in the set");
    }
    Ok(())
}

/// Random pages a second.
fn device(path: &Path, pages: u64) -> Result<f64> {
    let folder = path.parent().context("a run lies in a folder")?;
    let name = path.file_name().and_then(|name| name.to_str()).context("a run has a name")?;
    let disk = Disk::open(folder)?;
    let file = disk.open(name, varve_io::Access::Read, Caching::Direct)?;
    let mut reader = BatchReader::with_method(Method::Ring, DEPTH);
    let mut random = Random::new(9);
    let pages = usize::try_from(pages)?;
    let mut request = |buffer| read_of(&file, random.index(pages) as u64, buffer);
    let first: Vec<_> = (0..DEPTH).map(|_| request(AlignedBuffer::zeroed(BLOCK))).collect();
    reader.submit(first);
    let (start, mut count) = (Instant::now(), 0_u64);
    while start.elapsed() < DEVICE_TIME {
        // One submission for all that have finished, as the set does.
        let mut again = Vec::new();
        let mut next = reader.next();
        while let Some(done) = next {
            again.push(request(done.result?));
            count += 1;
            next = reader.try_next();
        }
        reader.submit(again);
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    while reader.pending() > 0 {
        reader.next();
    }
    Ok(rate)
}

fn read_of(file: &Arc<dyn File>, page: u64, buffer: AlignedBuffer) -> ReadRequest {
    let offset = FileOffset::new(page * BLOCK as u64);
    ReadRequest { tag: page, file: Arc::clone(file), offset, buffer }
}

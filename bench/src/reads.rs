//! `cargo xtask bench reads`: random reads of 4 KiB a second, by the ring and by `pread`, past the
//! page cache and through it, and of a resident map.
//!
//! Writes a file of 1 GiB into the working directory with large direct writes, reads random pages
//! of it at several depths for two seconds each, checks the first bytes of every page, and removes
//! the file. On a busy machine the processor time of a read says more than the rate. Figures
//! through the cache are for cached pages.
//!
//! `reads.ring`: reads a second past the cache by the ring at depth 32 over those by `pread`. The
//! engines batch their reads for this factor.

#![expect(clippy::indexing_slicing, reason = "a measurement that panics has failed")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use varve_bench::ratio::Ratio;
use varve_io::{
    Access, AlignedBuffer, BLOCK, BatchReader, Caching, Disk, File, FileOffset, Method,
    ReadRequest, Storage,
};
use varve_testdata::Random;

use super::Effort;

const NAME: &str = "reads.tmp";
const MEBIBYTES: u64 = 1024;

pub(crate) fn run(effort: Effort) -> Result<()> {
    let seconds = match effort {
        Effort::Default => 2.0,
        Effort::Full => 10.0,
    };
    let folder = tempfile::tempdir_in(".")?;
    let disk = Disk::open(folder.path())?;
    let pages = MEBIBYTES * (1 << 20) / BLOCK as u64;
    write(&disk, pages)?;
    let (mut plain, mut deep) = (0.0, 0.0);
    for caching in [Caching::Direct, Caching::Buffered] {
        let file = disk.open(NAME, Access::Read, caching)?;
        if caching == Caching::Buffered {
            warm(&file, pages)?;
        }
        for (method, depth) in
            [(Method::Pread, 1), (Method::Ring, 1), (Method::Ring, 32), (Method::Ring, 256)]
        {
            let cpu = cpu_time();
            let rate = measure(&file, pages, method, depth, Duration::from_secs_f64(seconds))?;
            let nanos = (cpu_time() - cpu).as_secs_f64() * 1e9 / (rate * seconds);
            match (caching, method, depth) {
                (Caching::Direct, Method::Pread, _) => plain = rate,
                (Caching::Direct, Method::Ring, 32) => deep = rate,
                _ => {}
            }
            let name = format!("{caching:?} {method:?} depth {depth}");
            println!("{name}: {rate:.0} reads/s, {nanos:.0} ns of CPU each");
        }
        if caching == Caching::Buffered {
            let map = file.map(FileOffset::ZERO, pages * BLOCK as u64)?;
            println!("map, resident: {:.0} reads/s", measure_map(&map, pages, seconds));
        }
    }
    Ratio::at_least("reads.ring", deep / plain, 2.0).print();
    Ok(())
}

/// The time this thread has had on a CPU.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

fn write(disk: &Disk, pages: u64) -> varve_io::Result<()> {
    let file = disk.open(NAME, Access::Replace, Caching::Direct)?;
    let mut bulk = AlignedBuffer::zeroed(256 * BLOCK);
    let started = Instant::now();
    let mut page = 0_u64;
    while page < pages {
        let first = page;
        for place in bulk.chunks_mut(BLOCK) {
            place[..8].copy_from_slice(&page.to_le_bytes());
            page += 1;
        }
        file.write_at(FileOffset::new(first * BLOCK as u64), &bulk)?;
    }
    file.sync()?;
    let rate = (pages * BLOCK as u64) as f64 / started.elapsed().as_secs_f64() / 1e6;
    println!("direct 1 MiB writes with sync: {rate:.0} MB/s");
    Ok(())
}

fn warm(file: &Arc<dyn File>, pages: u64) -> varve_io::Result<()> {
    let mut bulk = vec![0; 256 * BLOCK];
    for first in (0..pages).step_by(256) {
        file.read_at(FileOffset::new(first * BLOCK as u64), &mut bulk)?;
    }
    Ok(())
}

fn measure(
    file: &Arc<dyn File>,
    pages: u64,
    method: Method,
    depth: u16,
    time: Duration,
) -> varve_io::Result<f64> {
    let mut reader = BatchReader::with_method(method, depth);
    let mut random = Random::new(1);
    let mut request = |buffer| {
        let page = random.below(pages);
        let offset = FileOffset::new(page * BLOCK as u64);
        ReadRequest { tag: page, file: Arc::clone(file), offset, buffer }
    };
    reader.submit((0..depth).map(|_| request(AlignedBuffer::zeroed(BLOCK))).collect::<Vec<_>>());
    let started = Instant::now();
    let mut count = 0_u64;
    let mut again = Vec::new();
    while started.elapsed() < time {
        // One submission for all that have finished, as an engine would.
        let mut next = reader.next();
        while let Some(done) = next {
            let page = done.result?;
            assert_eq!(page[..8], done.tag.to_le_bytes(), "the right page");
            again.push(request(page));
            count += 1;
            next = if method == Method::Ring { reader.try_next() } else { None };
        }
        reader.submit(again.drain(..));
    }
    Ok(count as f64 / started.elapsed().as_secs_f64())
}

fn measure_map(map: &[u8], pages: u64, seconds: f64) -> f64 {
    let started = Instant::now();
    let (mut random, mut count) = (Random::new(1), 0_u64);
    while started.elapsed().as_secs_f64() < seconds {
        for _ in 0..1000 {
            let page = random.below(pages);
            let start = usize::try_from(page).expect("mapped") * BLOCK;
            assert_eq!(map[start..start + 8], page.to_le_bytes());
            count += 1;
        }
    }
    count as f64 / started.elapsed().as_secs_f64()
}

//! Figures of the block store on this machine: appending, reading, packing, opening.
//!
//! `cargo run --release -p varve-blocks --example figures [-- DIRECTORY]`
//!
//! Rates are told by the clock and in processor time of the working thread, in which waiting for
//! the disk and for other programs does not count. The blocks are real ones of recent years, each
//! stored many times under other nonces; parsing is not counted. The directory (a temporary one
//! by default) needs 4 GB.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use varve_blocks::{BlockNumber, BlockReader, BlockStore, Options, Synced, TxPosition};
use varve_io::{Disk, StoreId};
use varve_types::{Block, Format, Network};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// The bytes of blocks to append.
const VOLUME: usize = 1 << 30;
/// How many blocks the store has that is opened.
const MANY: u32 = 1_000_000;
/// How long each kind of read is measured.
const READING: Duration = Duration::from_secs(2);

/// Time by the clock, and of this thread on a processor.
#[derive(Clone, Copy, Default)]
struct Spent {
    clock: Duration,
    processor: Duration,
}

impl Spent {
    /// Runs `work` and adds what it took.
    fn on<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (clock, processor) = (Instant::now(), thread_time());
        let result = work();
        self.clock += clock.elapsed();
        self.processor += thread_time().saturating_sub(processor);
        result
    }

    /// So many things in this time.
    fn tell(self, what: &str, amount: f64, unit: &str) {
        let (clock, processor) = (self.clock.as_secs_f64(), self.processor.as_secs_f64());
        println!("  {what}: {:.0} {unit}, {:.0} a processor", amount / clock, amount / processor);
    }
}

fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn main() -> Result<()> {
    let Some(data) = varve_testdata::data("stale") else { return Ok(()) };
    let temporary = tempfile::tempdir()?;
    let given = std::env::args_os().nth(1);
    let dir = given.as_deref().map_or(temporary.path(), Path::new);
    let mut blocks = Vec::new();
    for entry in std::fs::read_dir(data)? {
        blocks.push(std::fs::read(entry?.path())?);
    }
    for segment_size in [Options::SEGMENT_SIZE, 128 << 20] {
        let folder = dir.join(format!("segments-{segment_size}"));
        full_blocks(&folder, &blocks, segment_size)?;
        std::fs::remove_dir_all(&folder)?;
    }
    many_blocks(&dir.join("many"))?;
    Ok(std::fs::remove_dir_all(dir.join("many"))?)
}

fn open(dir: &Path, segment_size: u64, synced: Synced) -> Result<BlockStore> {
    let mut options = Options::new(StoreId([1; 16]), [2; 16], Format::Segwit);
    options.segment_size = segment_size;
    Ok(BlockStore::open(Arc::new(Disk::open(dir)?), options, synced)?)
}

fn full_blocks(dir: &Path, blocks: &[Vec<u8>], segment_size: u64) -> Result<()> {
    println!("files of {} MiB:", segment_size >> 20);
    let mut store = open(dir, segment_size, Synced::NEW)?;
    let (mut bytes, mut spent, mut nonce) = (0, Spent::default(), 0_u32);
    while bytes < VOLUME {
        for block in blocks {
            let mut block = block.clone();
            block.get_mut(76..80).ok_or("a header")?.copy_from_slice(&nonce.to_le_bytes());
            nonce += 1;
            let block = Block::parse(&block, Format::Segwit)?;
            spent.on(|| store.append(&block))?;
            bytes += block.bytes().len();
        }
    }
    spent.tell("append, sealed files synced, the last not", bytes as f64 / 1e6, "MB/s");
    let start = Instant::now();
    let synced = store.checkpoint()?;
    println!("  sync and checkpoint of the rest: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let offsets = log_size(dir, "offsets")?;
    let txs: u64 = count_txs(&store.reader())?;
    println!("  transaction offsets: {:.2} bytes each of {txs}", offsets as f64 / txs as f64);
    reads("first touches and warm reads", &store.reader(), 1)?;
    reads("warm transactions", &store.reader(), 1)?;
    reads("warm transactions", &store.reader(), 2)?;
    drop(store);
    let mut store = open(dir, segment_size, synced)?;
    let (mut plain, mut packed, mut spent) = (0, 0, Spent::default());
    while let Some(job) = store.pack_job(BlockNumber::new(u32::MAX))? {
        let done = spent.on(|| job.run())?;
        (plain, packed) = (plain + done.plain_bytes, packed + done.packed_bytes);
        store.finish_pack(done)?;
    }
    if plain > 0 {
        spent.tell("pack, written and synced", plain as f64 / 1e6, "MB/s");
        println!("  packed to {:.1} %", packed as f64 / plain as f64 * 100.0);
        reads("packed transactions", &store.reader(), 1)?;
    }
    Ok(())
}

/// Opens a store of a million small blocks.
fn many_blocks(dir: &Path) -> Result<()> {
    let mut store = open(dir, Options::SEGMENT_SIZE, Synced::NEW)?;
    let mut block = Network::Regtest.genesis_block().to_vec();
    let start = Instant::now();
    for nonce in 0..MANY {
        block.get_mut(76..80).ok_or("a header")?.copy_from_slice(&nonce.to_le_bytes());
        store.append(&Block::parse(&block, Format::Segwit)?)?;
        if nonce % 10_000 == 0 {
            store.checkpoint()?;
        }
    }
    println!("{MANY} blocks of {} bytes:", block.len());
    println!("  append with 100 checkpoints: {:.1} s", start.elapsed().as_secs_f64());
    let synced = store.checkpoint()?;
    drop(store);
    let mut spent = Spent::default();
    let store = spent.on(|| open(dir, Options::SEGMENT_SIZE, synced))?;
    spent.tell("open", f64::from(MANY), "blocks/s");
    println!("  open: {:.0} ms", spent.processor.as_secs_f64() * 1e3);
    let reader = store.reader();
    let hashes: Vec<_> =
        (0..MANY).step_by(7).map(|n| reader.hash(BlockNumber::new(n))).collect::<Result<_, _>>()?;
    let mut spent = Spent::default();
    spent.on(|| hashes.iter().try_for_each(|hash| reader.number_of(hash).map(drop)))?;
    spent.tell("number of a hash", hashes.len() as f64, "/s");
    Ok(())
}

/// Reads transactions at random on `threads` threads.
fn reads(what: &str, reader: &BlockReader, threads: u64) -> Result<()> {
    let seen: Vec<_> = std::thread::scope(|scope| {
        let threads = (1..=threads).map(|seed| scope.spawn(move || read_some(reader, seed)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    for result in seen {
        let (count, spent) = result.map_err(|_| "a reader panicked")??;
        spent.tell(&format!("{what}, each of {threads} threads"), count as f64, "/s");
    }
    Ok(())
}

fn read_some(reader: &BlockReader, seed: u64) -> Result<(u64, Spent)> {
    let (mut random, mut count, mut spent) = (seed, 0, Spent::default());
    while spent.clock < READING {
        spent.on(|| -> Result<()> {
            for _ in 0..1_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let number = u32::try_from((random >> 33) % u64::from(reader.count()))?;
                let number = BlockNumber::new(number);
                let txs = u64::from(reader.row(number)?.txs);
                let position = TxPosition::new(u32::try_from((random >> 20) % txs)?);
                std::hint::black_box(reader.tx(number, position)?.first());
            }
            Ok(())
        })?;
        count += 1_000;
    }
    Ok((count, spent))
}

fn count_txs(reader: &BlockReader) -> Result<u64> {
    let rows = (0..reader.count()).map(|number| reader.row(BlockNumber::new(number)));
    Ok(rows.map(|row| row.map(|row| u64::from(row.txs))).sum::<Result<u64, _>>()?)
}

/// The bytes of all files whose name begins with `prefix`, as far as they are filled.
fn log_size(dir: &Path, prefix: &str) -> Result<u64> {
    let mut size = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            size += entry.metadata()?.len();
        }
    }
    Ok(size)
}

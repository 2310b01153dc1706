//! What runs cost: bytes on disk and in memory a coin, time of a lookup and of a merge.
//!
//! ```text
//! cargo run --release -p varve-utxo --example run_figures [COINS] [DIRECTORY]
//! ```
//!
//! Coins are drawn like those of small payments: random txids with one to three outputs, scripts of
//! the usual kinds. They lie in eleven runs: 80 % in the oldest, 10 %, 5 %, and eight of 0.6 %. A
//! lookup asks for 7,500 random coins at once, as a block does.

#![expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "random numbers below a limit, in a program that measures"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use varve_io::{BatchReader, Disk, Storage, StoreId};
use varve_types::{Amount, Coin, Height, Outpoint, Txid};
use varve_utxo::{
    Access, Coins, Entry, PageBuffers, Query, Run, RunNumber, RunWriter, Runs, Secret, Sequence,
    Span, StoreKey, merge_runs, pack,
};

const KEY: StoreKey = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };
const BLOCK: usize = 7_500;
const SHARES: [usize; 11] = [6, 6, 6, 6, 6, 6, 6, 6, 52, 100, 800];

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let coins: usize = arguments.next().map_or(Ok(2_000_000), |count| count.parse())?;
    let temporary = tempfile::tempdir()?;
    let directory = arguments.next().map_or(temporary.path().to_path_buf(), PathBuf::from);
    let storage: Arc<dyn Storage> = Arc::new(Disk::open(&directory.join("runs"))?);

    let mut random = Random(7);
    let mut all = Vec::new();
    let mut runs = Vec::new();
    let (mut snapshot, mut pages, mut wrote) = (0, 0, Duration::ZERO);
    for (number, share) in (1..).zip(SHARES) {
        let mut entries = draw(coins * share / 1000, &mut random);
        entries.sort_unstable_by_key(|drawn| drawn.outpoint);
        snapshot += snapshot_len(&entries);
        let start = Cpu::now();
        let run = write(&storage, number, &entries)?;
        wrote += start.elapsed();
        pages += run.info().pages;
        runs.push(Arc::new(run));
        all.extend(entries.iter().map(|drawn| drawn.outpoint));
    }
    let count = all.len() as f64;
    let bytes = pages as f64 * 4096.0;
    println!("{} coins in {} runs", all.len(), runs.len());
    println!(
        "disk: {:.1} bytes a coin, {:.3} of Core's snapshot",
        bytes / count,
        bytes / snapshot as f64
    );
    println!(
        "write with sync: {:.0} MB/s, {:.0} ns a coin",
        rate(bytes, wrote),
        nanos(wrote, all.len())
    );

    let infos: Vec<_> = runs.iter().map(|run| run.info()).collect();
    let start = Instant::now();
    let set = Runs::open(&*storage, KEY, &infos)?;
    println!("open: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    println!("memory: {:.2} bytes a coin", set.memory() as f64 / count);

    set.as_slice().iter().try_for_each(|run| run.warm())?;
    for access in [Access::Mapped, Access::Direct] {
        set.as_slice().iter().for_each(|run| run.set_access(access));
        lookups(&set, &all, access)?;
    }
    let start = Cpu::now();
    let merged = merge_runs(&storage, KEY, RunNumber(100), (set.as_slice(), true))?;
    let merged = merged.ok_or("a set of coins does not cancel")?;
    let bytes = merged.info().pages as f64 * 4096.0;
    println!(
        "merge: {:.0} MB/s, {:.0} ns a coin",
        rate(bytes, start.elapsed()),
        nanos(start.elapsed(), all.len())
    );
    println!(
        "merged: {:.1} bytes a coin, memory {:.2}",
        bytes / count,
        merged.memory() as f64 / count
    );
    hostile(&storage, coins / 4)
}

/// Coins whose txids an adversary has ground to share their first bytes, beside random ones.
fn hostile(storage: &Arc<dyn Storage>, coins: usize) -> Result<(), Error> {
    for (number, shared) in [(101, 0), (102, 4), (103, 8), (104, 24)] {
        let mut random = Random(3);
        let mut entries = draw(coins, &mut random);
        for drawn in &mut entries {
            let mut txid = drawn.outpoint.txid.to_bytes();
            txid.copy_within(..32 - shared, shared);
            txid[..shared].fill(0x5a);
            drawn.outpoint.txid = Txid::from_bytes(txid);
        }
        entries.sort_unstable_by_key(|drawn| drawn.outpoint);
        let run = write(storage, number, &entries)?;
        run.warm()?;
        let all: Vec<Outpoint> = entries.iter().map(|drawn| drawn.outpoint).collect();
        println!("{coins} txids that share {shared} bytes:");
        lookups(&Runs::empty(KEY).with_youngest(Arc::new(run)), &all, Access::Mapped)?;
    }
    Ok(())
}

/// Times blocks of random coins by the clock, and prints the quickest: a block is shorter than a
/// time slice, so some are not disturbed by other programs.
fn lookups(set: &Runs, all: &[Outpoint], access: Access) -> Result<(), Error> {
    let mut random = Random(99);
    let mut reader = BatchReader::new(256);
    let mut coins = Coins::default();
    let mut buffers = PageBuffers::default();
    let mut blocks = Vec::new();
    for _ in 0..400 {
        let pick = |_| all[random.below(all.len())];
        let mut keys: Vec<Outpoint> = (0..BLOCK).map(pick).collect();
        keys.sort_unstable();
        let start = Instant::now();
        let mut query = Query::new(set, keys);
        let queried = start.elapsed();
        query.fetch(&mut reader, &mut buffers)?;
        let fetched = start.elapsed();
        coins.clear(BLOCK);
        query.join(&mut coins, |key| key)?;
        let joined = start.elapsed();
        assert!(coins.iter().all(|coin| coin.is_some()));
        query.release(&mut buffers);
        blocks.push([joined, queried, fetched - queried, joined - fetched]);
    }
    blocks.sort_unstable();
    for (name, block) in [("quickest", blocks[0]), ("median", blocks[200])] {
        let [all, query, fetch, join] = block.map(|time| nanos(time, BLOCK));
        let parts = format!("query {query:.0}, fetch {fetch:.0}, join {join:.0}");
        println!("{access:?}, {name}: {all:.0} ns a coin ({parts})");
    }
    Ok(())
}

struct Drawn {
    outpoint: Outpoint,
    height: u32,
    value: u64,
    script: [u8; 34],
    script_len: usize,
}

impl Drawn {
    fn coin(&self) -> Coin<'_> {
        let (height, value) = (Height::new(self.height), Amount::from_sat(self.value));
        Coin { height, coinbase: false, value, script: &self.script[..self.script_len] }
    }
}

fn draw(count: usize, random: &mut Random) -> Vec<Drawn> {
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count {
        let txid = Txid::from_bytes(random.bytes());
        let height = 100_000 + random.below(800_000) as u32;
        for vout in 0..[1, 1, 1, 2, 2, 3][random.below(6)] {
            let value = random.below(10_000_000_000) as u64;
            let outpoint = Outpoint::new(txid, vout);
            let (script, script_len) = script(random);
            drawn.push(Drawn { outpoint, height, value, script, script_len });
        }
    }
    drawn
}

fn script(random: &mut Random) -> ([u8; 34], usize) {
    let hash: [u8; 32] = random.bytes();
    let (start, hashed, end): (&[u8], usize, &[u8]) = match random.below(10) {
        0..4 => (&[0, 20], 20, &[]),
        4..7 => (&[0x76, 0xa9, 20], 20, &[0x88, 0xac]),
        7 => (&[0xa9, 20], 20, &[0x87]),
        8 => (&[0x51, 32], 32, &[]),
        _ => (&[0, 32], 32, &[]),
    };
    let len = start.len() + hashed + end.len();
    let mut script = [0; 34];
    script[..start.len()].copy_from_slice(start);
    script[start.len()..len - end.len()].copy_from_slice(&hash[..hashed]);
    script[len - end.len()..len].copy_from_slice(end);
    (script, len)
}

fn write(storage: &Arc<dyn Storage>, number: u64, entries: &[Drawn]) -> Result<Run, Error> {
    let step = Sequence::new(number as u32);
    let span = Span { first: step, last: step };
    let named = (RunNumber(number), span);
    let mut writer = RunWriter::create(storage, KEY, named, entries.len() as u64)?;
    for drawn in entries {
        let birth = Sequence::new(drawn.height + 1);
        writer.push(&Entry::add(drawn.outpoint, birth, drawn.coin()))?;
    }
    Ok(writer.finish()?)
}

/// The bytes that Core's snapshot has for these coins.
fn snapshot_len(entries: &[Drawn]) -> usize {
    let mut packed = Vec::new();
    for transaction in entries.chunk_by(|a, b| a.outpoint.txid == b.outpoint.txid) {
        packed.extend_from_slice(&[0; 33]);
        for drawn in transaction {
            packed.push(0);
            pack(&drawn.coin(), &mut packed);
        }
    }
    packed.len()
}

fn rate(bytes: f64, time: Duration) -> f64 {
    bytes / time.as_secs_f64() / 1e6
}

fn nanos(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e9 / count as f64
}

/// The time this thread has had on a CPU: other programs do not count.
struct Cpu(Duration);

impl Cpu {
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = text.split(' ').next().and_then(|field| field.parse().ok());
        Self(Duration::from_nanos(nanos.unwrap_or_default()))
    }

    fn elapsed(&self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bytes(&mut self) -> [u8; 32] {
        let words = [self.next(), self.next(), self.next(), self.next()];
        let mut bytes = [0; 32];
        for (place, word) in bytes.chunks_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

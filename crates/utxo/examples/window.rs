//! What a coin costs in the window: looked up, spent and made, against a bare hash map.
//!
//! ```text
//! cargo run --release -p varve-utxo --example window [BLOCKS [COINS]]
//! ```
//!
//! Dense blocks: 7,500 inputs and 8,600 outputs, inputs spend coins of the last 250 blocks. The
//! window is two or three panes of 256 blocks; the map (hashbrown with foldhash) keeps whole coins
//! inline, COINS old ones besides (in the store those are in runs). Both read amount and script of
//! every coin they spend. Blocks are made beforehand, and the two take turns block by block. What
//! is told is the median block, in processor time of the first thread, so that other programs count
//! as little as they can; on a free machine that is the time by the clock.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a measurement, not the product"
)]

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Duration;

use hashbrown::HashMap;
use rustix::time::{ClockId, clock_gettime};
use varve_io::{Disk, FileId};
use varve_types::{Amount, BlockHash, Coin, Height, Outpoint, Txid};
use varve_utxo::{
    Entry, Lookup, OutpointHasher, Sequence, Spend, Step, UndoRecord, UndoTx, Window, WindowConfig,
    WindowVersion,
};

const INPUTS: usize = 7_500;
const OUTPUTS: usize = 8_600;
const AGE_MAX: usize = 250;

struct Block {
    inputs: Vec<Outpoint>,
    outputs: Vec<(Outpoint, u64, u8)>,
    scripts: Vec<u8>,
}

#[derive(Clone, Copy)]
struct InlineCoin {
    value: u64,
    code: u32,
    len: u8,
    script: [u8; 35],
}

fn main() {
    let argument = |n, default| std::env::args().nth(n).map_or(default, |a| a.parse().unwrap());
    let (blocks, coins) = (make(argument(1, 600)), argument(2, 10_000_000));
    let warm = blocks.len() / 2;
    let mut one = Ours::new(1);
    let mut two = Ours::new(2);
    let mut map: HashMap<Outpoint, InlineCoin, foldhash::fast::RandomState> = HashMap::default();
    for number in 0..coins as u64 {
        let mut txid = [0xff; 32];
        txid[..8].copy_from_slice(&number.to_le_bytes());
        let coin = InlineCoin { value: number, code: 0, len: 0, script: [0; 35] };
        map.insert(Outpoint::new(Txid::from_bytes(txid), 0), coin);
    }
    let mut map_times = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        if number == warm {
            (one.times, two.times, map_times) = Default::default();
        }
        one.block(number, block);
        two.block(number, block);
        let start = now();
        connect_map(&mut map, block);
        map_times.push([now() - start]);
        assert_eq!(one.sum, two.sum, "the number of threads changes nothing");
    }
    let map_time = median(&map_times, |[time]| *time);
    let (one_time, two_time) = (one.median(), two.median());
    println!("window, 1 thread:  {:6.1} ns a coin  {}", per_coin(one_time), one.parts());
    println!("window, 2 threads: {:6.1} ns a coin  {}", per_coin(two_time), two.parts());
    println!("hash map:          {:6.1} ns a coin, {} coins", per_coin(map_time), map.len());
    let ratio = |ours: Duration| map_time.as_secs_f64() / ours.as_secs_f64();
    println!("map / window: {:.2} (1 thread), {:.2} (2)", ratio(one_time), ratio(two_time));
    one.memory();
    one.flush_and_file();
    undo(&blocks[blocks.len() - 1], &one.window);
}

/// The undo record of a block: its size, and the time to make bytes of it and back.
fn undo(block: &Block, window: &Window) {
    let spent = window.version().entries().filter(|entry| entry.coin.is_some()).take(INPUTS);
    let created: Vec<_> = block.outputs.iter().map(|(outpoint, ..)| *outpoint).collect();
    let txs = created.chunk_by(|a, b| a.txid == b.txid).map(|outputs| UndoTx {
        txid: outputs[0].txid,
        spends: 1,
        creates: u32::try_from(outputs.len()).unwrap(),
    });
    let txs = txs.collect();
    let record = UndoRecord {
        sequence: Sequence::new(1_000),
        height: Height::new(1_000),
        block: BlockHash::ZERO,
        previous: BlockHash::ZERO,
        spent: spent.collect(),
        txs,
        created,
    };
    let start = now();
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    let encoded = now() - start;
    let start = now();
    assert_eq!(UndoRecord::decode(&bytes).unwrap(), record);
    let decoded = now() - start;
    let coins = record.spent.len();
    println!(
        "undo of {coins} coins: {} bytes, {encoded:.1?} there, {decoded:.1?} back",
        bytes.len()
    );
}

/// Processor time of this thread so far.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn per_coin(time: Duration) -> f64 {
    time.as_nanos() as f64 / (INPUTS + OUTPUTS) as f64
}

fn median<T>(times: &[T], time: impl Fn(&T) -> Duration) -> Duration {
    let mut times: Vec<_> = times.iter().map(time).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Finding and reading the coins to spend, applying the step.
type Times = [Duration; 2];

struct Ours {
    window: Window,
    workers: NonZeroUsize,
    times: Vec<Times>,
    sum: u64,
}

impl Ours {
    fn new(workers: usize) -> Self {
        let window =
            Window::new(WindowConfig::default(), OutpointHasher::new(&[3; 16]), Sequence::ZERO);
        Self { window, workers: NonZeroUsize::new(workers).unwrap(), times: Vec::new(), sum: 0 }
    }

    fn median(&self) -> Duration {
        median(&self.times, |times| times.iter().sum())
    }

    fn parts(&self) -> String {
        let [find, apply] = [0, 1].map(|n| per_coin(median(&self.times, |t| t[n])));
        format!("(find and read {find:.1}, apply {apply:.1})")
    }

    fn block(&mut self, number: usize, block: &Block) {
        let sequence = Sequence::new(u32::try_from(number).unwrap() + 1);
        let adds = block.entries(sequence);
        let start = now();
        let version = self.window.version().clone();
        let (spends, sum) = find(&version, &block.inputs, self.workers);
        self.sum += sum;
        let find = now() - start;
        let start = now();
        let height = Height::new(u32::try_from(number).unwrap());
        let sealed = self.window.panes().filter(|pane| pane.sealed).count();
        let flush = if sealed > 1 { self.window.begin_flush() } else { None };
        let replaces = flush.map(|flush| flush.pane());
        let step = Step { sequence, height, adds: &adds, spends: &spends, replaces };
        self.window.apply(&step, self.workers).unwrap();
        self.times.push([find, now() - start]);
    }

    fn flush_and_file(&mut self) {
        let living: usize = self.window.panes().map(|pane| pane.living).sum();
        let rate = |time: Duration, count: usize| count as f64 / time.as_secs_f64() / 1e6;
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(dir.path()).unwrap();
        let start = now();
        let saved = self.window.save(&disk, "window", FileId([1; 16])).unwrap();
        let time = now() - start;
        println!("saved {living} entries, {} pages: {:.1} M/s", saved.pages, rate(time, living));
        for workers in [1, 2] {
            let workers = NonZeroUsize::new(workers).unwrap();
            let config = (WindowConfig::default(), OutpointHasher::new(&[3; 16]));
            let start = now();
            Window::load(&disk, &saved, config, workers).unwrap();
            println!("loaded on {workers} threads: {:.1} M/s", rate(now() - start, living));
        }
        let sequence = self.window.version().sequence().next().unwrap();
        let height = Height::GENESIS;
        self.window.seal();
        while let Some(flush) = self.window.begin_flush() {
            let start = now();
            let entries = flush.entries();
            let sorted = now() - start;
            let count = entries.count();
            let read = now() - start - sorted;
            println!("flush of {count} entries: sorted in {sorted:.1?}, read in {read:.1?}");
            if count > 0 {
                break;
            }
            let replaces = Some(flush.pane());
            let step = Step { sequence, height, adds: &[], spends: &[], replaces };
            self.window.apply(&step, self.workers).unwrap();
        }
    }

    fn memory(&self) {
        for pane in self.window.panes() {
            let entries = pane.steps * OUTPUTS;
            println!(
                "pane of {} steps: {:.1} MB, {:.1} bytes an entry, {} of {entries} live",
                pane.steps,
                pane.memory as f64 / 1e6,
                pane.memory as f64 / entries.max(1) as f64,
                pane.living,
            );
        }
    }
}

/// Finds the coins, reads their amounts and scripts, and makes spends of them.
fn find(version: &WindowVersion, keys: &[Outpoint], workers: NonZeroUsize) -> (Vec<Spend>, u64) {
    let part = |keys: &[Outpoint]| {
        let mut found = Vec::new();
        version.lookup(keys, &mut found);
        let (mut spends, mut sum) = (Vec::with_capacity(keys.len()), 0);
        for (outpoint, found) in keys.iter().zip(&found) {
            let Lookup::Found(found) = found else { panic!("{outpoint} is missing") };
            sum += found.coin.value.to_sat() + script_sum(found.coin.script);
            let location = Some(found.location);
            spends.push(Spend { outpoint: *outpoint, birth: found.birth, location });
        }
        (spends, sum)
    };
    let mut parts = keys.chunks(keys.len().div_ceil(workers.get()).max(1));
    std::thread::scope(|scope| {
        let first = parts.next().unwrap_or_default();
        let others: Vec<_> = parts.map(|keys| scope.spawn(move || part(keys))).collect();
        let (mut spends, mut sum) = part(first);
        for other in others {
            let (more, part) = other.join().unwrap();
            spends.extend(more);
            sum += part;
        }
        (spends, sum)
    })
}

fn script_sum(script: &[u8]) -> u64 {
    script.iter().map(|byte| u64::from(*byte)).sum()
}

fn connect_map(
    map: &mut HashMap<Outpoint, InlineCoin, foldhash::fast::RandomState>,
    block: &Block,
) {
    let mut sum = 0;
    for outpoint in &block.inputs {
        let coin = map.remove(outpoint).unwrap();
        sum += coin.value + u64::from(coin.code) + script_sum(&coin.script[..coin.len as usize]);
    }
    black_box(sum);
    let mut at = 0;
    for (outpoint, value, len) in &block.outputs {
        let mut script = [0; 35];
        script[..*len as usize].copy_from_slice(&block.scripts[at..at + *len as usize]);
        at += *len as usize;
        map.insert(*outpoint, InlineCoin { value: *value, code: 0, len: *len, script });
    }
}

impl Block {
    fn entries(&self, sequence: Sequence) -> Vec<Entry<'_>> {
        let mut at = 0;
        let entry = |(outpoint, value, len): &(Outpoint, u64, u8)| {
            let script = &self.scripts[at..at + *len as usize];
            at += *len as usize;
            let (height, value) = (Height::GENESIS, Amount::from_sat(*value));
            Entry::add(*outpoint, sequence, Coin { height, coinbase: false, value, script })
        };
        self.outputs.iter().map(entry).collect()
    }
}

fn make(count: usize) -> Vec<Block> {
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    let mut unspent: Vec<Vec<Outpoint>> = Vec::new();
    let mut blocks = Vec::new();
    for number in 0..count {
        let mut inputs = Vec::new();
        let oldest = number.saturating_sub(AGE_MAX);
        while number > 0 && inputs.len() < INPUTS.min(number * 2_000) {
            // Young coins are spent more often.
            let (a, b) = (random() as usize % AGE_MAX, random() as usize % AGE_MAX);
            let from = &mut unspent[(number - 1).saturating_sub(a.min(b)).max(oldest)];
            if !from.is_empty() {
                let at = random() as usize % from.len();
                inputs.push(from.swap_remove(at));
            }
        }
        let (mut outputs, mut scripts) = (Vec::new(), Vec::new());
        while outputs.len() < OUTPUTS {
            let mut txid = [0; 32];
            txid.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random().to_le_bytes()));
            for vout in 0..1 + random() as u32 % 4 {
                let len = [22, 22, 22, 34, 25, 23][random() as usize % 6];
                scripts.extend((0..len).map(|_| random() as u8));
                outputs.push((Outpoint::new(Txid::from_bytes(txid), vout), random() >> 20, len));
            }
        }
        unspent.push(outputs.iter().map(|(outpoint, ..)| *outpoint).collect());
        blocks.push(Block { inputs, outputs, scripts });
    }
    blocks
}

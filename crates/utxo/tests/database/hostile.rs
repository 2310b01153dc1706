//! Keys that an adversary chose, in runs: writing, looking up and merging them costs at most twice
//! as much as random keys. (The window has the same test among its unit tests.)
//!
//! An adversary can search for txids that share their first bytes, eight of them with much work, so
//! the directory's prefixes may be useless; one transaction can have many outputs. The pages that a
//! lookup reads are counted; the processor time of the thread is measured, as the minimum of three
//! tries. Optimised builds take a million keys, others a tenth.

use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use varve_io::{Disk, Storage, StoreId};
use varve_testdata::Random;
use varve_types::{Amount, Coin, Height, Outpoint, Txid};
use varve_utxo::parts::{
    Access, Buffers, Entry, NewRun, PageBuffers, Query, Run, RunNumber, RunWriter, Runs, Sequence,
    Span, merge_runs, unknown_coins,
};
use varve_utxo::{Secret, StoreKey};

const COUNT: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
const KEY: StoreKey = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };

/// Processor time of this thread: other tests run beside this one.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// What a kind of keys costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    time: Duration,
    /// Pages that the lookups would read past the cache.
    pages: usize,
}

fn write(storage: &Arc<dyn Storage>, number: u64, keys: &[Outpoint]) -> Arc<Run> {
    let step = Sequence::new(u32::try_from(number).unwrap());
    let new = NewRun {
        number: RunNumber(number),
        span: Span { first: step, last: step },
        expected: keys.len() as u64,
        buffers: Buffers::LARGE,
    };
    let mut writer = RunWriter::create(storage, KEY, &new).unwrap();
    let (height, value) = (Height::new(1), Amount::from_sat(1));
    let coin = Coin { height, coinbase: false, value, script: &[0x51; 25] };
    for key in keys {
        writer.push(&Entry::add(*key, step, coin)).unwrap();
    }
    Arc::new(writer.finish().unwrap())
}

/// Looks up keys in blocks of 10,000, of which one in ten is not there. Returns the pages to read.
fn ask(runs: &Runs, keys: &[Outpoint]) -> usize {
    let mut pages = 0;
    for keys in keys.chunks(10_000) {
        let absent = keys.iter().step_by(10).map(|key| Outpoint::new(key.txid, key.vout ^ 1 << 31));
        let mut asked: Vec<Outpoint> = keys.iter().copied().chain(absent).collect();
        asked.sort_unstable();
        let mut query = Query::new(runs, asked);
        pages += query.unread();
        if query.unread() > 0 {
            continue;
        }
        query.fetch(&mut varve_io::BatchReader::new(1), &mut PageBuffers::default()).unwrap();
        let mut coins = unknown_coins(query.keys().len());
        query.join(&mut coins, |place| place).unwrap();
        assert_eq!(coins.iter().flatten().count(), keys.len());
    }
    pages
}

/// Writes two runs, asks them, merges them and asks the result.
fn cost(key: impl Fn(u64) -> Outpoint) -> Cost {
    let mut keys: Vec<Outpoint> = (0..COUNT as u64).map(key).collect();
    keys.sort_unstable();
    let halves: Vec<Vec<Outpoint>> =
        (0..2).map(|half| keys.iter().skip(half).step_by(2).copied().collect()).collect();
    let attempt = |_| {
        let dir = tempfile::tempdir().unwrap();
        let storage: Arc<dyn Storage> = Arc::new(Disk::open(dir.path()).unwrap());
        let start = now();
        let young = write(&storage, 2, &halves[0]);
        let old = write(&storage, 1, &halves[1]);
        let parts = [young, old];
        // As a flush does: otherwise the pages of a run that was just written are not in memory.
        parts.iter().for_each(|run| run.warm().unwrap());
        let [young, old] = parts.clone();
        let two = Runs::empty(KEY).with_replaced(0..0, Some(old)).with_replaced(0..0, Some(young));
        assert_eq!(ask(&two, &keys), 0, "all in maps");
        let merged = merge_runs(&storage, KEY, RunNumber(3), &parts, true).unwrap();
        let merged = Arc::new(merged.unwrap());
        let one = Runs::empty(KEY).with_replaced(0..0, Some(Arc::clone(&merged)));
        ask(&one, &keys);
        let time = now() - start;
        for run in parts.iter().chain([&merged]) {
            run.set_access(Access::Direct);
        }
        Cost { time, pages: ask(&two, &keys) + ask(&one, &keys) }
    };
    (0..3).map(attempt).min().unwrap()
}

/// A number that looks random, by its index.
fn mixed(index: u64) -> u64 {
    Random::new(index).bits()
}

#[test]
fn ground_keys_cost_no_more_than_random_ones_in_runs() {
    let random = cost(|number| {
        let mut txid = [0; 32];
        for (part, salt) in txid.chunks_mut(8).zip(1_u64..) {
            part.copy_from_slice(&mixed(number * 4 + salt).to_le_bytes());
        }
        Outpoint::new(Txid::from_bytes(txid), 0)
    });
    // The first 24 bytes are the same, so every leaf begins with the prefix of the one before.
    let ground = cost(|number| {
        let mut txid = [7; 32];
        txid[24..].copy_from_slice(&mixed(number).to_le_bytes());
        Outpoint::new(Txid::from_bytes(txid), 0)
    });
    let siblings = cost(|number| Outpoint::new(Txid::ZERO, u32::try_from(number).unwrap()));
    println!("{COUNT} keys: random {random:?}, ground {ground:?}, siblings {siblings:?}");
    for (name, hostile) in [("shared prefix", ground), ("one transaction", siblings)] {
        assert!(hostile.time < random.time * 2, "{name}: {hostile:?} against {random:?}");
        assert!(hostile.pages <= random.pages * 11 / 10, "{name}: {hostile:?} against {random:?}");
    }
}

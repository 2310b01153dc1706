//! Keys that an adversary chose, and what an entry costs in memory.

use std::num::NonZeroUsize;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use varve_runs::Sequence;
use varve_types::{Amount, Coin, Height, Outpoint, Txid};

use crate::entry::Entry;
use crate::hasher::OutpointHasher;
use crate::window::{Lookup, Step, Window, WindowConfig};
use varve_testdata::Random;

const COUNT: usize = 1_000_000;

fn coin() -> Coin<'static> {
    let script = &[0x51; 25];
    Coin { height: Height::new(1), coinbase: false, value: Amount::from_sat(1), script }
}

/// Processor time of this thread: other tests run beside this one.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// Inserts and looks up all keys in blocks of 10,000; the time of the quickest of three tries.
fn cost(key: impl Fn(u64) -> Outpoint) -> Duration {
    let keys: Vec<Outpoint> = (0..COUNT as u64).map(key).collect();
    let attempt = |_| {
        let hasher = OutpointHasher::new(b"a secret 16 byte");
        let mut window = Window::new(WindowConfig::default(), hasher, Sequence::ZERO);
        let mut taken = Duration::ZERO;
        for (number, keys) in (1..).zip(keys.chunks(10_000)) {
            let sequence = Sequence::new(number);
            let adds: Vec<_> = keys.iter().map(|o| Entry::add(*o, sequence, coin())).collect();
            let height = Height::new(number);
            let step = Step { sequence, height, spends: &[], replaces: None };
            let start = now();
            window.apply_entries(&step, &adds, NonZeroUsize::MIN).unwrap();
            taken += now() - start;
        }
        let mut found = Vec::new();
        let start = now();
        window.version().lookup(&keys, &mut found);
        taken += now() - start;
        assert!(found.iter().all(|found| matches!(found, Lookup::Found(_))));
        taken
    };
    (0..3).map(attempt).min().unwrap()
}

/// A million outpoints that share the first 24 bytes of their txids, and a million outputs of one
/// transaction, cost no more than twice what random ones do.
#[test]
fn ground_keys_cost_no_more_than_random_ones() {
    let random = cost(|number| {
        let mut random = Random::new(number);
        let mut txid = [0; 32];
        txid.chunks_mut(8).for_each(|part| part.copy_from_slice(&random.bits().to_le_bytes()));
        Outpoint::new(Txid::from_bytes(txid), 0)
    });
    let ground = cost(|number| {
        let mut txid = [0; 32];
        txid[24..].copy_from_slice(&number.to_le_bytes());
        Outpoint::new(Txid::from_bytes(txid), 0)
    });
    let siblings = cost(|number| Outpoint::new(Txid::ZERO, u32::try_from(number).unwrap()));
    assert!(ground < random * 2, "shared prefix: {ground:?} against {random:?}");
    assert!(siblings < random * 2, "one transaction: {siblings:?} against {random:?}");
}

/// The hash spreads even consecutive keys: the longest search in a table is short.
#[test]
fn hashes_of_ground_keys_spread_evenly() {
    let hasher = OutpointHasher::new(&[9; 16]);
    for stride in [1_u64, 1 << 8, 1 << 32] {
        let mut buckets = vec![0_u32; 1 << 12];
        for number in 0..1_u64 << 16 {
            let mut txid = [0xaa; 32];
            txid[16..24].copy_from_slice(&(number * stride).to_le_bytes());
            let hash = hasher.hash(&Outpoint::new(Txid::from_bytes(txid), 7));
            buckets[hash.place(1 << 8) << 4 | hash.shard(16)] += 1;
        }
        // 16 expected, plus four standard deviations and a margin for 4,096 tries.
        let most = buckets.iter().max().unwrap();
        assert!(*most < 40, "a bucket of {most} with stride {stride}");
        assert!(buckets.iter().all(|count| *count > 0));
    }
}

/// An entry of a common kind takes at most 120 bytes with everything that finds it.
#[test]
fn memory_of_an_entry() {
    let mut window =
        Window::new(WindowConfig::default(), OutpointHasher::new(&[1; 16]), Sequence::ZERO);
    let mut entries = 0;
    for number in 1..=80_u32 {
        let sequence = Sequence::new(number);
        let key = |vout| Outpoint::new(Txid::from_bytes([number.to_le_bytes()[0]; 32]), vout);
        let adds: Vec<_> = (0..1_000).map(|o| Entry::add(key(o), sequence, coin())).collect();
        let height = Height::new(number);
        let step = Step { sequence, height, spends: &[], replaces: None };
        window.apply_entries(&step, &adds, NonZeroUsize::MIN).unwrap();
        entries += adds.len();
        let memory: usize = window.panes().map(|pane| pane.memory).sum();
        assert!(number < 10 || memory < entries * 120, "{} an entry", memory / entries);
    }
}

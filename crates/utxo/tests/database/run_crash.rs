//! A power cut at every operation of flushing and merging runs.
//!
//! A store is made, three runs are flushed, and two merges replace them, each published by its
//! manifest and followed by the removal of the old files. Then the store is opened on what a crash
//! after each single operation may leave, in many variants. It must hold exactly the coins of a
//! manifest that was acknowledged before the crash or was being written at it, and it must continue
//! from there.

use std::collections::BTreeMap;
use std::sync::Arc;

use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use varve_io::{Storage, StoreId};
use varve_types::{Amount, Coin, Height, Network, Outpoint, Txid};
use varve_utxo::parts::{
    Buffers, Entry, Kept, Manifest, NewRun, Run, RunError, RunWriter, Runs, Sequence, Source as _,
    Span, merge_runs,
};
use varve_utxo::{Parameters, Secret, StoreKey};

const KEY: StoreKey = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };

/// The coins of a store: their births by outpoint.
type Coins = BTreeMap<Outpoint, u32>;

struct Store {
    storage: Arc<dyn Storage>,
    manifest: Manifest,
    runs: Runs,
}

impl Store {
    fn open(storage: Arc<dyn Storage>) -> Result<Self, RunError> {
        let manifest = match Manifest::load(&*storage, Network::Regtest)? {
            Some(manifest) => manifest,
            None => {
                let manifest = Manifest::new(KEY, Network::Regtest, Parameters::default());
                manifest.store(&*storage)?;
                manifest
            }
        };
        manifest.sweep(&*storage, &Kept::NOTHING)?;
        let runs = Runs::open(&*storage, manifest.key(), &manifest.runs)?;
        Ok(Self { storage, manifest, runs })
    }

    /// Writes one run that adds and deletes these numbers.
    fn flush(&mut self, adds: &[u32], deletes: &[u32]) -> Result<(), RunError> {
        let step = self.manifest.checkpoint.sequence.next().expect("there are enough");
        let number = self.manifest.next_run;
        let (span, buffers) = (Span { first: step, last: step }, Buffers::LARGE);
        let new = NewRun { number, span, expected: 10, buffers };
        let mut writer = RunWriter::create(&self.storage, KEY, &new)?;
        let mut changes: Vec<(u32, bool)> = adds.iter().map(|number| (*number, true)).collect();
        changes.extend(deletes.iter().map(|number| (*number, false)));
        changes.sort_by_key(|(number, _)| outpoint(*number));
        for (number, add) in changes {
            let script = vec![7; if number % 10 == 0 { 6_000 } else { 25 }];
            let (outpoint, birth) = (outpoint(number), Sequence::new(number));
            writer.push(&match add {
                true => Entry::add(outpoint, birth, coin(number, &script)),
                false => Entry::delete(outpoint, birth),
            })?;
        }
        let run = writer.finish()?;
        self.manifest.next_run.0 += 1;
        self.manifest.checkpoint.sequence = step;
        self.publish(self.runs.with_youngest(Arc::new(run)))
    }

    /// Merges all runs into one.
    fn merge(&mut self) -> Result<(), RunError> {
        let number = self.manifest.next_run;
        let chosen = self.runs.as_slice();
        let merged = merge_runs(&self.storage, KEY, number, chosen, true)?;
        self.manifest.next_run.0 += 1;
        let all = 0..chosen.len();
        self.publish(self.runs.with_replaced(all, merged.map(Arc::new)))
    }

    fn publish(&mut self, runs: Runs) -> Result<(), RunError> {
        self.manifest.runs = runs.infos();
        self.manifest.store(&*self.storage)?;
        self.runs = runs;
        self.manifest.sweep(&*self.storage, &Kept::NOTHING)?;
        Ok(())
    }

    fn coins(&self) -> Result<Coins, RunError> {
        self.runs.as_slice().iter().try_for_each(|run| run.verify())?;
        let mut coins = Coins::new();
        let mut source = self.runs.rows()?;
        while let Some(record) = source.head() {
            coins.insert(record.outpoint, record.birth.to_u32());
            source.advance()?;
        }
        Ok(coins)
    }
}

fn outpoint(number: u32) -> Outpoint {
    Outpoint::new(Txid::from_bytes(varve_types::sha256d(&number.to_le_bytes())), number)
}

fn coin(number: u32, script: &[u8]) -> Coin<'_> {
    let (height, value) = (Height::new(number), Amount::from_sat(1_000));
    Coin { height, coinbase: false, value, script }
}

/// The changes, each acknowledged before the next.
fn work(store: &mut Store, mut acknowledged: impl FnMut(&Store)) -> Result<(), RunError> {
    let range = |from: u32, to: u32| (from..to).collect::<Vec<_>>();
    let steps: [(&[u32], &[u32]); 3] = [
        (&range(1, 120), &[]),
        (&range(120, 150), &range(1, 60)),
        (&range(150, 160), &range(110, 130)),
    ];
    for (index, (adds, deletes)) in steps.into_iter().enumerate() {
        store.flush(adds, deletes)?;
        acknowledged(store);
        if index > 0 {
            store.merge()?;
            acknowledged(store);
        }
    }
    Ok(())
}

#[test]
fn a_crash_at_every_operation_leaves_an_acknowledged_state() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut store = Store::open(storage.clone()).expect("a new store opens");
    // What was acknowledged by which operation.
    let mut history = vec![(0, Coins::new()), (storage.operations(), Coins::new())];
    work(&mut store, |store| {
        history.push((storage.operations(), store.coins().expect("sound")));
    })
    .expect("nothing fails");
    assert_eq!(history.last().expect("not empty").1.len(), 119 + 30 + 10 - 59 - 20);

    for operation in 0..=storage.operations() {
        let seeds = (0..6).map(|seed| Crash::Seed(seed + 100 * operation as u64));
        for crash in [Crash::LoseAll, Crash::KeepAll].into_iter().chain(seeds) {
            let left = Arc::new(storage.crash(operation, crash));
            let mut store = Store::open(left.clone())
                .unwrap_or_else(|error| panic!("after {operation}, {crash:?}: {error}"));
            let coins = store.coins().expect("what a manifest names is sound");
            let before = history.iter().rposition(|(by, _)| *by <= operation).expect("from 0 on");
            let allowed = &history[before..history.len().min(before + 2)];
            assert!(
                allowed.iter().any(|(_, state)| *state == coins),
                "after {operation}, {crash:?}: {} coins",
                coins.len()
            );
            let named = store.manifest.runs.len();
            let files = left.list().expect("listed");
            assert_eq!(files.iter().filter(|name| name.ends_with(".run")).count(), named);
            store.flush(&[900, 901], &[]).expect("it continues");
            store.merge().expect("it continues");
            let again = Store::open(Arc::new(left.reopen())).expect("it opens again");
            assert_eq!(again.coins().expect("sound").len(), coins.len() + 2);
        }
    }
}

/// The calls of the five changes of [`work`]: three flushes, two of them followed by a merge. A
/// change syncs its run, the directory, the new manifest, renames it and syncs the directory; a
/// merge then removes runs and syncs the directory once more. From the rename on, the change is in
/// force.
const SYNCS: usize = 5 * 2;
const RENAMES: usize = 5;
/// Directory syncs: which change they belong to, and whether they come after the rename.
const DIRECTORY_SYNCS: [(usize, bool); 12] = [
    (0, false),
    (0, true),
    (1, false),
    (1, true),
    (2, false),
    (2, true),
    (2, true),
    (3, false),
    (3, true),
    (4, false),
    (4, true),
    (4, true),
];

/// A failed call leaves exactly the state before its change, or after it when the manifest was
/// already renamed.
#[test]
fn a_failure_at_every_call_leaves_exactly_one_state() {
    let mut states = vec![Coins::new()];
    let mut store = Store::open(Arc::new(FaultyStorage::new(1))).expect("a new store opens");
    work(&mut store, |store| states.push(store.coins().expect("sound"))).expect("nothing fails");
    assert_eq!(states.len(), 6);
    let calls = [Operation::Write, Operation::Sync, Operation::Rename, Operation::SyncDir];
    let mut failures = 0;
    for (operation, fault) in
        calls.into_iter().flat_map(|call| [(call, Fault::Io), (call, Fault::NoSpace)])
    {
        for nth in 0..13 {
            let storage = Arc::new(FaultyStorage::new(nth as u64));
            let mut store = Store::open(storage.clone()).expect("a new store opens");
            storage.inject(FaultRule::new(operation, When::Nth(nth), fault));
            let mut made = 0;
            let result = work(&mut store, |_| made += 1);
            storage.clear_faults();
            let at = format!("{operation:?} {fault:?} {nth}");
            let expected = match operation {
                Operation::Sync if nth >= SYNCS => states.len() - 1,
                Operation::Sync => nth / 2,
                Operation::Rename if nth >= RENAMES => states.len() - 1,
                Operation::Rename => nth,
                Operation::SyncDir => DIRECTORY_SYNCS
                    .get(nth)
                    .map_or(states.len() - 1, |(change, named)| change + usize::from(*named)),
                _ => made,
            };
            assert_eq!(result.is_err(), made < 5, "{at}");
            failures += usize::from(result.is_err());
            let again = Store::open(Arc::new(storage.reopen())).expect("it opens again");
            assert_eq!(again.coins().expect("sound"), states[expected], "{at}");
            assert!(made == expected || made + 1 == expected, "{at}: acknowledged, so it is there");
            // The store that met the failure has not changed, and continues after a full disk.
            assert_eq!(store.coins().expect("sound"), states[made], "{at}");
            if (operation, fault) == (Operation::Write, Fault::NoSpace) {
                store.flush(&[900], &[]).expect("there is space again");
                let again = Store::open(Arc::new(storage.reopen())).expect("it opens again");
                assert_eq!(again.coins().expect("sound").len(), states[made].len() + 1, "{at}");
            }
        }
    }
    assert!(failures > 70, "{failures}");
}

#[test]
fn run_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Run>();
    shared::<Runs>();
}

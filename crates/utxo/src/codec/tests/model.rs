//! Flushes and merges against a map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use varve_io::faulty::FaultyStorage;
use varve_runs::{Choice, Kept, Tiers};
use varve_types::Network;

use super::*;

use crate::compact::merge_runs;
use crate::manifest::{Manifest, Parameters};

/// The coins alive, by outpoint.
type State = BTreeMap<Outpoint, (u32, Owned)>;

/// What turns `before` into `after`.
fn difference(before: &State, after: &State) -> Changes {
    let mut changes = Changes::new();
    for (outpoint, (birth, coin)) in after {
        if before.get(outpoint).is_none_or(|(old, _)| old != birth) {
            changes.insert((*outpoint, *birth), Some(coin.clone()));
        }
    }
    for (outpoint, (birth, _)) in before {
        if after.get(outpoint).is_none_or(|(new, _)| new != birth) {
            changes.insert((*outpoint, *birth), None);
        }
    }
    changes
}

/// A store on disk and the oracle beside it.
struct Model {
    storage: Arc<dyn Storage>,
    manifest: Manifest,
    runs: Runs,
    state: State,
    /// Coins that were spent, which a reorganisation can bring back with their births.
    spent: Vec<(Outpoint, (u32, Owned))>,
    step: u32,
}

impl Model {
    fn new() -> Self {
        let storage: Arc<dyn Storage> = Arc::new(FaultyStorage::new(1));
        let manifest = Manifest::new(KEY, Network::Regtest, Parameters::default());
        manifest.store(&*storage).unwrap();
        let runs = Runs::empty(KEY);
        let (state, spent) = (State::new(), Vec::new());
        Self { storage, manifest, runs, state, spent, step: 0 }
    }

    /// One step: makes a coin, spends one, or brings a spent one back.
    fn change(&mut self, kind: u8, number: u32) {
        self.step += 1;
        let key = outpoint(number);
        match kind {
            0 | 1 => {
                if let Some(old) = self.state.insert(key, (self.step, owned(self.step))) {
                    self.spent.push((key, old));
                }
            }
            2 => {
                if let Some(old) = self.state.remove(&key) {
                    self.spent.push((key, old));
                }
            }
            _ => {
                if let Some((key, coin)) = self.spent.pop() {
                    self.state.insert(key, coin);
                }
            }
        }
    }

    fn next_number(&mut self) -> RunNumber {
        let number = self.manifest.next_run;
        self.manifest.next_run.0 += 1;
        number
    }

    fn publish(&mut self, runs: Runs) {
        self.manifest.runs = runs.infos();
        self.manifest.store(&*self.storage).unwrap();
        self.manifest.sweep(&*self.storage, &Kept::NOTHING).unwrap();
        self.runs = runs;
    }

    fn flush(&mut self, before: &State, first: u32) {
        let changes = difference(before, &self.state);
        let number = self.next_number();
        let span = span(first, self.step);
        self.manifest.checkpoint.sequence = span.last;
        let run = write_run(&self.storage, number.0, span, &changes).unwrap();
        self.publish(self.runs.with_youngest(Arc::new(run)));
    }

    fn compact(&mut self, policy: &Tiers) {
        while let Choice::Merge(range) = policy.choose_with_rewrites(&self.runs.infos()) {
            let whole = range.end == self.runs.as_slice().len();
            let number = self.next_number();
            let chosen = &self.runs.as_slice()[range.clone()];
            let merged = merge_runs(&self.storage, KEY, number, chosen, whole).unwrap();
            self.publish(self.runs.with_replaced(range, merged.map(Arc::new)));
        }
    }

    fn reopen(&mut self) {
        let manifest = Manifest::load(&*self.storage, Network::Regtest).unwrap().unwrap();
        assert_eq!(manifest, self.manifest);
        assert_eq!(manifest.sweep(&*self.storage, &Kept::NOTHING).unwrap(), 0);
        self.runs = Runs::open(&*self.storage, manifest.key(), &manifest.runs).unwrap();
    }

    fn check(&self, runs: &Runs, state: &State) {
        let keys = (0..60).map(outpoint).collect();
        assert_eq!(look_up(runs, keys).unwrap(), *state);
        let coins = collect(runs.rows().unwrap()).unwrap();
        let coins = coins.into_iter().map(|((outpoint, birth), coin)| (outpoint, (birth, coin)));
        let expected =
            state.iter().map(|(outpoint, (birth, coin))| (*outpoint, (*birth, Some(coin.clone()))));
        assert!(coins.eq(expected), "in key order");
        let names: Vec<String> =
            self.runs.infos().iter().map(|run| run.number.file_name()).collect();
        let listed = self.storage.list().unwrap();
        assert_eq!(listed.iter().filter(|name| name.ends_with(".run")).count(), names.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn runs_and_merges_agree_with_a_map(
        flushes in prop::collection::vec(
            (prop::collection::vec((0_u8..4, 0_u32..60), 1..40), any::<bool>()),
            1..9,
        ),
        fan_in in 2_usize..5,
        max_probed in 1_usize..6,
    ) {
        let mut model = Model::new();
        for (changes, reopen) in flushes {
            let (before, first) = (model.state.clone(), model.step + 1);
            for (kind, number) in changes {
                model.change(kind, number);
            }
            let old = model.runs.clone();
            model.flush(&before, first);
            model.check(&model.runs, &model.state);
            model.compact(&Tiers { fan_in, max_probed });
            prop_assert!(model.runs.as_slice().len() <= max_probed);
            if reopen {
                model.reopen();
            }
            model.check(&model.runs, &model.state);
            model.check(&old, &before); // a reader of the version before is not disturbed
        }
    }
}

/// Hornet's merges stall for ever after a reorganisation, because they wait for a height that never
/// comes again. Here nothing waits for a height: a rewind produces runs like any other step.
#[test]
fn defect_02_reorganisations_do_not_stall_compaction() {
    let mut model = Model::new();
    for round in 0..120 {
        let (before, first) = (model.state.clone(), model.step + 1);
        for number in 0..20 {
            let kind = if round % 3 == 2 { 3 } else { (number % 3) as u8 };
            model.change(kind, number * 3 + round % 3);
        }
        model.flush(&before, first);
        model.compact(&Tiers { fan_in: 2, max_probed: 6 });
        assert!(model.runs.as_slice().len() <= 6);
    }
    model.check(&model.runs, &model.state);
}

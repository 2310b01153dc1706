//! A small store around a window, and the set that it should hold.
//!
//! Runs are maps made of [`Flush::entries`]; a lookup goes to the window and then, youngest first,
//! to the runs, counting adds and deletes of each birth. The oracle is a map that is copied at
//! every step, so any earlier state can be compared later.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use varve_runs::Sequence;
use varve_testdata::Random;
use varve_types::{Amount, BlockHash, Coin, Height, Outpoint, Txid};

use crate::entry::Entry;
use crate::entry_list::EntryList;
use crate::hasher::OutpointHasher;
use crate::pane::Flush;
use crate::undo::UndoRecord;
use crate::window::{
    Lookup, Spend, Step, StepError, Window, WindowConfig, WindowVersion, spends_of_disconnect,
};

/// The outpoint with this number.
pub(in crate::window) fn outpoint(number: u64) -> Outpoint {
    let mut txid = [0; 32];
    txid[..8].copy_from_slice(&Random::new(number / 3).bits().to_le_bytes());
    txid[8..16].copy_from_slice(&number.to_le_bytes());
    Outpoint::new(Txid::from_bytes(txid), u32::try_from(number % 3).unwrap())
}

/// A coin that belongs to one outpoint and birth and to no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::window) struct OwnCoin {
    height: Height,
    coinbase: bool,
    value: Amount,
    script: Vec<u8>,
}

impl OwnCoin {
    pub(in crate::window) fn of(outpoint: &Outpoint, birth: Sequence) -> Self {
        let seed = u64::from(birth.to_u32()) << 32 | u64::from(outpoint.txid.as_bytes()[0]);
        let mut random = Random::new(seed ^ u64::from(outpoint.vout) << 20);
        let script = (0..random.index(40)).map(|_| random.bits().to_le_bytes()[0]).collect();
        Self {
            height: Height::new(birth.to_u32() % 1000),
            coinbase: random.one_in(4),
            value: Amount::from_sat(random.bits() >> 14),
            script,
        }
    }

    pub(in crate::window) fn coin(&self) -> Coin<'_> {
        let Self { height, coinbase, value, ref script } = *self;
        Coin { height, coinbase, value, script }
    }
}

impl From<Coin<'_>> for OwnCoin {
    fn from(coin: Coin<'_>) -> Self {
        let Coin { height, coinbase, value, script } = coin;
        Self { height, coinbase, value, script: script.to_vec() }
    }
}

/// The set at one moment.
pub(in crate::window) type Set = BTreeMap<Outpoint, (Sequence, OwnCoin)>;
type Run = BTreeMap<(Outpoint, Sequence), Option<OwnCoin>>;

/// What a reader holds, and what it should see.
#[derive(Clone)]
pub(in crate::window) struct Moment {
    pub(in crate::window) window: Arc<WindowVersion>,
    runs: Vec<Arc<Run>>,
    pub(in crate::window) set: Arc<Set>,
}

/// The store.
pub(in crate::window) struct Model {
    pub(in crate::window) window: Window,
    runs: Vec<Arc<Run>>,
    pub(in crate::window) set: Set,
    /// Undo records of the chain, the tip last.
    pub(in crate::window) chain: Vec<UndoRecord>,
    pub(in crate::window) sequence: Sequence,
    /// A flush in progress, and whether its run may replace the pane with the next step.
    pub(in crate::window) flush: Option<Flush>,
    pub(in crate::window) flush_ready: bool,
    pub(in crate::window) workers: NonZeroUsize,
}

impl Model {
    pub(in crate::window) fn new(config: WindowConfig) -> Self {
        Self::with_hasher(config, OutpointHasher::new(&[7; 16]))
    }

    pub(in crate::window) fn with_hasher(config: WindowConfig, hasher: OutpointHasher) -> Self {
        Self {
            window: Window::new(config, hasher, Sequence::ZERO),
            runs: Vec::new(),
            set: Set::new(),
            chain: Vec::new(),
            sequence: Sequence::ZERO,
            flush: None,
            flush_ready: false,
            workers: NonZeroUsize::MIN,
        }
    }

    pub(in crate::window) fn moment(&self) -> Moment {
        Moment {
            window: Arc::clone(self.window.version()),
            runs: self.runs.clone(),
            set: Arc::new(self.set.clone()),
        }
    }

    fn height(&self) -> Height {
        Height::new(u32::try_from(self.chain.len()).unwrap())
    }

    /// Connects a block that spends and creates these. A living coin that is created again is
    /// overwritten.
    pub(in crate::window) fn connect(
        &mut self,
        spent: &[Outpoint],
        created: &[Outpoint],
    ) -> Result<(), StepError> {
        let sequence = self.sequence.next().unwrap();
        let overwritten = created.iter().filter(|o| !spent.contains(o));
        let overwritten: Vec<_> = overwritten.filter(|o| self.set.contains_key(o)).collect();
        let gone: Vec<Outpoint> = spent.iter().chain(overwritten).copied().collect();
        let moment = self.moment();
        let spends: Vec<Spend> = gone.iter().map(|outpoint| moment.spend(outpoint)).collect();
        let coins: Vec<OwnCoin> = created.iter().map(|o| OwnCoin::of(o, sequence)).collect();
        let adds: Vec<Entry<'_>> = created
            .iter()
            .zip(&coins)
            .map(|(outpoint, coin)| Entry::add(*outpoint, sequence, coin.coin()))
            .collect();
        let height = self.height();
        self.step(Step { sequence, height, spends: &spends, replaces: None }, &adds)?;
        let coins = gone.iter().map(|o| (*o, self.set.remove(o).unwrap()));
        let coins: Vec<(Outpoint, (Sequence, OwnCoin))> = coins.collect();
        let entry = |(o, (birth, coin))| Entry::add(o, birth, OwnCoin::coin(coin));
        let spent: EntryList = coins.iter().map(|(o, (b, c))| entry((*o, (*b, c)))).collect();
        for outpoint in created {
            self.set.insert(*outpoint, (sequence, OwnCoin::of(outpoint, sequence)));
        }
        let (block, previous) = (BlockHash::ZERO, BlockHash::ZERO);
        let created = created.to_vec();
        let txs = Vec::new();
        self.chain.push(UndoRecord { sequence, height, block, previous, spent, created, txs });
        Ok(())
    }

    /// Disconnects the tip.
    pub(in crate::window) fn disconnect(&mut self) {
        let Some(record) = self.chain.pop() else { return };
        let sequence = self.sequence.next().unwrap();
        let spends = spends_of_disconnect(self.window.version(), &record);
        let adds: Vec<Entry<'_>> = record.spent.iter().collect();
        let height = record.height;
        let step = Step { sequence, height, spends: &spends, replaces: None };
        self.step(step, &adds).expect("disconnecting the tip is always possible");
        for outpoint in &record.created {
            self.set.remove(outpoint);
        }
        for Entry { outpoint, birth, coin } in adds {
            self.set.insert(outpoint, (birth, coin.unwrap().into()));
        }
    }

    /// Applies a step; a flush that is ready replaces its pane with it.
    fn step(&mut self, mut step: Step<'_>, adds: &[Entry<'_>]) -> Result<(), StepError> {
        step.replaces = self.flush.as_ref().filter(|_| self.flush_ready).map(Flush::pane);
        let version = self.window.apply_entries(&step, adds, self.workers)?;
        assert_eq!(version.sequence(), step.sequence);
        self.sequence = step.sequence;
        if let Some(flush) = self.flush.take_if(|_| self.flush_ready) {
            self.flush_ready = false;
            let own = |e: Entry<'_>| (e.key(), e.coin.map(OwnCoin::from));
            let run: Run = flush.entries().map(own).collect();
            self.runs.insert(0, Arc::new(run));
        }
        Ok(())
    }

    /// Counts of neighbouring runs are what a merge can express.
    pub(in crate::window) fn check_runs(&self) {
        for first in 0..self.runs.len() {
            let mut counts = BTreeMap::new();
            for run in &self.runs[first..] {
                for (key, coin) in &**run {
                    *counts.entry(*key).or_insert(0) += if coin.is_some() { 1 } else { -1 };
                }
                assert!(counts.values().all(|count| (-1..=1).contains(count)), "a merge fails");
            }
        }
    }

    pub(in crate::window) fn runs(&self) -> usize {
        self.runs.len()
    }
}

impl Moment {
    /// The coin of an outpoint, by way of the window and then the runs.
    pub(in crate::window) fn find(&self, outpoint: &Outpoint) -> Option<(Sequence, OwnCoin)> {
        let mut found = Vec::new();
        self.window.lookup(&[*outpoint], &mut found);
        let mut counts: BTreeMap<Sequence, i32> = BTreeMap::new();
        match found.pop().unwrap() {
            Lookup::Found(found) => return Some((found.birth, found.coin.into())),
            Lookup::Deleted(births) => counts.extend(births.into_iter().map(|b| (b, -1))),
            Lookup::Unknown => {}
        }
        for run in &self.runs {
            let range = (*outpoint, Sequence::ZERO)..=(*outpoint, Sequence::MAX);
            for ((_, birth), coin) in run.range(range) {
                let count = counts.entry(*birth).or_insert(0);
                *count += if coin.is_some() { 1 } else { -1 };
                if let (1, Some(coin)) = (*count, coin) {
                    return Some((*birth, coin.clone()));
                }
            }
        }
        None
    }

    /// A spend of an outpoint that exists; of nothing when it does not.
    pub(in crate::window) fn spend(&self, outpoint: &Outpoint) -> Spend {
        let mut found = Vec::new();
        self.window.lookup(&[*outpoint], &mut found);
        let location = match found.pop() {
            Some(Lookup::Found(found)) => Some(found.location),
            _ => None,
        };
        let birth = self.find(outpoint).map_or(Sequence::MAX, |(birth, _)| birth);
        Spend { outpoint: *outpoint, birth, location }
    }

    /// Asserts that the state is unchanged: every key, and the total by counting.
    pub(in crate::window) fn check(&self, keys: impl Iterator<Item = Outpoint>) {
        let keys: Vec<Outpoint> = keys.collect();
        for key in &keys {
            assert_eq!(self.find(key), self.set.get(key).cloned(), "{key}");
        }
        let mut counts: BTreeMap<(Outpoint, Sequence), (i32, Option<OwnCoin>)> = BTreeMap::new();
        let mut count = |key, coin: Option<OwnCoin>| {
            let (count, kept) = counts.entry(key).or_insert((0, None));
            *count += if coin.is_some() { 1 } else { -1 };
            *kept = kept.take().or(coin);
        };
        self.window.entries().for_each(|e| count(e.key(), e.coin.map(OwnCoin::from)));
        for (key, coin) in self.runs.iter().flat_map(|run| &**run) {
            count(*key, coin.clone());
        }
        let whole = counts.into_iter().filter(|(_, (count, _))| *count != 0);
        let whole: Set = whole
            .map(|((outpoint, birth), (count, coin))| {
                assert_eq!(count, 1, "{outpoint} of {birth}");
                (outpoint, (birth, coin.unwrap()))
            })
            .collect();
        assert_eq!(whole, *self.set);
    }
}

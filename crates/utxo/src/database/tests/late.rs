//! Late runs: steps happen between the writing of a run and its replacing the pane.
//!
//! Inline the writer never gets that far ahead; with threads it would. Coins of the pane die
//! meanwhile, some by a reorganisation that makes them again with another birth, and their deletes
//! are in a younger pane than the coins made again.
//!
//! Blocks are late too: they are prepared at a version some steps ago, perhaps of a branch that was
//! abandoned since, as by the workers of a joiner.

use std::collections::VecDeque;

use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_consensus::{MemorySet, Undo};
use varve_io::faulty::FaultyStorage;
use varve_runs::Compaction;
use varve_testdata::Random;
use varve_types::{Block, Coin, Network};

use super::super::*;
use crate::fixture::KEY;
use crate::manifest::Parameters;
use crate::prepare::{Prepared, Repeats};
use crate::window::Lookup;

struct Life {
    database: Database,
    oracle: MemorySet,
    chain: Vec<(Vec<u8>, Undo)>,
    /// The run that is late, and how many steps it still takes.
    late: Option<(Waiting, usize)>,
    /// The versions of the last steps.
    versions: VecDeque<Arc<Version>>,
}

impl Life {
    fn new() -> Self {
        let parameters = Parameters { window: 1, flush_interval: 1, fan_in: 3, max_probed: 4 };
        // No memory: every pane is flushed at once.
        let options = Options {
            parameters,
            memory: 0,
            compaction: Compaction::Inline,
            ..Options::new(Network::Regtest, KEY)
        };
        let database = Database::open(Arc::new(FaultyStorage::new(1)), options).unwrap();
        let oracle = MemorySet::new(Network::Regtest);
        Self { database, oracle, chain: Vec::new(), late: None, versions: VecDeque::new() }
    }

    fn next_height(&self) -> Height {
        Height::new(u32::try_from(self.chain.len()).unwrap())
    }

    fn append(&mut self, random: &mut Random) {
        let coins: Vec<Outpoint> = self.oracle.iter().map(|(outpoint, _)| *outpoint).collect();
        let spends = !coins.is_empty() && random.index(3) > 0;
        let spent = spends.then(|| coins[random.index(coins.len())]);
        self.note_version();
        let version = Arc::clone(&self.versions[random.index(self.versions.len())]);
        self.append_prepared(spent, random.small(1 << 30), &version);
    }

    /// Appends a block that spends a coin and is prepared at this version.
    fn append_prepared(&mut self, spent: Option<Outpoint>, nonce: u32, version: &Version) {
        let previous = self.database.tip().map_or(BlockHash::ZERO, |(_, hash)| hash);
        let mut txs = vec![TxDraft::coinbase(self.next_height(), 1)];
        txs.extend(spent.map(|spent| TxDraft::spending(&[spent], 2)));
        let bytes = BlockDraft { previous, nonce, ..BlockDraft::new(txs) }.bytes();
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        let at = BlockAt::new(self.next_height(), &block);
        let prepared = Prepared::new(version, Network::Regtest, &at, Repeats::Possible).unwrap();
        self.database.append_prepared(&at, prepared).unwrap();
        self.database.publish();
        let undo = self.oracle.connect(&at).unwrap();
        self.chain.push((bytes, undo));
    }

    fn note_version(&mut self) {
        self.versions.push_back(Arc::clone(self.database.latest()));
        if self.versions.len() > 8 {
            self.versions.pop_front();
        }
    }

    fn rewind(&mut self) {
        let Some((bytes, undo)) = self.chain.pop() else { return };
        self.note_version();
        self.database.rewind().unwrap();
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        self.oracle.disconnect(&BlockAt::new(self.next_height(), &block), undo);
    }

    /// Lets the run of a pane be written and holds it back, or releases it.
    fn delay(&mut self, random: &mut Random) {
        self.late = match self.late.take() {
            None if random.index(3) == 0 => {
                self.database.maintain(0).unwrap();
                self.database.waiting.take().map(|waiting| (waiting, random.index(7)))
            }
            None => None,
            Some((waiting, 0)) => {
                self.database.waiting = Some(waiting);
                None
            }
            Some((waiting, steps)) => Some((waiting, steps - 1)),
        };
    }

    fn check(&self) {
        let version = self.database.snapshot();
        let expected: Vec<(Outpoint, Coin<'_>)> =
            self.oracle.iter().map(|(outpoint, coin)| (*outpoint, coin)).collect();
        let mut walk = version.coins().unwrap();
        for wanted in &expected {
            assert_eq!(walk.next_coin().unwrap().as_ref(), Some(wanted));
        }
        assert_eq!(walk.next_coin().unwrap(), None);
        let keys: Vec<Outpoint> = expected.iter().map(|(outpoint, _)| *outpoint).collect();
        let found = version.get(&keys).unwrap();
        assert!(found.iter().eq(expected.iter().map(|(_, coin)| Some(*coin))));
    }
}

#[test]
fn late_runs_agree_with_the_oracle() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut life = Life::new();
        // Enough coins that not every merge is one of all runs.
        (0..30).for_each(|_| life.append(&mut random));
        for _ in 0..20 {
            let depth = random.index(3);
            for step in 0..2 * depth + 1 {
                life.delay(&mut random);
                if step < depth {
                    life.rewind()
                } else {
                    life.append(&mut random)
                }
                life.check();
            }
        }
    }
}

/// A coin dies while its run is being written, a block is prepared then and does not find it, and
/// the death is undone. When the run replaces the pane, the window drops the coin because the run
/// has it: that no pane has the coin must not be taken as its absence.
#[test]
fn a_coin_that_the_window_gave_to_a_late_run_is_found() {
    let mut life = Life::new();
    let version = |life: &Life| Arc::clone(life.database.latest());
    (0..6).for_each(|nonce| life.append_prepared(None, nonce, &version(&life)));
    life.database.maintain(0).unwrap();
    let late = life.database.waiting.take().expect("the oldest pane is due");
    let coins: Vec<Outpoint> = life.oracle.iter().map(|(outpoint, _)| *outpoint).collect();
    let mut found = Vec::new();
    let before = version(&life);
    before.window().lookup(&coins, &mut found);
    let in_pane = |found: &Lookup<'_>| match found {
        Lookup::Found(found) => found.location.pane() == late.pane,
        Lookup::Deleted(_) | Lookup::Unknown => false,
    };
    let coin = coins[found.iter().position(in_pane).expect("the pane has a coin that lives")];
    life.append_prepared(Some(coin), 10, &version(&life));
    let without = version(&life);
    life.rewind();
    life.database.waiting = Some(late);
    life.append_prepared(None, 11, &version(&life));
    life.check();
    life.append_prepared(Some(coin), 12, &without);
    life.check();
}

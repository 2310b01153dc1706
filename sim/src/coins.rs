//! The coins that can be spent, by age.
//!
//! ```text
//!        recent: one bucket a block           epochs: 144 blocks each       ancient
//!  ┌───┬───┬───┬─── … ───┬─────┐        ┌───────┬─────── … ┬───────┐      ┌─────────┐
//!  │ 0 │ 1 │ 2 │         │ 144 │  ───►  │ newest│          │ oldest│ ───► │         │
//!  └───┴───┴───┴─── … ───┴─────┘        └───────┴─────── … ┴───────┘      └─────────┘
//!    ▲                                        145 to 4,320 blocks            older
//!    made by the block being filled
//! ```
//!
//! A spend draws an age, then a random coin of that bucket, and takes it out by swapping the
//! bucket's last coin into its place. Coinbases wait in their own queue until they are 100 deep.
//! Dust that is never spent is not kept here.
//!
//! For a reorg, [`Coins::mark`] starts a journal of the coins taken; [`Coins::rewind`] drops the
//! blocks above the fork and hands the journal back.

use std::collections::VecDeque;

use varve_types::{Outpoint, Txid};

use crate::profile::Ages;
use crate::rng::Rng;
use crate::script::Script;

const RECENT: usize = 145;
const EPOCH: u32 = 144;
const EPOCHS: usize = 29;
const MATURITY: u32 = 100;
/// A same-block spend takes one of the newest coins of the block, so that chains form.
const CHAIN_REACH: usize = 64;

/// An output that the simulator may spend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coin {
    pub(crate) txid: Txid,
    pub(crate) value: u64,
    pub(crate) vout: u32,
    pub(crate) height: u32,
    pub(crate) script: Script,
    pub(crate) coinbase: bool,
}

// 22 million coins, the growth of 20,000 dense blocks, are 1.2 GB.
const _: () = assert!(size_of::<Coin>() == 56);

impl Coin {
    pub(crate) const fn outpoint(&self) -> Outpoint {
        Outpoint::new(self.txid, self.vout)
    }
}

/// What a spend is looking for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want {
    /// A coin of at least this value, if a few draws find one.
    AtLeast(u64),
    /// The smaller of two coins.
    Small,
}

/// Every coin that can be spent.
#[derive(Default)]
pub(crate) struct Coins {
    height: u32,
    /// The front is the block being filled.
    recent: VecDeque<Vec<Coin>>,
    /// The front is the newest; its number of blocks is counted in `epoch_blocks`.
    epochs: VecDeque<Vec<Coin>>,
    epoch_blocks: u32,
    ancient: Vec<Coin>,
    coinbases: VecDeque<Coin>,
    journal: Option<Vec<Coin>>,
}

impl Coins {
    /// Makes room for the coins of block `height`.
    pub(crate) fn begin_block(&mut self, height: u32) {
        self.height = height;
        self.recent.push_front(Vec::new());
        if self.recent.len() > RECENT {
            let leaving = self.recent.pop_back().expect("it has more than 145 buckets");
            self.age(leaving);
        }
    }

    fn age(&mut self, mut leaving: Vec<Coin>) {
        if self.epochs.is_empty() || self.epoch_blocks == EPOCH {
            self.epochs.push_front(Vec::new());
            self.epoch_blocks = 0;
            if self.epochs.len() > EPOCHS {
                let mut oldest = self.epochs.pop_back().expect("it has more than 29 epochs");
                self.ancient.append(&mut oldest);
            }
        }
        self.epoch_blocks += 1;
        self.epochs.front_mut().expect("one was pushed when there was none").append(&mut leaving);
    }

    /// Adds an output of the block being filled.
    pub(crate) fn add(&mut self, coin: Coin) {
        if coin.coinbase {
            self.coinbases.push_back(coin);
        } else {
            self.recent.front_mut().expect("begin_block was called").push(coin);
        }
    }

    /// Takes a coin whose age is drawn from `ages`. When there is none of that age, takes a
    /// younger one; `None` when there is none at all.
    pub(crate) fn take(&mut self, ages: &Ages, want: Want, rng: &mut Rng) -> Option<Coin> {
        let draw = rng.below(1000);
        let age = rng.span(ages.young_ages) as usize;
        let young = ages.same_block + ages.young;
        let coin = if draw < ages.same_block {
            self.take_same_block(want, rng).or_else(|| self.take_recent(age, want, rng))
        } else if draw < young {
            self.take_recent(age, want, rng)
        } else if draw < young + ages.old {
            self.take_old(want, rng).or_else(|| self.take_recent(age, want, rng))
        } else {
            take_from(&mut self.ancient, want, rng)
                .or_else(|| self.take_old(want, rng))
                .or_else(|| self.take_recent(age, want, rng))
        }
        .or_else(|| self.take_same_block(want, rng))?;
        self.record(coin);
        Some(coin)
    }

    /// Takes the oldest coinbase that is mature in the block being filled.
    pub(crate) fn take_coinbase(&mut self) -> Option<Coin> {
        let mature = self.coinbases.front().is_some_and(|c| c.height + MATURITY <= self.height);
        let coin = if mature { self.coinbases.pop_front() } else { None }?;
        self.record(coin);
        Some(coin)
    }

    /// Returns a coin that was taken but not spent.
    pub(crate) fn put_back(&mut self, coin: Coin) {
        if let Some(journal) = &mut self.journal {
            let taken = journal.iter().rposition(|taken| taken.outpoint() == coin.outpoint());
            taken.map(|index| journal.swap_remove(index));
        }
        if coin.coinbase {
            self.coinbases.push_front(coin);
            return;
        }
        let age = (self.height - coin.height) as usize;
        match self.recent.get_mut(age) {
            Some(bucket) => bucket.push(coin),
            None => match self.epochs.front_mut() {
                Some(epoch) => epoch.push(coin),
                None => self.ancient.push(coin),
            },
        }
    }

    /// Starts the journal of coins taken.
    pub(crate) fn mark(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// Drops the blocks above `height` and their coins, and returns the older coins taken since
    /// the mark, newest first, for the caller to put back or to spend again.
    pub(crate) fn rewind(&mut self, height: u32) -> Vec<Coin> {
        for _ in height..self.height {
            self.recent.pop_front();
        }
        self.height = height;
        self.coinbases.retain(|coin| coin.height <= height);
        let mut taken = self.journal.take().expect("mark was called before rewind");
        taken.retain(|coin| coin.height <= height);
        taken.reverse();
        taken
    }

    fn record(&mut self, coin: Coin) {
        if let Some(journal) = &mut self.journal {
            journal.push(coin);
        }
    }

    fn take_same_block(&mut self, want: Want, rng: &mut Rng) -> Option<Coin> {
        let bucket = self.recent.front_mut()?;
        let first = bucket.len().saturating_sub(CHAIN_REACH);
        take_after(bucket, first, want, rng)
    }

    /// Takes a coin `age` blocks old, or else younger, or else older within the recent blocks.
    fn take_recent(&mut self, age: usize, want: Want, rng: &mut Rng) -> Option<Coin> {
        let age = age.min(self.recent.len().saturating_sub(1));
        let other = (1..age).rev().chain(age + 1..self.recent.len());
        for age in std::iter::once(age).filter(|age| *age > 0).chain(other) {
            let bucket = self.recent.get_mut(age).expect("ages are below the number of buckets");
            if !bucket.is_empty() {
                return take_from(bucket, want, rng);
            }
        }
        None
    }

    fn take_old(&mut self, want: Want, rng: &mut Rng) -> Option<Coin> {
        let start = rng.index(self.epochs.len());
        let (before, after) = (0..start, start..self.epochs.len());
        for index in after.chain(before) {
            let epoch = self.epochs.get_mut(index).expect("indexes are below the length");
            if !epoch.is_empty() {
                return take_from(epoch, want, rng);
            }
        }
        None
    }
}

fn take_from(bucket: &mut Vec<Coin>, want: Want, rng: &mut Rng) -> Option<Coin> {
    take_after(bucket, 0, want, rng)
}

/// Takes a coin of `bucket[first..]`.
fn take_after(bucket: &mut Vec<Coin>, first: usize, want: Want, rng: &mut Rng) -> Option<Coin> {
    if bucket.is_empty() {
        return None;
    }
    let mut draw = |bucket: &[Coin]| {
        let index = first + rng.index(bucket.len() - first);
        (index, bucket.get(index).map_or(0, |coin| coin.value))
    };
    let mut best = draw(bucket);
    match want {
        Want::Small => {
            let other = draw(bucket);
            best = if other.1 < best.1 { other } else { best };
        }
        Want::AtLeast(value) => {
            for _ in 0..8 {
                if best.1 >= value {
                    break;
                }
                let other = draw(bucket);
                best = if other.1 > best.1 { other } else { best };
            }
        }
    }
    Some(bucket.swap_remove(best.0))
}

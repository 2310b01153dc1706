//! Hashes and figures of the whole set.
//!
//! At a sampled height the coins created since the last sample are multiplied into the MuHash, and
//! those spent are divided out. A coin that was both in between is in neither list and costs
//! nothing. Created coins are found by the heights in the map of coins, which is ahead by the
//! blocks that may still be disconnected: what those have spent is taken from their undo data.
//!
//! The multiplications are done by all threads: a product does not depend on its order.

use std::collections::VecDeque;

use bitcoin::hashes::{Hash as _, HashEngine as _, sha256d};
use rayon::prelude::*;
use varve_types::Outpoint;
use varve_types::muhash::MuHash;

use super::{CoinMap, Delta, StoredCoin};

/// Coins that one thread multiplies at a time.
const CHUNK: usize = 1024;

/// While the set has fewer coins than `FEW`, samples cost next to nothing and are taken every
/// `EVERY` blocks. Later a sample costs about two multiplications for every coin that lives through
/// it and dies later, which for full blocks is half a second.
const EVERY: u32 = 25;
const FEW: u64 = 50_000;

/// The set at one height, with the field names of `gettxoutsetinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetStats {
    /// The height.
    pub height: u32,
    /// How many coins there are.
    pub txouts: u64,
    /// Their size in Bitcoin Core's measure.
    pub bogosize: u64,
    /// Their value in satoshi.
    pub total_amount: u64,
    /// MuHash3072 of the set, in internal byte order.
    pub muhash: [u8; 32],
}

/// Figures computed over the sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetHashes {
    /// Bitcoin Core's `hash_serialized_3`, in internal byte order.
    pub hash_serialized_3: [u8; 32],
    /// Transactions with at least one unspent output.
    pub transactions: u64,
}

/// Follows the set block by block.
pub(crate) struct SetTracker {
    every: u32,
    muhash: MuHash,
    /// The first height whose coins are not in the MuHash yet.
    from: u32,
    /// Coins that are in the MuHash and have been spent.
    went: Vec<(Outpoint, StoredCoin)>,
    height: u32,
    txouts: u64,
    bogosize: u64,
    total_amount: u64,
    samples: Vec<SetStats>,
}

impl SetTracker {
    pub(crate) fn new(every: u32) -> Self {
        Self {
            every: every.max(1),
            muhash: MuHash::new(),
            from: 0,
            went: Vec::new(),
            height: 0,
            txouts: 0,
            bogosize: 0,
            total_amount: 0,
            samples: Vec::new(),
        }
    }

    /// Takes the next block's changes. `coins` is the set after the blocks of `later`, which
    /// follow it.
    pub(crate) fn apply(&mut self, delta: Delta, coins: &CoinMap, later: &VecDeque<Delta>) {
        self.height = delta.height;
        self.txouts += delta.created.len() as u64;
        self.bogosize += delta.created_bogosize;
        self.total_amount += delta.created_amount;
        for (outpoint, coin) in delta.spent {
            self.txouts -= 1;
            self.bogosize -= coin.view().bogosize();
            self.total_amount -= coin.value;
            if coin.height() < self.from {
                self.went.push((outpoint, coin));
            }
        }
        let cheap = self.height.is_multiple_of(EVERY) && self.txouts < FEW;
        if cheap || self.height.is_multiple_of(self.every) {
            self.sample(coins, later);
        }
    }

    /// Every sample, the last at the tip, which is the last block applied.
    pub(crate) fn finish(&mut self, coins: &CoinMap) -> &[SetStats] {
        if self.samples.last().is_none_or(|sample| sample.height != self.height) {
            self.sample(coins, &VecDeque::new());
        }
        &self.samples
    }

    fn sample(&mut self, coins: &CoinMap, later: &VecDeque<Delta>) {
        let new = self.from..=self.height;
        let spent_later = later.iter().flat_map(|delta| &delta.spent).map(|(o, coin)| (o, coin));
        let came: Vec<(&Outpoint, &StoredCoin)> = coins
            .iter()
            .chain(spent_later)
            .filter(|(_, coin)| new.contains(&coin.height()))
            .collect();
        let went: Vec<(&Outpoint, &StoredCoin)> =
            self.went.iter().map(|(o, coin)| (o, coin)).collect();
        self.muhash.combine(&product(&came, MuHash::insert));
        self.muhash.combine(&product(&went, MuHash::remove));
        self.went.clear();
        self.from = self.height + 1;
        self.samples.push(SetStats {
            height: self.height,
            txouts: self.txouts,
            bogosize: self.bogosize,
            total_amount: self.total_amount,
            muhash: self.muhash.finalize(),
        });
    }
}

fn product(coins: &[(&Outpoint, &StoredCoin)], take: fn(&mut MuHash, &[u8])) -> MuHash {
    let one = |chunk: &[(&Outpoint, &StoredCoin)]| {
        let mut muhash = MuHash::new();
        let mut bytes = Vec::with_capacity(128);
        for (outpoint, coin) in chunk {
            bytes.clear();
            coin.view().write_for_hash(outpoint, &mut bytes);
            take(&mut muhash, &bytes);
        }
        muhash
    };
    let join = |mut left: MuHash, right: MuHash| {
        left.combine(&right);
        left
    };
    coins.par_chunks(CHUNK).map(one).reduce(MuHash::new, join)
}

/// `hash_serialized_3` over every coin, sorted by outpoint.
pub(crate) fn hash_sorted(coins: &CoinMap) -> SetHashes {
    let mut sorted: Vec<(&Outpoint, &StoredCoin)> = coins.iter().collect();
    sorted.par_sort_unstable_by_key(|(outpoint, _)| **outpoint);
    let mut engine = sha256d::Hash::engine();
    let mut bytes = Vec::with_capacity(128);
    let mut transactions = 0;
    let mut last = None;
    for (outpoint, coin) in sorted {
        bytes.clear();
        coin.view().write_for_hash(outpoint, &mut bytes);
        engine.input(&bytes);
        if last != Some(outpoint.txid) {
            transactions += 1;
            last = Some(outpoint.txid);
        }
    }
    let hash_serialized_3 = sha256d::Hash::from_engine(engine).to_byte_array();
    SetHashes { hash_serialized_3, transactions }
}

//! Reorgs: when they happen, and what becomes of the transactions of the losing branch.
//!
//! ```text
//!            ┌─ S1 ─ S2             arrive first and are the tip for a while
//!  … ─ fork ─┤
//!            └─ W1 ─ W2 ─ W3        arrive next; W3 wins
//! ```
//!
//! The losing branch is built like any other blocks. Then the coins are rewound to the fork and
//! each of its transactions, in order, meets one of three fates:
//!
//! - **again**: it is in the winning branch too, at the same height or one higher, never before
//!   a parent;
//! - **rival**: its first coin is spent by another transaction, so it can never confirm;
//! - **dropped**: it is gone and its coins are free; this also happens to a transaction whose
//!   parent was not taken over.
//!
//! Coins that the first two still need are reserved, so that the new transactions of the winning
//! branch leave them alone.

use std::collections::{HashMap, HashSet};

use varve_types::{Outpoint, Txid};

use crate::coins::Coin;
use crate::rng::Rng;
use crate::transaction::Transaction;

/// A block of the winning branch takes this over from the losing one.
pub(crate) enum Carried {
    /// The same transaction.
    Again(Box<Transaction>),
    /// Another transaction that spends this coin.
    Rival(Coin),
}

/// What becomes of the losing branch's transactions.
pub(crate) struct Fates {
    /// For each block of the winning branch.
    pub(crate) carried: Vec<Vec<Carried>>,
    /// Coins that the carried transactions spend.
    pub(crate) reserved: HashSet<Outpoint>,
}

impl Fates {
    /// Decides for the blocks above `fork`.
    pub(crate) fn decide(stale: Vec<Vec<Transaction>>, fork: u32, rng: &mut Rng) -> Self {
        let mut carried: Vec<Vec<Carried>> = (0..=stale.len()).map(|_| Vec::new()).collect();
        let mut reserved = HashSet::new();
        // The block of the winning branch that each carried transaction is in.
        let mut places: HashMap<Txid, usize> = HashMap::new();
        for (index, transactions) in stale.into_iter().enumerate() {
            for transaction in transactions {
                let wanted = index + usize::from(rng.chance(1, 2));
                let fate = rng.below(100);
                let place_of = |coin: &Coin| {
                    if coin.height <= fork { Some(0) } else { places.get(&coin.txid).copied() }
                };
                let parents: Option<Vec<usize>> = transaction.inputs.iter().map(place_of).collect();
                let (Some(parents), Some(first)) = (parents, transaction.inputs.first().copied())
                else {
                    continue;
                };
                let place = parents.into_iter().fold(wanted, usize::max);
                let block = carried.get_mut(place).expect("the winning branch is one longer");
                if fate < 60 {
                    reserved.extend(transaction.inputs.iter().map(Coin::outpoint));
                    places.insert(transaction.txid, place);
                    block.push(Carried::Again(Box::new(transaction)));
                } else if fate < 75 {
                    reserved.insert(first.outpoint());
                    block.push(Carried::Rival(first));
                }
            }
        }
        Self { carried, reserved }
    }
}

/// When reorgs happen, and how deep they are.
pub(crate) struct Schedule {
    deepest: u32,
    count: u32,
    next: u32,
}

impl Schedule {
    /// Reorgs of at most this depth, none below `height`.
    pub(crate) const fn starting(deepest: u32, height: u32) -> Self {
        Self { deepest, count: 0, next: height }
    }

    /// The depth of the reorg that starts on the tip at `height`, if one does. The first is the
    /// deepest, the others cycle through all depths, as far as the chain's end allows.
    pub(crate) fn due(&mut self, height: u32, blocks: u32, rng: &mut Rng) -> Option<u32> {
        if height < self.next {
            return None;
        }
        let wanted = match self.count {
            0 => self.deepest,
            count => 1 + (count - 1) % self.deepest,
        };
        let depth = wanted.min(blocks.saturating_sub(height + 1));
        if depth == 0 {
            return None;
        }
        self.count += 1;
        self.next = height + depth + 1 + rng.between(6, 30);
        Some(depth)
    }
}

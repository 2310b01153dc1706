//! An independent model of the chain: it reads blocks' bytes, follows the most work, and knows the
//! answers.
//!
//! It shares nothing with the generator but the block bytes. It parses them, checks every rule that
//! does not need scripts to be run, and keeps the set of coins in a hash map. On a heavier branch
//! it disconnects with undo data and connects the other side, as a node would; of two branches with
//! the same work it keeps the one it saw first.
//!
//! ```text
//! bytes ─► check ─► coins ──► undo queue (as deep as reorgs go) ──► set hash, at sampled heights
//!                     └─────► samples: histories and spenders
//! ```
//!
//! Set hashes lag by the depth of reorgs, so they never have to be undone. A coin that is made and
//! spent between two sampled heights costs nothing.

mod branches;
mod check;
mod coin;
mod error;
mod samples;
mod set;

use std::collections::{HashMap, VecDeque};

use varve_types::{Block, BlockHash, Height, Network, Outpoint, unspendable};

pub use branches::ChainTip;
pub(crate) use coin::{CoinMap, StoredCoin};
pub use error::ModelError;
pub use samples::{OutputSample, ScriptSample, SpendSample};
pub use set::{SetHashes, SetStats};

use branches::Branches;
use check::{Totals, check_block, check_header};
use samples::{Place, Samples};
use set::SetTracker;

const MATURITY: u32 = 100;

/// One change of the active branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reorg {
    /// The height of the old tip.
    pub from: u32,
    /// How many blocks were disconnected.
    pub depth: u32,
    /// The old tip.
    pub old_tip: BlockHash,
    /// The new tip.
    pub new_tip: BlockHash,
    /// Its height.
    pub height: u32,
}

/// A block's changes to the set, for undoing or hashing them.
#[derive(Default)]
pub(crate) struct Delta {
    height: u32,
    created: Vec<Outpoint>,
    created_bogosize: u64,
    created_amount: u64,
    spent: Vec<(Outpoint, StoredCoin)>,
}

/// The model.
pub struct Model {
    network: Network,
    /// How deep reorgs go.
    window: u32,
    branches: Branches,
    /// Bytes of the blocks that a reorg may still connect.
    bytes: HashMap<BlockHash, Vec<u8>>,
    bytes_by_age: VecDeque<(u32, BlockHash)>,
    coins: CoinMap,
    undo: VecDeque<Delta>,
    set: SetTracker,
    samples: Samples,
    reorgs: Vec<Reorg>,
    transactions: u64,
}

impl Model {
    /// An empty model that can rewind `window` blocks, takes set hashes at least every
    /// `sample_every` blocks, and keeps the histories of `watched` scripts besides those it
    /// samples.
    #[must_use]
    pub fn new(network: Network, window: u32, sample_every: u32, watched: &[Vec<u8>]) -> Self {
        Self {
            network,
            window,
            branches: Branches::default(),
            bytes: HashMap::new(),
            bytes_by_age: VecDeque::new(),
            coins: CoinMap::default(),
            undo: VecDeque::new(),
            set: SetTracker::new(sample_every),
            samples: Samples::new(watched),
            reorgs: Vec::new(),
            transactions: 0,
        }
    }

    /// Takes the next block that arrives. The first is genesis.
    ///
    /// # Errors
    ///
    /// When the block breaks a rule.
    pub fn add(&mut self, bytes: Vec<u8>) -> Result<(), ModelError> {
        let block = Block::parse(&bytes, self.network.format())?;
        let (hash, header) = (block.hash(), block.header());
        let (previous, time) = (header.previous(), header.time());
        let height = self.branches.next_height(&previous);
        let height = height.ok_or(ModelError::Orphan { hash, previous })?;
        if height > 0 {
            check_header(&header, height, self.branches.median_time(&previous))?;
        }
        self.branches.add(hash, previous, time, height);
        if self.tip().is_none_or(|tip| tip == previous) {
            self.connect(&block, height)?;
            self.branches.connect(hash);
            self.keep(height, hash, bytes);
        } else {
            self.keep(height, hash, bytes);
            if height > self.height() {
                self.reorganise(hash)?;
            }
        }
        self.forget();
        Ok(())
    }

    /// Takes an unconfirmed transaction on top of the tip and of those before it, and returns its
    /// fee. No block can follow.
    ///
    /// # Errors
    ///
    /// When it is not valid there.
    pub fn add_unconfirmed(&mut self, bytes: &[u8]) -> Result<u64, ModelError> {
        let transaction = varve_types::Tx::parse(bytes, self.network.format())?;
        let height = self.height() + 1;
        let mut delta = Delta::default();
        let (txid, mut totals) = (transaction.txid(), Totals::default());
        self.apply(&transaction, Place { height, position: 1, txid }, &mut delta, &mut totals)?;
        Ok(totals.fees)
    }

    /// The height of the tip; 0 before the first block.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.branches.height()
    }

    /// The tip of the active branch.
    #[must_use]
    pub fn tip(&self) -> Option<BlockHash> {
        self.branches.tip()
    }

    /// The hash of the block of the active branch at this height.
    #[must_use]
    pub fn block_hash(&self, height: u32) -> Option<BlockHash> {
        self.branches.block_hash(height)
    }

    /// Every branch's last block, the highest first.
    #[must_use]
    pub fn chain_tips(&self) -> Vec<ChainTip> {
        self.branches.tips()
    }

    /// Every change of the active branch, in order.
    #[must_use]
    pub fn reorgs(&self) -> &[Reorg] {
        &self.reorgs
    }

    /// Confirmed transactions on the active branch, coinbases among them.
    #[must_use]
    pub const fn transactions(&self) -> u64 {
        self.transactions
    }

    /// The set's figures and MuHash at the sampled heights and at the tip. No reorg can follow.
    pub fn set_stats(&mut self) -> &[SetStats] {
        while let Some(delta) = self.undo.pop_front() {
            self.set.apply(delta, &self.coins, &self.undo);
        }
        self.set.finish(&self.coins)
    }

    /// The hash over the sorted set at the tip.
    #[must_use]
    pub fn set_hashes(&self) -> SetHashes {
        set::hash_sorted(&self.coins)
    }

    /// The sampled outputs of the active branch.
    #[must_use]
    pub fn output_samples(&self) -> Vec<OutputSample> {
        self.samples.outputs()
    }

    /// The sampled and watched scripts, those with the longest history first.
    #[must_use]
    pub fn script_samples(&self) -> Vec<ScriptSample> {
        self.samples.scripts()
    }

    fn reorganise(&mut self, new_tip: BlockHash) -> Result<(), ModelError> {
        let old_tip = self.tip().expect("genesis is connected");
        let from = self.height();
        let (branch, fork) = self.branches.off_active(&new_tip);
        while self.height() > fork {
            self.disconnect().ok_or(ModelError::TooDeep { hash: new_tip })?;
        }
        for hash in branch.into_iter().rev() {
            let bytes = self.bytes.remove(&hash).ok_or(ModelError::TooDeep { hash: new_tip })?;
            let block = Block::parse(&bytes, self.network.format())?;
            self.connect(&block, self.height() + 1)?;
            self.branches.connect(hash);
            self.bytes.insert(hash, bytes);
        }
        let (depth, height) = (from - fork, self.height());
        self.reorgs.push(Reorg { from, depth, old_tip, new_tip, height });
        Ok(())
    }

    fn connect(&mut self, block: &Block<'_>, height: u32) -> Result<(), ModelError> {
        let txids = block.txids();
        let mut delta = Delta { height, ..Delta::default() };
        delta.created.reserve(2 * txids.len());
        delta.spent.reserve(2 * txids.len());
        // The coinbase of genesis is not in the set.
        if height > 0 {
            check_block(self.network, block, &txids, height)?;
            let mut totals = Totals::default();
            for (position, (transaction, txid)) in block.txs().iter().zip(&txids).enumerate() {
                let position = u32::try_from(position).expect("a block's transactions fit u32");
                let place = Place { height, position, txid: *txid };
                self.apply(transaction, place, &mut delta, &mut totals)?;
            }
            totals.check_subsidy(self.network, height)?;
        }
        self.transactions += txids.len() as u64;
        self.undo.push_back(delta);
        while self.undo.len() > self.window as usize {
            let delta = self.undo.pop_front().expect("the queue is not empty");
            self.set.apply(delta, &self.coins, &self.undo);
        }
        Ok(())
    }

    /// Spends a transaction's inputs and makes its outputs.
    fn apply(
        &mut self,
        transaction: &varve_types::Tx<'_>,
        place: Place,
        delta: &mut Delta,
        totals: &mut Totals,
    ) -> Result<(), ModelError> {
        let height = place.height;
        let broken = |rule: String| ModelError::Rule { height, rule };
        let coinbase = place.position == 0;
        let mut funds = 0;
        if !coinbase {
            for (vin, input) in (0..).zip(transaction.inputs()) {
                let outpoint = input.outpoint;
                let coin = self.coins.remove(&outpoint).ok_or_else(|| {
                    broken(format!("{} spends {outpoint}, which is not there", place.txid))
                })?;
                if coin.coinbase() && coin.height() + MATURITY > height {
                    return Err(broken(format!("{outpoint} is spent before it is mature")));
                }
                funds += coin.value;
                self.samples.spend(&outpoint, &coin, place, vin);
                delta.spent.push((outpoint, coin));
            }
        }
        let mut paid = 0;
        for (vout, output) in (0..).zip(transaction.outputs()) {
            let (value, outpoint) = (output.value.to_sat(), Outpoint::new(place.txid, vout));
            paid += value;
            if unspendable(self.network, Height::new(height), output.script) {
                continue;
            }
            let coin = StoredCoin::new(value, height, coinbase, output.script);
            self.samples.create(&outpoint, &coin, place);
            delta.created.push(outpoint);
            delta.created_bogosize += coin.view().bogosize();
            delta.created_amount += value;
            if self.coins.insert(outpoint, coin).is_some() {
                return Err(broken(format!("{outpoint} is made twice")));
            }
        }
        if coinbase {
            totals.coinbase = paid;
        } else {
            let fee = funds.checked_sub(paid);
            totals.fees += fee.ok_or_else(|| broken(format!("{} makes money", place.txid)))?;
        }
        Ok(())
    }

    /// Disconnects the tip; `None` when its undo data is gone.
    fn disconnect(&mut self) -> Option<()> {
        let delta = self.undo.pop_back()?;
        let hash = self.branches.disconnect()?;
        for (outpoint, coin) in delta.spent.into_iter().rev() {
            self.samples.unspend(&outpoint, &coin);
            self.coins.insert(outpoint, coin);
        }
        for outpoint in &delta.created {
            self.coins.remove(outpoint);
        }
        self.samples.disconnect(delta.height);
        let bytes = self.bytes.get(&hash)?;
        let block = Block::parse(bytes, self.network.format()).ok()?;
        self.transactions -= block.txs().len() as u64;
        Some(())
    }

    fn keep(&mut self, height: u32, hash: BlockHash, bytes: Vec<u8>) {
        self.bytes.insert(hash, bytes);
        self.bytes_by_age.push_back((height, hash));
    }

    /// Frees blocks that no reorg can reach.
    fn forget(&mut self) {
        while let Some((height, hash)) = self.bytes_by_age.front()
            && height + self.window < self.height()
        {
            self.bytes.remove(hash);
            self.bytes_by_age.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;

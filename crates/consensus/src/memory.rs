//! The oracle: a set of unspent outputs in a plain map.
//!
//! It is obviously right rather than fast, and every engine is compared with it. A block is walked
//! once (`walk`), transaction by transaction: spend the inputs, then add the outputs.
//!
//! Connecting a block returns its [`Undo`]: the coins that were in the set before and are not
//! after, because the block spent or replaced them. Disconnecting takes away the outputs of the
//! block's transactions and puts these back.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use varve_types::{Amount, Coin, Height, Network, Outpoint, Txid};

use crate::block_at::BlockAt;
use crate::view::{CheckError, PrevoutError, Spend, UnspentOutputsView};
use crate::walk::{Below, Walked, walk_block};

/// A set of unspent outputs in memory.
#[derive(Clone, Debug)]
pub struct MemorySet {
    network: Network,
    coins: BTreeMap<Outpoint, OwnedCoin>,
    /// The spender of each coin spent by connected blocks, for errors.
    spenders: BTreeMap<Outpoint, Txid>,
}

/// A coin with its script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedCoin {
    /// The height of the block that created it.
    pub height: Height,
    /// Whether a coinbase transaction created it.
    pub coinbase: bool,
    /// The amount.
    pub value: Amount,
    /// The locking script.
    pub script: Vec<u8>,
}

impl OwnedCoin {
    /// The coin, borrowed.
    #[must_use]
    pub fn as_coin(&self) -> Coin<'_> {
        let Self { height, coinbase, value, ref script } = *self;
        Coin { height, coinbase, value, script }
    }
}

impl From<Coin<'_>> for OwnedCoin {
    fn from(coin: Coin<'_>) -> Self {
        let Coin { height, coinbase, value, script } = coin;
        Self { height, coinbase, value, script: script.to_vec() }
    }
}

/// The coins that a block took out of the set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undo {
    coins: Vec<(Outpoint, OwnedCoin)>,
}

impl MemorySet {
    /// An empty set.
    #[must_use]
    pub const fn new(network: Network) -> Self {
        Self { network, coins: BTreeMap::new(), spenders: BTreeMap::new() }
    }

    /// The number of coins.
    #[must_use]
    pub fn len(&self) -> usize {
        self.coins.len()
    }

    /// Whether there are no coins.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.coins.is_empty()
    }

    /// The coin at this outpoint.
    #[must_use]
    pub fn get(&self, outpoint: &Outpoint) -> Option<Coin<'_>> {
        self.coins.get(outpoint).map(OwnedCoin::as_coin)
    }

    /// All coins, in the order of their outpoints.
    pub fn iter(&self) -> impl Iterator<Item = (&Outpoint, Coin<'_>)> {
        self.coins.iter().map(|(outpoint, coin)| (outpoint, coin.as_coin()))
    }

    /// Puts a coin into the set, without a block, to start from a known state.
    pub fn insert(&mut self, outpoint: Outpoint, coin: OwnedCoin) {
        self.coins.insert(outpoint, coin);
    }

    /// Connects a block, or leaves the set as it is.
    pub fn connect(&mut self, block: &BlockAt<'_>) -> Result<Undo, PrevoutError> {
        let Walked { spent, created } = self.walk(block, |_| {})?;
        let mut undo = Undo::default();
        for outpoint in spent.keys().chain(created.keys()) {
            undo.coins.extend(self.coins.remove_entry(outpoint));
        }
        self.coins.extend(created.into_iter().map(|(outpoint, coin)| (outpoint, coin.into())));
        self.spenders.extend(spent);
        Ok(undo)
    }

    /// Disconnects the last block that was connected.
    pub fn disconnect(&mut self, block: &BlockAt<'_>, undo: Undo) {
        for (txid, tx) in block.txs() {
            for (vout, _) in (0..).zip(tx.outputs()) {
                self.coins.remove(&Outpoint::new(txid, vout));
            }
            for input in tx.inputs() {
                self.spenders.remove(&input.outpoint);
            }
        }
        self.coins.extend(undo.coins);
    }

    fn walk<'v, 'b: 'v>(
        &'v self,
        block: &BlockAt<'b>,
        each: impl FnMut(Spend<'v>),
    ) -> Result<Walked<'b>, PrevoutError> {
        let below = |outpoint: &Outpoint| match self.get(outpoint) {
            Some(coin) => Below::Unspent(coin),
            None => Below::Missing { spent_by: self.spenders.get(outpoint).copied() },
        };
        walk_block(self.network, block, below, each)
    }
}

impl UnspentOutputsView for MemorySet {
    type Error = Infallible;

    fn query_prevouts_unspent(
        &self,
        block: &BlockAt<'_>,
    ) -> Result<(), CheckError<PrevoutError, Infallible>> {
        self.walk(block, |_| {}).map(drop).map_err(CheckError::Invalid)
    }

    fn for_each_spend<'v, B, F>(
        &'v self,
        block: &'v BlockAt<'v>,
        each: F,
    ) -> Result<ControlFlow<B>, CheckError<PrevoutError, Infallible>>
    where
        F: FnMut(Spend<'v>) -> ControlFlow<B>,
    {
        let mut spends = Vec::new();
        self.walk(block, |spend| spends.push(spend)).map_err(CheckError::Invalid)?;
        Ok(spends.into_iter().try_for_each(each))
    }

    fn find_repeated_output(&self, block: &BlockAt<'_>) -> Result<Option<Outpoint>, Infallible> {
        let mut outpoints = block.txs().flat_map(|(txid, tx)| {
            (0..).zip(tx.outputs()).map(move |(vout, _)| Outpoint::new(txid, vout))
        });
        Ok(outpoints.find(|outpoint| self.coins.contains_key(outpoint)))
    }
}

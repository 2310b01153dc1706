//! What a block does to the set, before anybody has asked the set.
//!
//! The block is walked once, transaction by transaction: first its inputs, then its outputs.
//!
//! - An input that spends an output made earlier in the block is settled here. That output never
//!   enters the set.
//! - Every other input is a *prevout*, to be looked up in the set.
//! - A prevout met twice ends the walk of inputs: the block is refused, unless an earlier prevout
//!   is missing, which would be the reason then.
//! - An output that can be spent at all is *made*. If the set has its outpoint already (BIP30), the
//!   coin there goes, even when the block spends the new one itself.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use varve_consensus::{BlockAt, PrevoutError};
use varve_types::{Coin, Height, Network, Outpoint, Txid, unspendable};

/// The changes of one block.
#[derive(Debug, Default)]
pub(crate) struct Changes<'b> {
    /// What it spends of the set, in block order, and the transactions that do.
    pub(crate) prevouts: Vec<Outpoint>,
    spenders: Vec<Txid>,
    /// Where each input's coin comes from, in block order.
    pub(crate) sources: Vec<CoinSource>,
    /// Every outpoint that it makes, once, in block order.
    pub(crate) made: Vec<Outpoint>,
    /// The coin at each of them; `None` when the block spends it too.
    coins: Vec<Option<Coin<'b>>>,
    stopped: Option<PrevoutError>,
}

/// Where the coin of an input comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CoinSource {
    /// The prevout in this place.
    Set(usize),
    /// An output of the block: its place among all outputs of the block.
    Block(usize),
}

impl<'b> Changes<'b> {
    /// Walks the block.
    pub(crate) fn of(network: Network, block: &BlockAt<'b>) -> Self {
        let mut changes = Self::default();
        let mut spent: HashMap<Outpoint, Txid> = HashMap::new();
        // The place among the made, and among all outputs.
        let mut made: HashMap<Outpoint, (usize, usize)> = HashMap::new();
        let mut outputs = 0;
        for (txid, tx) in block.txs() {
            if !tx.is_coinbase() && changes.stopped.is_none() {
                let inputs = tx.inputs().map(|input| input.outpoint);
                changes.spend(txid, inputs, &mut spent, &made);
            }
            for (vout, output) in (0..).zip(tx.outputs()) {
                let (height, coinbase) = (block.height(), tx.is_coinbase());
                let enters = height != Height::GENESIS;
                if enters && !unspendable(network, height, output.script) {
                    let coin =
                        Coin { height, coinbase, value: output.value, script: output.script };
                    changes.make(Outpoint::new(txid, vout), (coin, outputs), &mut made);
                }
                outputs += 1;
            }
        }
        changes
    }

    fn spend(
        &mut self,
        spender: Txid,
        inputs: impl Iterator<Item = Outpoint>,
        spent: &mut HashMap<Outpoint, Txid>,
        made: &HashMap<Outpoint, (usize, usize)>,
    ) {
        for outpoint in inputs {
            if let Some(first) = spent.insert(outpoint, spender) {
                let second = spender;
                self.stopped = Some(PrevoutError::SpentTwice { outpoint, first, second });
                return;
            }
            let made = made.get(&outpoint);
            let coin = made.and_then(|(place, _)| self.coins.get_mut(*place));
            let source = match (coin.and_then(Option::take), made) {
                (Some(_), Some((_, output))) => CoinSource::Block(*output),
                _ => {
                    self.prevouts.push(outpoint);
                    self.spenders.push(spender);
                    CoinSource::Set(self.prevouts.len() - 1)
                }
            };
            self.sources.push(source);
        }
    }

    /// A transaction that comes twice in a block (two equal coinbases) makes its outputs once.
    fn make(
        &mut self,
        outpoint: Outpoint,
        (coin, output): (Coin<'b>, usize),
        made: &mut HashMap<Outpoint, (usize, usize)>,
    ) {
        match made.entry(outpoint) {
            Slot::Occupied(mut slot) => {
                let (place, _) = *slot.get();
                slot.insert((place, output));
                if let Some(old) = self.coins.get_mut(place) {
                    *old = Some(coin);
                }
            }
            Slot::Vacant(slot) => {
                slot.insert((self.made.len(), output));
                self.made.push(outpoint);
                self.coins.push(Some(coin));
            }
        }
    }

    /// The transaction that spends each of the prevouts.
    pub(crate) fn spenders(&self) -> &[Txid] {
        &self.spenders
    }

    /// What the block leaves in the set, in block order.
    pub(crate) fn created(&self) -> impl Iterator<Item = (Outpoint, Coin<'b>)> {
        self.made.iter().zip(&self.coins).filter_map(|(outpoint, coin)| Some((*outpoint, (*coin)?)))
    }

    /// The verdict, when `is_there` says which prevouts the set has: the first reason in block
    /// order.
    pub(crate) fn verdict(&self, is_there: impl Fn(usize) -> bool) -> Result<(), PrevoutError> {
        let prevouts = self.prevouts.iter().zip(&self.spenders).enumerate();
        for (place, (outpoint, spender)) in prevouts {
            if !is_there(place) {
                let (outpoint, spender) = (*outpoint, *spender);
                return Err(PrevoutError::Missing { outpoint, spender, spent_by: None });
            }
        }
        self.stopped.map_or(Ok(()), Err)
    }
}

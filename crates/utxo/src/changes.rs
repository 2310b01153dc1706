//! What a block does to the set, computed from the block alone.
//!
//! The block is walked once, transaction by transaction: first its inputs, then its outputs.
//!
//! - An input that spends an output made earlier in the block is settled here. That output never
//!   enters the set.
//! - Every other input is a *prevout*, to be looked up in the set.
//! - A prevout spent twice ends the walk of inputs: the block is refused for that, unless an
//!   earlier prevout is missing, which is then the reason.
//! - An output that can be spent at all is *made*. If the set already has its outpoint (BIP30), the
//!   old coin is removed, even when the block itself spends the new one.
//!
//! Two small tables find what the block itself holds: one of its transactions by txid, one of its
//! prevouts. Both are placed by the store's keyed hash, so a miner cannot make the walk slow.
//!
//! Nothing here borrows from the block, so that the changes can be kept until the block's turn
//! comes. Outputs are identified by their *place*: their number among all outputs of the block.

use varve_consensus::{BlockAt, PrevoutError};
use varve_types::{Coin, Height, Network, Outpoint, Txid, unspendable};

use crate::hasher::{OutpointHash, OutpointHasher};
use crate::prepare::Repeats;
use crate::undo::UndoTx;

/// The changes of one block.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The keys to look up: the prevouts in block order, then, where outputs can repeat older ones,
    /// the outputs that the block makes, each once.
    pub(crate) keys: Vec<Outpoint>,
    /// The places of the transactions that spend the prevouts.
    spenders: Vec<u32>,
    /// Where each input's coin comes from, in block order.
    pub(crate) sources: Vec<CoinSource>,
    /// What becomes of each output of the block.
    fates: Vec<Fate>,
    /// The bytes of their scripts.
    pub(crate) script_bytes: usize,
    stopped: Option<PrevoutError>,
}

/// Where the coin of an input comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CoinSource {
    /// The prevout in this place.
    Set(u32),
    /// The output of the block in this place.
    Block(u32),
}

/// What becomes of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It can never be spent, or its transaction occurs a second time.
    None,
    /// It is unspent at the end of the block.
    Made,
    /// A later transaction of the block spends it.
    Spent,
}

impl Changes {
    /// Walks the block.
    pub(crate) fn of(
        network: Network,
        hasher: &OutpointHasher,
        block: &BlockAt<'_>,
        repeats: Repeats,
    ) -> Self {
        let txs = block.block().txs();
        let inputs = txs.iter().map(|tx| tx.inputs().len()).sum();
        let mut walk = Walk {
            changes: Self::with_room(inputs, txs.iter().map(|tx| tx.outputs().len()).sum()),
            hasher,
            spent: Table::new(inputs),
            inputs: Vec::with_capacity(inputs),
            made: Table::new(txs.len()),
            txs: Vec::with_capacity(txs.len()),
        };
        let enters = block.height() != Height::GENESIS;
        for (place, (txid, tx)) in (0..).zip(block.txs()) {
            if !tx.is_coinbase() && walk.changes.stopped.is_none() {
                walk.spend(block, place, tx.inputs().map(|input| input.outpoint));
            }
            let mut script_bytes = 0;
            let made = tx.outputs().map(|output| {
                script_bytes += output.script.len();
                enters && !unspendable(network, block.height(), output.script)
            });
            walk.make(txid, made);
            walk.changes.script_bytes += script_bytes;
        }
        let mut changes = walk.changes;
        if repeats == Repeats::Possible {
            let mut keys = std::mem::take(&mut changes.keys);
            keys.extend(changes.made(block));
            changes.keys = keys;
        }
        changes
    }

    fn with_room(inputs: usize, outputs: usize) -> Self {
        Self {
            keys: Vec::with_capacity(inputs),
            spenders: Vec::with_capacity(inputs),
            sources: Vec::with_capacity(inputs),
            fates: Vec::with_capacity(outputs),
            script_bytes: 0,
            stopped: None,
        }
    }

    /// How many of the keys are prevouts.
    pub(crate) const fn spends(&self) -> usize {
        self.spenders.len()
    }

    /// How many outputs the block has.
    pub(crate) const fn outputs(&self) -> usize {
        self.fates.len()
    }

    /// The prevouts, in block order.
    pub(crate) fn prevouts(&self) -> &[Outpoint] {
        self.keys.get(..self.spends()).unwrap_or_default()
    }

    /// The outpoints of the outputs with a fate that is `wanted`, in block order.
    fn outpoints(
        &self,
        block: &BlockAt<'_>,
        wanted: impl Fn(Fate) -> bool,
    ) -> impl Iterator<Item = Outpoint> {
        let txs = block.txids().iter().zip(block.block().txs());
        let outpoints = txs.flat_map(|(txid, tx)| {
            (0..number(tx.outputs().len())).map(|vout| Outpoint::new(*txid, vout))
        });
        let outpoints = outpoints.zip(&self.fates).filter(move |(_, fate)| wanted(**fate));
        outpoints.map(|(outpoint, _)| outpoint)
    }

    /// Every outpoint that the block makes, once, in block order.
    fn made(&self, block: &BlockAt<'_>) -> impl Iterator<Item = Outpoint> {
        self.outpoints(block, |fate| fate != Fate::None)
    }

    /// The outpoints of what the block leaves in the set, in block order.
    pub(crate) fn left(&self, block: &BlockAt<'_>) -> impl Iterator<Item = Outpoint> {
        self.outpoints(block, |fate| fate == Fate::Made)
    }

    /// The transactions that spend coins of the set or add some to it, as the undo record lists
    /// them.
    pub(crate) fn undo_txs(&self, block: &BlockAt<'_>) -> Vec<UndoTx> {
        let (mut spenders, mut fates) = (&self.spenders[..], &self.fates[..]);
        let mut txs = Vec::with_capacity(block.txids().len());
        for (place, (txid, tx)) in (0..).zip(block.txs()) {
            let spends = spenders.iter().take_while(|spender| **spender == place).count();
            (_, spenders) = spenders.split_at(spends);
            let (outputs, rest) = fates.split_at(tx.outputs().len().min(fates.len()));
            let creates = outputs.iter().filter(|fate| **fate == Fate::Made).count();
            fates = rest;
            if spends + creates > 0 {
                txs.push(UndoTx { txid, spends: number(spends), creates: number(creates) });
            }
        }
        txs
    }

    /// Visits what the block leaves in the set, in block order.
    pub(crate) fn for_each_created<'b>(
        &self,
        block: &BlockAt<'b>,
        mut each: impl FnMut(Outpoint, Coin<'b>),
    ) {
        let height = block.height();
        let mut fates = self.fates.iter();
        for (txid, tx) in block.txs() {
            let coinbase = tx.is_coinbase();
            for ((vout, output), fate) in (0..).zip(tx.outputs()).zip(&mut fates) {
                if *fate == Fate::Made {
                    let (value, script) = (output.value, output.script);
                    each(Outpoint::new(txid, vout), Coin { height, coinbase, value, script });
                }
            }
        }
    }

    /// The verdict, given which prevouts the set has (`is_there`): the first reason in block order.
    /// `block` is the one that was walked.
    pub(crate) fn verdict(
        &self,
        block: &BlockAt<'_>,
        is_there: impl Fn(usize) -> bool,
    ) -> Result<(), PrevoutError> {
        let missing = self.prevouts().iter().enumerate().find(|(place, _)| !is_there(*place));
        let Some((place, outpoint)) = missing else { return self.stopped.map_or(Ok(()), Err) };
        let spender = self.spenders.get(place).map_or(Txid::ZERO, |tx| txid(block, *tx));
        Err(PrevoutError::Missing { outpoint: *outpoint, spender, spent_by: None })
    }
}

fn txid(block: &BlockAt<'_>, place: u32) -> Txid {
    *block.txids().get(place as usize).expect("places are those of the block's transactions")
}

/// A block being walked.
struct Walk<'h> {
    changes: Changes,
    hasher: &'h OutpointHasher,
    /// All inputs so far by outpoint: outpoint and spender.
    spent: Table,
    inputs: Vec<(Outpoint, u32)>,
    /// The transactions so far by txid: the place of the first output, and how many there are.
    made: Table,
    txs: Vec<(Txid, u32, u32)>,
}

impl Walk<'_> {
    fn spend(
        &mut self,
        block: &BlockAt<'_>,
        spender: u32,
        outpoints: impl Iterator<Item = Outpoint>,
    ) {
        for outpoint in outpoints {
            let inputs = &self.inputs;
            let at = number(inputs.len());
            let same = |found: u32| inputs.get(found as usize).filter(|(o, _)| *o == outpoint);
            let hash = self.hasher.hash(&outpoint);
            if let Some((_, first)) = self.spent.find_or_insert(hash, at, same) {
                let (first, second) = (txid(block, *first), txid(block, spender));
                let twice = PrevoutError::SpentTwice { outpoint, first, second };
                self.changes.stopped = Some(twice);
                return;
            }
            self.inputs.push((outpoint, spender));
            let made = self.made_at(&outpoint);
            let changes = &mut self.changes;
            changes.sources.push(match made {
                Some(place) => {
                    if let Some(fate) = changes.fates.get_mut(place as usize) {
                        *fate = Fate::Spent;
                    }
                    CoinSource::Block(place)
                }
                None => {
                    changes.keys.push(outpoint);
                    changes.spenders.push(spender);
                    CoinSource::Set(number(changes.spenders.len() - 1))
                }
            });
        }
    }

    /// The place of an output that the block has made and not spent so far.
    fn made_at(&self, outpoint: &Outpoint) -> Option<u32> {
        let same =
            |found: u32| self.txs.get(found as usize).filter(|(txid, ..)| *txid == outpoint.txid);
        let (_, first, count) = self.made.find(self.tx_hash(&outpoint.txid), same)?;
        let place = (outpoint.vout < *count).then(|| first + outpoint.vout)?;
        let fate = self.changes.fates.get(place as usize);
        (fate == Some(&Fate::Made)).then_some(place)
    }

    /// A transaction that occurs twice in a block (two equal coinbases) makes its outputs once.
    /// They are the same in both places, since the txid is a hash of them.
    fn make(&mut self, txid: Txid, made: impl Iterator<Item = bool>) {
        let (txs, first) = (&self.txs, number(self.changes.fates.len()));
        let same = |found: u32| txs.get(found as usize).filter(|(other, ..)| *other == txid);
        let hash = self.tx_hash(&txid);
        let before = self.made.find_or_insert(hash, number(txs.len()), same);
        let fates = &mut self.changes.fates;
        match before.map(|(_, first, _)| *first as usize) {
            Some(first) => {
                for (place, made) in (first..).zip(made) {
                    if let Some(fate) = fates.get_mut(place).filter(|_| made) {
                        *fate = Fate::Made;
                    }
                    fates.push(Fate::None);
                }
            }
            None => {
                fates.extend(made.map(|made| if made { Fate::Made } else { Fate::None }));
            }
        }
        let count = number(self.changes.fates.len()) - first;
        self.txs.push((txid, first, count));
    }

    fn tx_hash(&self, txid: &Txid) -> OutpointHash {
        self.hasher.hash(&Outpoint::new(*txid, 0))
    }
}

/// Finds numbers by the hash of what they stand for: open addressing, at most half full.
struct Table {
    slots: Vec<u32>,
}

impl Table {
    const EMPTY: u32 = u32::MAX;

    fn new(entries: usize) -> Self {
        Self { slots: vec![Self::EMPTY; (entries + 1) * 2] }
    }

    fn find<R>(&self, hash: OutpointHash, same: impl Fn(u32) -> Option<R>) -> Option<R> {
        self.search(hash, same).err()
    }

    /// What is found; otherwise inserts `number`.
    fn find_or_insert<R>(
        &mut self,
        hash: OutpointHash,
        number: u32,
        same: impl Fn(u32) -> Option<R>,
    ) -> Option<R> {
        let free = match self.search(hash, same) {
            Ok(free) => free,
            Err(found) => return Some(found),
        };
        if let Some(slot) = self.slots.get_mut(free) {
            *slot = number;
        }
        None
    }

    /// The free slot where the search ends, or as an error what it found before.
    fn search<R>(&self, hash: OutpointHash, same: impl Fn(u32) -> Option<R>) -> Result<usize, R> {
        let mut at = hash.place(self.slots.len());
        loop {
            match self.slots.get(at) {
                Some(&Self::EMPTY) => return Ok(at),
                Some(&found) => {
                    if let Some(found) = same(found) {
                        return Err(found);
                    }
                    at += 1;
                }
                None => at = 0,
            }
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a block has fewer inputs and outputs")
}

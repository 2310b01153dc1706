//! The unspent set that a store holds, as the rules of consensus see it.
//!
//! A record is made of transactions, a set of outputs. An output is in the set when
//!
//! - its transaction is in a block of the longest chain,
//! - it can be spent by the rules of the chain ([`varve_types::unspendable`]), which differ from
//!   those that give an output a slot,
//! - and its slot is unspent, or spent by a transaction that is in no such block: what waits for a
//!   block has not happened yet.
//!
//! Its height is that of the last block on the longest chain that has the transaction (BIP30
//! allowed two).
//!
//! [`RecordsView::load`] fetches all outputs that a block spends in three batches: slots, the
//! transactions that made them, and those that spent them. After that no question costs a read.
//!
//! [`connect`] and [`disconnect`] apply whole blocks to a store that follows one chain and has no
//! other source of transactions: a stream of blocks in, the set out. A block that the view refuses
//! changes nothing. A block that a record refuses (a frozen output, a rival that waits) is taken
//! back. A node that also takes single transactions in marks them as mined instead, and resolves
//! conflicts first.

mod apply;
#[cfg(test)]
mod tests;

#[cfg(any(test, feature = "test-suite"))]
use std::collections::BTreeMap;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use varve_consensus::{
    Below, BlockAt, CheckError, OwnedCoin, PrevoutError, Spend, UnspentOutputsView, is_in_set,
    walk_block,
};
use varve_types::{Network, Outpoint, Txid};

use crate::engine::SlotView;
use crate::fields::Fields;
use crate::record::{BlockRef, Record};
use crate::store::{Result, SpentOutput, Store, StoreError};

pub use apply::{ConnectError, RecordsUndo, connect, disconnect};

/// The set below one block, as far as the block asks for it.
#[derive(Debug)]
pub struct RecordsView {
    network: Network,
    coins: HashMap<Outpoint, OwnedCoin>,
    /// Who spent what is not in the set any more.
    spenders: HashMap<Outpoint, Txid>,
    repeated: Option<Outpoint>,
}

impl RecordsView {
    /// Fetches what the block asks for.
    pub fn load(store: &Store, network: Network, block: &BlockAt<'_>) -> Result<Self> {
        let mut wanted: Vec<Outpoint> = Vec::new();
        for (_, tx) in block.txs().filter(|(_, tx)| !tx.is_coinbase()) {
            wanted.extend(tx.inputs().map(|input| input.outpoint));
        }
        // What a transaction of the block makes may also be there from an earlier block.
        let again = store.engine().read(block.txids(), Fields::HEAD)?;
        let again: Vec<Record> = again.into_iter().flatten().filter(is_mined).collect();
        let outputs = |record: &Record| {
            let txid = record.txid;
            (0..record.total_utxos).map(move |vout| Outpoint::new(txid, vout))
        };
        let repeated: Vec<Outpoint> = again.iter().flat_map(outputs).collect();
        wanted.extend(&repeated);
        let (coins, spenders) = load_coins(store, network, &wanted)?;
        let repeated = repeated.into_iter().find(|outpoint| coins.contains_key(outpoint));
        Ok(Self { network, coins, spenders, repeated })
    }

    fn walk<'v>(
        &'v self,
        block: &BlockAt<'v>,
        each: impl FnMut(Spend<'v>),
    ) -> Result<(), PrevoutError> {
        let below = |outpoint: &Outpoint| match self.coins.get(outpoint) {
            Some(coin) => Below::Unspent(coin.as_coin()),
            None => Below::Missing { spent_by: self.spenders.get(outpoint).copied() },
        };
        walk_block(self.network, block, below, each).map(drop)
    }
}

impl UnspentOutputsView for RecordsView {
    type Error = StoreError;

    fn query_prevouts_unspent(
        &self,
        block: &BlockAt<'_>,
    ) -> Result<(), CheckError<PrevoutError, StoreError>> {
        self.walk(block, |_| {}).map_err(CheckError::Invalid)
    }

    fn for_each_spend<'v, B, F>(
        &'v self,
        block: &'v BlockAt<'v>,
        each: F,
    ) -> Result<ControlFlow<B>, CheckError<PrevoutError, StoreError>>
    where
        F: FnMut(Spend<'v>) -> ControlFlow<B>,
    {
        let mut spends = Vec::new();
        self.walk(block, |spend| spends.push(spend)).map_err(CheckError::Invalid)?;
        Ok(spends.into_iter().try_for_each(each))
    }

    fn find_repeated_output(&self, _block: &BlockAt<'_>) -> Result<Option<Outpoint>> {
        Ok(self.repeated)
    }
}

/// All coins of the set, in the order of their outpoints. It takes memory for all of them.
#[cfg(any(test, feature = "test-suite"))]
pub fn coins(store: &Store, network: Network) -> Result<BTreeMap<Outpoint, OwnedCoin>> {
    let mut all = BTreeMap::new();
    store.scan(crate::engine::Scan::All, |txids| {
        let records = store.engine().read(txids, Fields::HEAD)?;
        let mut wanted = Vec::new();
        for record in records.iter().flatten() {
            wanted.extend((0..record.total_utxos).map(|vout| Outpoint::new(record.txid, vout)));
        }
        let (coins, _) = load_coins(store, network, &wanted)?;
        all.extend(coins);
        Ok(())
    })?;
    Ok(all)
}

type Loaded = (HashMap<Outpoint, OwnedCoin>, HashMap<Outpoint, Txid>);

/// The coins at these outpoints, and who spent those that are not there.
fn load_coins(store: &Store, network: Network, wanted: &[Outpoint]) -> Result<Loaded> {
    let slots = store.engine().slots(wanted)?;
    let spender = |view: &SlotView| view.slot.and_then(|slot| slot.spender());
    let spent_by: HashSet<Txid> =
        slots.iter().flatten().filter_map(spender).map(|data| data.txid).collect();
    let spent_by: Vec<Txid> = spent_by.into_iter().collect();
    let records = store.engine().read(&spent_by, Fields::HEAD)?;
    // A spender without a record was pruned, and so it was mined.
    let waits = |(txid, record): (&Txid, &Option<Record>)| {
        record.as_ref().is_some_and(|record| !is_mined(record)).then_some(*txid)
    };
    let waiting: HashSet<Txid> = spent_by.iter().zip(&records).filter_map(waits).collect();
    let mut spenders = HashMap::new();
    let mut there: HashMap<Outpoint, BlockRef> = HashMap::new();
    for (outpoint, view) in wanted.iter().zip(&slots) {
        let Some(view) = view else { continue };
        let Some(last) = view.blocks.last() else { continue };
        match spender(view).map(|data| data.txid).filter(|txid| !waiting.contains(txid)) {
            Some(txid) => drop(spenders.insert(*outpoint, txid)),
            None => drop(there.insert(*outpoint, *last)),
        }
    }
    let outpoints: Vec<Outpoint> = there.keys().copied().collect();
    let outputs = store.outputs(&outpoints)?;
    let heads = heads(store, &outpoints)?;
    let coin = |(outpoint, block): (Outpoint, BlockRef)| {
        let SpentOutput { value, script } = outputs.get(&outpoint)?.as_ref().ok()?;
        let record = heads.get(&outpoint.txid).filter(|record| is_mined(record))?;
        let (height, coinbase) = (block.height, record.is_coinbase);
        let coin = OwnedCoin { height, coinbase, value: *value, script: script.to_vec() };
        is_in_set(network, height, script).then_some((outpoint, coin))
    };
    Ok((there.into_iter().filter_map(coin).collect(), spenders))
}

fn heads(store: &Store, outpoints: &[Outpoint]) -> Result<HashMap<Txid, Record>> {
    let txids: HashSet<Txid> = outpoints.iter().map(|outpoint| outpoint.txid).collect();
    let txids: Vec<Txid> = txids.into_iter().collect();
    let records = store.engine().read(&txids, Fields::HEAD)?;
    Ok(records.into_iter().flatten().map(|record| (record.txid, record)).collect())
}

/// Whether a record is in a block of the longest chain.
fn is_mined(record: &Record) -> bool {
    record.unmined_since.is_none() && !record.blocks.is_empty() && !record.conflicting
}

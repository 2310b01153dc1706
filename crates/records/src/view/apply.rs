//! Connects whole blocks to a store and disconnects them.
//!
//! The records keep transactions in extended form, which has no witnesses.
//!
//! A block is many operations, and a crash may come between two of them. What it leaves is known by
//! the id of the block in the records. So [`connect`] first looks whether the block is in some of
//! its transactions' records already; if so an earlier attempt was interrupted, and it is undone
//! before the block is judged. The verdict is then the one of an untouched store. One thing cannot
//! be taken back: which spends a repeated transaction (BIP30) replaced is known only to the attempt
//! that replaced them.

use std::collections::BTreeMap;

use bytes::Bytes;
use varve_consensus::{BlockAt, PrevoutError, Spend};
use varve_types::{Height, Network, Outpoint, TxOut, Txid};

use super::RecordsView;
use crate::error::RecordError;
use crate::extended::Transaction;
use crate::fields::Fields;
use crate::freeze_window::Tier;
use crate::operation::{
    MinedBlockInfo, NewRecord, Operation, SlotRef, SpendPart, SpendRules, Unit, Unspend,
};
use crate::prepare::CreateOptions;
use crate::record::{BlockId, BlockRef};
use crate::spending_data::SpendingData;
use crate::store::{Store, StoreError};

/// Why a block was not connected. Nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectError {
    /// A prevout is not in the set.
    #[error(transparent)]
    Prevout(#[from] PrevoutError),
    /// A record refuses a transaction of the block.
    #[error("transaction {txid} of the block is refused: {error}")]
    Refused {
        /// The transaction.
        txid: Txid,
        /// Why.
        error: RecordError,
    },
    /// The store failed. Connect the block again, or disconnect it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What disconnecting a block needs beside the block: the spends of outputs that the block created
/// a second time (BIP30).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordsUndo {
    replaced: Vec<Unspend>,
}

/// Connects a block on top of the chain that the store follows: every transaction is created as
/// mined and spends its inputs. The block is known by `id` in the records, which no other block
/// has; a block that was cut off by a crash is connected again under the same id.
pub fn connect(
    store: &Store,
    network: Network,
    block: &BlockAt<'_>,
    id: BlockId,
) -> Result<RecordsUndo, ConnectError> {
    if block.height() == Height::GENESIS {
        return Ok(RecordsUndo::default());
    }
    if was_cut_off(store, block, id)? {
        disconnect(store, block, id, &RecordsUndo::default())?;
    }
    let view = RecordsView::load(store, network, block)?;
    let mut spends: BTreeMap<usize, Vec<Spend<'_>>> = BTreeMap::new();
    view.walk(block, |spend| spends.entry(spend.tx).or_default().push(spend))?;
    let mut units = Vec::with_capacity(block.txids().len());
    for (place, txid) in block.txids().iter().enumerate() {
        let spends = spends.get(&place).map_or(&[][..], Vec::as_slice);
        let refused = |error| ConnectError::Refused { txid: *txid, error };
        units.push(unit(store, block, id, place, spends).map_err(refused)?);
    }
    let replaced = free_repeated(store, block)?;
    let undo = RecordsUndo { replaced };
    if let Err(error) = apply(store, block, id, units) {
        disconnect(store, block, id, &undo)?;
        return Err(error);
    }
    Ok(undo)
}

/// Whether an earlier attempt to connect the block, or to take it back, was cut off.
fn was_cut_off(store: &Store, block: &BlockAt<'_>, id: BlockId) -> Result<bool, StoreError> {
    let records = store.engine().read(block.txids(), Fields::HEAD)?;
    Ok(records.iter().flatten().any(|record| record.blocks.iter().any(|known| known.id == id)))
}

/// Takes back the block that was connected last. One that was taken back in part is taken back
/// whole.
pub fn disconnect(
    store: &Store,
    block: &BlockAt<'_>,
    id: BlockId,
    undo: &RecordsUndo,
) -> Result<(), StoreError> {
    if block.height() == Height::GENESIS {
        return Ok(());
    }
    for (txid, tx) in block.txs().collect::<Vec<_>>().into_iter().rev() {
        let record = store.engine().read(&[txid], Fields::HEAD)?.pop().flatten();
        let Some(record) = record else { continue };
        if !record.blocks.iter().any(|block| block.id == id) {
            continue;
        }
        if !tx.is_coinbase() {
            let inputs: Vec<Outpoint> = tx.inputs().map(|input| input.outpoint).collect();
            store.unspend(owned(store, txid, &inputs)?, false)?;
        }
        if record.blocks.len() == 1 {
            store.delete(&[txid])?;
        } else {
            let info = MinedBlockInfo { unset: true, ..mined(block, id) };
            store.set_mined_multi(&[txid], &info)?;
        }
    }
    for spend in &undo.replaced {
        respend(store, spend, block.height())?;
    }
    Ok(())
}

/// The unit of one transaction of the block.
fn unit(
    store: &Store,
    block: &BlockAt<'_>,
    id: BlockId,
    place: usize,
    spends: &[Spend<'_>],
) -> Result<Unit, RecordError> {
    let txid = block.txids().get(place).copied().unwrap_or(Txid::ZERO);
    let reason = "the transaction does not decode";
    let bad = RecordError::Processing { txid, reason };
    let tx = block.block().txs().get(place).ok_or(bad.clone())?;
    let format = store.settings().format;
    let bytes = Bytes::from(tx.to_legacy());
    let mut tx = Transaction::parse_with_txid(bytes, format, txid).map_err(|_| bad.clone())?;
    let options = CreateOptions {
        height: block.height(),
        blocks: vec![mined(block, id).block],
        ..CreateOptions::default()
    };
    let mut spend = None;
    if !tx.view().is_coinbase() {
        let outputs = spends.iter().map(|spend| spend.coin);
        let outputs = outputs.map(|coin| TxOut { value: coin.value, script: coin.script });
        let outputs: Vec<TxOut<'_>> = outputs.collect();
        tx = tx.extend(&outputs).ok_or(bad)?;
        let rules = SpendRules {
            ignore_locked: true,
            tier: Tier::Consensus,
            ..SpendRules::at(block.height())
        };
        spend = Some(SpendPart::new(&tx, rules)?);
    }
    let create = Some(NewRecord::new(&tx, &options, store.settings())?);
    Ok(Unit { txid, spend, create })
}

/// Does the units, and adds the block to records that were there before.
fn apply(
    store: &Store,
    block: &BlockAt<'_>,
    id: BlockId,
    units: Vec<Unit>,
) -> Result<(), ConnectError> {
    let mut known = Vec::new();
    let answers = store.submit(units)?;
    for (txid, answer) in block.txids().iter().zip(answers) {
        match answer {
            Ok(_) => {}
            Err(RecordError::TxExists { .. }) => known.push(*txid),
            Err(error) => return Err(ConnectError::Refused { txid: *txid, error }),
        }
    }
    for answer in store.set_mined_multi(&known, &mined(block, id))? {
        answer.map_err(StoreError::from)?;
    }
    Ok(())
}

/// A transaction of the block that has a record which is mined is there for the second time
/// (BIP30): its outputs are created again, so spends of the first ones are taken back.
fn free_repeated(store: &Store, block: &BlockAt<'_>) -> Result<Vec<Unspend>, StoreError> {
    let records = store.engine().read(block.txids(), Fields::UTXOS)?;
    let mut replaced = Vec::new();
    for record in records.iter().flatten().filter(|record| super::is_mined(record)) {
        for (vout, slot) in (0_u32..).zip(&record.utxos) {
            let Some((slot, by)) = slot.as_ref().and_then(|slot| Some((slot, slot.spender()?)))
            else {
                continue;
            };
            let outpoint = Outpoint::new(record.txid, vout);
            replaced.push(Unspend { slot: SlotRef { outpoint, hash: slot.hash }, by });
        }
    }
    if !replaced.is_empty() {
        store.unspend(replaced.clone(), false)?;
    }
    Ok(replaced)
}

/// The outputs that a transaction really spent.
fn owned(store: &Store, txid: Txid, inputs: &[Outpoint]) -> Result<Vec<Unspend>, StoreError> {
    let slots = store.engine().slots(inputs)?;
    let owned = (0_u32..).zip(inputs.iter().zip(slots)).filter_map(|(vin, (outpoint, view))| {
        let slot = view?.slot?;
        let by = SpendingData::new(txid, vin);
        let spend = Unspend { slot: SlotRef { outpoint: *outpoint, hash: slot.hash }, by };
        (slot.spender() == Some(by)).then_some(spend)
    });
    Ok(owned.collect())
}

/// Restores a spend that was taken from an output created a second time.
fn respend(store: &Store, spend: &Unspend, height: Height) -> Result<(), StoreError> {
    let rules = SpendRules {
        ignore_conflicting: true,
        ignore_locked: true,
        tier: Tier::Consensus,
        ..SpendRules::at(height)
    };
    let SlotRef { outpoint, hash } = spend.slot;
    let spends = vec![crate::operation::Spend { outpoint, hash, vin: spend.by.vin }];
    let part = SpendPart { spends, rules };
    let unit = Unit { txid: spend.by.txid, spend: Some(part), create: None };
    store.apply_one(Operation::from(unit)).map(drop)
}

fn mined(block: &BlockAt<'_>, id: BlockId) -> MinedBlockInfo {
    let block = BlockRef { id, height: block.height(), subtree: 0 };
    MinedBlockInfo { block, on_longest_chain: true, unset: false }
}

//! Records for confirmed parents: outputs alone, as many as are spent.
//!
//! 1. The slots of all outputs that newcomers spend are read. A parent without a record gets one; a
//!    record that lacks a slot is written again.
//! 2. Writing again is: delete, create with the old outputs and the new, spend again what was
//!    spent, by the same spenders. A record that an order has touched is left as it is, and the
//!    unit of the newcomer is refused for want of the slot.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use varve_records::CreateOptions;
use varve_records::Fields;
use varve_records::exchange::{UtxoWrapper, WrappedOutput, WrapperHead, write_wrapper};
use varve_records::operation::{NewRecord, Spend, SpendPart, SpendRules, Unit};
use varve_records::record::{Body as RecordBody, Record};
use varve_records::{Settings, StoreError};
use varve_types::{Amount, Outpoint, TxOut, Txid};

use super::{Ledger, Result, above, block_at};
use crate::mempool::chain::Tip;
use crate::mempool::entry::{Body, CoinAt};

/// The outputs of one confirmed transaction that are wanted.
struct Import<'a> {
    at: CoinAt,
    outputs: BTreeMap<u32, TxOut<'a>>,
}

impl Ledger {
    /// Gives confirmed parents records with the outputs that are spent.
    pub(super) fn import(&self, added: &[Arc<Body>], tip: Tip) -> Result<()> {
        let mut wanted: BTreeMap<Txid, Import<'_>> = BTreeMap::new();
        for body in added {
            for (input, at) in body.tx.inputs().zip(&body.coins) {
                if let (Some(spent), Some(at)) = (input.spent, at) {
                    let new = || Import { at: *at, outputs: BTreeMap::new() };
                    let parent = wanted.entry(input.outpoint.txid).or_insert_with(new);
                    parent.outputs.insert(input.outpoint.vout, spent);
                }
            }
        }
        let outpoints: Vec<Outpoint> = wanted
            .iter()
            .flat_map(|(txid, import)| {
                import.outputs.keys().map(|vout| Outpoint::new(*txid, *vout))
            })
            .collect();
        let mut has_record = HashSet::new();
        let mut lacks = HashSet::new();
        for (outpoint, view) in outpoints.iter().zip(self.store.engine().slots(&outpoints)?) {
            if let Some(view) = view {
                has_record.insert(outpoint.txid);
                if view.slot.is_none() {
                    lacks.insert(outpoint.txid);
                }
            }
        }
        wanted.retain(|txid, _| !has_record.contains(txid) || lacks.contains(txid));
        let extended: Vec<Txid> =
            wanted.keys().filter(|txid| lacks.contains(txid)).copied().collect();
        let before = self.untouched(&extended, Fields::ALL)?;
        let settings = self.store.settings();
        let mut units = Vec::new();
        for (txid, import) in &wanted {
            let old = before.get(txid);
            if lacks.contains(txid) && old.is_none() {
                continue;
            }
            units.push(import_unit(*txid, import, old, settings)?);
            units.extend(old.into_iter().flat_map(|old| spends_of(old, tip)));
        }
        self.store.delete(&before.keys().copied().collect::<Vec<_>>())?;
        for answer in self.store.submit(units)? {
            answer?;
        }
        Ok(())
    }
}

/// The record of a parent with the outputs that are wanted and those that it had.
fn import_unit(
    txid: Txid,
    import: &Import<'_>,
    old: Option<&Record>,
    settings: &Settings,
) -> Result<Unit> {
    let CoinAt { height, coinbase } = import.at;
    let mut outputs: BTreeMap<u32, (Amount, Vec<u8>)> = BTreeMap::new();
    if let Some(RecordBody::Outputs(bytes)) = old.and_then(|old| old.body.as_ref()) {
        let bad = |error| StoreError::BadTransaction { txid, error };
        for had in UtxoWrapper::parse(bytes).map_err(bad)?.outputs() {
            outputs.insert(had.index, (had.output.value, had.output.script.to_vec()));
        }
    }
    for (vout, output) in &import.outputs {
        outputs.insert(*vout, (output.value, output.script.to_vec()));
    }
    let mut bytes = Vec::new();
    let wrapped = outputs.iter().map(|(index, (value, script))| WrappedOutput {
        index: *index,
        output: TxOut { value: *value, script },
    });
    write_wrapper(&WrapperHead { txid, height, coinbase }, wrapped, &mut bytes);
    let options = CreateOptions { height, blocks: vec![block_at(height)], ..Default::default() };
    let (txid, new) = NewRecord::outputs_only(bytes.into(), &options, settings)?;
    Ok(Unit { txid, spend: None, create: Some(new) })
}

/// The spends that a record held before it was written again.
fn spends_of(old: &Record, tip: Tip) -> impl Iterator<Item = Unit> {
    let rules = SpendRules { ignore_locked: true, ..SpendRules::at(above(tip.height, 1)) };
    let txid = old.txid;
    (0_u32..).zip(&old.utxos).filter_map(move |(vout, slot)| {
        let slot = (*slot)?;
        let by = slot.spender()?;
        let outpoint = Outpoint::new(txid, vout);
        let spend = Spend { outpoint, hash: slot.hash, vin: by.vin };
        let spend = Some(SpendPart { spends: vec![spend], rules });
        Some(Unit { txid: by.txid, spend, create: None })
    })
}

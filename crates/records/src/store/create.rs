//! Creating and spending.
//!
//! One transaction is one unit of the engine: all its spends and its record, or nothing. Around
//! it:
//!
//! 1. A transaction that is too long, has several parts, or belongs outside by the settings, goes
//!    into a blob first. Its txid is held from there to the answer of the engine, so that two who
//!    create the same transaction do so one after the other. If it has a record already the blob
//!    stays as it is.
//! 2. Then the units go to the engine in one batch.
//! 3. What the engine refuses as too big goes into a blob after all and is tried again, together
//!    with the units that failed for want of it.
//! 4. A blob whose unit failed is removed.
//!
//! Many transactions at once are put in the order of their dependencies: those that spend outputs
//! of others in the batch come after them, however they were given.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use varve_types::Txid;

use super::{Item, Result, Store};
use crate::blob::BlobKind;
use crate::error::{ErrorCode, RecordError, SpendItem};
use crate::extended::Transaction;
use crate::fields::Fields;
use crate::operation::{NewRecord, Operation, SpendPart, SpendRules, Unit};
use crate::outcome::{Reply, Spent};
use crate::prepare::CreateOptions;
use crate::record::Body;

/// A transaction, and what to do with it.
#[derive(Clone, Debug)]
pub struct TxUnit<'a> {
    /// The transaction, in extended form.
    pub tx: &'a Transaction,
    /// How its spends are judged; `None` to create only.
    pub spend: Option<SpendRules>,
    /// What is known of its record; `None` to spend only.
    pub create: Option<CreateOptions>,
}

impl TxUnit<'_> {
    fn prepare(&self, store: &Store) -> Item<Unit> {
        let spend = self.spend.map(|rules| SpendPart::new(self.tx, rules)).transpose()?;
        let new = |options| NewRecord::new(self.tx, options, &store.settings);
        let create = self.create.as_ref().map(new).transpose()?;
        Ok(Unit { txid: self.tx.txid(), spend, create })
    }
}

impl Store {
    /// Creates the record of a transaction.
    pub fn create(&self, tx: &Transaction, options: &CreateOptions) -> Result<()> {
        self.one(&TxUnit { tx, spend: None, create: Some(options.clone()) }).map(drop)
    }

    /// Creates the record of a transaction of which only outputs are known, given as the bytes of
    /// a [`UtxoWrapper`](crate::utxo_wrapper::UtxoWrapper), which name the txid.
    pub fn create_outputs(&self, wrapper: Bytes, options: &CreateOptions) -> Result<Txid> {
        let (txid, new) = NewRecord::outputs_only(wrapper, options, &self.settings)?;
        let unit = Unit { txid, spend: None, create: Some(new) };
        let result = self.submit(vec![unit])?.pop();
        result.expect("one unit, one answer")?;
        Ok(txid)
    }

    /// Spends the inputs of a transaction: all or none.
    pub fn spend(&self, tx: &Transaction, rules: SpendRules) -> Result<Vec<Spent>> {
        self.one(&TxUnit { tx, spend: Some(rules), create: None })
    }

    /// Spends the inputs of a transaction and creates its record, in one step.
    pub fn spend_and_create(
        &self,
        tx: &Transaction,
        rules: SpendRules,
        options: &CreateOptions,
    ) -> Result<Vec<Spent>> {
        self.one(&TxUnit { tx, spend: Some(rules), create: Some(options.clone()) })
    }

    /// The same for many transactions, which may spend one another, in any order. The answers
    /// come in the order of the transactions.
    pub fn spend_and_create_multi(&self, units: &[TxUnit<'_>]) -> Result<Vec<Item<Vec<Spent>>>> {
        let prepared: Vec<Item<Unit>> = units.iter().map(|unit| unit.prepare(self)).collect();
        let mut answers = Vec::with_capacity(units.len());
        let mut sound = Vec::new();
        for (place, unit) in prepared.into_iter().enumerate() {
            match unit {
                Ok(unit) => {
                    sound.push((place, unit));
                    answers.push(Ok(Vec::new()));
                }
                Err(error) => answers.push(Err(error)),
            }
        }
        let (places, units): (Vec<usize>, Vec<Unit>) = in_order(sound).into_iter().unzip();
        for (place, answer) in places.into_iter().zip(self.submit(units)?) {
            *answers.get_mut(place).expect("one of the places above") = answer;
        }
        Ok(answers)
    }

    fn one(&self, unit: &TxUnit<'_>) -> Result<Vec<Spent>> {
        let result = self.submit(vec![unit.prepare(self)?])?.pop();
        Ok(result.expect("one unit, one answer")?)
    }

    /// Does units in their order, with blobs where needed.
    pub fn submit(&self, units: Vec<Unit>) -> Result<Vec<Item<Vec<Spent>>>> {
        let limit = self.engine.limits().body;
        let mut work: Vec<Work> = units.into_iter().map(Work::new).collect();
        for unit in &mut work {
            if unit.belongs_outside(self, limit) {
                unit.move_outside();
            }
        }
        let mut pending: Vec<usize> = (0..work.len()).collect();
        while !pending.is_empty() {
            self.round(&mut work, &pending)?;
            let too_big = pending.iter().position(|place| is_too_big(&work, *place));
            // Whatever came after it may have failed for want of it.
            let again = too_big.map_or(&[][..], |first| pending.get(first..).unwrap_or_default());
            let again = again.iter().copied().filter(|place| failed(&work, *place));
            pending = again.collect();
            for place in &pending {
                if is_too_big(&work, *place)
                    && let Some(unit) = work.get_mut(*place)
                {
                    unit.move_outside();
                }
            }
        }
        Ok(work.into_iter().map(|unit| unit.answer.expect("every unit was pending")).collect())
    }

    /// Writes the blobs of some units, does the units, and removes the blobs of those that failed.
    fn round(&self, work: &mut [Work], pending: &[usize]) -> Result<()> {
        let units = || pending.iter().filter_map(|place| work.get(*place));
        let outside: BTreeSet<Txid> =
            units().filter(|unit| unit.blob.is_some()).map(Work::txid).collect();
        let outside: Vec<Txid> = outside.into_iter().collect();
        let held = self.blobs.hold(&outside);
        let records = self.engine.read(&outside, Fields::HEAD)?;
        let known: BTreeSet<Txid> = records.iter().flatten().map(|record| record.txid).collect();
        for unit in units().filter(|unit| !known.contains(&unit.txid())) {
            if let Some((kind, bytes)) = &unit.blob {
                self.blobs.put(unit.txid(), *kind, bytes)?;
            }
        }
        let operations: Vec<Operation> = units().map(Work::operation).collect();
        let answers = self.apply(&operations)?;
        for (place, answer) in pending.iter().zip(answers) {
            let unit = work.get_mut(*place).expect("pending are places");
            unit.answer = Some(answer.map(|reply| match reply {
                Reply::Unit(spent) => spent,
                _ => Vec::new(),
            }));
        }
        for txid in &outside {
            self.remove_unneeded(*txid)?;
        }
        drop(held);
        Ok(())
    }
}

/// A unit on its way.
struct Work {
    unit: Unit,
    blob: Option<(BlobKind, Bytes)>,
    answer: Option<Item<Vec<Spent>>>,
}

impl Work {
    const fn new(unit: Unit) -> Self {
        Self { unit, blob: None, answer: None }
    }

    const fn txid(&self) -> Txid {
        self.unit.txid
    }

    fn operation(&self) -> Operation {
        Operation::from(self.unit.clone())
    }

    fn belongs_outside(&self, store: &Store, limit: u64) -> bool {
        self.unit.create.as_ref().is_some_and(|new| {
            let too_big = new.body_bytes().is_some_and(|bytes| bytes.len() as u64 > limit);
            too_big || new.needs_blob(&store.settings)
        })
    }

    fn move_outside(&mut self) {
        let Some(new) = &mut self.unit.create else { return };
        self.blob = match std::mem::replace(&mut new.body, Body::External) {
            Body::Transaction(tx) => Some((BlobKind::Tx, tx.bytes().clone())),
            Body::Outputs(bytes) => Some((BlobKind::Outputs, bytes)),
            Body::External => self.blob.take(),
        };
    }
}

fn is_too_big(work: &[Work], place: usize) -> bool {
    work.get(place).is_some_and(|unit| {
        let refused = matches!(&unit.answer, Some(Err(RecordError::TooBig { .. })));
        refused && unit.blob.is_none()
    })
}

/// Whether it failed in a way that another try can mend.
fn failed(work: &[Work], place: usize) -> bool {
    let missing = |item: &SpendItem| item.code() == Some(ErrorCode::TxNotFound);
    work.get(place).is_some_and(|unit| match &unit.answer {
        Some(Err(RecordError::Spend(items))) => items.iter().any(missing),
        Some(Err(RecordError::TooBig { .. })) => unit.blob.is_none(),
        _ => false,
    })
}

/// Puts units behind those of the batch that they spend; otherwise their order stays.
fn in_order(units: Vec<(usize, Unit)>) -> Vec<(usize, Unit)> {
    let places: HashMap<Txid, usize> =
        units.iter().enumerate().map(|(place, (_, unit))| (unit.txid, place)).collect();
    let mut waits: Vec<usize> = Vec::with_capacity(units.len());
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
    for (place, (_, unit)) in units.iter().enumerate() {
        let spends = unit.spend.iter().flat_map(|part| &part.spends);
        let mut parents: BTreeSet<usize> =
            spends.filter_map(|spend| places.get(&spend.outpoint.txid).copied()).collect();
        parents.remove(&place);
        waits.push(parents.len());
        for parent in parents {
            children.get_mut(parent).expect("a place of the batch").push(place);
        }
    }
    // The lowest place that waits for nothing is next.
    let free = |(place, count): (usize, &usize)| (*count == 0).then_some(place);
    let mut ready: BTreeSet<usize> = waits.iter().enumerate().filter_map(free).collect();
    let mut units: Vec<Option<(usize, Unit)>> = units.into_iter().map(Some).collect();
    let mut ordered = Vec::with_capacity(units.len());
    while let Some(place) = ready.pop_first() {
        ordered.extend(units.get_mut(place).and_then(Option::take));
        for child in children.get(place).into_iter().flatten() {
            let wait = waits.get_mut(*child).expect("a place of the batch");
            *wait -= 1;
            if *wait == 0 {
                ready.insert(*child);
            }
        }
    }
    // No transaction depends on itself. Units whose txids were made up may; they come last.
    ordered.extend(units.into_iter().flatten());
    ordered
}

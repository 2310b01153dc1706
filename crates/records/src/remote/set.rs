//! What a batch has loaded, and what its operations made of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use varve_types::{Height, Outpoint, Txid};

use crate::embedded::chunk::{CHUNK, Chunk, chunks};
use crate::embedded::state::State;
use crate::freeze_window::FreezeWindow;
use crate::intent::{Intent, IntentId};
use crate::operation::NewRecord;
use crate::record::{Body, Reassignment};
use crate::rules::{Head, Working};
use crate::slot::Slot;
use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;

/// Something that the rules asked for is not loaded: it is in [`Set::wanted`] now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missing;

type Result<T> = std::result::Result<T, Missing>;

/// What is to be loaded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// States of records.
    pub(crate) records: BTreeSet<Txid>,
    /// What records spend.
    pub(crate) inputs: BTreeSet<Txid>,
    /// Single chunks.
    pub(crate) chunks: BTreeSet<(Txid, u32)>,
    /// All chunks of records.
    pub(crate) whole: BTreeSet<Txid>,
    /// Transactions of which is asked whether they are unmined.
    pub(crate) unmined: BTreeSet<Txid>,
}

impl Wanted {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The records of a batch.
#[derive(Debug, Default)]
pub(crate) struct Set {
    pub(super) held: BTreeMap<Txid, Held>,
    pub(super) unmined: HashMap<Txid, bool>,
    pub(super) intents: BTreeMap<IntentId, IntentChange>,
    pub(super) wanted: Wanted,
}

/// One record, or the knowledge that there is none.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) state: Option<State>,
    /// The engine has a record of this transaction.
    pub(super) stored: bool,
    /// The record that the engine has was removed by this batch.
    pub(super) removed: bool,
    pub(super) changed: bool,
    pub(super) inputs: Option<Vec<Outpoint>>,
    /// Chunks behind the first, as far as they are known.
    pub(super) chunks: BTreeMap<u32, HeldChunk>,
    /// All chunks are known.
    pub(super) whole: bool,
    /// Set when this batch created the record.
    pub(super) fresh: Option<Fresh>,
}

#[derive(Debug)]
pub(super) struct HeldChunk {
    pub(super) chunk: Chunk,
    pub(super) changed: bool,
}

/// What is known of a new record alone. Its chunks exist only once they are looked at: there may be
/// very many.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) body: Body,
    pub(super) utxos: Arc<Vec<Option<UtxoHash>>>,
    pub(super) spending: Option<SpendingData>,
}

impl Fresh {
    /// The hashes of a chunk as it was created.
    pub(super) fn hashes(&self, number: u32) -> &[Option<UtxoHash>] {
        self.utxos.chunks(CHUNK as usize).nth(number as usize).unwrap_or_default()
    }
}

/// What becomes of an intent.
#[derive(Debug)]
pub(super) enum IntentChange {
    /// It is written, unless the engine has it. `again`: what the engine has is removed first.
    Begin {
        intent: Box<Intent>,
        again: bool,
    },
    Complete,
}

impl Held {
    /// The number of outputs; none when there is no record.
    pub(super) fn outputs(&self) -> u32 {
        self.state.as_ref().map_or(0, |state| state.head.total_utxos)
    }

    /// Whether a chunk behind the first is at hand.
    pub(super) fn has_chunk(&self, number: u32) -> bool {
        self.fresh.is_some() || self.chunks.contains_key(&number)
    }

    fn chunk(&self, number: u32) -> &Chunk {
        if number == 0 {
            return &self.state.as_ref().expect(HELD).first;
        }
        &self.chunks.get(&number).expect(HELD).chunk
    }

    fn chunk_mut(&mut self, number: u32) -> &mut Chunk {
        if number == 0 {
            self.changed = true;
            return &mut self.state.as_mut().expect(HELD).first;
        }
        let held = self.chunks.get_mut(&number).expect(HELD);
        held.changed = true;
        &mut held.chunk
    }
}

const HELD: &str = "handles are of what is held";

impl Set {
    /// Takes what is to be loaded.
    pub(crate) fn wanted(&mut self) -> Wanted {
        std::mem::take(&mut self.wanted)
    }

    /// Takes a record that the engine has, or the news that it has none.
    pub(crate) fn add_record(&mut self, txid: Txid, state: Option<State>) {
        let stored = state.is_some();
        self.held.entry(txid).or_insert(Held { state, stored, ..Held::default() });
    }

    /// Takes what a record spends.
    pub(crate) fn add_inputs(&mut self, txid: Txid, inputs: Vec<Outpoint>) {
        if let Some(held) = self.stored(&txid) {
            held.inputs.get_or_insert(inputs);
        }
    }

    /// Takes a chunk.
    pub(crate) fn add_chunk(&mut self, txid: Txid, number: u32, chunk: Chunk) {
        if let Some(held) = self.stored(&txid) {
            held.chunks.entry(number).or_insert(HeldChunk { chunk, changed: false });
        }
    }

    /// Takes whether a transaction is unmined. The first answer counts.
    pub(crate) fn add_unmined(&mut self, txid: Txid, is: bool) {
        self.unmined.entry(txid).or_insert(is);
    }

    /// The first record of which something that was wanted did not come: what the engine has of it
    /// is damaged. All chunks of a record are complete from here on.
    pub(crate) fn check(&mut self, wanted: &Wanted) -> std::result::Result<(), Txid> {
        for txid in &wanted.inputs {
            if self.stored(txid).is_some_and(|held| held.inputs.is_none()) {
                return Err(*txid);
            }
        }
        for (txid, number) in &wanted.chunks {
            let Some(held) = self.stored(txid) else { continue };
            if *number < chunks(held.outputs()) && !held.has_chunk(*number) {
                return Err(*txid);
            }
        }
        for txid in &wanted.whole {
            let Some(held) = self.stored(txid) else { continue };
            if (1..chunks(held.outputs())).any(|number| !held.has_chunk(number)) {
                return Err(*txid);
            }
            held.whole = true;
        }
        Ok(())
    }

    /// A record as the engine has it.
    fn stored(&mut self, txid: &Txid) -> Option<&mut Held> {
        self.held.get_mut(txid).filter(|held| held.state.is_some() && held.fresh.is_none())
    }

    fn one(&self, at: &Txid) -> &Held {
        self.held.get(at).expect(HELD)
    }

    fn one_mut(&mut self, at: &Txid) -> &mut Held {
        self.held.get_mut(at).expect(HELD)
    }

    /// Brings the chunk with this number, behind the first.
    fn bring_chunk(&mut self, at: Txid, number: u32) -> Result<()> {
        let held = self.one_mut(&at);
        if number == 0 || held.chunks.contains_key(&number) {
            return Ok(());
        }
        let Some(fresh) = &held.fresh else {
            self.wanted.chunks.insert((at, number));
            return Err(Missing);
        };
        let chunk = Chunk::new(fresh.hashes(number), fresh.spending);
        held.chunks.insert(number, HeldChunk { chunk, changed: false });
        Ok(())
    }
}

impl Working for Set {
    type Error = Missing;
    type Record = Txid;
    type Slot = Outpoint;

    fn find(&mut self, txid: &Txid) -> Result<Option<Txid>> {
        let Some(held) = self.held.get(txid) else {
            self.wanted.records.insert(*txid);
            return Err(Missing);
        };
        Ok(held.state.is_some().then_some(*txid))
    }

    fn is_unmined(&mut self, txid: &Txid) -> Result<bool> {
        if let Some(held) = self.held.get(txid) {
            return Ok(held.state.as_ref().is_some_and(|state| state.head.unmined_since.is_some()));
        }
        self.unmined.get(txid).copied().ok_or_else(|| {
            self.wanted.unmined.insert(*txid);
            Missing
        })
    }

    fn slot(&mut self, at: Txid, vout: u32) -> Result<Option<Outpoint>> {
        self.bring_place(at, vout)?;
        let held = self.one(&at);
        if vout >= held.outputs() {
            return Ok(None);
        }
        let slot = held.chunk(vout / CHUNK).slots.get((vout % CHUNK) as usize);
        Ok(slot.is_some_and(Option::is_some).then_some(Outpoint::new(at, vout)))
    }

    fn bring_place(&mut self, at: Txid, vout: u32) -> Result<()> {
        if vout < self.one(&at).outputs() { self.bring_chunk(at, vout / CHUNK) } else { Ok(()) }
    }

    fn inputs(&mut self, at: Txid) -> Result<Vec<Outpoint>> {
        self.one(&at).inputs.clone().ok_or_else(|| {
            self.wanted.inputs.insert(at);
            Missing
        })
    }

    fn each_slot(&mut self, at: Txid, show: &mut dyn FnMut(&Slot)) -> Result<()> {
        let held = self.one(&at);
        let last = chunks(held.outputs());
        if held.fresh.is_none() && !held.whole && last > 1 {
            self.wanted.whole.insert(at);
            return Err(Missing);
        }
        held.chunk(0).slots.iter().flatten().for_each(&mut *show);
        for number in 1..last {
            match (held.chunks.get(&number), &held.fresh) {
                (Some(held), _) => held.chunk.slots.iter().flatten().for_each(&mut *show),
                (None, Some(fresh)) => {
                    let chunk = Chunk::new(fresh.hashes(number), fresh.spending);
                    chunk.slots.iter().flatten().for_each(&mut *show);
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    fn remove(&mut self, at: Txid) -> Result<()> {
        let held = self.one_mut(&at);
        let stored = held.stored;
        *held = Held { stored, removed: stored, ..Held::default() };
        Ok(())
    }

    fn create(&mut self, txid: &Txid, new: &NewRecord, head: Head) -> Result<()> {
        let spending = new.frozen.then_some(SpendingData::FROZEN);
        let first = new.utxos.get(..CHUNK as usize).unwrap_or(&new.utxos);
        let state = State { head, first: Chunk::new(first, spending) };
        let held = self.one_mut(txid);
        let (stored, removed) = (held.stored, held.removed);
        *held = Held {
            state: Some(state),
            stored,
            removed,
            inputs: Some(new.inputs.clone()),
            fresh: Some(Fresh { body: new.body.clone(), utxos: Arc::clone(&new.utxos), spending }),
            ..Held::default()
        };
        Ok(())
    }

    fn begin_intent(&mut self, intent: &Intent) -> Result<()> {
        let again = match self.intents.get(&intent.id()) {
            Some(IntentChange::Begin { .. }) => return Ok(()),
            Some(IntentChange::Complete) => true,
            None => false,
        };
        let intent = Box::new(intent.clone());
        self.intents.insert(intent.id(), IntentChange::Begin { intent, again });
        Ok(())
    }

    fn complete_intent(&mut self, id: &IntentId) -> Result<()> {
        self.intents.insert(*id, IntentChange::Complete);
        Ok(())
    }

    fn head(&self, at: Txid) -> &Head {
        &self.one(&at).state.as_ref().expect(HELD).head
    }

    fn head_mut(&mut self, at: Txid) -> &mut Head {
        let held = self.one_mut(&at);
        held.changed = true;
        &mut held.state.as_mut().expect(HELD).head
    }

    fn get(&self, at: Outpoint) -> &Slot {
        let chunk = self.one(&at.txid).chunk(at.vout / CHUNK);
        let slot = chunk.slots.get((at.vout % CHUNK) as usize);
        slot.and_then(Option::as_ref).expect("the slot was found")
    }

    fn get_mut(&mut self, at: Outpoint) -> &mut Slot {
        let chunk = self.one_mut(&at.txid).chunk_mut(at.vout / CHUNK);
        let slot = chunk.slots.get_mut((at.vout % CHUNK) as usize);
        slot.and_then(Option::as_mut).expect("the slot was found")
    }

    fn spendable_in(&self, at: Outpoint) -> Option<Height> {
        self.one(&at.txid).chunk(at.vout / CHUNK).resting(at.vout)
    }

    fn window(&self, at: Outpoint) -> Option<FreezeWindow> {
        self.one(&at.txid).chunk(at.vout / CHUNK).window(at.vout)
    }

    fn set_window(&mut self, at: Outpoint, window: Option<FreezeWindow>) {
        let notes = self.one_mut(&at.txid).chunk_mut(at.vout / CHUNK).notes_mut();
        notes.windows.retain(|(vout, _)| *vout != at.vout);
        notes.windows.extend(window.map(|window| (at.vout, window)));
    }

    fn reassigned(&mut self, at: Outpoint, reassignment: Reassignment, spendable: Height) {
        let order = self.head(at.txid).reassignments;
        let notes = self.one_mut(&at.txid).chunk_mut(at.vout / CHUNK).notes_mut();
        notes.resting.retain(|(vout, _)| *vout != at.vout);
        notes.resting.push((at.vout, spendable));
        notes.reassignments.push((order, reassignment));
    }

    fn is_pruned_child(&self, at: Outpoint, child: &Txid) -> bool {
        let notes = self.one(&at.txid).chunk(at.vout / CHUNK).notes.as_ref();
        notes.is_some_and(|notes| notes.pruned.contains(child))
    }

    fn add_pruned_child(&mut self, at: Txid, vout: u32, child: Txid) {
        let held = self.one_mut(&at);
        let number = if vout < held.outputs() { vout / CHUNK } else { 0 };
        let noted = held.chunk(number).notes.as_ref();
        if !noted.is_some_and(|notes| notes.pruned.contains(&child)) {
            held.chunk_mut(number).notes_mut().pruned.push(child);
        }
    }
}

//! A chunk: eight slots of a record, and what is known about them.
//!
//! ```text
//!  │ places u8 │ filled u8 │ spent u8 │ notes u8 │ slot 32 or 68 │ slot 32 or 68 │ … │ notes … │
//! ```
//!
//! - `places` is the number of outputs, at most eight. A bit of `filled` says that the output has a
//!   slot, a bit of `spent` that its slot has 68 bytes (spent or frozen) and not 32.
//! - `notes` is 1 when notes follow, which is rare. They are four lists, each begun by a VARINT
//!   count: outputs that rest (output VARINT, height u32), freeze windows (output VARINT, from u32,
//!   until u32, policy expires u8), reassignments (order VARINT, output VARINT, from 32, to 32,
//!   height u32), and spenders whose records were pruned (txid 32 each).
//!
//! The first eight slots of a record lie in its state; most transactions have no others. Further
//! chunks are separate entries, so a spend in a transaction of any size writes the state and
//! some 600 bytes.

use varve_types::{DecodeError, Height, Reader, Txid, varint};

use super::number::{read_count, read_u32};
use crate::freeze_window::FreezeWindow;
use crate::record::Reassignment;
use crate::slot::Slot;
use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;

/// Slots in a chunk.
pub(crate) const CHUNK: u32 = 8;

/// The number of chunks of a record, the first included.
pub(crate) const fn chunks(outputs: u32) -> u32 {
    if outputs == 0 { 1 } else { outputs.div_ceil(CHUNK) }
}

/// Some slots of a record.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Chunk {
    /// One place an output.
    pub(crate) slots: Vec<Option<Slot>>,
    /// Set when there is anything to note.
    pub(crate) notes: Option<Box<Notes>>,
}

/// What is rarely known about slots.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Notes {
    pub(crate) resting: Vec<(u32, Height)>,
    pub(crate) windows: Vec<(u32, FreezeWindow)>,
    /// With the number that says in which order they came in the whole record.
    pub(crate) reassignments: Vec<(u32, Reassignment)>,
    pub(crate) pruned: Vec<Txid>,
}

impl Chunk {
    /// A chunk of new slots.
    pub(crate) fn new(hashes: &[Option<UtxoHash>], spending: Option<SpendingData>) -> Self {
        let slot = |hash| Slot { hash, spending };
        Self { slots: hashes.iter().map(|hash| hash.map(slot)).collect(), notes: None }
    }

    /// The notes, to be changed.
    pub(crate) fn notes_mut(&mut self) -> &mut Notes {
        self.notes.get_or_insert_default()
    }

    /// The height from which on an output can be spent.
    pub(crate) fn resting(&self, vout: u32) -> Option<Height> {
        let resting = &self.notes.as_ref()?.resting;
        resting.iter().find(|(output, _)| *output == vout).map(|(_, height)| *height)
    }

    /// When an output is frozen.
    pub(crate) fn window(&self, vout: u32) -> Option<FreezeWindow> {
        let windows = &self.notes.as_ref()?.windows;
        windows.iter().find(|(output, _)| *output == vout).map(|(_, window)| *window)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode_slots(&self.slots, self.notes.is_some(), out);
        if let Some(notes) = &self.notes {
            notes.encode(out);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [places, filled, spent, noted] = *reader.array("a chunk of slots")?;
        if u32::from(places) > CHUNK {
            return Err(reader.error(varve_types::DecodeErrorKind::CountTooLarge {
                what: "slots of a chunk",
                count: u64::from(places),
            }));
        }
        let mut slots = Vec::with_capacity(usize::from(places));
        for place in 0..places {
            let bit = 1 << place;
            if filled & bit == 0 {
                slots.push(None);
                continue;
            }
            let hash = UtxoHash::from_bytes(*reader.array("the hash of a slot")?);
            let spending = match spent & bit {
                0 => None,
                _ => Some(SpendingData::from_bytes(reader.array("the spender of a slot")?)),
            };
            slots.push(Some(Slot { hash, spending }));
        }
        let notes = if noted == 0 { None } else { Some(Box::new(Notes::read(reader)?)) };
        Ok(Self { slots, notes })
    }
}

fn encode_slots(slots: &[Option<Slot>], noted: bool, out: &mut Vec<u8>) {
    let (mut filled, mut spent) = (0_u8, 0_u8);
    for (place, slot) in slots.iter().enumerate() {
        filled |= u8::from(slot.is_some()) << place;
        spent |= u8::from(slot.is_some_and(|slot| slot.spending.is_some())) << place;
    }
    let places = u8::try_from(slots.len()).expect("at most eight");
    out.extend_from_slice(&[places, filled, spent, u8::from(noted)]);
    slots.iter().flatten().for_each(|slot| slot.encode(out));
}

/// Appends a chunk of slots that were created and not changed since.
pub(crate) fn encode_new(
    hashes: &[Option<UtxoHash>],
    spending: Option<SpendingData>,
    out: &mut Vec<u8>,
) {
    let mut slots = [None; CHUNK as usize];
    for (slot, hash) in slots.iter_mut().zip(hashes) {
        *slot = hash.map(|hash| Slot { hash, spending });
    }
    encode_slots(slots.get(..hashes.len()).unwrap_or_default(), false, out);
}

impl Notes {
    fn encode(&self, out: &mut Vec<u8>) {
        varint::write(self.resting.len() as u64, out);
        for (vout, height) in &self.resting {
            varint::write(u64::from(*vout), out);
            out.extend_from_slice(&height.to_u32().to_le_bytes());
        }
        varint::write(self.windows.len() as u64, out);
        for (vout, window) in &self.windows {
            varint::write(u64::from(*vout), out);
            out.extend_from_slice(&window.from.to_u32().to_le_bytes());
            out.extend_from_slice(&window.until.to_u32().to_le_bytes());
            out.push(u8::from(window.policy_expires));
        }
        varint::write(self.reassignments.len() as u64, out);
        for (order, reassignment) in &self.reassignments {
            varint::write(u64::from(*order), out);
            varint::write(u64::from(reassignment.vout), out);
            out.extend_from_slice(reassignment.from.as_bytes());
            out.extend_from_slice(reassignment.to.as_bytes());
            out.extend_from_slice(&reassignment.height.to_u32().to_le_bytes());
        }
        varint::write(self.pruned.len() as u64, out);
        self.pruned.iter().for_each(|txid| out.extend_from_slice(txid.as_bytes()));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut notes = Self::default();
        for _ in 0..read_count(reader, 5, "resting outputs")? {
            let vout = read_u32(reader, "a resting output")?;
            notes.resting.push((vout, Height::new(reader.u32("a height")?)));
        }
        for _ in 0..read_count(reader, 10, "freeze windows")? {
            let vout = read_u32(reader, "a frozen output")?;
            let from = Height::new(reader.u32("the beginning of a window")?);
            let until = Height::new(reader.u32("the end of a window")?);
            let policy_expires = reader.u8("the policy of a window")? != 0;
            notes.windows.push((vout, FreezeWindow { from, until, policy_expires }));
        }
        for _ in 0..read_count(reader, 70, "reassignments")? {
            let order = read_u32(reader, "the order of a reassignment")?;
            let vout = read_u32(reader, "a reassigned output")?;
            let from = UtxoHash::from_bytes(*reader.array("a former hash")?);
            let to = UtxoHash::from_bytes(*reader.array("a hash")?);
            let height = Height::new(reader.u32("the height of a reassignment")?);
            notes.reassignments.push((order, Reassignment { vout, from, to, height }));
        }
        for _ in 0..read_count(reader, 32, "pruned spenders")? {
            notes.pruned.push(Txid::from_bytes(*reader.array("a pruned spender")?));
        }
        Ok(notes)
    }
}

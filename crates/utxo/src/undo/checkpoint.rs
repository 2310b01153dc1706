//! What the manifest keeps of the undo log: how far it is durable, where its tip's record is, and
//! the marks that say where the record of a height is.

use varve_io::GlobalOffset;
use varve_types::{DecodeError, Height, Reader, varint};

use crate::entry_list::{EntryError, plausible, read_u32};

/// What is needed to reopen the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoCheckpoint {
    pub(super) durable: GlobalOffset,
    pub(super) tip: Option<GlobalOffset>,
    /// Heights that are multiples of `MARK_INTERVAL`, ascending, and where their records are.
    pub(super) marks: Vec<(Height, GlobalOffset)>,
}

impl UndoCheckpoint {
    /// Appends the bytes, all numbers as VARINT.
    ///
    /// ```text
    /// │ durable │ tip + 1, 0 = none │ count │ height, position │ height, position │ …
    /// ```
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::write(self.durable.get(), out);
        varint::write(self.tip.map_or(0, |tip| tip.get() + 1), out);
        varint::write(self.marks.len() as u64, out);
        for (height, position) in &self.marks {
            varint::write(u64::from(height.to_u32()), out);
            varint::write(position.get(), out);
        }
    }

    /// Decodes the bytes at the front of `reader`.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, EntryError> {
        let position = |reader: &mut Reader<'_>| -> Result<GlobalOffset, DecodeError> {
            varint::read(reader, "a position").map(GlobalOffset::new)
        };
        let durable = position(reader)?;
        let tip = varint::read(reader, "a position")?.checked_sub(1).map(GlobalOffset::new);
        let count = varint::read(reader, "a number of marks")?;
        let mut marks = Vec::with_capacity(plausible(reader, count, 2, "marks")?);
        for _ in 0..count {
            let height = Height::new(read_u32(reader, "a height")?);
            marks.push((height, position(reader)?));
        }
        Ok(Self { durable, tip, marks })
    }
}

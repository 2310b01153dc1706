//! The state of a record: all that changes, and its first slots.
//!
//! ```text
//!  payload of a state   │ body at VARINT │ body length VARINT │ state │
//!  payload of a whole   │ 0              │ body length VARINT │ state │ body │
//!
//!  state   │ flags u8 │ heights u8 │
//!          │ version │ lock time │ fee │ size │ extended size │ created at │
//!          │ batch │ outputs │ frozen │ reassignments │                          all VARINT
//!          │ spending height │ unmined since │ preserve until │ delete at │       u32, if set
//!          │ blocks VARINT │ id VARINT, height VARINT, subtree VARINT │ … │
//!          │ slots VARINT, spent VARINT │ … one pair a part of `batch` outputs │
//!          │ conflicting children VARINT │ txid 32 │ … │
//!          │ chunk of the first eight slots, as in `chunk` │
//!
//!  flags     1 coinbase   2 external   4 locked   8 conflicting   16 creating
//!  heights   1 spending   2 unmined    4 preserve 8 delete: which of the four are there
//! ```
//!
//! `body at` is the position, plus one, of the *whole* entry that has the body. A state is always
//! complete: replaying it means believing it, and nothing is ever added up.

use varve_io::GlobalOffset;
use varve_types::{Amount, DecodeError, DecodeErrorKind, Height, Reader, Txid, varint};

use super::chunk::Chunk;
use super::entry::Marks;
use super::number::{read_count, read_u32};
use crate::key::BatchSize;
use crate::record::{BlockId, BlockRef, PartCounts};
use crate::rules::{Head, Parts};

/// Where a body lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyAt {
    /// The whole entry that has it.
    pub(crate) at: GlobalOffset,
    pub(crate) len: u32,
}

/// A record without its body and its further slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) head: Head,
    pub(crate) first: Chunk,
}

impl State {
    /// What the index keeps of it.
    pub(super) fn marks(&self) -> Marks {
        let head = &self.head;
        let height = |height: Option<Height>| height.map_or(0, Height::to_u32);
        Marks {
            unmined: height(head.unmined_since),
            expiry: height(head.preserve_until.or(head.delete_at)),
            preserved: head.preserve_until.is_some(),
            conflicting: head.conflicting,
        }
    }

    /// Appends where the body is, and the state. A body that lies here follows.
    pub(crate) fn encode(&self, at: Option<GlobalOffset>, body_len: u32, out: &mut Vec<u8>) {
        varint::write(at.map_or(0, |at| at.get() + 1), out);
        varint::write(u64::from(body_len), out);
        encode_head(&self.head, out);
        self.first.encode(out);
    }

    /// Reads the payload of the entry at `at`: the state, where its body lies, and the body when
    /// it lies here.
    pub(crate) fn decode(
        payload: &[u8],
        at: GlobalOffset,
    ) -> Result<(Self, BodyAt, &[u8]), DecodeError> {
        let mut reader = Reader::new(payload);
        let elsewhere = varint::read(&mut reader, "the position of the body")?.checked_sub(1);
        let len = read_u32(&mut reader, "the length of the body")?;
        let head = read_head(&mut reader)?;
        let first = Chunk::read(&mut reader)?;
        let body = match elsewhere {
            Some(_) => &[],
            None => reader.take(u64::from(len), "the body")?,
        };
        reader.end()?;
        let at = elsewhere.map_or(at, GlobalOffset::new);
        Ok((Self { head, first }, BodyAt { at, len }, body))
    }
}

fn encode_head(head: &Head, out: &mut Vec<u8>) {
    let bits = |bits: [bool; 5]| (0..).zip(bits).fold(0, |all, (n, bit)| all | u8::from(bit) << n);
    let heights = [head.spending_height, head.unmined_since, head.preserve_until, head.delete_at];
    let [spending, unmined, preserve, delete] = heights.map(|height| height.is_some());
    let Head { is_coinbase, external, locked, conflicting, creating, .. } = *head;
    out.push(bits([is_coinbase, external, locked, conflicting, creating]));
    out.push(bits([spending, unmined, preserve, delete, false]));
    for number in [
        u64::from(head.version),
        u64::from(head.lock_time),
        head.fee.to_sat(),
        head.size,
        head.extended_size,
        head.created_at,
        u64::from(head.batch.get()),
        u64::from(head.total_utxos),
        u64::from(head.frozen_utxos),
        u64::from(head.reassignments),
    ] {
        varint::write(number, out);
    }
    for height in heights.into_iter().flatten() {
        out.extend_from_slice(&height.to_u32().to_le_bytes());
    }
    varint::write(head.blocks.len() as u64, out);
    for block in &head.blocks {
        for number in [block.id.0, block.height.to_u32(), block.subtree] {
            varint::write(u64::from(number), out);
        }
    }
    for part in head.parts.iter() {
        varint::write(u64::from(part.utxos), out);
        varint::write(u64::from(part.spent), out);
    }
    varint::write(head.conflicting_children.len() as u64, out);
    head.conflicting_children.iter().for_each(|txid| out.extend_from_slice(txid.as_bytes()));
}

fn read_head(reader: &mut Reader<'_>) -> Result<Head, DecodeError> {
    let [flags, present] = *reader.array("the flags of a record")?;
    let flag = |bit: u8| flags & 1 << bit != 0;
    let version = read_u32(reader, "a version")?;
    let lock_time = read_u32(reader, "a lock time")?;
    let fee = Amount::from_sat(varint::read(reader, "a fee")?);
    let size = varint::read(reader, "a size")?;
    let extended_size = varint::read(reader, "an extended size")?;
    let created_at = varint::read(reader, "a time")?;
    let at = reader.clone();
    let batch = read_u32(reader, "a batch size")?;
    let none = DecodeErrorKind::CountTooLarge { what: "a batch size", count: 0 };
    let batch = BatchSize::new(batch).ok_or_else(|| at.error(none))?;
    let total_utxos = read_u32(reader, "a number of outputs")?;
    let frozen_utxos = read_u32(reader, "a number of frozen outputs")?;
    let reassignments = read_u32(reader, "a number of reassignments")?;
    let mut height = |bit: u8| {
        let set = present & 1 << bit != 0;
        set.then(|| reader.u32("a height of a record").map(Height::new)).transpose()
    };
    let (spending_height, unmined_since) = (height(0)?, height(1)?);
    let (preserve_until, delete_at) = (height(2)?, height(3)?);
    let blocks = read_blocks(reader)?;
    let parts = read_parts(reader, batch.parts(total_utxos))?;
    let count = read_count(reader, 32, "conflicting children")?;
    let mut conflicting_children = Vec::with_capacity(count);
    for _ in 0..count {
        conflicting_children.push(Txid::from_bytes(*reader.array("a conflicting child")?));
    }
    Ok(Head {
        version,
        lock_time,
        fee,
        size,
        extended_size,
        is_coinbase: flag(0),
        spending_height,
        created_at,
        external: flag(1),
        locked: flag(2),
        conflicting: flag(3),
        creating: flag(4),
        unmined_since,
        preserve_until,
        delete_at,
        blocks,
        total_utxos,
        frozen_utxos,
        batch,
        parts,
        reassignments,
        conflicting_children,
    })
}

fn read_blocks(reader: &mut Reader<'_>) -> Result<Vec<BlockRef>, DecodeError> {
    let count = read_count(reader, 3, "blocks")?;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let id = BlockId(read_u32(reader, "a block")?);
        let height = Height::new(read_u32(reader, "the height of a block")?);
        blocks.push(BlockRef { id, height, subtree: read_u32(reader, "a subtree")? });
    }
    Ok(blocks)
}

fn read_parts(reader: &mut Reader<'_>, count: u32) -> Result<Parts, DecodeError> {
    if count as usize > reader.rest().len() / 2 {
        let what = "parts of a record";
        return Err(reader.error(DecodeErrorKind::CountTooLarge { what, count: count.into() }));
    }
    Parts::collect((0..count).map(|_| {
        let utxos = read_u32(reader, "slots of a part")?;
        Ok(PartCounts { utxos, spent: read_u32(reader, "spent slots of a part")? })
    }))
}

#[cfg(test)]
mod tests;

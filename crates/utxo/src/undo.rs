//! What it takes to disconnect a block without having it.
//!
//! ```text
//!  │ sequence u32 │ height u32 │ block hash 32 │ previous hash 32 │
//!  │ VARINT count │ the coins it spent, as adds with their births (`entry_list`) │
//!  │ VARINT count │ groups of the outputs it created │
//!
//!  group   │ txid 32 │ VARINT count │ VARINT first vout │ VARINT gap − 1 │ …
//! ```
//!
//! A coin that the block created and spent itself is in neither list. A coin that it overwrote, as
//! blocks could before BIP30, counts as spent. The coins it created were all born at `sequence`, so
//! an outpoint is enough to name them.
//!
//! Disconnecting is a step forward ([`Step`](crate::Step)): the created coins are spent
//! ([`spends_of_disconnect`](crate::spends_of_disconnect)), the spent ones added with the births
//! they had.

mod log;

use varve_types::{BlockHash, Height, Outpoint, Reader, Txid, varint};

use crate::entry::Entry;
use crate::entry_list::{EntryError, EntryList, plausible, read_u32, write_entry};
use crate::sequence::Sequence;

pub use log::{UndoCheckpoint, UndoConfig, UndoError, UndoLog, UndoPosition};

/// The shortest group: a txid and one output.
const GROUP_MIN: u64 = 32 + 1 + 1;

/// The undo record of one connected block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoRecord {
    /// The step that connected it.
    pub sequence: Sequence,
    /// Its height.
    pub height: Height,
    /// Its hash.
    pub block: BlockHash,
    /// The hash of the block below it.
    pub previous: BlockHash,
    /// The coins it took from the set.
    pub spent: EntryList,
    /// The coins it put into the set. In the order of the block they take the fewest bytes.
    pub created: Vec<Outpoint>,
}

/// The same, lent: what is written when a block is connected.
#[derive(Clone, Copy, Debug)]
pub struct UndoParts<'a> {
    /// The step that connects it.
    pub sequence: Sequence,
    /// Its height.
    pub height: Height,
    /// Its hash.
    pub block: BlockHash,
    /// The hash of the block below it.
    pub previous: BlockHash,
    /// The coins it takes from the set.
    pub spent: &'a [Entry<'a>],
    /// The outpoints of the coins it puts into the set.
    pub created: &'a [Outpoint],
}

impl UndoParts<'_> {
    /// Appends the bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sequence.to_u32().to_le_bytes());
        out.extend_from_slice(&self.height.to_u32().to_le_bytes());
        out.extend_from_slice(self.block.as_bytes());
        out.extend_from_slice(self.previous.as_bytes());
        varint::write(self.spent.len() as u64, out);
        self.spent.iter().for_each(|entry| write_entry(entry, out));
        let groups = || self.created.chunk_by(|a, b| a.txid == b.txid && a.vout < b.vout);
        varint::write(groups().count() as u64, out);
        for group in groups() {
            let mut next = 0;
            for (index, outpoint) in group.iter().enumerate() {
                if index == 0 {
                    out.extend_from_slice(outpoint.txid.as_bytes());
                    varint::write(group.len() as u64, out);
                }
                varint::write(u64::from(outpoint.vout) - next, out);
                next = u64::from(outpoint.vout) + 1;
            }
        }
    }

}

impl UndoRecord {
    /// Appends the bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Self { sequence, height, block, previous, .. } = *self;
        let spent: Vec<Entry<'_>> = self.spent.iter().collect();
        let (spent, created) = (&spent, &self.created);
        UndoParts { sequence, height, block, previous, spent, created }.encode(out);
    }

    /// Decodes bytes, all of them. Spent coins must be adds.
    pub fn decode(bytes: &[u8]) -> Result<Self, EntryError> {
        let reader = &mut Reader::new(bytes);
        let sequence = Sequence::new(reader.u32("a sequence")?);
        let height = Height::new(reader.u32("a height")?);
        let block = BlockHash::from_bytes(*reader.array("a block hash")?);
        let previous = BlockHash::from_bytes(*reader.array("a block hash")?);
        let mut spent = EntryList::new();
        let count = varint::read(reader, "a number of coins")?;
        let offset = reader.offset();
        spent.read_many(count, reader)?;
        if spent.iter().any(|entry| entry.coin.is_none()) {
            return Err(EntryError::OutOfRange { what: "coins, not deletes", offset });
        }
        let mut created = Vec::new();
        let count = varint::read(reader, "a number of transactions")?;
        plausible(reader, count, GROUP_MIN, "transactions")?;
        (0..count).try_for_each(|_| read_group(reader, &mut created))?;
        reader.end()?;
        Ok(Self { sequence, height, block, previous, spent, created })
    }
}

fn read_group(reader: &mut Reader<'_>, created: &mut Vec<Outpoint>) -> Result<(), EntryError> {
    let txid = Txid::from_bytes(*reader.array("a txid")?);
    let count = varint::read(reader, "a number of outputs")?;
    created.reserve(plausible(reader, count, 1, "outputs")?);
    let mut next = 0_u32;
    for index in 0..count {
        let offset = reader.offset();
        let out_of_range = EntryError::OutOfRange { what: "an output's index", offset };
        let gap = read_u32(reader, "an output's index")?;
        let vout = next.checked_add(gap).ok_or(out_of_range)?;
        created.push(Outpoint::new(txid, vout));
        next = match vout.checked_add(1) {
            Some(next) => next,
            None if index + 1 == count => 0,
            None => return Err(out_of_range),
        };
    }
    Ok(())
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

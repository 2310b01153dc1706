//! The undo record: what is needed to disconnect a block without its bytes.
//!
//! ```text
//!  │ sequence u32 │ height u32 │ block hash 32 │ previous hash 32 │
//!  │ VARINT count │ the coins it spent, as adds with their births (`entry_list`) │
//!  │ VARINT count │ its transactions │
//!
//!  transaction   │ txid 32 │ VARINT spends │ VARINT creates │ VARINT vout │ VARINT gap − 1 │ …
//! ```
//!
//! A coin that the block created and spent itself is in neither list, and a transaction without any
//! other is left out. The coins are in the order of the transactions that spent them, so that
//! `spends` says which transaction spent which; after them come those that the block overwrote, as
//! blocks could before BIP30. The coins it created were all born at `sequence`, so an outpoint is
//! enough to name them.
//!
//! Disconnecting is a step forward (`window/step.rs`): the created coins are spent, the spent ones
//! are added with the births they had.

mod checkpoint;
mod error;
mod log;
mod spenders;
mod writer;

use varve_runs::Sequence;
use varve_types::{BlockHash, Height, Outpoint, Reader, Txid, varint};

use crate::entry_list::{EntryError, EntryList, plausible, read_u32, write_entry};

pub(crate) use checkpoint::UndoCheckpoint;
pub use error::UndoError;
pub use log::UndoConfig;
pub(crate) use log::{Below, RecordRead, UNDO_PREFIX, UndoLog};
pub(crate) use spenders::Spenders;
pub(crate) use writer::PendingUndo;

/// The shortest transaction: a txid and two counts.
const TX_MIN: u64 = 32 + 1 + 1;

/// Estimated bytes of a transaction, for allocations.
const USUAL_TX: usize = 32 + 1 + 1 + 3;

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
    /// The coins it took from the set: those it spent, in block order, then those it overwrote.
    pub spent: EntryList,
    /// The coins it put into the set, in block order.
    pub created: Vec<Outpoint>,
    /// The transactions of both, in block order.
    pub txs: Vec<UndoTx>,
}

/// One transaction in an undo record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoTx {
    /// Its id.
    pub txid: Txid,
    /// How many of the coins it spent.
    pub spends: u32,
    /// How many of the coins it created.
    pub creates: u32,
}

/// Which block a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoHead {
    /// The step that connected it.
    pub sequence: Sequence,
    /// Its height.
    pub height: Height,
    /// Its hash.
    pub block: BlockHash,
    /// The hash of the block below it.
    pub previous: BlockHash,
}

impl UndoHead {
    /// Appends the bytes of the record. `write_spent` appends its `spent` spent coins; its
    /// transactions are from [`encode_txs`].
    pub(crate) fn encode(
        &self,
        spent: usize,
        write_spent: impl FnOnce(&mut Vec<u8>),
        txs: &[u8],
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&self.sequence.to_u32().to_le_bytes());
        out.extend_from_slice(&self.height.to_u32().to_le_bytes());
        out.extend_from_slice(self.block.as_bytes());
        out.extend_from_slice(self.previous.as_bytes());
        varint::write(spent as u64, out);
        write_spent(out);
        out.extend_from_slice(txs);
    }
}

/// The bytes of a record's transactions and of the coins they created, in the same order.
pub(crate) fn encode_txs(txs: &[UndoTx], mut created: impl Iterator<Item = Outpoint>) -> Vec<u8> {
    let mut out = Vec::with_capacity(txs.len() * USUAL_TX + varint::MAX_LEN);
    varint::write(txs.len() as u64, &mut out);
    for tx in txs {
        out.extend_from_slice(tx.txid.as_bytes());
        varint::write(u64::from(tx.spends), &mut out);
        varint::write(u64::from(tx.creates), &mut out);
        let mut next = 0;
        for Outpoint { vout, .. } in created.by_ref().take(tx.creates as usize) {
            varint::write(u64::from(vout) - next, &mut out);
            next = u64::from(vout) + 1;
        }
    }
    out
}

impl UndoRecord {
    /// The block it belongs to.
    #[must_use]
    pub const fn head(&self) -> UndoHead {
        let Self { sequence, height, block, previous, .. } = *self;
        UndoHead { sequence, height, block, previous }
    }

    /// Appends the bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let write = |out: &mut Vec<u8>| self.spent.iter().for_each(|e| write_entry(&e, out));
        let txs = encode_txs(&self.txs, self.created.iter().copied());
        self.head().encode(self.spent.len(), write, &txs, out);
    }

    /// The transaction that spent this coin, if the block did.
    #[must_use]
    pub fn spender(&self, outpoint: &Outpoint) -> Option<Txid> {
        let place = self.spent.iter().position(|entry| entry.outpoint == *outpoint)?;
        let mut end = 0;
        let spender = self.txs.iter().find(|tx| {
            end += u64::from(tx.spends);
            (place as u64) < end
        });
        spender.map(|tx| tx.txid)
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
        let mut txs = Vec::with_capacity(plausible(reader, count, TX_MIN, "transactions")?);
        for _ in 0..count {
            txs.push(read_tx(reader, &mut created)?);
        }
        reader.end()?;
        Ok(Self { sequence, height, block, previous, spent, created, txs })
    }
}

fn read_tx(reader: &mut Reader<'_>, created: &mut Vec<Outpoint>) -> Result<UndoTx, EntryError> {
    let txid = Txid::from_bytes(*reader.array("a txid")?);
    let spends = read_u32(reader, "a number of inputs")?;
    let creates = read_u32(reader, "a number of outputs")?;
    created.reserve(plausible(reader, u64::from(creates), 1, "outputs")?);
    let mut next = Some(0_u32);
    for _ in 0..creates {
        let offset = reader.offset();
        let gap = read_u32(reader, "an output's index")?;
        let vout = next.and_then(|next| next.checked_add(gap));
        let out_of_range = EntryError::OutOfRange { what: "an output's index", offset };
        let vout = vout.ok_or(out_of_range)?;
        created.push(Outpoint::new(txid, vout));
        next = vout.checked_add(1);
    }
    Ok(UndoTx { txid, spends, creates })
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

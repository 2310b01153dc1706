//! Why the store has no answer.

use varve_types::DecodeError;

use crate::number::{BlockNumber, TxPosition};

/// The result of every operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on the block store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The storage failed, or holds something other than what was written.
    #[error(transparent)]
    Storage(#[from] varve_io::Error),
    /// No block has this number, or none that this reader may see.
    #[error("there is no block number {number} among {count} blocks; use a newer reader")]
    Unknown {
        /// The number asked for.
        number: BlockNumber,
        /// How many blocks there are for this reader.
        count: u32,
    },
    /// The block is known, but its bytes were pruned.
    #[error("the bytes of block number {number} were pruned; fetch the block again elsewhere")]
    Pruned {
        /// The block.
        number: BlockNumber,
    },
    /// The block has fewer transactions.
    #[error("block number {number} has {txs} transactions, so none at position {position}")]
    NoTransaction {
        /// The block.
        number: BlockNumber,
        /// The position asked for.
        position: TxPosition,
        /// How many transactions it has.
        txs: u32,
    },
    /// The range reaches outside the block.
    #[error("bytes {start} to {end} reach outside block number {number} of {length} bytes")]
    OutOfBlock {
        /// The block.
        number: BlockNumber,
        /// The first byte asked for.
        start: u64,
        /// The byte after the last one asked for.
        end: u64,
        /// How many bytes the block has.
        length: u64,
    },
    /// The log of blocks is intact, but has fewer blocks than the owner recorded as synced.
    #[error("{synced} blocks were synced, but the store holds {count}; this is another store")]
    Missing {
        /// How many blocks there are.
        count: u32,
        /// How many there must be.
        synced: u32,
    },
    /// A truncation would remove blocks that the index holds durably.
    #[error("cannot truncate to {to} blocks: {indexed} are in the index; keep at least that many")]
    Indexed {
        /// How many blocks were to stay.
        to: u32,
        /// How many must stay.
        indexed: u32,
    },
    /// The block cannot be stored because something about it is too big.
    #[error("the block is too big to be stored: {what}")]
    TooBig {
        /// What is too big.
        what: &'static str,
    },
    /// A stored frame verified, but is not a block of this store's format.
    #[error("block number {number} does not decode: {source}; open the store with its network")]
    Undecodable {
        /// The block.
        number: BlockNumber,
        /// Why.
        source: DecodeError,
    },
}

impl Error {
    /// True when freeing space and calling again can help.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Storage(error) if error.is_disk_full())
    }

    /// True when stored bytes are not what was written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Storage(error) if error.is_damage())
    }
}

//! What can go wrong with the archive.
//!
//! A missing object is no error: queries return `None`. It is an error when the archive cannot
//! know: the bytes are pruned, the block is below the base of an imported snapshot, a read failed.

use varve_types::{BlockHash, DecodeError, Height};

use crate::backend::BackendError;
use crate::source::SourceError;

/// Why the archive could not answer a query or take a write.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The back end failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The bytes that the answer needs were dropped.
    #[error("block {height} is pruned: sync again without pruning to keep its bytes")]
    Pruned {
        /// The height of the block whose bytes are gone.
        height: Height,
    },
    /// The answer may be in blocks that were never read, because the store started from a snapshot
    /// of the unspent set.
    #[error("the history up to block {height} is missing: the store started from a snapshot there")]
    BelowBase {
        /// The height of the block that is missing, or that of the base when it is not known.
        height: Height,
    },
    /// The block store failed.
    #[error("the bytes of block {height} cannot be read: {source}")]
    Source {
        /// The height of the block.
        height: Height,
        /// What the block store says.
        source: SourceError,
    },
    /// The bytes in the block store are not what was archived.
    #[error("the bytes of block {height} do not decode ({source}): run `varve repair`")]
    Decode {
        /// The height of the block.
        height: Height,
        /// What is wrong with them.
        source: DecodeError,
    },
    /// Rows contradict one another.
    #[error("the archive is damaged: {what}; run `varve repair`")]
    Damaged {
        /// What does not fit.
        what: &'static str,
    },
    /// A header whose parent has no row.
    #[error("header {hash} stands on {previous}, which is not known: archive that one first")]
    UnknownParent {
        /// The header.
        hash: BlockHash,
        /// The one below it.
        previous: BlockHash,
    },
    /// A block whose header has no row.
    #[error("block {hash} has no header here: archive its header first")]
    UnknownHeader {
        /// The block.
        hash: BlockHash,
    },
    /// A header that does not stand on the top of the chain it is pushed on.
    #[error("block {hash} does not follow the top of the chain: pop to its parent first")]
    NotNext {
        /// The header.
        hash: BlockHash,
    },
    /// A block to be confirmed that has not been archived.
    #[error("block {hash} has no transactions here: archive the block first")]
    NotArchived {
        /// The block.
        hash: BlockHash,
    },
    /// A block of 4 GiB or more.
    #[error("block {hash} has {size} bytes, and the archive takes blocks below 4 GiB")]
    TooLarge {
        /// The block.
        hash: BlockHash,
        /// Its length.
        size: u64,
    },
    /// The store holds something else than it was opened for.
    #[error("the archive was made for {found}, not for {wanted}: use another data directory")]
    Other {
        /// What it was made for.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// An optional table that this store does not have.
    #[error("the archive has no {index} index: sync again with `--index` to add it")]
    NoIndex {
        /// The index.
        index: &'static str,
    },
}

/// The result of a query or a write.
pub type Result<T> = std::result::Result<T, ArchiveError>;

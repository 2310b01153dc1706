//! Why an operation of the node failed. An invalid block is not an error: see `organizer`.

use std::fmt;
use std::path::PathBuf;

use varve_archive::ArchiveError;
use varve_types::{BlockHash, DecodeError, Height, Network};
use varve_utxo::{Error as UtxoError, SourceError as CoinsError};

use crate::source::SourceError;

/// Why an operation of the node failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder was made by another version of the program.
    #[error(
        "{} has format {found}, and this program reads format {supported}; use the program that \
         made it, or sync into another --datadir", path.display()
    )]
    OtherFormat {
        /// The folder.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        supported: u32,
    },
    /// The folder holds another chain.
    #[error(
        "{} holds the chain of {found}, not of {wanted}; pass --network {found}, or another \
         --datadir", path.display()
    )]
    OtherNetwork {
        /// The folder.
        path: PathBuf,
        /// Its network.
        found: String,
        /// The one asked for.
        wanted: Network,
    },
    /// The memory that was given is too little for this chain.
    #[error(
        "--memory {}M is too little: the unspent set needs {}M, and headers take {}M of it; pass \
         --memory {}M or more",
        given >> 20, mib(*set), mib(*headers), mib(*needed)
    )]
    Memory {
        /// The bytes that were given.
        given: usize,
        /// The bytes that would do.
        needed: usize,
        /// The least for the unspent set.
        set: usize,
        /// What has a row for each header.
        headers: usize,
    },
    /// The folder has other files and no node.
    #[error(
        "{} is not empty and holds no Varve database, but {found}; pass a --datadir that is empty \
         or does not exist", path.display()
    )]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// What is in it.
        found: Names,
    },
    /// Files among those of a store that it did not write.
    #[error(
        "{} holds what Varve did not write: {found}; nothing was removed: move that to another \
         place and run the command again", path.display()
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What is in it.
        found: Names,
    },
    /// The stores of the folder contradict one another.
    #[error("the stores do not agree: {what}; run `varve repair`")]
    Disagree {
        /// What does not fit.
        what: String,
    },
    /// The chain does not reach this height.
    #[error("the chain does not reach height {height}; its tip is at {tip}")]
    AboveTip {
        /// The height.
        height: Height,
        /// That of the tip.
        tip: Height,
    },
    /// The answer needs bytes of a block that were pruned.
    #[error(
        "the bytes of block {height} were pruned; sync into another --datadir without --prune to \
         have them"
    )]
    Pruned {
        /// The height of the block.
        height: Height,
    },
    /// Scripts cannot be checked on this network.
    #[error("scripts of {network} cannot be checked; use --verify spends")]
    NoScripts {
        /// The network.
        network: Network,
    },
    /// The bytes of a stored block are gone.
    #[error("the bytes of block {hash} at {height} are not there; run `varve verify`")]
    NoBytes {
        /// The block.
        hash: BlockHash,
        /// Its height.
        height: Height,
    },
    /// A stored block does not decode.
    #[error("stored block {hash} does not decode ({source}); run `varve verify`")]
    Undecodable {
        /// The block.
        hash: BlockHash,
        /// Why.
        source: DecodeError,
    },
    /// A verifier or a set could not answer, which says nothing about the block.
    #[error("block {hash} could not be checked: {what}")]
    Unchecked {
        /// The block.
        hash: BlockHash,
        /// Why.
        what: String,
    },
    /// The unspent set refuses a block that the history finds to be good.
    #[error(
        "the unspent set refuses block {hash} ({reason}), but the history finds nothing wrong with \
         it, so one of them is damaged and the block was not marked; run `varve verify`, then \
         `varve repair`"
    )]
    Contradiction {
        /// The block.
        hash: BlockHash,
        /// What the set says.
        reason: String,
    },
    /// No header with this hash is known.
    #[error("block {hash} is not known; `varve status` lists the branches and the refused blocks")]
    UnknownBlock {
        /// The hash.
        hash: BlockHash,
    },
    /// The genesis block cannot be marked.
    #[error("{hash} is the genesis block, which every chain has; name another block")]
    Genesis {
        /// Its hash.
        hash: BlockHash,
    },
    /// A thread could not be started.
    #[error(
        "cannot start a thread: {0}; raise the limits of the process (ulimit -u, ulimit -v) or of \
         its container"
    )]
    Thread(#[source] std::io::Error),
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The block store failed.
    #[error("the block store: {0}")]
    Blocks(#[from] varve_blocks::Error),
    /// The archive failed.
    #[error("the archive: {0}")]
    Archive(#[source] ArchiveError),
    /// The script history failed.
    #[error("the script history: {0}")]
    History(#[from] varve_archive::history::HistoryError),
    /// The script history is not kept.
    #[error(
        "this folder keeps no script history; add it with `varve sync --index script` (and the \
         indexes that are to stay)"
    )]
    NoHistory,
    /// The mempool failed.
    #[error("the mempool: {0}")]
    Mempool(#[from] crate::mempool::MempoolError),
    /// The unspent set failed.
    #[error("the unspent set: {0}")]
    Utxo(#[source] UtxoError),
    /// The disk failed.
    #[error(transparent)]
    Storage(#[from] varve_io::Error),
}

/// Names of files for a message, which shows the first few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        let shown: Vec<&str> = self.0.iter().take(SHOWN).map(String::as_str).collect();
        f.write_str(&shown.join(", ").escape_debug().to_string())?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl Error {
    /// The error of the block store about a block at this height.
    pub(crate) fn of_block(height: Height) -> impl Fn(varve_blocks::Error) -> Self {
        move |error| match error {
            varve_blocks::Error::Pruned { .. } => Self::Pruned { height },
            other => Self::Blocks(other),
        }
    }
}

impl From<ArchiveError> for Error {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Pruned { height } => Self::Pruned { height },
            other => Self::Archive(other),
        }
    }
}

/// A rewind asks the archive for coins; its error about pruned bytes becomes ours.
impl From<UtxoError> for Error {
    fn from(error: UtxoError) -> Self {
        if let UtxoError::Source { error: CoinsError::Failed(failure), .. } = &error {
            if let Some(Self::Pruned { height }) = failure.downcast_ref() {
                return Self::Pruned { height: *height };
            }
            if let Some(ArchiveError::Pruned { height }) = failure.downcast_ref() {
                return Self::Pruned { height: *height };
            }
        }
        Self::Utxo(error)
    }
}

impl From<varve_archive::BackendError> for Error {
    fn from(error: varve_archive::BackendError) -> Self {
        Self::Archive(error.into())
    }
}

/// Whole MiB, rounded up.
const fn mib(bytes: usize) -> usize {
    bytes.div_ceil(1 << 20)
}

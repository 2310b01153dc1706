//! The one error of the library: what failed, on what, and what to do.

use std::path::PathBuf;
use std::time::Duration;

use varve_archive::ArchiveError;
use varve_node::SourceError;
use varve_types::{BlockHash, Height, Network, Outpoint};

/// Why an operation failed.
///
/// What a caller may want to act on is a variant; every other failure of the stores below is
/// [`Error::Node`] or [`Error::Records`], whose message says what to do. That a block is invalid or
/// a transaction unknown is no error, unless its documentation says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder holds no chain, and was to be opened.
    #[error(
        "there is no chain in {}; make one with `varve sync`, or pass another --datadir or \
         --network", path.display()
    )]
    NoChain {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds a chain, and was to become the folder of a new one or of a set alone.
    #[error(
        "{} holds a chain already; open that one, or pass another --datadir", path.display()
    )]
    ChainExists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds an imported set of unspent outputs, which no chain can be added to.
    #[error(
        "{} holds an imported set of unspent outputs alone; sync into another --datadir",
        path.display()
    )]
    SetAlone {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds no unspent set.
    #[error(
        "there is no unspent set in {}; make one with `varve sync` or `varve utxo import FILE`, or \
         pass another --datadir or --network", path.display()
    )]
    NoSet {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds an unspent set, and was to be filled with another.
    #[error("{} is not empty; pass a --datadir that is, or remove it", path.display())]
    SetExists {
        /// The folder of the set.
        path: PathBuf,
    },
    /// There is no home folder for the default data directory.
    #[error("there is no home folder; pass --datadir DIR")]
    NoHome,
    /// A folder cannot be made.
    #[error("cannot make {}: {source}", path.display())]
    CreateFolder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The system has no randomness.
    #[error("the system gives no random numbers; nothing was opened")]
    Randomness,
    /// Another thread is syncing this node.
    #[error("this node is being synced by another thread; stop that sync or wait for its end")]
    Busy,
    /// A thread panicked while it was writing.
    #[error("a thread that was writing to this node has panicked; drop the node and open it again")]
    Poisoned,
    /// A thread could not be started.
    #[error(
        "cannot start a thread: {0}; raise the limits of the process (ulimit -u, ulimit -v) or of \
         its container"
    )]
    Thread(#[source] std::io::Error),
    /// The source was connected for another network than the node's.
    #[error("the source was connected for another network; connect it for {network}")]
    OtherSource {
        /// The network of the node.
        network: Network,
    },
    /// The snapshot was held for longer than its lease.
    #[error("this snapshot is older than {} s; take a new one", lease.as_secs())]
    SnapshotExpired {
        /// How long a snapshot may be held.
        lease: Duration,
    },
    /// No stored block has this output.
    #[error("output {outpoint} is in no stored block")]
    UnknownOutput {
        /// The output.
        outpoint: Outpoint,
    },
    /// The header is known, but the block has not been stored.
    #[error("block {hash} has not come; sync from a source that has it")]
    NotStored {
        /// The block.
        hash: BlockHash,
    },
    /// The header is known, and the block was refused before it was stored.
    #[error("block {hash} was refused: {reason}")]
    Refused {
        /// The block.
        hash: BlockHash,
        /// The rule that it breaks.
        reason: String,
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
    /// The folder keeps no index `script`.
    #[error(
        "this folder keeps no script history; add it with `varve sync --index script` (and the \
         indexes that are to stay)"
    )]
    NoScripts,
    /// The index `script` was added, and no sync has begun it.
    #[error("the script history has not begun; run `varve sync` once")]
    ScriptsNotBegun,
    /// A cursor of events whose block this folder does not know.
    #[error(
        "block {block} of the cursor is not known here: it comes from another chain, or from a \
         copy that is ahead; start without a cursor"
    )]
    UnknownCursor {
        /// The block.
        block: BlockHash,
    },
    /// A height above what is known.
    #[error("height {height} is above the tip at {tip}")]
    AboveTip {
        /// The height that was asked for.
        height: Height,
        /// The last that is known.
        tip: Height,
    },
    /// `hash_serialized_3` of a height below the tip.
    #[error(
        "hash_serialized_3 is known for the tip alone; ask for --hash muhash or none, or sync \
         another --datadir with --stop-height {height}"
    )]
    HashOfTheTipAlone {
        /// The height that was asked for.
        height: Height,
    },
    /// An address of a node that cannot be read.
    #[error(
        "write the address of a node, with a port from 1 to 65535, as in \
         http://user:password@127.0.0.1:8332"
    )]
    RpcUrl,
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A snapshot file cannot be imported.
    #[error("cannot import {}: {source}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<varve_utxo::Error>,
    },
    /// A snapshot file whose base block is not one that is known.
    #[error("the file does not say at which height its base block {base} is; pass --height HEIGHT")]
    BaseHeight {
        /// The base block.
        base: BlockHash,
    },
    /// The height that was given for a known base block is not its height.
    #[error("block {base} is at height {height}, not {given}")]
    OtherBaseHeight {
        /// The base block.
        base: BlockHash,
        /// Its height.
        height: Height,
        /// The height that was given.
        given: Height,
    },
    /// The outputs in a snapshot file are not those of its base block.
    #[error(
        "the outputs in {} are not those of block {base}: their hash is {found}, not {expected}; \
         fetch the file again", path.display()
    )]
    WrongSet {
        /// The file.
        path: PathBuf,
        /// The base block.
        base: BlockHash,
        /// The `hash_serialized_3` of the outputs.
        found: String,
        /// That of the set at the base block.
        expected: &'static str,
    },
    /// The memory that was given is too little for the records.
    #[error(
        "--memory {}M is too little for the records, whose index takes {}M; pass --memory {}M or \
         more", given >> 20, index.div_ceil(1 << 20), needed >> 20
    )]
    RecordsMemory {
        /// The bytes that were given.
        given: u64,
        /// The bytes of the index.
        index: u64,
        /// The bytes that would do.
        needed: u64,
    },
    /// The file of the records' tip is of another version, or damaged.
    #[error("{} {what}", path.display())]
    RecordsTip {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Records in PostgreSQL cannot be opened.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(varve_records::PostgresError),
    /// PostgreSQL was left out when the program was built.
    #[cfg(not(feature = "postgres"))]
    #[error("this program was built without PostgreSQL; build it with the feature `postgres`")]
    NoPostgres,
    /// The stores of the chain failed.
    #[error(transparent)]
    Node(Box<varve_node::Error>),
    /// The store of records failed.
    #[error(transparent)]
    Records(Box<varve_records::StoreError>),
}

impl Error {
    /// Whether somebody else holds the folder: another process, or another handle of this one.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        let Self::Node(error) = self else { return false };
        let error = match &**error {
            varve_node::Error::Storage(error) => error,
            varve_node::Error::Utxo(varve_utxo::Error::Storage(error)) => error,
            _ => return false,
        };
        matches!(error, varve_io::Error::Locked { .. })
    }
}

impl From<varve_node::Error> for Error {
    fn from(error: varve_node::Error) -> Self {
        match error {
            varve_node::Error::Pruned { height } => Self::Pruned { height },
            varve_node::Error::NoHistory => Self::NoScripts,
            other => Self::Node(Box::new(other)),
        }
    }
}

impl From<ArchiveError> for Error {
    fn from(error: ArchiveError) -> Self {
        varve_node::Error::from(error).into()
    }
}

impl From<varve_utxo::Error> for Error {
    fn from(error: varve_utxo::Error) -> Self {
        varve_node::Error::from(error).into()
    }
}

impl From<varve_blocks::Error> for Error {
    fn from(error: varve_blocks::Error) -> Self {
        varve_node::Error::from(error).into()
    }
}

impl From<varve_io::Error> for Error {
    fn from(error: varve_io::Error) -> Self {
        varve_node::Error::from(error).into()
    }
}

impl From<SourceError> for Error {
    fn from(error: SourceError) -> Self {
        varve_node::Error::from(error).into()
    }
}

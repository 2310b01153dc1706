//! Where headers and blocks come from.
//!
//! A receiver pulls from one [`Source`], on one thread; what runs beside that is the source's own
//! business. The talk between them:
//!
//! 1. The receiver calls [`seek`](Source::seek) with the locator of its best header. Headers come
//!    as [`Event::Headers`], parents first within a giver's answer. It adds them to its tree and,
//!    unless it knew them all, seeks again with the new locator.
//! 2. [`Event::HeadersDone`] says that no giver has more for the moment. A receiver that does not
//!    follow is finished when it has seen this and has the blocks that it wants.
//! 3. It calls [`want`](Source::want) with the blocks that it needs next, in their order. They come
//!    as [`Event::Block`], in any order, each once, a bounded number ahead of the receiver; or as
//!    [`Event::Missing`] when nobody here has it.
//! 4. A source that cannot give a block twice (a pipe) gives every block unasked, behind its
//!    header. The receiver stores each block whose header it knows, asked for or not.
//! 5. While a source follows, new headers come unasked. Headers that do not link to anything known
//!    are no offence: the receiver seeks again.
//! 6. What turns out invalid is told by [`blame`](Source::blame). The giver is not asked again, and
//!    the blocks that it owes are asked of others.
//!
//! | source | headers | blocks | follows |
//! |---|---|---|---|
//! | [`directory`] | a walk over the files, linked as found | read by location, ahead | rescans |
//! | [`pipe`] | linked as they come | pushed | – |
//! | [`p2p`] | `getheaders` | `getdata`, windowed over several peers | announcements |
//! | [`rpc`] | REST or JSON-RPC, the active chain | REST or JSON-RPC, ahead | polls the best hash |

pub mod directory;
mod linker;
pub mod p2p;
pub mod pipe;
mod pool;
pub mod rpc;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use varve_types::{BlockHash, Header, Network};

/// The bytes of a header.
pub type HeaderBytes = [u8; Header::LEN];

/// The time since some fixed moment, as the caller's clock has it. It never goes back.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Who gave something: a peer, a folder. Numbers are not given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Giver(pub(crate) u32);

impl Giver {
    /// The one giver of a source that has no more than one.
    pub const ONLY: Self = Self(0);
}

/// What a source has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Headers, each above the one before it or above one that was given earlier.
    Headers {
        /// The headers.
        headers: Vec<HeaderBytes>,
        /// Who gave them.
        giver: Giver,
    },
    /// No giver has more headers, until new ones are announced.
    HeadersDone,
    /// A block. Its header hashes to `hash`; nothing else has been checked.
    Block {
        /// The hash of its header.
        hash: BlockHash,
        /// Its bytes.
        bytes: Vec<u8>,
        /// Who gave it.
        giver: Giver,
    },
    /// Nobody here has this block. It can be wanted again later.
    Missing {
        /// The block.
        hash: BlockHash,
    },
    /// Something to tell the user; the source goes on.
    Warning(Warning),
    /// Nothing happened within the time that was given.
    Idle,
}

/// What a user should know of a source that still works.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The last record of a file is not all there.
    #[error("{} ends within a block at byte {offset}; the block is left out", path.display())]
    Incomplete {
        /// The file, or `-`.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
    },
    /// Something between the records of a file is no block.
    #[error(
        "{bytes} bytes within {} are no blocks of the network; they are left out", path.display()
    )]
    Skipped {
        /// The file, or `-`.
        path: PathBuf,
        /// How many bytes.
        bytes: u64,
    },
    /// Blocks whose parents are not there.
    #[error("{count} blocks follow blocks that are not there; they are left out")]
    Unlinked {
        /// How many.
        count: usize,
    },
    /// A connection ended, or could not be made.
    #[error("{peer}: {reason}")]
    Lost {
        /// The address.
        peer: String,
        /// Why.
        reason: String,
    },
    /// A giver is not asked again.
    #[error("{peer} is banned: {reason}")]
    Banned {
        /// The address or path.
        peer: String,
        /// What it did.
        reason: String,
    },
}

/// Why a source cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// There are no block files.
    #[error("{} has no blk*.dat files; name a folder of blocks or one block file", path.display())]
    NoBlocks {
        /// The folder.
        path: PathBuf,
    },
    /// The first file begins with something else than a block of the network.
    #[error("{} {}", path.display(), foreign(*network, found))]
    WrongNetwork {
        /// The file.
        path: PathBuf,
        /// The network that was asked for.
        network: Network,
        /// The networks whose blocks begin as this file does: none, or one and its fork.
        found: Vec<Network>,
    },
    /// There is nothing in the files.
    #[error("{} holds no blocks; name a folder of blocks or one block file", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Something that has no end and cannot be read twice.
    #[error(
        "{} is neither a folder nor a file; read it through standard input, with --from -",
        path.display()
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A pipe goes on and on without a block.
    #[error(
        "no block of {network} came in {bytes} bytes; name block files of {network}, or pipe them"
    )]
    NoRecord {
        /// The network that was asked for.
        network: Network,
        /// How many bytes.
        bytes: u64,
    },
    /// The key of the block files is not eight bytes.
    #[error("{} is not a key of 8 bytes; restore it from the node's folder", path.display())]
    BadKey {
        /// The file.
        path: PathBuf,
    },
    /// Too many blocks wait for their parents.
    #[error(
        "more than {limit} bytes of blocks came before their parents; write them to a file and \
         sync from that"
    )]
    TooUnordered {
        /// The limit.
        limit: u64,
    },
    /// Every peer is banned.
    #[error("all peers are banned; the last: {peer}: {reason}; name other peers")]
    NoPeers {
        /// The address of the last.
        peer: String,
        /// What it did.
        reason: String,
    },
    /// The node does not answer for the moment.
    #[error("{address} does not answer: {reason}")]
    Silent {
        /// The address.
        address: String,
        /// What came instead of an answer.
        reason: String,
    },
    /// The node refused.
    #[error("{address}: {reason}")]
    Rpc {
        /// The address.
        address: String,
        /// Why, and what to do.
        reason: String,
    },
}

/// What a file of another network holds, and what to do.
fn foreign(network: Network, found: &[Network]) -> String {
    let Some(first) = found.first() else {
        return format!("does not hold blocks of {network}; choose the network of these blocks");
    };
    let names: Vec<&str> = found.iter().map(|network| network.name()).collect();
    let names = names.join(" or ");
    format!("holds blocks of {names}, not of {network}; pass --network {first}")
}

/// A giver of headers and blocks. See the talk at the head of this module.
pub trait Source: Send {
    /// Asks for the headers above the first hash of `locator` that the giver has.
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError>;

    /// Asks for blocks, behind those asked for already.
    fn want(&mut self, hashes: &[BlockHash]) -> Result<(), SourceError>;

    /// Waits at most `timeout` for something to happen.
    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError>;

    /// What this giver gave is invalid.
    fn blame(&mut self, giver: Giver, reason: &str);
}

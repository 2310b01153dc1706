//! Where headers and blocks come from.
//!
//! A receiver pulls from one [`Source`], on one thread; what runs beside that is the source's own
//! business. The talk between them:
//!
//! 1. The receiver calls [`seek`](Source::seek) with the locator of its best header, and again with
//!    a newer one when headers were new to it. Headers come as [`Event::Headers`], parents first
//!    within a giver's answer.
//! 2. A giver that nobody vouches for sends its headers in batches. The receiver decides whether to
//!    hear more of a branch, and asks for the next batch by [`more`](Source::more), from the last
//!    header that this giver sent. Other sources continue by themselves.
//! 3. [`Event::HeadersDone`] says that no giver has more for the moment. A receiver that does not
//!    follow is finished when it has seen this and has the blocks that it wants, unless a giver is
//!    still [expected](Outlook::Expecting).
//! 4. It calls [`want`](Source::want) with the blocks that it needs next, in order, of a giver
//!    whose headers say that it has them and that has [`room`](Source::room). They come as
//!    [`Event::Block`], in any order, a bounded number ahead of the receiver; or as
//!    [`Event::Missing`] when this giver does not send them. A block may be wanted of two givers;
//!    then it may come twice.
//! 5. A source that cannot give a block twice (a pipe) gives every block unasked, behind its
//!    header. The receiver stores each block whose header it knows, asked for or not.
//!    A source of files or of a pipe may hold only later blocks: it asks for the parents that it
//!    does not have by [`Event::Parent`], and the receiver confirms those that it has by
//!    [`root`](Source::root).
//! 6. While a source follows, new headers come unasked. Headers that do not link to anything known
//!    are no offence: the receiver asks for those between ([`stray`](Source::stray)).
//! 7. The receiver reports a giver of invalid data by [`blame`](Source::blame). The giver is not
//!    asked again, and the blocks that it owes are missing.
//!
//! 8. A receiver that has caught up may also take unconfirmed transactions ([`transactions`]).
//!
//! | source | headers | blocks | follows |
//! |---|---|---|---|
//! | [`directory`] | a walk over the files, linked as found | read by location, ahead | rescans |
//! | [`pipe`] | linked as they come | pushed | – |
//! | [`live`] | linked as they come | pushed | as long as their maker sends |
//! | [`p2p`] | `getheaders` | `getdata`, windowed over several peers | announcements |
//! | [`rpc`] | REST or JSON-RPC, the active chain | REST or JSON-RPC, ahead | polls the best hash |

pub mod directory;
mod linker;
pub mod live;
pub mod p2p;
pub mod pipe;
mod pool;
mod pushed;
mod queue;
pub mod rpc;
pub mod transactions;
mod zmq;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use varve_types::{BlockHash, Header, Network, Txid};

use self::transactions::{Gateway, OwnTx, TxName, TxNews};
use crate::mempool::FeeRate;

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
    /// Headers, each above the one before it or above one that was given earlier. None, when a
    /// giver was asked for more and has no more.
    Headers {
        /// The headers.
        headers: Vec<HeaderBytes>,
        /// Who gave them.
        giver: Giver,
    },
    /// Headers wait for this parent, which the source has not given. If the receiver knows it, it
    /// answers with [`Source::root`].
    Parent {
        /// The hash of the parent.
        hash: BlockHash,
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
    /// A giver that was asked for this block does not send it. It can be wanted again.
    Missing {
        /// The block.
        hash: BlockHash,
        /// Who was asked.
        giver: Giver,
    },
    /// Something about unconfirmed transactions.
    Transactions(TxNews),
    /// Something for the user to know; the source continues.
    Warning(Warning),
    /// Nothing happened within the time that was given.
    Idle,
}

/// What a user should know of a source that still works.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The last record of a file is not all there, or not what it should be.
    #[error(
        "the last block of {}, at byte {offset}, is cut off or damaged; it is left out",
        path.display()
    )]
    Incomplete {
        /// The file, or `-`.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// The header of the block, where it could be read.
        header: Option<HeaderBytes>,
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
    /// A peer's chain has less work than the network's is known to have.
    #[error(
        "{peer} has a chain with less work than the network's; it is ignored until it has more"
    )]
    LittleWork {
        /// The address.
        peer: String,
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

/// Why a source cannot continue.
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
    /// A pipe sends more and more bytes without a block.
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
        "more than {limit} bytes of blocks came before their parents; pass more --memory, or write \
         them to a file and sync from that"
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
    /// No peer can be reached.
    #[error("no peer can be reached; the last: {peer}: {reason}")]
    Unreachable {
        /// The address of the last.
        peer: String,
        /// Why, and what to check.
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

/// What a source that gives nothing at the moment may give yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Only what is new.
    Settled,
    /// A giver is being connected to, and may have more.
    Expecting,
    /// Nothing: nobody can be reached, in spite of several tries.
    Unreachable {
        /// The address of the last that was tried.
        peer: String,
        /// Why it cannot be reached.
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
    /// Asks for the headers above the first hash of `locator` that a giver has.
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError>;

    /// The receiver knows this header, so what is above it links. The answer to [`Event::Parent`],
    /// for sources that link headers themselves.
    fn root(&mut self, _hash: BlockHash) {}

    /// Asks one giver for the headers above the first hash of `locator` that it has. Sources that
    /// give all headers by themselves have nothing to do.
    fn more(&mut self, _giver: Giver, _locator: &[BlockHash]) -> Result<(), SourceError> {
        Ok(())
    }

    /// A giver sent headers that link to none that are known: it is asked for those between, in its
    /// turn. Sources that give all headers by themselves have nothing to do.
    fn stray(&mut self, _giver: Giver) {}

    /// Asks a giver for blocks, behind those asked for already.
    fn want(&mut self, giver: Giver, hashes: &[BlockHash]) -> Result<(), SourceError>;

    /// How many more blocks a giver can be asked for, if that is limited; `None` when it is gone.
    fn room(&self, _giver: Giver) -> Option<usize> {
        Some(usize::MAX)
    }

    /// Waits at most `timeout` for something to happen.
    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError>;

    /// Bounds the bytes of blocks that wait for the receiver (`queued`) and of those that wait for
    /// their parents (`unordered`). One block is let through whatever its length, and a thread that
    /// fetches has one more in its hands.
    fn bound(&mut self, _queued: u64, _unordered: u64) {}

    /// Bytes of memory that the source may take besides the blocks that wait for the receiver.
    fn memory(&self) -> u64 {
        0
    }

    /// What this giver gave is invalid.
    fn blame(&mut self, giver: Giver, reason: &str);

    /// Whether the user vouches for what is given: own files, an own node. Headers of others are
    /// stored only when they show enough work.
    fn is_trusted(&self) -> bool {
        true
    }

    /// What may still come.
    fn outlook(&self) -> Outlook {
        Outlook::Settled
    }

    /// The receiver takes unconfirmed transactions that pay at least this rate, or none any more.
    fn relay(&mut self, _rate: Option<FeeRate>) {}

    /// Asks a giver for transactions, as soon as it has answered for others. A giver that does not
    /// send one is not reported: another that offered it is asked.
    fn want_txs(&mut self, _giver: Giver, _names: &[TxName]) {}

    /// Asks the node that decides for transactions. Those that it has come as
    /// [`TxNews::Fetched`].
    fn fetch_txs(&mut self, _txids: &[Txid]) {}

    /// Asks the node that decides for all its transactions, as [`TxNews::Listed`].
    fn list_txs(&mut self) {}

    /// Offers a transaction of our own to others, now and when they connect, until it is withdrawn.
    fn announce(&mut self, _tx: OwnTx) {}

    /// These transactions need not be offered any more.
    fn withdraw(&mut self, _txids: &[Txid]) {}

    /// The way of transactions to the node that decides, where there is one.
    fn gateway(&self) -> Option<Arc<dyn Gateway>> {
        None
    }

    /// What a user knows a giver by.
    fn name(&self, _giver: Giver) -> String {
        "the source".to_owned()
    }
}

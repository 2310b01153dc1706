//! The one narrow interface that all queries stand on.
//!
//! ```text
//!            queries, states, snapshots, proofs          written once, in `query` and `archive`
//! ──────────────────────────────────────────────────── this interface
//!   memory          mmap            (a relational one)   each passes the suite in `contract`
//! ```
//!
//! [`Tables`] reads and [`Backend`] writes. Both pass rows as values and take many keys at once.
//! How a back end keeps its rows does not show here: no slice of a map, no lock, no cursor.
//!
//! # The contract
//!
//! 1. Links are assigned in order from zero, without gaps. The transactions of a block get
//!    consecutive links.
//! 2. A search returns every row that was appended under the key. Searches by txid, point and
//!    pushdata may also return rows that were *not*: they are candidates, and the caller checks the
//!    bytes. So a back end may keep a short fingerprint in place of the key.
//! 3. [`Tables`] handed out before or after a row was appended find it. The caller's bounds say
//!    what it must not see yet.
//! 4. A block whose append fails does not exist: its header has no [`BlockRow`], no search finds a
//!    row of it, and its links are assigned again.
//! 5. Reopening gives exactly what [`Backend::checkpoint`] saved last, or an empty store when it
//!    was never called. The links of lost rows are assigned again. Searches may lack the rows of
//!    the youngest blocks: the owner supplies them first, as long as [`Backend::unindexed`] names
//!    any. After [`Backend::rest`] there are none.
//! 6. A failed call changes nothing that a reader can observe. After [`BackendError::Full`] the
//!    same call may be repeated; after [`BackendError::Fault`] the store must be reopened.

pub(crate) mod memory;
pub(crate) mod mmap;

use varve_types::pushdata::PushdataRule;
use varve_types::{BlockHash, Height, Network, Outpoint, PushdataHash, Txid};

use crate::link::{Bounds, HeaderLink, TxLink};
use crate::row::{BlockKeys, BlockRow, BlockState, FilterRow, HeaderRow, NewBlock, TxRow, TxState};

/// Why a back end failed.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The disk is full. The store is unchanged; free some space and repeat the call.
    #[error("the archive's disk is full: free some space and try again")]
    Full(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Anything else: a failed read, a wrong checksum, a link to a row that is not there.
    #[error("the archive failed: {0}")]
    Fault(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl BackendError {
    /// A row that some other row names does not exist.
    #[must_use]
    pub(crate) fn dangling(what: impl std::fmt::Display) -> Self {
        Self::Fault(format!("{what} does not exist; run `varve repair`").into())
    }

    /// Whether freeing space and repeating the call can help.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

/// The result of a call to a back end.
pub(crate) type Result<T> = std::result::Result<T, BackendError>;

/// One result of a search for many keys: the index of the key, and a row.
pub type Match = (usize, TxLink);

/// Reading the tables. Cheap to clone; any number of threads read while one writes.
///
/// Every call appends its results to `out` in the order of the keys.
pub trait Tables: Clone + Send + Sync + 'static {
    /// Header rows by link.
    fn headers(&self, links: &[HeaderLink], out: &mut Vec<HeaderRow>) -> Result<()>;

    /// Header rows by hash. A hash has at most one.
    fn find_headers(&self, hashes: &[BlockHash], out: &mut Vec<Option<HeaderLink>>) -> Result<()>;

    /// The block rows of headers; `None` where the block has not arrived.
    fn blocks(&self, links: &[HeaderLink], out: &mut Vec<Option<BlockRow>>) -> Result<()>;

    /// Transaction rows by link.
    fn txs(&self, links: &[TxLink], out: &mut Vec<TxRow>) -> Result<()>;

    /// Candidates for the rows of each txid, newest first: in every block that holds it.
    fn find_txs(&self, txids: &[Txid], out: &mut Vec<Match>) -> Result<()>;

    /// Candidates for the spenders of each point, newest first: on every branch.
    fn find_spenders(&self, points: &[Outpoint], out: &mut Vec<Match>) -> Result<()>;

    /// Candidates for the transactions from `from` on that push an item with this hash, oldest
    /// first, at most `limit` of them. None when pushdata is not indexed. One key at a time and in
    /// pages, because a busy key has millions.
    fn find_pushes(
        &self,
        hash: PushdataHash,
        from: TxLink,
        limit: usize,
        out: &mut Vec<TxLink>,
    ) -> Result<()>;

    /// The filters of blocks; `None` where there is none.
    fn filters(&self, links: &[HeaderLink], out: &mut Vec<Option<FilterRow>>) -> Result<()>;

    /// The states of transaction rows; `None` where nothing is known.
    fn tx_states(&self, links: &[TxLink], out: &mut Vec<Option<TxState>>) -> Result<()>;
}

/// One of the two chains that are kept by height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// The headers with the most work.
    Candidate,
    /// The blocks that are validated and published.
    Confirmed,
}

/// Which optional tables a store has. Each can be dropped later. Filters can be added; pushdata
/// where the back end [can](Backend::ADDS_PUSHDATA).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    /// Transactions by the items that their scripts push, under this rule.
    pub pushdata: Option<PushdataRule>,
    /// BIP158 filters.
    pub filters: bool,
}

/// What the owner saves with a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The chain.
    pub network: Network,
    /// The optional tables.
    pub indexes: Indexes,
    /// The last commit sequence that the archive has followed. Replay starts after it.
    pub sequence: u64,
    /// The block of an imported snapshot: blocks up to it are not in the archive.
    pub base: Option<Height>,
}

/// The small, changing part of a store, which its owner keeps in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The mark of the last checkpoint; `None` in a new store.
    pub mark: Option<Mark>,
    /// How many rows there are.
    pub bounds: Bounds,
    /// The candidate chain from genesis on.
    pub candidate: Vec<HeaderLink>,
    /// The confirmed chain from genesis on.
    pub confirmed: Vec<HeaderLink>,
    /// The state of every header row, in order. Trailing unknown states may be omitted.
    pub states: Vec<BlockState>,
}

/// The size of one table, in bytes on disk or in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSize {
    /// The table.
    pub name: &'static str,
    /// Rows.
    pub rows: u64,
    /// Bytes of the rows.
    pub body: u64,
    /// Bytes of the head, or of directories and filters.
    pub head: u64,
    /// Cells of the head; zero in a table without one.
    pub buckets: u64,
}

/// Builds the search rows of a block: in any thread, and before the block has its links.
pub trait MakeRows: Clone + Send + Sync + 'static {
    /// The rows of a block.
    type Rows: Send + 'static;

    /// The rows of a block with these keys.
    fn rows(&self, keys: &BlockKeys<'_>) -> Self::Rows;
}

/// The rows of a block in a back end.
pub type RowsOf<B> = <<B as Backend>::Maker as MakeRows>::Rows;

/// Archived blocks whose search rows are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unindexed {
    /// The first of them, in the order in which [`Backend::index_block`] takes their rows.
    pub next: Vec<HeaderLink>,
    /// How many there are.
    pub count: u64,
}

/// Writing the tables. There is one writer.
pub trait Backend {
    /// Readers of this store.
    type Tables: Tables;

    /// Makes rows for this store.
    type Maker: MakeRows;

    /// Whether pushdata can be indexed later, or under another rule: [`Backend::unindexed`] then
    /// names all blocks.
    const ADDS_PUSHDATA: bool;

    /// A reader.
    fn tables(&self) -> Self::Tables;

    /// Builds search rows; clone it into other threads.
    fn maker(&self) -> Self::Maker;

    /// The blocks whose search rows are missing, at most `most` of them by link. There are none
    /// unless a crash lost some or a table was added.
    fn unindexed(&self, most: usize) -> Result<Unindexed>;

    /// Takes the rows of the block that [`Backend::unindexed`] names first.
    fn index_block(&mut self, rows: RowsOf<Self>) -> Result<()>;

    /// The small part. Called once, when the store is opened.
    fn saved(&self) -> Result<Saved>;

    /// How many rows there are.
    fn bounds(&self) -> Bounds;

    /// Compares everything that the last checkpoint has on disk with its checksums.
    fn verify(&self) -> Result<()>;

    /// Appends header rows, parents first, and returns the link of the first.
    fn append_headers(&mut self, rows: &[HeaderRow]) -> Result<HeaderLink>;

    /// Appends a block whose header has no block row yet, with the rows of its keys, and returns
    /// its block row.
    fn append_block(&mut self, block: &NewBlock<'_>, rows: RowsOf<Self>) -> Result<BlockRow>;

    /// Cuts a chain to its first `keep` headers, then appends these.
    fn set_chain(&mut self, chain: Chain, keep: u32, links: &[HeaderLink]) -> Result<()>;

    /// Sets the states of blocks.
    fn set_block_states(&mut self, states: &[(HeaderLink, BlockState)]) -> Result<()>;

    /// Sets the states of transaction rows.
    fn set_tx_states(&mut self, states: &[(TxLink, TxState)]) -> Result<()>;

    /// Sets the filters of blocks that have none.
    fn set_filters(&mut self, filters: &[(HeaderLink, FilterRow)]) -> Result<()>;

    /// Makes all of the above durable, under this mark, except search rows that
    /// [`Backend::index_block`] may have to take again.
    fn checkpoint(&mut self, mark: &Mark) -> Result<()>;

    /// Makes all of the above durable, without exception: for the last checkpoint of a writer.
    fn rest(&mut self, mark: &Mark) -> Result<()>;

    /// The saved size of every table.
    fn sizes(&self) -> Result<Vec<TableSize>>;
}

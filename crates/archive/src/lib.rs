//! The history, after libbitcoin: relational tables, and every question about them.
//!
//! The archive knows each header, block, transaction and spend that was ever stored, on every
//! branch, by two natural keys: block hash and txid. It holds no scripts and no witnesses: its
//! rows point into the block store, where the only copy of the bytes is. Rows are appended and
//! never changed. What changes is which branch counts, and that is one array of heights.
//!
//! | you want | take |
//! |---|---|
//! | to write headers, blocks, chains, states | [`Archive`] |
//! | one moment to read, without waiting | [`Snapshot`] |
//! | the same with the bytes of blocks | [`View`] |
//! | the rules to run over the history | [`BlockCoins`], [`View::block_confirmable`] |
//! | another store below | [`Backend`], proved by `contract` |
//! | what the tables of the default store are made of | [`primitive`] |
//!
//! ```
//! use varve_archive::{Archive, ArchiveConfig, Indexes, MemoryBackend, MemoryBlocks, View};
//! use varve_consensus::BlockAt;
//! use varve_types::{Block, Height, Network};
//!
//! let network = Network::Mainnet;
//! let bytes = network.genesis_block();
//! let block = Block::parse(&bytes, network.format())?;
//! let block = BlockAt::new(Height::GENESIS, &block);
//!
//! let mut blocks = MemoryBlocks::default();
//! let config = ArchiveConfig { network, indexes: Indexes::default() };
//! let mut archive = Archive::open(MemoryBackend::open(Default::default()), config)?;
//! archive.initialize(&block, blocks.push(&bytes))?;
//!
//! let view = View::new(archive.snapshot(), &blocks);
//! let place = view.to_tx(block.txids()[0])?.expect("just archived");
//! assert!(place.confirmed && place.is_coinbase());
//! assert!(view.get_spenders(view.outputs(place.link)?[0].point())?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Must not know: the unspent set, the records, HTTP or JSON. Layer 2.

#![forbid(unsafe_code)]

mod archive;
mod backend;
pub mod bip158;
mod block_coins;
#[cfg(feature = "test-suite")]
pub mod contract;
mod cow;
mod error;
pub mod history;
mod interval;
mod layers;
mod leaf_rows;
mod link;
#[cfg(not(feature = "test-suite"))]
#[expect(unreachable_pub, reason = "public with `test-suite`, for the tests of the primitives")]
mod primitive;
#[cfg(feature = "test-suite")]
pub mod primitive;
mod query;
mod row;
pub mod search;
mod shared;
mod side_by_side;
mod snapshot;
mod source;
mod view;

pub use archive::{Archive, ArchiveConfig, BlockPreparer, PreparedBlock};
pub use backend::memory::{MemoryBackend, MemoryDisk, MemoryTables};
pub use backend::mmap::{
    ArchiveMemory, MmapBackend, MmapConfig, MmapRowMaker, MmapRows, MmapTables, SEARCH_TABLES,
    is_search_file, is_store_file, stored_bytes, table_bytes,
};
pub use backend::{
    Backend, BackendError, Chain, Indexes, MakeRows, Mark, Match, RowsOf, Saved, TableSize, Tables,
    Unindexed,
};
pub use block_coins::{BlockCoins, coins_on_branch};
pub use error::{ArchiveError, Result};
pub use link::{Bounds, HeaderLink, TxLink};
pub use query::{
    Branch, FilterHashes, HeaderProof, Output, Pushed, PushedPage, RowPlace, Spender, TxPlace,
};
pub use row::{
    BlockKeys, BlockRow, BlockState, FilterRow, HeaderRow, NewBlock, TxRow, TxSlice, TxState,
};
pub use snapshot::Snapshot;
pub use source::{BlockNumber, BlockSource, MemoryBlocks, SourceError};
pub use view::View;

//! The unspent set as an engine: a young window in memory, immutable sorted runs on disk.
//!
//! A [`Database`] lives in one directory. Its single writer [appends](Database::append) and
//! [rewinds](Database::rewind) blocks and [flushes](Database::flush) them; readers in any thread
//! take [snapshots](Reader::snapshot), each of which is one [`Version`]. The engine resolves every
//! prevout of a block and refuses what is spent or missing. All other rules are the caller's: they
//! read a [`DatabaseView`], in the joiner's check or before an append.
//!
//! ```
//! use std::num::NonZeroUsize;
//! use std::sync::Arc;
//! use varve_consensus::{BlockAt, UnspentOutputsView as _};
//! use varve_io::{Disk, StoreId};
//! use varve_types::{Block, Height, Network};
//! use varve_utxo::{Database, DatabaseView, Joiner, JoinerOptions, Options, Repeats};
//! use varve_utxo::{Secret, SetHash, StoreKey};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (dir, copy) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! // Draw both at random: whoever knows the secret can make lookups slow.
//! let key = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };
//! let options = Options::new(Network::Regtest, key);
//! let mut set = Database::open(Arc::new(Disk::open(dir.path())?), options)?;
//!
//! let bytes = Network::Regtest.genesis_block();
//! let block = Block::parse(&bytes, Network::Regtest.format())?;
//! let genesis = BlockAt::new(Height::GENESIS, &block);
//!
//! // One block at a time: ask the rules, then append; rewind takes the tip off again.
//! set.view(&genesis)?.query_prevouts_unspent(&genesis)?;
//! set.append(&genesis)?;
//! let before = set.snapshot(); // stays as it is, whatever happens to the set
//! set.rewind()?;
//! assert_eq!((set.tip(), before.tip().is_some()), (None, true));
//!
//! // Many blocks at once: workers look coins up and run your rules, the set stays in order.
//! let rules = |block: &BlockAt<'_>, view: &DatabaseView| view.query_prevouts_unspent(block);
//! let workers = JoinerOptions::new(NonZeroUsize::new(2).expect("two"));
//! Joiner::scope(&mut set, &workers, rules, |joiner| {
//!     joiner.submit(genesis, Repeats::Possible).expect("the joiner is empty");
//!     assert!(joiner.retire().is_some_and(|done| done.result.is_ok()));
//! })?;
//! set.flush()?; // durable from here on
//!
//! // The whole set: statistics with Core's hash, and Core's snapshot file, out and in.
//! let (serialized, threads) = (SetHash::HashSerialized3, workers.workers);
//! let hash = |set: &Database| set.snapshot().statistics(serialized, threads, &mut |_, _| {});
//! let mut file = Vec::new();
//! set.snapshot().export(Network::Regtest, &mut file, &mut |_, _| {})?;
//! let mut imported = Database::open(Arc::new(Disk::open(copy.path())?), options)?;
//! imported.import(file.as_slice(), Height::GENESIS, &mut |_, _| {})?;
//! assert_eq!(hash(&imported)?, hash(&set)?);
//! # Ok(())
//! # }
//! ```
//! `docs/adr/0005-unspent-set.md` explains the design on a page; `docs/format/utxo.md` draws every
//! byte. `varve-runs` holds everything about runs except what a coin is.
//!
//! Must not know: the history of blocks, the archive, the records, HTTP or JSON. Layer 2.

#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "test-suite"), expect(unreachable_pub, reason = "shown by `parts`"))]

mod budget;
mod changes;
mod codec;
mod coins;
mod compact;
mod database;
mod entry;
mod entry_list;
mod error;
#[cfg(test)]
mod fixture;
#[cfg(feature = "test-suite")]
mod forecast;
mod hasher;
mod joiner;
mod layers;
mod manifest;
mod options;
mod packed;
mod page;
mod page_builder;
mod pane;
#[cfg(feature = "test-suite")]
pub mod parts;
mod prepare;
mod query;
mod record_builder;
mod run_error;
mod run_writer;
mod search;
mod shard;
mod snapshot_file;
mod spent_coins;
mod statistics;
mod sync;
mod undo;
mod version;
mod view;
mod window;

pub use budget::{MemorySplit, MemoryUse};
pub use coins::Coins;
pub use database::{AtRest, Database, Reader};
pub use error::Error;
pub use joiner::{AsBlock, JoinError, Joiner, JoinerOptions, Retired, SubmitError};
pub use layers::{Layers, MergeUnderWay, PaneLayer, RunLayer};
pub use manifest::{Checkpoint, Parameters};
pub use options::Options;
pub use prepare::Repeats;
pub use snapshot_file::{SnapshotError, SnapshotHeader};
pub use spent_coins::{SourceError, SourceFailure, SpentCoins};
pub use statistics::{SetHash, Statistics};
pub use undo::UndoConfig;
pub use varve_runs::{Compaction, Secret, StoreKey};
pub use version::{CoinWalk, Version};
pub use view::DatabaseView;

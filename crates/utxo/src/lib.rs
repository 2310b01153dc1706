//! The unspent set, after Hornet: a young window in memory, immutable sorted runs on disk.
//!
//! A [`Database`] is opened on a directory; its one writer [appends](Database::append) blocks and
//! [rewinds](Database::rewind) them, [queries](Database::query) coins, and
//! [flushes](Database::flush); readers in any thread take a [snapshot](Reader::snapshot), which is
//! one [`Version`], and the rules of consensus take a [view](Database::view).
//!
//! For speed, a [`Joiner`] takes many blocks at once: its workers prepare them in any order, append
//! them in theirs, run the caller's check, and publish what is good.
//!
//! `docs/adr/0005-unspent-set.md` tells the whole design on a page, `docs/format/utxo.md` draws
//! every byte.
//!
//! A version tells its [`Statistics`], with either of Core's hashes of the whole set, and
//! [exports](Version::export) Core's snapshot file; a new set [imports](Database::import) one.
//!
//! The disk, from the bottom up: a [`Leaf`] is a page of entries; a [`Run`] is a file of leaves
//! with a directory and a filter, written by a [`RunWriter`]; [`Runs`] are those of one version,
//! youngest first, asked by a [`Query`] for all inputs of a block at once; [`merge_runs`] keeps
//! them few; a [`Manifest`] names them. All but the entries themselves is that of `varve-runs`.
//!
//! Flushes, merges and checkpoints are done in threads beside the writer, or [inline](Compaction).
//! What they write is counted ([`Database::written`]) and can be [forecast](Forecast).
//!
//! The memory: a [`Window`] of panes takes one [`Step`] a block and gives a [`WindowVersion`];
//! an [`UndoRecord`] a block keeps what it takes to go back.
//!
//! Must not know: the history of blocks, the archive, the records, HTTP or JSON. Layer 2.

#![forbid(unsafe_code)]

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
mod forecast;
mod hasher;
mod joiner;
mod manifest;
mod options;
mod packed;
mod page;
mod page_builder;
mod pane;
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
pub use codec::{CoinCodec, Cursor, Merge, Record, Run, Runs};
pub use coins::Coins;
pub use compact::merge_runs;
pub use database::{Appended, Database, Publisher, Reader, Waits, Written};
pub use entry::Entry;
pub use entry_list::{EntryError, EntryList};
pub use error::Error;
pub use forecast::Forecast;
pub use hasher::OutpointHasher;
pub use joiner::{AsBlock, JoinError, JoinState, Joiner, JoinerOptions, Retired, SubmitError};
pub use manifest::{Checkpoint, Manifest, Parameters, SavedWindow, is_store_file};
pub use options::Options;
pub use packed::{CoinHead, PackedCoin, pack};
pub use page::{Body, Leaf, LeafEntry, Spill};
pub use pane::{Flush, FlushEntries, PaneId, PaneInfo};
pub use prepare::{Prepared, Repeats};
pub use query::Query;
pub use run_error::RunError;
pub use run_writer::RunWriter;
pub use snapshot_file::{SnapshotError, SnapshotHeader};
pub use spent_coins::{SourceError, SourceFailure, SpentCoins};
pub use statistics::{SetHash, Statistics};
pub use undo::{UndoCheckpoint, UndoConfig, UndoError, UndoHead, UndoRecord, UndoTx};
pub use varve_runs::{
    Access, Compaction, IN_FILE_ID, Kept, MANIFEST_FILE, PageBuffers, RunInfo, RunNumber, Secret,
    Sequence, Source, Span, StoreKey,
};
pub use version::{CoinWalk, Version};
pub use view::DatabaseView;
pub use window::{
    FoundCoin, Location, Lookup, Spend, Step, StepError, Window, WindowConfig, WindowFile,
    WindowVersion, spends_of_disconnect,
};

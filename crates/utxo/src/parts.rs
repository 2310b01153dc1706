//! The parts the engine is made of, for suites, benches and fuzz targets.
//!
//! The disk, from the bottom up: a [`Leaf`] is a page of entries; a [`Run`] is a file of leaves
//! with a directory and a filter, written by a [`RunWriter`]; [`Runs`] are those of one version,
//! youngest first; a [`Query`] asks them for all inputs of a block at once; [`merge_runs`] keeps
//! them few; a [`Manifest`] lists them.
//!
//! The memory: a [`Window`] of panes takes one [`Step`] per block and publishes a
//! [`WindowVersion`]; an [`UndoRecord`] holds what it takes to disconnect the block again.
//!
//! No production crate may use this module: it exists only with the feature `test-suite`.

pub use crate::codec::{Run, Runs};
pub use crate::compact::merge_runs;
pub use crate::database::{Appended, Waits, Written};
pub use crate::entry::Entry;
pub use crate::entry_list::{EntryError, EntryList};
pub use crate::forecast::Forecast;
pub use crate::hasher::OutpointHasher;
pub use crate::joiner::JoinState;
pub use crate::manifest::Manifest;
pub use crate::packed::{CoinHead, PackedCoin, pack};
pub use crate::page::{Body, Leaf, LeafEntry, Spill};
pub use crate::prepare::Prepared;
pub use crate::query::Query;
pub use crate::run_error::RunError;
pub use crate::run_writer::{NewRun, RunWriter};
pub use crate::undo::{UndoError, UndoRecord, UndoTx};
pub use crate::window::{
    Lookup, Spend, Step, StepError, Window, WindowConfig, WindowFile, WindowVersion,
};
pub use varve_runs::{
    Access, Buffers, Kept, PageBuffers, RunInfo, RunNumber, Sequence, Source, Span,
};

/// Room for the coins of this many keys, for [`Query::join`].
#[must_use]
pub fn unknown_coins(keys: usize) -> crate::Coins {
    crate::Coins::unknown(keys)
}

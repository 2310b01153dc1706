//! The node: the one crate that sees every engine and keeps them on one tip.
//!
//! ```text
//!  Source ──► Organizer ──► block store, archive, unspent set ──► commit log ──► NodeSnapshot
//!             one thread    blocks in any order, joined in order   the tip moves   readers
//! ```
//!
//! - [`Organizer`] opens a data directory, recovers it, and is its one writer: it syncs from a
//!   [`Source`] (block files, a pipe, JSON-RPC, peers), follows new blocks, carries out an
//!   operator's verdicts, verifies and repairs.
//! - [`NodeReader`] hands out [`NodeSnapshot`]s in other threads: unspent set, history and raw
//!   blocks, all at the tip of one commit.
//! - [`Reading`] answers questions from a directory at rest without opening its writers.
//!
//! Must not know: JSON shapes of our interfaces, HTTP serving. Layer 3.

#![forbid(unsafe_code)]

#[cfg(not(any(feature = "core", feature = "kernel")))]
compile_error!("a node needs a verifier of scripts: build with the feature `core` or `kernel`");

mod budget;
mod chain;
mod chain_moment;
#[cfg_attr(not(feature = "test-suite"), expect(unreachable_pub, reason = "public for tests"))]
mod checked;
#[cfg_attr(not(feature = "test-suite"), expect(unreachable_pub, reason = "public for tests"))]
mod commit_log;
mod connected;
mod data_directory;
mod desk;
mod error;
mod filters;
#[cfg(test)]
mod fixture;
mod header_sync;
#[cfg_attr(not(feature = "test-suite"), expect(unreachable_pub, reason = "public for tests"))]
mod header_tree;
mod index_size;
mod live_mempool;
pub mod mempool;
mod ordinals;
mod organizer;
mod owned_block;
mod pins;
mod prune;
mod reading;
mod recompute;
mod recovery;
mod repair;
mod rest;
mod script_index;
mod scripts;
mod second_opinion;
mod settings;
mod shortfall;
mod snapshot;
pub mod source;
mod spent_coins;
mod stats;
mod steps;
mod store_files;
mod stores;
mod verify;

pub use budget::Budget;
pub use checked::ScriptsChecked;
pub use commit_log::CommitSequence;
pub use data_directory::{DataDirectory, FORMAT_VERSION, Identity, Seed};
pub use desk::{Desk, DeskError, Order, Reply};
pub use error::{Error, Names};
pub use header_tree::{ChainTip, Invalid};
pub use organizer::{Compacted, Limits, Options, Organizer, Report, SyncOptions, Verify};
pub use pins::Pin;
pub use reading::Reading;
pub use scripts::{ScriptPage, ScriptTx, ScriptTxs, ScriptUnspent, Scripts};
pub use settings::{Index, IndexSet, Prune, Settings, SettingsChange, UnknownIndexError};
pub use shortfall::Shortfall;
pub use snapshot::{ArchiveView, NodeReader, NodeSnapshot};
pub use source::{Event, Giver, Source, SourceError};
pub use stats::{SetRows, SetStats};
pub use verify::Verified;

/// Parts that tests and fuzz targets reach directly.
#[cfg(feature = "test-suite")]
pub mod test_suite {
    pub use crate::checked::{Checked, CheckedSpan};
    pub use crate::commit_log::{Commit, CommitLog};
    pub use crate::header_tree::{HeaderId, HeaderTree};

    /// Messages of the peer-to-peer protocol.
    pub mod wire {
        pub use crate::source::p2p::wire::{FRAME_LEN, Frame, Inventory, Message, Version};
    }
}

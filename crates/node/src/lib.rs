//! The node: the one crate that sees every engine and keeps them on one tip.
//!
//! Home of the sources, the header tree, the organizer with its candidate and confirmed chains,
//! the validation pipeline, the mempool, the indexes, commit and recovery.
//!
//! ```text
//! Source ──── headers ────► HeaderTree ──── best header ────► blocks to want
//!    ▲  └──── blocks ─────► the receiver, who stores them and judges them
//!    └─────── want, blame ────────┘
//! ```
//!
//! Must not know: JSON shapes of our interfaces, HTTP serving. Layer 3.

#![forbid(unsafe_code)]

#[cfg(not(any(feature = "core", feature = "kernel")))]
compile_error!("a node needs a verifier of scripts: build with the feature `core` or `kernel`");

mod budget;
mod chain;
mod chain_moment;
mod checked;
pub mod commit_log;
mod data_directory;
mod error;
mod filters;
#[cfg(test)]
mod fixture;
mod header_sync;
pub mod header_tree;
mod organizer;
mod prune;
mod reading;
mod recovery;
mod repair;
mod rest;
mod second_opinion;
mod settings;
mod shortfall;
mod snapshot;
pub mod source;
mod spent_coins;
mod stats;
mod steps;
mod store_files;
mod stored_block;
mod stores;
mod verify;

pub use budget::Budget;
pub use checked::{Checked, CheckedHeights, CheckedSpan, ScriptsChecked};
pub use data_directory::{DataDirectory, FORMAT_VERSION, Identity, Seed};
pub use error::{Error, Names};
pub use header_tree::{Branch, ChainTip, HeaderId, HeaderTree, InsertError, Invalid};
pub use organizer::{Limits, Options, Organizer, Report, SyncOptions, Verify};
pub use reading::Reading;
pub use rest::Rest;
pub use settings::{Index, IndexSet, Prune, Settings, SettingsChange, UnknownIndexError};
pub use shortfall::Shortfall;
pub use snapshot::{ArchiveView, NodeReader, NodeSnapshot};
pub use source::{Event, Giver, Source, SourceError};
pub use stats::SetStats;
pub use verify::Verified;

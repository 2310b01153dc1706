//! Sorted runs: what any store of rows on disk needs, whatever a row is.
//!
//! - **Rows**: a [`Codec`] with its [`Keys`], [`LeafBuilder`] and [`LeafWalk`] defines a row's key,
//!   order and bytes, and what a merge keeps of equal rows.
//! - **Writing**: a [`RunWriter`] makes an immutable file of rows in order, a [`Run`].
//! - **Reading**: [`Runs`] are those of one version, youngest first, held by reference count, so
//!   that readers keep what they read. A [`Query`] finds the pages of many keys in all of them.
//! - **Merging**: [`Tiers`] decides, [`Merges`] carries it out in a [`Lane`] beside the writer.
//! - **Recovery**: a [`Manifest`] lists the files that belong to the store.
//!
//! The codec is a type parameter of everything here, so a row costs no indirect call.
//!
//! `docs/adr/0016-runs.md` explains the decisions, `docs/format/runs.md` draws every byte.
//!
//! Must not know: what a row means. Layer 1, on `varve-io`.

#![forbid(unsafe_code)]

mod buffers;
mod codec;
mod compact;
mod cursor;
mod directory;
mod fields;
mod filter;
#[cfg(test)]
mod fixture;
mod footer;
mod fuse;
mod lane;
mod leaf_place;
mod manifest;
mod merge;
mod merges;
mod page_stream;
mod pages;
mod query;
mod residence;
mod run;
mod run_error;
mod run_writer;
mod runs;
mod secret;
mod sequence;
mod store_key;

pub use buffers::Buffers;
pub use codec::{Codec, Keys, LeafBuilder, LeafWalk};
pub use compact::{Busy, Choice, MergeInto, Tiers, merge_runs};
pub use cursor::{Cursor, Source};
pub use fields::Fields;
pub use footer::{RunInfo, RunNumber, Span};
pub use fuse::Width;
pub use lane::{Compaction, Job, JobEnd, Lane, Slot, Stop};
pub use leaf_place::LeafPlace;
pub use manifest::{Kept, MANIFEST_FILE, Manifest};
pub use merge::Merge;
pub use merges::{Merged, Merges};
pub use pages::Pages;
pub use query::{Candidate, PageBuffers, Query};
#[cfg(feature = "test-suite")]
pub use run::Access;
pub use run::Run;
pub use run_error::RunError;
pub use run_writer::{NewRun, RunWriter};
pub use runs::Runs;
pub use secret::Secret;
pub use sequence::Sequence;
pub use store_key::StoreKey;

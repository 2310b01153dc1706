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

#[cfg(test)]
mod fixture;
pub mod header_tree;
pub mod source;

pub use header_tree::{Branch, ChainTip, HeaderId, HeaderTree, InsertError, Invalid};
pub use source::{Event, Giver, Source, SourceError};

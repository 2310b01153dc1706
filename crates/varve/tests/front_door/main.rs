//! The library as an embedding program sees it.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

mod chain;
mod events;
mod folders;
mod mempool;
mod proofs;
mod reads;
mod sets;
mod syncs;

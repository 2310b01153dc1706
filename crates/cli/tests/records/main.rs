//! `varve records` as a user types it, and as a program speaks to it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

mod alerts;
mod commands;
mod conflicts;
mod document;
mod engines;
mod large;
mod life;
mod lines;
mod original;
mod restart;
mod store;
mod tx;

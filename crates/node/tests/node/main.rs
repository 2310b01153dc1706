//! The whole node: real chains, reorganisations, bad blocks, crashes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed test may panic")]

mod answers;
mod bad_blocks;
mod bit_flips;
mod crash;
mod indexes;
mod miner;
mod prune;
mod reorganisations;
mod rig;

//! The whole set against the oracle: contract, random lives, power cuts, failures, real chains.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

mod contract;
mod crash;
mod damage;
mod faults;
mod joiner;
mod load;
mod random;
mod real;
mod snapshot_file;
mod statistics;
mod threads;
mod twin;

//! The whole set against the oracle: contract, random lives, power cuts, failures, real chains.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

mod budget;
mod contract;
mod crash;
mod damage;
mod deep;
mod defects;
mod faults;
mod hostile;
mod import;
mod joiner;
mod node;
mod random;
mod real;
mod refused_threads;
mod replay;
mod room;
mod run_crash;
mod slow_disk;
mod snapshot_file;
mod spender;
mod statistics;
mod threads;
mod twin;

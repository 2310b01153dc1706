//! The rules on real data: whole chains, full blocks with the outputs that they spend, Core's
//! vectors; and valid blocks changed so that each rule is broken once.
//!
//! Where the data is missing a test records that it was skipped.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod chains;
mod dependencies;
mod full_blocks;
mod hostile;
mod load;
mod many_inputs;
mod mutations;
mod replay;
mod scripts;
mod set_hash;
mod transactions;

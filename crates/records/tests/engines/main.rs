//! The engines: the contract on each, random walks, kills, and the units that a transaction
//! becomes.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

mod embedded;
mod kill;
mod memory;
mod prepare;
mod walk;

//! The engines: their contract, random walks, kills, and the units that transactions become.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

mod embedded;
mod kill;
mod memory;
mod postgres;
mod prepare;
mod walk;

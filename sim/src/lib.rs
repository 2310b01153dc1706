//! The chain simulator.

#![forbid(unsafe_code)]

mod address;
mod block;
mod chain;
mod coins;
mod compose;
mod config;
mod files;
mod keys;
mod profile;
mod reorg;
mod rng;
mod script;
mod sighash;
mod transaction;
mod unlock;

pub use block::Block;
pub use chain::{Chain, Unconfirmed};
pub use config::{Config, ConfigError};
pub use profile::{ParseProfileError, Profile};

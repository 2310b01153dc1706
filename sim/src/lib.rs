//! The chain simulator.

#![forbid(unsafe_code)]

mod address;
mod block;
mod chain;
mod coins;
mod compose;
mod config;
mod expected;
mod files;
mod keys;
pub mod model;
mod profile;
mod reorg;
mod rng;
mod script;
mod sighash;
pub mod stats;
mod transaction;
mod unlock;
mod write;

pub use block::Block;
pub use chain::{Chain, Unconfirmed};
pub use config::{Config, ConfigError};
pub use model::Model;
pub use profile::{ParseProfileError, Profile};
pub use write::{Progress, Summary, WriteError, write_chain};

//! Live transactions, after Teranode: one record per transaction, from creation to pruning.
//!
//! A record holds one slot for each output, who spent it, the blocks that have the transaction,
//! and the flags of its life: locked, mined, conflicting, frozen. Everything that happens to
//! records is an [`Operation`], done whole or not at all by an [`Engine`].
//!
//! The names below are what a program that holds records needs. The rest is in modules by task:
//!
//! | module | is |
//! |---|---|
//! | [`store`] | engine, blobs and tip as one contract; pruning and recovery |
//! | [`two_phase`] | admission of a new transaction |
//! | [`conflicts`] | resolution of double spends when a block confirms the loser |
//! | [`record`] | the parts of a record |
//! | [`operation`], [`engine`] | the seam: what an engine is asked to do, and what it promises |
//! | [`blob`] | transactions too large for a record |
//! | [`exchange`] | byte formats shared with Teranode |
//! | [`view`] | a store as the unspent set of consensus |
//!
//! ```
//! use varve_records::engine::Context;
//! use varve_records::operation::Unit;
//! use varve_records::{
//!     CreateOptions, Engine, Fields, MemoryDisk, MemoryEngine, Settings, Transaction,
//! };
//! use varve_types::{Height, Network};
//!
//! let network = Network::Mainnet;
//! let block = network.genesis_block();
//! let coinbase = Transaction::parse(block[81..].to_vec().into(), network.format())?;
//!
//! let engine = MemoryEngine::open(MemoryDisk::default());
//! let context = Context { height: Height::new(1), retention: 288 };
//! let unit = Unit::create(&coinbase, &CreateOptions::default(), &Settings::new(network))?;
//! let outcomes = engine.apply(&context, &[unit.into()])?;
//! assert!(outcomes[0].result.is_ok());
//!
//! let records = engine.read(&[coinbase.txid()], Fields::META)?;
//! let record = records[0].as_ref().expect("created just now");
//! assert_eq!(record.spending_height, Some(Height::new(100)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Must not know: blocks on disk, the unspent set, the archive, HTTP or JSON. Layer 2.

#![forbid(unsafe_code)]

pub mod blob;
mod block_state;
pub mod conflicts;
#[cfg(feature = "test-suite")]
pub mod contract;
mod embedded;
pub mod engine;
mod error;
pub mod exchange;
mod extended;
mod fields;
#[cfg(test)]
mod fixture;
mod freeze_window;
mod inpoints;
mod intent;
mod key;
mod memory;
mod meta;
pub mod operation;
mod outcome;
#[cfg(feature = "postgres")]
mod postgres;
mod prepare;
mod pruner;
pub mod record;
#[cfg(feature = "postgres")]
mod remote;
mod restart;
mod rules;
mod settings;
mod slot;
mod spend_response;
mod spending_data;
pub mod store;
pub mod two_phase;
mod utxo_hash;
mod utxo_wrapper;
pub mod view;

pub use block_state::BlockState;
pub use embedded::{EmbeddedEngine, EmbeddedOptions, StoreKey};
pub use engine::{Engine, EngineError};
pub use error::{ErrorCode, RecordError, SlotError, SpendItem};
pub use extended::Transaction;
pub use fields::Fields;
pub use memory::{MemoryDisk, MemoryEngine};
pub use operation::{Operation, SpendRules};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresEngine, PostgresError};
pub use prepare::CreateOptions;
pub use record::Record;
pub use settings::Settings;
pub use store::{Store, StoreError};

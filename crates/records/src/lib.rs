//! Live transactions, after Teranode: one record a transaction, from creation to pruning.
//!
//! A record holds one slot for each output, who spent it, the blocks that have the transaction,
//! and the flags of its life: locked, mined, conflicting, frozen. Everything that happens to
//! records is an [`Operation`], done whole or not at all by an [`Engine`].
//!
//! | module | is |
//! |---|---|
//! | [`record`], [`fields`], [`slot`], [`freeze_window`] | what is kept |
//! | [`operation`], [`prepare`], [`outcome`], [`error`] | what can be done, what becomes of it |
//! | [`engine`] | the seam to where it is kept |
//! | [`memory`] | the plainest engine, the judge of the others |
//! | [`embedded`] | the durable engine: an own log and an index in memory |
//! | [`extended`], [`utxo_hash`], [`spending_data`], [`inpoints`], [`key`], [`meta`] | bytes |
//! | [`utxo_wrapper`], [`utxo_files`], [`file_type`], [`spend_response`] | bytes that travel |
//! | [`block_state`], [`settings`], [`intent`] | around it |
//!
//! ```
//! use varve_records::operation::Unit;
//! use varve_records::prepare::CreateOptions;
//! use varve_records::{Context, Engine, Fields, MemoryDisk, MemoryEngine, Settings, Transaction};
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

pub mod block_state;
#[cfg(feature = "test-suite")]
pub mod contract;
pub mod embedded;
pub mod engine;
pub mod error;
pub mod extended;
pub mod fields;
pub mod file_type;
pub mod freeze_window;
pub mod inpoints;
pub mod intent;
pub mod key;
pub mod memory;
pub mod meta;
pub mod operation;
pub mod outcome;
pub mod prepare;
pub mod record;
mod rules;
pub mod settings;
pub mod slot;
pub mod spend_response;
pub mod spending_data;
pub mod utxo_files;
pub mod utxo_hash;
pub mod utxo_wrapper;

pub use engine::{Context, Cursor, Engine, EngineError, Limits, Scan, ScanPage, SlotView};
pub use error::{ErrorCode, RecordError, SlotError, SpendItem};
pub use extended::Transaction;
pub use fields::Fields;
pub use memory::{MemoryDisk, MemoryEngine};
pub use operation::Operation;
pub use outcome::{Effect, Outcome, Reply};
pub use record::Record;
pub use settings::Settings;

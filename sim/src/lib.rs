//! A deterministic generator of chains that look like real ones, with their answers.
//!
//! A [`Config`] (profile, height, seed …) describes a chain completely: the same description
//! gives the same bytes on every machine and with any number of threads. [`Chain`] gives its blocks
//! one by one in the order of arrival, in memory that grows with the unspent outputs only;
//! [`write_chain`] writes them as Bitcoin Core's block files, next to the answers that a correct
//! database must give. The answers come from [`Model`], which reads the blocks' bytes and shares
//! nothing with the generator.
//!
//! ```
//! use varve_sim::{Chain, Config, Profile};
//!
//! let config = Config { transactions: Some(30), ..Config::new(Profile::Mainnet, 105, 7) };
//! let blocks: Vec<_> = Chain::new(&config)?.collect();
//! assert_eq!(blocks.len(), 106); // genesis is block 0
//! # Ok::<(), varve_sim::ConfigError>(())
//! ```
//!
//! # What is generated
//!
//! Valid blocks of the regression test network (BSV's for the profile `bsv`): proof of work,
//! merkle root, witness commitment, height in the coinbase, subsidy and fees, maturity, limits
//! of weight and signature operations. Transactions follow the tables of the [`Profile`]. A share
//! of the inputs is signed; the others have dummies of the same size, so a chain with less than
//! `signed_percent: 100` is valid only for a node that does not run scripts. There are hot
//! scripts, chains of transactions within a block, reorgs on demand, and unconfirmed transactions
//! at the end.
//!
//! # `expected.json`
//!
//! Hashes are in the order in which they are shown, amounts in satoshi.
//!
//! - `network`, `profile`, `seed`, `signed`, `blocks`: the description.
//! - `height`, `tip`: the best block; `bestblock` is the same under Core's name.
//! - `transactions_confirmed`: how many transactions the active branch has, with coinbases.
//! - `chaintips`: `height`, `hash` and `branchlen` of every branch, the highest first.
//! - `reorgs`, in order: `from` (the height of the old tip), `depth`, `old_tip`, `new_tip`,
//!   `height` (of the new one).
//! - `hash_serialized_3`, `muhash`, `txouts`, `bogosize`, `total_amount`, `transactions`: the set
//!   at the tip, as in Core's `gettxoutsetinfo`.
//! - `at_heights`, by height: `height`, `bestblock`, `txouts`, `bogosize`, `muhash`,
//!   `total_amount`. Every 25 blocks while the set is small; halfway and at the tip always.
//! - `outputs`: sampled outputs that entered the set: `txid`, `vout`, `value`, `script_pubkey`,
//!   `height`, `coinbase`, and `spender` with `txid`, `vin`, `height`, `blockhash`, or `null`
//!   when it is unspent.
//! - `scripts`: sampled scripts, the longest history first: `script_pubkey`, `scripthash` and
//!   `status` as in the Electrum protocol, `history_count`, `unspent_count`, `balance`; up to 5,000
//!   entries also `history` (`height`, `tx_hash`) and `unspent` (`tx_hash`, `tx_pos`, `value`,
//!   `height`). They are those of the active branch, without the mempool.
//! - `mempool`: transactions that are valid on the tip, parents first: `txid`, `hex`.

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
mod room;
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
pub use write::{Progress, Summary, WriteError, begin_chain, write_chain};

//! The rules of a Bitcoin-family chain, as pure functions.
//!
//! A block comes in, with the headers below it and a view of the outputs that were unspent before
//! it; a verdict comes out. Nothing here reads a file, a clock or a cache: what the rules need is
//! passed in, and a store of unspent outputs implements [`UnspentOutputsView`].
//!
//! ```text
//!                        takes                          says
//! check_header           header, headers below, time    linked, enough work, right target, time
//! check_block            block                          merkle root, size, form, transactions
//! check_block_context    block, headers below           lock times, height, witnesses, weight
//! check_signet_solution  block, verifier                signed (signet only)
//! check_spends           block, headers, view           amounts, maturity, fees, subsidy
//! check_scripts          block, view, verifier          every input satisfies its script
//! ```
//!
//! They are called in this order. Each has a typed error that says what is wrong and gives Core's
//! name for it. An error without such a name means that the check could not be made, and the block
//! must not be called invalid.
//!
//! [`MemorySet`] is the oracle: the same view over a plain map, which all engines are compared
//! with. The rules of BSV are here too, except those of scripts.
//!
//! ```
//! use varve_consensus::{Ancestor, BlockAt, MemorySet, Params};
//! use varve_types::{Block, Height, Network};
//!
//! let params = Params::new(Network::Mainnet);
//! let bytes = params.network.genesis_block();
//! let block = Block::parse(&bytes, params.network.format())?;
//! let block = BlockAt::new(Height::GENESIS, &block);
//! let below: Vec<Ancestor> = Vec::new();
//! let now = 1_231_006_505;
//! varve_consensus::check_header(&params, block.block().header(), block.height(), &below, now)?;
//! varve_consensus::check_block(&params, &block)?;
//!
//! let mut set = MemorySet::new(params.network);
//! let spending = varve_consensus::check_spends(&params, &block, &below, &set)?;
//! assert_eq!(spending.inputs, 0);
//! set.connect(&block)?;
//! assert!(set.is_empty(), "the first coinbase can never be spent");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod ancestors;
mod block;
mod block_at;
#[cfg(feature = "test-suite")]
pub mod contract;
mod header;
pub mod lock_time;
mod memory;
mod params;
mod retarget;
mod script;
mod signet;
pub mod sigops;
mod spend;
mod transaction;
mod u256;
mod verifier;
mod view;
mod walk;
mod weight;
mod work;

pub use ancestors::{
    Ancestor, Ancestors, MEDIAN_SPAN, MissingAncestorError, median_time, median_time_past,
};
pub use block::{BlockError, check_block, check_block_context};
pub use block_at::BlockAt;
pub use header::{HeaderError, MAX_FUTURE_SECONDS, check_header, check_work};
pub use memory::{MemorySet, OwnedCoin, Undo};
pub use params::{Params, PowParams, UpgradeHeights};
pub use retarget::is_permitted_transition;
pub use script::{ScriptChecks, ScriptError, ScriptFlags, check_scripts};
pub use signet::check_signet_solution;
pub use spend::{SpendError, Spending, can_repeat, check_spends};
pub use transaction::{TransactionError, check_transaction};
#[cfg(any(feature = "scripts", feature = "kernel"))]
pub use verifier::{CoreTx, CoreVerifier};
pub use verifier::{PreparedTx, ScriptVerifier, SpendingTx, VerifyError};
pub use view::{CheckError, PrevoutError, Spend, UnspentOutputsView};
pub use walk::{Below, Walked, is_in_set, walk_block};
pub use weight::{WITNESS_SCALE, base_size, block_base_size, block_weight};
pub use work::{Target, Work};

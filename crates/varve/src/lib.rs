//! A chain database to embed: the blocks of a Bitcoin-family chain, their history, the unspent
//! outputs and live transactions, in one folder.
//!
//! It takes clock, randomness and disk from the system and re-exports the types of its answers.
//!
//! # Open and look up
//!
//! A [`Node`] is a folder with a chain. A [`Snapshot`] is one moment of it: every answer is that of
//! one [tip](Snapshot::tip).
//!
//! ```
//! use varve::{Height, Network, Node, Outpoint};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path();
//! # Node::builder().network(Network::Regtest).datadir(path).create()?;
//! let node = Node::open(path)?; // milliseconds, whatever the length of the chain
//! let snapshot = node.snapshot();
//!
//! let genesis = snapshot.block(Height::GENESIS)?.ok_or("every chain has one")?;
//! let coinbase = Outpoint::new(genesis.txids[0], 0);
//! assert_eq!(snapshot.tip().hash, Network::Regtest.genesis_hash());
//! assert_eq!(snapshot.tx(coinbase.txid)?.map(|tx| tx.position), Some(0));
//! assert_eq!(snapshot.spender(coinbase)?, None);
//! assert_eq!(snapshot.utxo(coinbase)?, None); // the output of genesis is not in the set
//! # Ok(())
//! # }
//! ```
//!
//! # Sync
//!
//! [`Node::sync`] takes blocks from a [`Source`]: a node's block files, peers, a node's RPC
//! interface, a pipe, or blocks made in this process. It runs in the calling thread
//! ([`run`](SyncJob::run)) or in its own ([`start`](SyncJob::start)); [`Node::follow`] stays and
//! takes new blocks as they come. Readers go on meanwhile, and [`Node::tips`] wakes them when the
//! tip has moved.
//!
//! ```
//! use varve::{Network, Node, SetHash, Source};
//! use varve_sim::{Chain, Config, Profile};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let node = Node::builder().network(Network::Regtest).datadir(folder.path()).create()?;
//! let mut tips = node.tips();
//!
//! let chain = Chain::new(&Config::new(Profile::Dense, 20, 7))?;
//! let sync = node.sync(Source::blocks(chain.map(|block| block.bytes))).start()?;
//! let first = tips.next().ok_or("the node is open")?;
//! assert!(node.snapshot().header(first.hash)?.is_some());
//!
//! let done = sync.wait()?;
//! assert_eq!((done.tip.height.to_u32(), done.shortfall), (20, None));
//! assert_eq!(node.snapshot().stats(SetHash::Muhash)?.txouts, 20);
//! # Ok(())
//! # }
//! ```
//!
//! Proof of work, block rules and spends are always checked, scripts as [`Checks::of`] says. A
//! block that breaks a rule is no error: it is reported as a [`SyncEvent`] and left out, and
//! [`Synced::shortfall`] says whether the chain should go further. A sync that is
//! [stopped](StopHandle::stop) commits what it has reached; a kill loses nothing committed.
//!
//! # One writer, many readers
//!
//! A [`Node`] is a handle: `Clone + Send + Sync`. [`Node::open`] opens for questions alone, and the
//! first call that writes opens the writers. A second writing thread gets [`Error::Busy`].
//! Snapshots do not wait for a sync. The folder is locked while a handle or a snapshot exists.
//!
//! # More
//!
//! [`UnspentSet`] counts, exports and imports unspent outputs; [`records`] holds live transactions;
//! [`types`] has borrowed views of blocks and transactions. Engines can be used without this crate:
//! `examples/unspent_set.rs` runs `varve-utxo` under its own rules.
//!
//! Must not know: HTTP, JSON, flags. Layer 4.

#![forbid(unsafe_code)]

mod answer;
mod at_rest;
mod builder;
mod error;
mod node;
mod proof;
pub mod records;
mod script;
mod snapshot;
mod source;
mod status;
mod sync;
mod system;
mod tips;
mod unspent_set;

pub use answer::{
    Block, BlockHeader, BlockId, Output, ParseBlockIdError, Spender, Tip, Transaction,
};
pub use builder::Builder;
pub use error::Error;
pub use node::{Node, Verdict};
pub use proof::{Proof, ProofTarget};
pub use script::{Order, Script, ScriptSummary};
pub use snapshot::Snapshot;
pub use source::{ParsePeerAddressError, PeerAddress, RpcUrl, Source};
pub use status::{IndexStatus, Status, StoreSizes};
pub use sync::{AssumeValid, Checks, StopHandle, SyncEvent, SyncJob, SyncThread, Synced};
pub use tips::Tips;
pub use unspent_set::{ExportError, Imported, UnspentSet, shown_hash};
pub use varve_io::ReportingAllocator;
pub use varve_node::source::{SourceError, Warning};
pub use varve_node::{
    Budget, ChainTip, Compacted, Index, IndexSet, Invalid, Prune, ScriptTx, ScriptTxs,
    ScriptUnspent, ScriptsChecked, Shortfall, Verified, Verify,
};
pub use varve_types as types;
pub use varve_types::{Amount, BlockHash, Height, MerkleRoot, Network, Outpoint, ScriptHash, Txid};
pub use varve_utxo::{MemorySplit, SetHash, Statistics};

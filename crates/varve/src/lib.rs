//! Varve keeps a Bitcoin-family chain in one folder: blocks, history, unspent outputs, live
//! transactions. This crate is all that a program needs to embed it.

#![forbid(unsafe_code)]

mod answer;
mod at_rest;
mod builder;
mod error;
mod node;
mod peer_address;
mod record_tip;
pub mod records;
mod rpc_url;
mod snapshot;
mod snapshot_base;
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
pub use peer_address::{ParsePeerAddressError, PeerAddress};
pub use rpc_url::RpcUrl;
pub use snapshot::Snapshot;
pub use source::Source;
pub use status::{IndexStatus, Status, StoreSizes};
pub use sync::{AssumeValid, Checks, StopHandle, SyncEvent, SyncJob, SyncThread, Synced};
pub use tips::Tips;
pub use unspent_set::{ExportError, Imported, UnspentSet, shown_hash};

pub use varve_io::ReportingAllocator;
pub use varve_node::source::{SourceError, Warning};
pub use varve_node::{
    Budget, ChainTip, Index, IndexSet, Invalid, Prune, ScriptsChecked, Shortfall, Verified, Verify,
};
pub use varve_types as types;
pub use varve_types::{Amount, BlockHash, Height, MerkleRoot, Network, Outpoint, Txid};
pub use varve_utxo::{MemorySplit, SetHash, Statistics};

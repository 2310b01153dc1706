//! A chain database to embed: the blocks of a Bitcoin-family chain, their history, the unspent
//! outputs and live transactions, in one folder.
#![doc = ""]
#![doc = include_str!("guide.md")]
#![forbid(unsafe_code)]

mod answer;
mod at_rest;
mod board;
mod broadcast;
mod builder;
mod error;
mod events;
mod lease;
mod node;
mod proof;
mod pushdata;
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
    Block, BlockHeader, BlockId, BranchSpend, Output, ParseBlockIdError, Spender, Tip, Transaction,
};
pub use broadcast::BroadcastError;
pub use builder::Builder;
pub use error::Error;
pub use events::{Event, EventBatch, EventCursor, Events, ParseCursorError, TxStatus, Watch};
pub use lease::LiveSnapshots;
pub use node::{Node, Verdict};
pub use proof::{HeaderProof, Proof, ProofTarget};
pub use pushdata::{PushdataMatch, PushdataPage};
pub use script::{Order, Script, ScriptSummary};
pub use snapshot::{BlockSummary, BlockTx, PaidRate, Snapshot};
pub use source::{ParsePeerAddressError, PeerAddress, RpcUrl, Source};
pub use status::{IndexStatus, Status, StoreBytes, StoreSizes};
pub use sync::{AssumeValid, Checks, StopHandle, SyncEvent, SyncJob, SyncThread, Synced};
pub use tips::{Change, Changes, Tips};
pub use unspent_set::{ExportError, Imported, UnspentSet, shown_hash};
pub use varve_io::ReportingAllocator;
pub use varve_node::mempool::{
    Acceptance, Entry as MempoolEntry, Event as MempoolEvent, FeeBin, FeeRate, HistoryItem,
    PushRow, Removal as MempoolRemoval, ScriptDelta, ScriptMove, Side, SpentBy, Sum, Totals,
    UnspentOutput, Version as Mempool,
};
pub use varve_node::source::live::Item as LiveItem;
pub use varve_node::source::{SourceError, Warning};
pub use varve_node::{
    Budget, ChainTip, Compacted, Index, IndexSet, Invalid, Prune, ScriptTx, ScriptTxs,
    ScriptUnspent, ScriptsChecked, SetRows, SetStats, Shortfall, Verified, Verify,
};
pub use varve_types as types;
pub use varve_types::pushdata::{PushdataFlags, PushdataRule};
pub use varve_types::{
    Amount, BlockHash, Height, MerkleRoot, Network, Outpoint, PushdataHash, ScriptHash, Txid,
};
pub use varve_utxo::{
    Layers, MemorySplit, MergeUnderWay, PaneLayer, RunLayer, SetHash, Statistics,
};

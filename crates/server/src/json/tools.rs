//! Answers of the commands that make or measure something.

use serde::Serialize;
use varve::{BlockHash, Network};

use super::text;

/// `varve sim`.
#[derive(Debug, Serialize)]
pub struct Sim<'a> {
    /// The network of the blocks.
    #[serde(serialize_with = "text")]
    pub network: Network,
    /// The name of the profile.
    pub profile: &'a str,
    /// The seed that makes the same chain again.
    pub seed: u64,
    /// The height of the tip.
    pub height: u32,
    /// Blocks on all branches.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Confirmed transactions.
    pub transactions: u64,
    /// How often the best chain changed branches.
    pub reorgs: usize,
    /// Megabytes made in a second.
    pub mb_per_s: f64,
    /// The file with the expected answers.
    pub expected: &'a str,
}

/// `varve serve`: where the servers listen, as `host:port`.
#[derive(Debug, Serialize)]
pub struct Serve<'a> {
    /// The network of the chain.
    #[serde(serialize_with = "text")]
    pub network: Network,
    /// The folder.
    pub datadir: &'a str,
    /// The process.
    pub pid: u32,
    /// REST, the explorer, metrics and health.
    pub http: Option<String>,
    /// Electrum over TCP.
    pub electrum: Option<String>,
    /// Electrum over TLS.
    pub electrum_tls: Option<String>,
    /// Electrum over WebSocket.
    pub electrum_ws: Option<String>,
}

/// `varve demo`.
#[derive(Debug, Serialize)]
pub struct Demo {
    /// The network of the blocks.
    #[serde(serialize_with = "text")]
    pub network: Network,
    /// The height of the tip.
    pub height: u32,
    /// The tip.
    #[serde(serialize_with = "text")]
    pub bestblock: BlockHash,
    /// Blocks on all branches.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Unspent outputs at the tip.
    pub txouts: u64,
    /// The hash of these.
    pub hash_serialized_3: Option<String>,
    /// Megabytes simulated in a second.
    pub sim_mb_per_s: f64,
    /// Megabytes parsed and hashed in a second, by one thread.
    pub parse_mb_per_s: f64,
    /// Megabytes synced in a second.
    pub sync_mb_per_s: f64,
    /// What was mined and asked for while it was served.
    pub live: DemoLive,
}

/// The part of `varve demo` that is served.
#[derive(Debug, Serialize)]
pub struct DemoLive {
    /// The height of the tip.
    pub height: u32,
    /// The tip.
    #[serde(serialize_with = "text")]
    pub bestblock: BlockHash,
    /// Blocks that were mined, on all branches.
    pub blocks: u64,
    /// How often a branch overtook another.
    pub reorgs: u64,
    /// Transactions that were sent ahead of their blocks.
    pub mempool_transactions: u64,
    /// Answers of the servers that were compared with the node's.
    pub answers: u32,
}

/// `varve records bench`.
#[derive(Debug, Serialize)]
pub struct RecordsBench {
    /// Transactions that were created.
    pub transactions: u64,
    /// Transactions in a batch.
    pub batch: u32,
    /// Creations and spends.
    pub operations: u64,
    /// Of these in a second of work.
    pub operations_per_second: f64,
    /// The time that half of the batches did not exceed.
    pub batch_p50_ms: f64,
    /// The time that 99 of 100 batches did not exceed.
    pub batch_p99_ms: f64,
    /// The time from the first batch to the last.
    pub seconds: f64,
}

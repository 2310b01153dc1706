//! Figures and lists of scripts and of the mempool.

use serde::Serialize;
use utoipa::ToSchema;

use super::Status;

/// An address, and what it was paid and has spent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Address)]
pub(crate) struct Address {
    pub(crate) address: String,
    #[serde(flatten)]
    pub(crate) stats: Stats,
}

/// A script, and what it was paid and has spent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::ScriptHash)]
pub(crate) struct Script {
    pub(crate) scripthash: String,
    #[serde(flatten)]
    pub(crate) stats: Stats,
}

/// Confirmed and unconfirmed figures.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Stats)]
pub(crate) struct Stats {
    pub(crate) chain_stats: Sums,
    pub(crate) mempool_stats: Sums,
}

/// Outputs that pay a script, and those of them that are spent.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = esplora::Sums)]
pub(crate) struct Sums {
    pub(crate) tx_count: u64,
    pub(crate) funded_txo_count: u64,
    pub(crate) funded_txo_sum: u64,
    pub(crate) spent_txo_count: u64,
    pub(crate) spent_txo_sum: u64,
}

/// An unspent output.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Utxo)]
pub(crate) struct Utxo {
    pub(crate) txid: String,
    pub(crate) vout: u32,
    pub(crate) status: Status,
    pub(crate) value: u64,
}

/// What a confirmed transaction did to the balance of a script, or of several.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Summary)]
pub(crate) struct Summary {
    pub(crate) txid: String,
    pub(crate) height: u32,
    /// What was received less what was sent.
    pub(crate) value: i64,
    /// The time of its block.
    pub(crate) time: u32,
}

/// The mempool in figures.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Mempool)]
pub(crate) struct Mempool {
    pub(crate) count: u64,
    pub(crate) vsize: u64,
    pub(crate) total_fee: u64,
    /// Pairs of a feerate and the virtual bytes that pay it or more, and less than the pair before.
    pub(crate) fee_histogram: Vec<(f64, u64)>,
}

/// An unconfirmed transaction in figures.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Recent)]
pub(crate) struct Recent {
    pub(crate) txid: String,
    pub(crate) fee: u64,
    pub(crate) vsize: u64,
    /// The sum of its outputs.
    pub(crate) value: u64,
}

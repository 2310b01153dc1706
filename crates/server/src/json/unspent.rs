//! Answers about the unspent set.

use serde::Serialize;
use varve::{Amount, BlockHash, Imported, Output, SetHash, Statistics, Tip, Txid, shown_hash};

use super::{hex, optional_text, text};

/// `varve utxo get`.
#[derive(Debug, Serialize)]
pub struct Utxo<'a> {
    #[serde(serialize_with = "text")]
    txid: Txid,
    vout: u32,
    height: u32,
    coinbase: bool,
    value: u64,
    #[serde(serialize_with = "hex")]
    script_pubkey: &'a [u8],
}

impl<'a> From<&'a Output> for Utxo<'a> {
    fn from(output: &'a Output) -> Self {
        Self {
            txid: output.outpoint.txid,
            vout: output.outpoint.vout,
            height: output.height.to_u32(),
            coinbase: output.coinbase,
            value: output.value.to_sat(),
            script_pubkey: &output.script,
        }
    }
}

/// `varve utxo stats`, with the names of Core's `gettxoutsetinfo`.
#[derive(Debug, Serialize)]
pub struct Stats {
    height: Option<u32>,
    #[serde(serialize_with = "optional_text")]
    bestblock: Option<BlockHash>,
    txouts: u64,
    bogosize: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_serialized_3: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    muhash: Option<String>,
    total_amount: Option<u64>,
}

impl Stats {
    /// The figures of a set whose hash is of this kind.
    #[must_use]
    pub fn new(found: &Statistics, hash: SetHash) -> Self {
        let of = |kind| found.hash.filter(|_| hash == kind).map(shown_hash);
        Self {
            height: found.tip.map(|(height, _)| height.to_u32()),
            bestblock: found.tip.map(|(_, block)| block),
            txouts: found.txouts,
            bogosize: found.bogosize,
            hash_serialized_3: of(SetHash::HashSerialized3),
            muhash: of(SetHash::Muhash),
            total_amount: found.total_amount.map(Amount::to_sat),
        }
    }
}

/// `varve utxo export`.
#[derive(Debug, Serialize)]
pub struct Export<'a> {
    height: u32,
    #[serde(serialize_with = "text")]
    bestblock: BlockHash,
    txouts: u64,
    bytes: u64,
    file: &'a str,
}

impl<'a> Export<'a> {
    /// A file of this many outputs and bytes, of the set at this tip.
    #[must_use]
    pub const fn new(tip: Tip, txouts: u64, bytes: u64, file: &'a str) -> Self {
        Self { height: tip.height.to_u32(), bestblock: tip.hash, txouts, bytes, file }
    }
}

/// `varve utxo import`.
#[derive(Debug, Serialize)]
pub struct Import {
    height: u32,
    #[serde(serialize_with = "text")]
    bestblock: BlockHash,
    txouts: u64,
    checked: bool,
}

impl From<&Imported> for Import {
    fn from(imported: &Imported) -> Self {
        let Imported { tip, coins, checked } = *imported;
        Self { height: tip.height.to_u32(), bestblock: tip.hash, txouts: coins, checked }
    }
}

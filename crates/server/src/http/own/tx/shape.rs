//! The shape of a transaction in JSON.

use serde::Serialize;
use utoipa::ToSchema;
use varve::{BlockHash, BranchSpend, Sum, Txid};

use crate::http::own::block::rate;
use crate::http::own::reply::Tip;
use crate::http::own::script_text::{OutputScript, ScriptText};

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http::own) enum Standing {
    /// A block of the confirmed chain holds it.
    Confirmed,
    /// It is unconfirmed.
    Mempool,
    /// Only blocks that left the chain hold it.
    Stale,
}

/// A transaction.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http::own) struct TxAnswer {
    pub(super) tip: Tip,
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    pub(super) txid: Txid,
    /// The hash with witnesses.
    pub(super) wtxid: String,
    pub(super) version: u32,
    pub(super) lock_time: u32,
    pub(super) size: usize,
    pub(super) weight: u64,
    pub(super) vsize: u64,
    pub(super) coinbase: bool,
    /// What its outputs are worth.
    pub(super) value: u64,
    /// `null` for a coinbase, and where an output that it spends is not known.
    pub(super) fee: Option<u64>,
    pub(super) rate: Option<f64>,
    #[schema(value_type = String)]
    pub(super) state: Standing,
    /// Blocks of the confirmed chain from its own to the tip.
    pub(super) confirmations: u32,
    /// The block that holds it: the confirmed one, else the newest.
    pub(super) block: Option<InBlock>,
    /// Every block that holds it, on every branch.
    pub(super) blocks: Vec<Holder>,
    /// Its place among the unconfirmed.
    pub(super) mempool: Option<InMempool>,
    pub(super) inputs_total: usize,
    pub(super) outputs_total: usize,
    pub(super) inputs: Vec<Input>,
    pub(super) outputs: Vec<OutputAnswer>,
}

/// Where a transaction is in the chain.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http::own) struct InBlock {
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    pub(super) hash: BlockHash,
    pub(super) height: u32,
    pub(super) time: u32,
    pub(super) position: u32,
}

/// A block that holds a transaction.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http::own) struct Holder {
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    pub(super) hash: BlockHash,
    pub(super) height: u32,
    pub(super) confirmed: bool,
}

/// Where a transaction is among the unconfirmed.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http::own) struct InMempool {
    /// When it arrived.
    pub(super) time: u64,
    /// It and what it builds on.
    pub(super) ancestors: Kin,
    /// It and what builds on it.
    pub(super) descendants: Kin,
    /// Unconfirmed transactions that it spends from, the first hundred.
    pub(super) parents: Vec<String>,
    /// Unconfirmed transactions that spend from it, the first hundred.
    pub(super) children: Vec<String>,
}

/// Transactions that stand or fall together.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http::own) struct Kin {
    pub(super) count: u64,
    pub(super) vsize: u64,
    pub(super) fees: u64,
    pub(super) rate: f64,
}

impl From<&Sum> for Kin {
    fn from(sum: &Sum) -> Self {
        let Sum { count, vsize, fees } = *sum;
        Self { count, vsize, fees: fees.to_sat(), rate: rate(fees.to_sat(), vsize) }
    }
}

/// An input.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http::own) struct Input {
    pub(super) n: usize,
    /// The transaction that made what it spends.
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    pub(super) txid: Txid,
    pub(super) vout: u32,
    pub(super) sequence: u32,
    pub(super) script: ScriptText,
    /// The readable words of a coinbase.
    pub(super) text: Option<String>,
    pub(super) witness: Vec<WitnessItem>,
    /// The script behind the hash of a P2SH output.
    pub(super) redeem_script: Option<ScriptText>,
    /// The script behind a P2WSH output, or the one that a Taproot output was spent by.
    pub(super) witness_script: Option<ScriptText>,
    /// What it spends; `null` for a coinbase, and where that is not known.
    pub(super) prevout: Option<Prevout>,
}

/// An item of a witness.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http::own) struct WitnessItem {
    /// Its beginning.
    pub(super) hex: String,
    /// Bytes.
    pub(super) size: usize,
}

/// A spent output.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http::own) struct Prevout {
    pub(super) value: u64,
    pub(super) script: OutputScript,
    /// Where it was made; `null` while that is unconfirmed.
    pub(super) height: Option<u32>,
    pub(super) coinbase: bool,
}

/// An output.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http::own) struct OutputAnswer {
    pub(super) n: usize,
    pub(super) value: u64,
    pub(super) script: OutputScript,
    /// Whether it ever was in the set of unspent outputs.
    pub(super) spendable: bool,
    /// The input that spends it, in the confirmed chain or unconfirmed.
    pub(super) spent_by: Option<SpentBy>,
    /// Inputs that spend it in blocks of other branches.
    pub(super) other_spends: Vec<SpentBy>,
}

/// An input that spends an output.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(in crate::http::own) struct SpentBy {
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    pub(super) txid: Txid,
    pub(super) vin: u32,
    /// The height of its block; `null` while it is unconfirmed.
    pub(super) height: Option<u32>,
    /// Its block.
    #[schema(value_type = Option<String>)]
    #[serde(serialize_with = "crate::json::optional_text")]
    pub(super) block: Option<BlockHash>,
    /// Whether that is in the confirmed chain.
    pub(super) confirmed: bool,
}

impl From<&BranchSpend> for SpentBy {
    fn from(spend: &BranchSpend) -> Self {
        let varve::Spender { txid, vin, height, block } = spend.spender;
        let (height, block) = (Some(height.to_u32()), Some(block));
        Self { txid, vin, height, block, confirmed: spend.confirmed }
    }
}

impl SpentBy {
    pub(in crate::http::own) const fn is_confirmed(&self) -> bool {
        self.confirmed
    }
}

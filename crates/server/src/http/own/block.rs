//! Blocks: a list, one in figures, and its transactions page by page.

use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use varve::types::{Network, Tx};
use varve::{BlockHash, BlockId, BlockSummary, Height, MerkleRoot, PaidRate, Snapshot, Txid};

use super::reply::{Asked, Refusals, Refused, Reply, Tip};
use super::script_text::coinbase_text;
use super::{Own, Shared, lock, remember};

/// Blocks of a list, by default and at most.
const LIST: (u32, u32) = (15, 100);
/// Transactions of a page, by default and at most.
const PAGE: (u32, u32) = (25, 100);
/// Inputs of a block up to which its fee rates are computed: each is a look at an older block.
const RATED_INPUTS: u32 = 20_000;

/// A block in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BlockRow {
    height: u32,
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    hash: BlockHash,
    /// When it was made, as its miner says.
    time: u32,
    tx_count: u32,
    size: u64,
    weight: u64,
    /// What miners may create at this height.
    subsidy: u64,
    /// What the coinbase claims above the subsidy; `null` where its bytes were pruned.
    fees: Option<u64>,
    /// The readable part of the coinbase.
    miner: String,
}

/// A list of blocks of the confirmed chain, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BlocksAnswer {
    tip: Tip,
    blocks: Vec<BlockRow>,
    /// What `before` is for the next page; `null` on the last.
    next: Option<u32>,
}

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct ListQuery {
    /// Blocks below this height; by default from the tip on.
    before: Option<u32>,
    /// How many; 15 by default, 100 at most.
    limit: Option<u32>,
}

/// Blocks of the confirmed chain, newest first.
#[utoipa::path(get, path = "/blocks", tag = "varve", params(ListQuery), responses(
    (status = 200, body = BlocksAnswer), Refusals))]
pub(super) async fn blocks(
    State(own): State<Shared>,
    Asked(asked): Asked<ListQuery>,
) -> Result<Reply<BlocksAnswer>, Refused> {
    own.ask(move |_, snapshot| {
        let top = snapshot.tip().height.to_u32();
        let before = asked.before.unwrap_or(u32::MAX).min(top.saturating_add(1));
        let first = before.saturating_sub(limit(asked.limit, LIST));
        let mut blocks = Vec::new();
        for height in (first..before).rev() {
            let found = snapshot.block_summary(Height::new(height))?;
            blocks.extend(found.map(|found| BlockRow::new(&found, snapshot.network())));
        }
        let next = (first > 0).then_some(first);
        Ok(BlocksAnswer { tip: snapshot.tip().into(), blocks, next })
    })
    .await
}

/// What was asked for, within its bounds.
pub(super) fn limit(asked: Option<u32>, (usual, most): (u32, u32)) -> u32 {
    asked.unwrap_or(usual).clamp(1, most)
}

impl BlockRow {
    fn new(block: &BlockSummary, network: Network) -> Self {
        let header = &block.header;
        let coinbase = block.coinbase.as_deref();
        let coinbase = coinbase.and_then(|bytes| Tx::parse(bytes, network.format()).ok());
        let subsidy = network.subsidy(header.height).to_sat();
        let claimed = coinbase.as_ref().map(|tx| {
            tx.outputs().fold(0_u64, |sum, output| output.value.to_sat().saturating_add(sum))
        });
        let script = coinbase.as_ref().and_then(|tx| tx.inputs().next()).map(|input| input.script);
        Self {
            height: header.height.to_u32(),
            hash: header.hash,
            time: header.time,
            tx_count: block.transactions,
            size: block.size,
            weight: block.weight,
            subsidy,
            fees: claimed.map(|claimed| claimed.saturating_sub(subsidy)),
            miner: script.map(coinbase_text).unwrap_or_default(),
        }
    }
}

/// A block.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BlockAnswer {
    tip: Tip,
    /// Blocks of the confirmed chain from this one to the tip; 0 on other branches.
    confirmations: u32,
    block: BlockDetail,
}

/// What is known of a block.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BlockDetail {
    #[serde(flatten)]
    row: BlockRow,
    /// Whether the confirmed chain has it.
    confirmed: bool,
    /// Why it cannot be in the chain.
    invalid: Option<String>,
    #[schema(value_type = Option<String>)]
    #[serde(serialize_with = "crate::json::optional_text")]
    previous: Option<BlockHash>,
    /// The block above it in the confirmed chain.
    #[schema(value_type = Option<String>)]
    #[serde(serialize_with = "crate::json::optional_text")]
    next: Option<BlockHash>,
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    merkle_root: MerkleRoot,
    median_time: u32,
    version: i32,
    /// The target in compact form, in hex.
    bits: String,
    difficulty: f64,
    nonce: u32,
    inputs: u32,
    outputs: u32,
    /// `null` when the block has no transaction but its coinbase, too many inputs, or spends what
    /// was pruned.
    fee_rates: Option<FeeRates>,
}

/// What the transactions of a block paid, in satoshi per virtual byte.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct FeeRates {
    min: f64,
    median: f64,
    max: f64,
}

impl FeeRates {
    fn of(paid: &[PaidRate]) -> Option<Self> {
        let rate = |paid: &PaidRate| rate(paid.fee.to_sat(), paid.virtual_size);
        let mut rates: Vec<f64> = paid.iter().map(rate).collect();
        rates.sort_unstable_by(f64::total_cmp);
        let median = *rates.get(rates.len() / 2)?;
        Some(Self { min: *rates.first()?, median, max: *rates.last()? })
    }
}

/// Satoshi per virtual byte.
pub(super) fn rate(fee: u64, virtual_size: u64) -> f64 {
    if virtual_size == 0 { 0.0 } else { fee as f64 / virtual_size as f64 }
}

/// A block by its hash, on any branch, or by its height in the confirmed chain.
#[utoipa::path(get, path = "/block/{id}", tag = "varve",
    params(("id" = String, Path, description = "A block hash, or a height")),
    responses((status = 200, body = BlockAnswer), Refusals))]
pub(super) async fn block(
    State(own): State<Shared>,
    Path(id): Path<String>,
) -> Result<Reply<BlockAnswer>, Refused> {
    let id = block_id(&id)?;
    own.ask(move |own, snapshot| {
        let found = snapshot.block_summary(id)?.ok_or_else(unknown)?;
        let tip = snapshot.tip();
        let above = tip.height.since(found.header.height).map_or(0, |above| above + 1);
        Ok(BlockAnswer {
            tip: tip.into(),
            confirmations: if found.header.confirmed { above } else { 0 },
            block: BlockDetail::new(&found, own, snapshot)?,
        })
    })
    .await
}

fn block_id(text: &str) -> Result<BlockId, Refused> {
    text.parse().map_err(|error: varve::ParseBlockIdError| Refused::bad(error.to_string()))
}

fn unknown() -> Refused {
    Refused::not_found("no such block is known; the chain may not be that long yet")
}

impl BlockDetail {
    fn new(found: &BlockSummary, own: &Own, snapshot: &Snapshot) -> Result<Self, Refused> {
        let header = &found.header;
        let invalid = snapshot.invalid(header.hash)?;
        Ok(Self {
            row: BlockRow::new(found, snapshot.network()),
            confirmed: header.confirmed,
            invalid: invalid.map(|invalid| invalid.reason.to_string()),
            previous: header.previous,
            next: found.next,
            merkle_root: header.merkle_root,
            median_time: header.median_time,
            version: header.version,
            bits: format!("{:08x}", header.bits),
            difficulty: difficulty(header.bits),
            nonce: header.nonce,
            inputs: found.inputs,
            outputs: found.outputs,
            fee_rates: own.fee_rates(snapshot, found)?,
        })
    }
}

impl Own {
    fn fee_rates(
        &self,
        snapshot: &Snapshot,
        block: &BlockSummary,
    ) -> Result<Option<FeeRates>, Refused> {
        let hash = block.header.hash;
        if block.inputs > RATED_INPUTS || block.transactions < 2 {
            return Ok(None);
        }
        if let Some(known) = lock(&self.rates).get(&hash) {
            return Ok(*known);
        }
        let paid = match snapshot.block_fee_rates(hash) {
            Err(varve::Error::Pruned { .. }) => None,
            found => found?,
        };
        let rates = paid.and_then(|paid| FeeRates::of(&paid));
        remember(&mut lock(&self.rates), hash, rates);
        Ok(rates)
    }
}

/// How much harder the target is than the easiest one of mainnet.
fn difficulty(bits: u32) -> f64 {
    let (exponent, mantissa) = (bits >> 24, bits & 0x00ff_ffff);
    let easiest = (29, 65_535.0);
    let distance = easiest.0 - i32::try_from(exponent).unwrap_or_default();
    easiest.1 / f64::from(mantissa.max(1)) * 256_f64.powi(distance)
}

/// A transaction in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TxRow {
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    txid: Txid,
    position: u32,
    coinbase: bool,
    inputs: usize,
    outputs: usize,
    /// What its outputs are worth.
    value: u64,
    vsize: u64,
    /// `null` for the coinbase, and where it spends what was pruned.
    fee: Option<u64>,
    rate: Option<f64>,
}

/// A page of a block's transactions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BlockTxsAnswer {
    tip: Tip,
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    hash: BlockHash,
    /// The position of the first of the page.
    from: u32,
    /// Transactions of the block.
    total: u32,
    txs: Vec<TxRow>,
}

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct PageQuery {
    /// The position of the first; 0 by default.
    from: Option<u32>,
    /// How many; 25 by default, 100 at most.
    limit: Option<u32>,
}

/// The transactions of a block in its order.
#[utoipa::path(get, path = "/block/{id}/txs", tag = "varve",
    params(("id" = String, Path, description = "A block hash, or a height"), PageQuery),
    responses((status = 200, body = BlockTxsAnswer), Refusals))]
pub(super) async fn block_txs(
    State(own): State<Shared>,
    Path(id): Path<String>,
    Asked(asked): Asked<PageQuery>,
) -> Result<Reply<BlockTxsAnswer>, Refused> {
    let id = block_id(&id)?;
    own.ask(move |_, snapshot| {
        let block = snapshot.block_summary(id)?.ok_or_else(unknown)?;
        let (from, hash) = (asked.from.unwrap_or_default(), block.header.hash);
        let limit = limit(asked.limit, PAGE) as usize;
        let txs = snapshot.block_txs(hash, from, limit)?.unwrap_or_default();
        let row = |tx: varve::BlockTx| TxRow {
            txid: tx.txid,
            position: tx.position,
            coinbase: tx.position == 0,
            inputs: tx.inputs,
            outputs: tx.outputs,
            value: tx.value.to_sat(),
            vsize: tx.virtual_size,
            fee: tx.fee.map(varve::Amount::to_sat),
            rate: tx.fee.map(|fee| rate(fee.to_sat(), tx.virtual_size)),
        };
        let (tip, total) = (snapshot.tip().into(), block.transactions);
        Ok(BlockTxsAnswer { tip, hash, from, total, txs: txs.into_iter().map(row).collect() })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difficulties_are_those_of_core() {
        // Block 0, block 100,000 and regtest's limit.
        for (bits, expected) in [
            (0x1d00_ffff, 1.0),
            (0x1b04_864c, 14_484.162_361_225_399),
            (0x207f_ffff, 4.656_542_373_906_925e-10),
        ] {
            let found = difficulty(bits);
            assert!((found / expected - 1.0).abs() < 1e-12, "{bits:08x}: {found}");
        }
    }

    #[test]
    fn a_median_is_that_of_the_transactions() {
        let paid = |fee, virtual_size| PaidRate { fee: varve::Amount::from_sat(fee), virtual_size };
        assert_eq!(FeeRates::of(&[]), None);
        let found = FeeRates::of(&[paid(500, 100), paid(100, 100), paid(2_000, 1_000)]);
        assert_eq!(found, Some(FeeRates { min: 1.0, median: 2.0, max: 5.0 }));
    }
}

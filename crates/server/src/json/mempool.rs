//! The answer about unconfirmed transactions.

use std::collections::BTreeMap;

use serde::Serialize;
use varve::{BlockHash, FeeBin, FeeRate, Mempool as Unconfirmed, MempoolEntry, Tip, Txid};

use super::text;

/// Targets, in blocks, that estimates are given for.
const TARGETS: [u32; 8] = [1, 2, 3, 6, 12, 24, 144, 1008];
/// Transactions that are listed.
const LISTED: usize = 10;

/// `varve mempool`. Rates are in satoshi per virtual byte.
#[derive(Debug, Serialize)]
pub struct Mempool {
    count: u64,
    vsize: u64,
    total_fee: u64,
    /// Bytes that are charged to the memory share.
    memory: u64,
    min_rate: f64,
    /// Rates in descending order, each with the virtual bytes that pay it.
    histogram: Vec<(f64, u64)>,
    /// The rate that should confirm a transaction within this many blocks.
    estimates: BTreeMap<u32, f64>,
    /// Those that pay the highest rates.
    top: Vec<Listed>,
    tip: ReadAt,
}

#[derive(Debug, Serialize)]
struct Listed {
    #[serde(serialize_with = "text")]
    txid: Txid,
    fee: u64,
    vsize: u64,
    rate: f64,
    time: u64,
    ancestors: u64,
    descendants: u64,
}

#[derive(Debug, Serialize)]
struct ReadAt {
    height: u32,
    #[serde(serialize_with = "text")]
    hash: BlockHash,
}

impl Mempool {
    /// The mempool in numbers, as it was at this tip; all zero when there is none.
    #[must_use]
    pub fn new(mempool: Option<&Unconfirmed>, tip: Tip) -> Self {
        let Tip { height, hash } = tip;
        let tip = ReadAt { height: height.to_u32(), hash };
        let Some(mempool) = mempool else {
            return Self {
                count: 0,
                vsize: 0,
                total_fee: 0,
                memory: 0,
                min_rate: 0.0,
                histogram: Vec::new(),
                estimates: BTreeMap::new(),
                top: Vec::new(),
                tip,
            };
        };
        let totals = mempool.totals();
        let bin = |bin: FeeBin| (per_byte(bin.rate), bin.vsize);
        let estimate = |blocks: u32| (blocks, per_byte(mempool.estimate(blocks)));
        Self {
            count: totals.sum.count,
            vsize: totals.sum.vsize,
            total_fee: totals.sum.fees.to_sat(),
            memory: totals.memory,
            min_rate: per_byte(totals.min_rate),
            histogram: mempool.esplora_histogram().into_iter().map(bin).collect(),
            estimates: TARGETS.into_iter().map(estimate).collect(),
            top: mempool.best(LISTED).map(listed).collect(),
            tip,
        }
    }
}

fn listed(entry: &MempoolEntry) -> Listed {
    Listed {
        txid: entry.txid(),
        fee: entry.fee().to_sat(),
        vsize: entry.vsize(),
        rate: per_byte(entry.rate()),
        time: entry.time(),
        ancestors: entry.ancestors().count - 1,
        descendants: entry.descendants().count - 1,
    }
}

/// Satoshi per virtual byte, to a thousandth.
#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^52 thousandths")]
fn per_byte(rate: FeeRate) -> f64 {
    rate.sat_per_kvb() as f64 / 1_000.0
}

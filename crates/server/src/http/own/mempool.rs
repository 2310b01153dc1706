//! The unconfirmed transactions as a whole: totals, fees, what the next blocks would take, and the
//! last arrivals.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use varve::{BlockHash, FeeRate, Mempool, MempoolEntry, Txid};

use super::reply::{Refusals, Refused, Reply, Tip};
use super::{Own, Shared, lock};

/// Virtual bytes of a full block.
const BLOCK: u64 = 1_000_000;
/// Blocks that are projected.
const PROJECTED: usize = 8;
/// Arrivals that are listed.
const RECENT: usize = 20;
/// How long a projection is good enough: it is an estimate, and sorts the whole mempool.
const FRESH: Duration = Duration::from_secs(2);
/// For how many blocks fees are estimated.
const TARGETS: [u32; 6] = [1, 2, 3, 6, 12, 144];

/// The mempool.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MempoolAnswer {
    tip: Tip,
    /// Whether a mempool is followed at all; if not, all figures are zero.
    live: bool,
    count: u64,
    vsize: u64,
    fees: u64,
    /// Bytes of memory.
    memory: u64,
    /// The lowest rate that is taken.
    min_rate: f64,
    /// Virtual bytes by rate, the highest first: each bin has what pays its rate or more and less
    /// than the bin before.
    histogram: Vec<Bin>,
    estimates: Vec<Estimate>,
    /// The blocks that would be made now, the next first.
    projected: Vec<Projected>,
    /// The last arrivals, newest first.
    recent: Vec<Arrival>,
}

/// A bin of the histogram.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Bin {
    rate: f64,
    vsize: u64,
}

/// The rate that should confirm a transaction within this many blocks.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Estimate {
    blocks: u32,
    rate: f64,
}

/// A block of the best-paying transactions.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct Projected {
    count: u64,
    vsize: u64,
    fees: u64,
    min_rate: f64,
    median_rate: f64,
    max_rate: f64,
}

/// What was projected, and when.
#[derive(Debug)]
pub(super) struct Projection {
    tip: BlockHash,
    made: Instant,
    blocks: Arc<[Projected]>,
}

/// A transaction that has just come.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Arrival {
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    txid: Txid,
    time: u64,
    fee: u64,
    vsize: u64,
    rate: f64,
    /// What its outputs are worth.
    value: u64,
}

/// The mempool: totals, fee histogram, estimates, projected blocks, last arrivals.
#[utoipa::path(get, path = "/mempool", tag = "varve", responses(
    (status = 200, body = MempoolAnswer), Refusals))]
pub(super) async fn mempool(State(own): State<Shared>) -> Result<Reply<MempoolAnswer>, Refused> {
    own.ask(|own, snapshot| {
        let tip = snapshot.tip().into();
        Ok(snapshot.mempool().map_or_else(
            || MempoolAnswer::empty(tip),
            |mempool| MempoolAnswer::new(tip, &mempool, own.projected(&mempool).to_vec()),
        ))
    })
    .await
}

impl MempoolAnswer {
    const fn empty(tip: Tip) -> Self {
        Self {
            tip,
            live: false,
            count: 0,
            vsize: 0,
            fees: 0,
            memory: 0,
            min_rate: 0.0,
            histogram: Vec::new(),
            estimates: Vec::new(),
            projected: Vec::new(),
            recent: Vec::new(),
        }
    }

    fn new(tip: Tip, mempool: &Mempool, projected: Vec<Projected>) -> Self {
        let totals = mempool.totals();
        let bins = mempool.esplora_histogram().into_iter();
        let estimate = |blocks| Estimate { blocks, rate: per_vbyte(mempool.estimate(blocks)) };
        Self {
            tip,
            live: true,
            count: totals.sum.count,
            vsize: totals.sum.vsize,
            fees: totals.sum.fees.to_sat(),
            memory: totals.memory,
            min_rate: per_vbyte(totals.min_rate),
            histogram: bins
                .map(|bin| Bin { rate: per_vbyte(bin.rate), vsize: bin.vsize })
                .collect(),
            estimates: TARGETS.map(estimate).into(),
            projected,
            recent: mempool.recent(RECENT).map(Arrival::from).collect(),
        }
    }
}

/// Satoshi per virtual byte.
fn per_vbyte(rate: FeeRate) -> f64 {
    rate.sat_per_million_vb() as f64 / 1e6
}

impl From<&MempoolEntry> for Arrival {
    fn from(entry: &MempoolEntry) -> Self {
        let outputs = entry.transaction().view().outputs();
        Self {
            txid: entry.txid(),
            time: entry.time(),
            fee: entry.fee().to_sat(),
            vsize: entry.vsize(),
            rate: per_vbyte(entry.rate()),
            value: outputs.fold(0, |sum, output| output.value.to_sat().saturating_add(sum)),
        }
    }
}

impl Own {
    /// The projected blocks of the mempool at this tip, or those of a moment ago.
    fn projected(&self, mempool: &Mempool) -> Arc<[Projected]> {
        let mut known = lock(&self.projected);
        if let Some(known) = &*known
            && known.tip == mempool.tip().hash
            && known.made.elapsed() < FRESH
        {
            return Arc::clone(&known.blocks);
        }
        let rated = mempool.entries().map(|entry| {
            // A child that pays for its parents is mined with them.
            let rate = entry.rate().min(entry.ancestors().rate()).max(entry.descendants().rate());
            Rated { rate, vsize: entry.vsize(), fee: entry.fee().to_sat() }
        });
        let blocks: Arc<[Projected]> = project(rated.collect()).into();
        let (tip, made) = (mempool.tip().hash, Instant::now());
        *known = Some(Projection { tip, made, blocks: Arc::clone(&blocks) });
        blocks
    }
}

/// A transaction and the rate by which it is chosen.
#[derive(Clone, Copy, Debug)]
struct Rated {
    rate: FeeRate,
    vsize: u64,
    fee: u64,
}

/// Fills blocks with the best rates.
fn project(mut rated: Vec<Rated>) -> Vec<Projected> {
    rated.sort_unstable_by_key(|one| Reverse(one.rate));
    let mut blocks = Vec::new();
    let mut rest = rated.as_slice();
    while !rest.is_empty() && blocks.len() < PROJECTED {
        let mut vsize = 0;
        let fits = |one: &&Rated| {
            vsize += one.vsize;
            vsize <= BLOCK
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (block, behind) = rest.split_at(count);
        rest = behind;
        blocks.extend(Projected::of(block));
    }
    blocks
}

impl Projected {
    fn of(block: &[Rated]) -> Option<Self> {
        let (first, last) = (block.first()?, block.last()?);
        let median = block.get(block.len() / 2)?;
        Some(Self {
            count: block.len() as u64,
            vsize: block.iter().map(|one| one.vsize).sum(),
            fees: block.iter().map(|one| one.fee).sum(),
            min_rate: per_vbyte(last.rate),
            median_rate: per_vbyte(median.rate),
            max_rate: per_vbyte(first.rate),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_filled_with_the_best_rates() {
        let rated = |sat_per_kvb, vsize| {
            let rate = FeeRate::per_kvb(sat_per_kvb);
            Rated { rate, vsize, fee: rate.fee(vsize).to_sat() }
        };
        assert!(project(Vec::new()).is_empty());
        let all = vec![rated(1_000, 600_000), rated(5_000, 300_000), rated(9_000, 200_000)];
        let blocks = project(all);
        let counts: Vec<_> = blocks.iter().map(|block| (block.count, block.vsize)).collect();
        assert_eq!(counts, [(2, 500_000), (1, 600_000)]);
        let first = &blocks[0];
        assert_eq!((first.min_rate, first.median_rate, first.max_rate), (5.0, 5.0, 9.0));
        assert_eq!(first.fees, 5 * 300_000 + 9 * 200_000);
        // One that is larger than a block has one to itself.
        assert_eq!(project(vec![rated(1, 3_000_000); 2]).len(), 2);
        assert_eq!(project(vec![rated(1, 1_000_000); 20]).len(), PROJECTED);
    }
}

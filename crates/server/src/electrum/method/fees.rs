//! Methods about fees and the mempool.
//!
//! Rates in coins per thousand virtual bytes, as nodes are configured. Without a mempool, which is
//! so while a sync is far behind, there is no estimate (-1), and the lowest rates are those a node
//! has by default.

use serde_json::json;
use varve::{Amount, FeeRate};

use super::{Call, Method};
use crate::electrum::fault::Fault;
use crate::electrum::params::Params;

pub(super) const METHODS: &[Method] = &[
    Method("blockchain.estimatefee", &["number", "mode"], estimate),
    Method("blockchain.relayfee", &[], |call, _| call.answer(&coins(RELAY))),
    Method("mempool.get_info", &[], info),
    Method("mempool.get_fee_histogram", &[], histogram),
    Method("mempool.recent", &[], recent),
];

/// The lowest rate that Core relays by default, and the step by which a replacement must pay more.
const RELAY: FeeRate = FeeRate::per_kvb(100);
/// Transactions in the answer of `mempool.recent`.
const RECENT: usize = 10;

/// A rate in coins per thousand virtual bytes.
fn coins(rate: FeeRate) -> f64 {
    let coin = Amount::COIN.to_sat();
    // Exact: fees are far below 2^53 satoshi.
    rate.sat_per_kvb() as f64 / coin as f64
}

fn estimate(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let blocks = params.number(0)?;
    let mode: Option<String> = params.optional(1)?;
    let known = ["CONSERVATIVE", "ECONOMICAL", "UNSET"];
    if mode.is_some_and(|mode| !known.contains(&mode.to_uppercase().as_str())) {
        return Err(Fault::bad(format!("mode should be one of {known:?}")));
    }
    let rate = call.snapshot.mempool().map(|mempool| mempool.estimate(blocks));
    match rate.filter(|rate| rate.sat_per_kvb() > 0) {
        Some(rate) => call.answer(&coins(rate)),
        None => call.answer(&-1),
    }
}

fn info(call: &mut Call<'_>, _: &Params<'_>) -> Result<(), Fault> {
    let lowest = call.snapshot.mempool().map_or(RELAY, |mempool| mempool.totals().min_rate);
    call.answer(&json!({
        "mempoolminfee": coins(lowest.max(RELAY)),
        "minrelaytxfee": coins(RELAY),
        "incrementalrelayfee": coins(RELAY),
    }))
}

/// Rates in satoshi per virtual byte, descending, each with the virtual bytes that pay it.
fn histogram(call: &mut Call<'_>, _: &Params<'_>) -> Result<(), Fault> {
    let mempool = call.snapshot.mempool();
    let bins = mempool.map(|mempool| mempool.electrum_histogram()).unwrap_or_default();
    let rate = |rate: FeeRate| rate.sat_per_million_vb() as f64 / 1e6;
    let bins: Vec<(f64, u64)> = bins.iter().map(|bin| (rate(bin.rate), bin.vsize)).collect();
    call.answer(&bins)
}

/// The last arrivals, the newest first.
fn recent(call: &mut Call<'_>, _: &Params<'_>) -> Result<(), Fault> {
    let Some(mempool) = call.snapshot.mempool() else { return call.answer(&json!([])) };
    let entry = |entry: &varve::MempoolEntry| {
        json!({
            "txid": entry.txid().to_string(),
            "fee": entry.fee().to_sat(),
            "vsize": entry.vsize(),
        })
    };
    call.answer(&mempool.recent(RECENT).map(entry).collect::<Vec<_>>())
}

//! A script, or the address that stands for it: balance, history, unspent outputs, balance over
//! time.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use varve::types::script::Class;
use varve::types::{Network, address};
use varve::{Amount, BlockHash, Height, Mempool, Order, Script, ScriptHash, Snapshot, Txid};

use super::Shared;
use super::block::limit;
use super::reply::{Asked, AtHeight, Refusals, Refused, Reply, Tip};

/// Transactions of a page, by default and at most.
const PAGE: (u32, u32) = (25, 500);
/// Unconfirmed transactions that stand before the first page.
const UNCONFIRMED: usize = 200;
/// Transactions of a script up to which it is counted as of a height, which reads those on one side
/// of it.
const COUNTED: u64 = 50_000;
/// Unspent outputs of an answer at most.
const UNSPENT: u64 = 10_000;
/// Transactions of a balance over time, by default and at most.
const POINTS: (u32, u32) = (500, 2_000);

/// What an address or script hash names.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScriptName {
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    hash: ScriptHash,
    /// The address, where it was asked for by one.
    address: Option<String>,
    /// The kind of script, where it was asked for by its address.
    r#type: Option<String>,
}

/// Reads an address or a script hash.
fn named(text: &str, network: Network) -> Result<ScriptName, Refused> {
    if let Ok(hash) = text.parse() {
        return Ok(ScriptName { hash, address: None, r#type: None });
    }
    let script = address::decode(text, network).map_err(|error| Refused::bad(error.to_string()))?;
    Ok(ScriptName {
        hash: ScriptHash::of(&script),
        address: address::encode(&script, network),
        r#type: Some(Class::of(&script).to_string()),
    })
}

fn script_at(
    snapshot: &Snapshot,
    hash: ScriptHash,
    at: Option<AtHeight>,
) -> Result<Script, Refused> {
    let script = snapshot.script(hash)?;
    let Some(height) = at else { return Ok(script) };
    let txs = script.summary()?.txs;
    if txs > COUNTED {
        let text = format!(
            "the script has {txs} transactions, more than {COUNTED}: too many to count as of a \
             height; page through its history instead"
        );
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    Ok(script.at(Height::from(height))?)
}

/// A script in figures.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScriptAnswer {
    tip: Tip,
    script: ScriptName,
    /// The height that was asked for.
    at: Option<u32>,
    balance: Balance,
    /// What it was ever paid, confirmed.
    received: u64,
    /// What of that it has spent, confirmed.
    sent: u64,
    counts: Counts,
    mempool: Waiting,
}

/// What a script holds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Balance {
    confirmed: u64,
    /// What unconfirmed transactions add or take.
    unconfirmed: i64,
}

/// Confirmed counts.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Counts {
    /// Outputs that pay it.
    funded: u64,
    /// Those of them that are spent.
    spent: u64,
    /// Transactions that do either.
    txs: u64,
}

/// Unconfirmed counts.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct Waiting {
    txs: u64,
    received: u64,
    sent: u64,
}

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct AtQuery {
    /// As of the block at this height; by default now.
    #[param(value_type = Option<u32>)]
    at: Option<AtHeight>,
}

/// Balance and counts of a script, now or as of a height.
#[utoipa::path(get, path = "/script/{id}", tag = "varve",
    params(("id" = String, Path, description = "An address, or a script hash"), AtQuery),
    responses((status = 200, body = ScriptAnswer), Refusals))]
pub(super) async fn script(
    State(own): State<Shared>,
    Path(id): Path<String>,
    Asked(AtQuery { at }): Asked<AtQuery>,
) -> Result<Reply<ScriptAnswer>, Refused> {
    let name = named(&id, own.service.network())?;
    own.ask(move |_, snapshot| {
        let script = script_at(snapshot, name.hash, at)?;
        let summary = script.summary()?;
        let mempool = snapshot.mempool().filter(|_| at.is_none());
        let delta = mempool.map(|mempool| mempool.script_delta(name.hash)).unwrap_or_default();
        let waiting =
            Waiting { txs: delta.txs, received: delta.funded.to_sat(), sent: delta.spent.to_sat() };
        let confirmed = summary.balance.to_sat();
        Ok(ScriptAnswer {
            tip: script.tip().into(),
            script: name,
            at: at.map(|at| Height::from(at).to_u32()),
            balance: Balance { confirmed, unconfirmed: delta.balance() },
            received: summary.received.to_sat(),
            sent: summary.sent.to_sat(),
            counts: Counts { funded: summary.funded, spent: summary.spent, txs: summary.txs },
            mempool: waiting,
        })
    })
    .await
}

/// A page of a script's history.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HistoryAnswer {
    tip: Tip,
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    hash: ScriptHash,
    /// Unconfirmed transactions, with the first page of the newest alone.
    unconfirmed: Vec<UnconfirmedTx>,
    txs: Vec<ConfirmedTx>,
    /// What `cursor` is for the next page; `null` on the last.
    cursor: Option<u64>,
}

/// A confirmed transaction of a script.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfirmedTx {
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    txid: Txid,
    height: u32,
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    block: BlockHash,
    position: u32,
    time: u32,
    received: u64,
    sent: u64,
}

/// An unconfirmed transaction of a script.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UnconfirmedTx {
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    txid: Txid,
    fee: u64,
    received: u64,
    sent: u64,
}

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct HistoryQuery {
    /// Where the page begins: `cursor` of the page before.
    cursor: Option<u64>,
    /// Transactions; 25 by default, 500 at most.
    limit: Option<u32>,
    /// `desc`, the newest first, by default; or `asc`.
    #[param(inline)]
    order: Option<Direction>,
    /// As of the block at this height; by default now.
    #[param(value_type = Option<u32>)]
    at: Option<AtHeight>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    Asc,
    #[default]
    Desc,
}

/// The transactions of a script, page by page. Blocks that come between two pages neither repeat
/// nor hide one.
#[utoipa::path(get, path = "/script/{id}/history", tag = "varve",
    params(("id" = String, Path, description = "An address, or a script hash"), HistoryQuery),
    responses((status = 200, body = HistoryAnswer), Refusals))]
pub(super) async fn history(
    State(own): State<Shared>,
    Path(id): Path<String>,
    Asked(asked): Asked<HistoryQuery>,
) -> Result<Reply<HistoryAnswer>, Refused> {
    let ScriptName { hash, .. } = named(&id, own.service.network())?;
    let direction = asked.order.unwrap_or_default();
    let order = match direction {
        Direction::Asc => Order::Ascending,
        Direction::Desc => Order::Descending,
    };
    own.ask(move |_, snapshot| {
        let script = script_at(snapshot, hash, asked.at)?;
        let page = script.history(order, asked.cursor, limit(asked.limit, PAGE) as usize)?;
        let is_first = direction == Direction::Desc && asked.cursor.is_none();
        let mempool = snapshot.mempool().filter(|_| is_first && asked.at.is_none());
        let txs = page.txs.iter().map(|tx| confirmed(snapshot, tx));
        Ok(HistoryAnswer {
            tip: script.tip().into(),
            hash,
            unconfirmed: mempool.map(|mempool| waiting(&mempool, hash)).unwrap_or_default(),
            txs: txs.collect::<Result<_, _>>()?,
            cursor: page.cursor,
        })
    })
    .await
}

fn confirmed(snapshot: &Snapshot, tx: &varve::ScriptTx) -> Result<ConfirmedTx, Refused> {
    Ok(ConfirmedTx {
        txid: tx.txid,
        height: tx.height.to_u32(),
        block: tx.block,
        position: tx.position,
        time: time_of(snapshot, tx.block)?,
        received: tx.received.to_sat(),
        sent: tx.sent.to_sat(),
    })
}

fn time_of(snapshot: &Snapshot, block: BlockHash) -> Result<u32, Refused> {
    Ok(snapshot.header(block)?.map_or(0, |header| header.time))
}

/// The unconfirmed transactions of a script, with what each pays it and takes from it.
fn waiting(mempool: &Mempool, script: ScriptHash) -> Vec<UnconfirmedTx> {
    let items = mempool.history(script).into_iter().take(UNCONFIRMED);
    let is_own = |bytes: &[u8]| ScriptHash::of(bytes) == script;
    let sum = |amounts: &mut dyn Iterator<Item = Amount>| {
        amounts.fold(0_u64, |sum, amount| sum.saturating_add(amount.to_sat()))
    };
    items
        .filter_map(|item| {
            let tx = mempool.entry(&item.txid)?.transaction().view();
            let paid = tx.outputs().filter(|output| is_own(output.script));
            let spent = tx.inputs().filter_map(|input| input.spent);
            let spent = spent.filter(|output| is_own(output.script));
            Some(UnconfirmedTx {
                txid: item.txid,
                fee: item.fee.to_sat(),
                received: sum(&mut paid.map(|output| output.value)),
                sent: sum(&mut spent.map(|output| output.value)),
            })
        })
        .collect()
}

/// The unspent outputs of a script.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UtxosAnswer {
    tip: Tip,
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    hash: ScriptHash,
    utxos: Vec<Utxo>,
}

/// An unspent output.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Utxo {
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    txid: Txid,
    vout: u32,
    value: u64,
    /// `null` while it is unconfirmed.
    height: Option<u32>,
}

/// The unspent outputs of a script in chain order, now or as of a height. Now, what unconfirmed
/// transactions spend is left out and what they make is at the end.
#[utoipa::path(get, path = "/script/{id}/utxos", tag = "varve",
    params(("id" = String, Path, description = "An address, or a script hash"), AtQuery),
    responses((status = 200, body = UtxosAnswer), Refusals))]
pub(super) async fn utxos(
    State(own): State<Shared>,
    Path(id): Path<String>,
    Asked(AtQuery { at }): Asked<AtQuery>,
) -> Result<Reply<UtxosAnswer>, Refused> {
    let ScriptName { hash, .. } = named(&id, own.service.network())?;
    own.ask(move |_, snapshot| {
        let script = script_at(snapshot, hash, at)?;
        let summary = script.summary()?;
        let count = summary.funded.saturating_sub(summary.spent);
        if count > UNSPENT {
            let text = format!(
                "the script has {count} unspent outputs, more than {UNSPENT}; page through its \
                 history instead"
            );
            return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        let mempool = snapshot.mempool().filter(|_| at.is_none());
        let spent = mempool.as_ref().map(|all| all.spent_confirmed(hash)).unwrap_or_default();
        let mut utxos: Vec<Utxo> = Vec::new();
        for output in script.unspent()? {
            if !spent.contains(&output.outpoint) {
                let (outpoint, value) = (output.outpoint, output.value.to_sat());
                let (txid, vout, height) = (outpoint.txid, outpoint.vout, output.height.to_u32());
                utxos.push(Utxo { txid, vout, value, height: Some(height) });
            }
        }
        for output in mempool.map(|all| all.unspent(hash)).unwrap_or_default() {
            let (outpoint, value) = (output.outpoint, output.value.to_sat());
            utxos.push(Utxo { txid: outpoint.txid, vout: outpoint.vout, value, height: None });
        }
        Ok(UtxosAnswer { tip: script.tip().into(), hash, utxos })
    })
    .await
}

/// The balance of a script behind each block that changed it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BalanceHistoryAnswer {
    tip: Tip,
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    hash: ScriptHash,
    /// In chain order, the last with what the script holds now.
    points: Vec<Point>,
    /// Whether the points begin with the first transaction of the script.
    complete: bool,
}

/// A balance.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Point {
    height: u32,
    time: u32,
    balance: u64,
}

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct PointsQuery {
    /// The newest transactions that are looked at; 500 by default, 2,000 at most.
    limit: Option<u32>,
}

/// The confirmed balance of a script over time: exact, as far back as its newest transactions go.
#[utoipa::path(get, path = "/script/{id}/balance-history", tag = "varve",
    params(("id" = String, Path, description = "An address, or a script hash"), PointsQuery),
    responses((status = 200, body = BalanceHistoryAnswer), Refusals))]
pub(super) async fn balance_history(
    State(own): State<Shared>,
    Path(id): Path<String>,
    Asked(asked): Asked<PointsQuery>,
) -> Result<Reply<BalanceHistoryAnswer>, Refused> {
    let ScriptName { hash, .. } = named(&id, own.service.network())?;
    own.ask(move |_, snapshot| {
        let script = snapshot.script(hash)?;
        let limit = limit(asked.limit, POINTS) as usize;
        let page = script.history(Order::Descending, None, limit)?;
        let mut balance = script.summary()?.balance.to_sat();
        let mut points: Vec<Point> = Vec::new();
        for tx in &page.txs {
            let height = tx.height.to_u32();
            if points.last().is_none_or(|point| point.height != height) {
                points.push(Point { height, time: time_of(snapshot, tx.block)?, balance });
            }
            let before = balance.wrapping_add(tx.sent.to_sat());
            balance = before.wrapping_sub(tx.received.to_sat());
        }
        points.reverse();
        let (tip, complete) = (script.tip().into(), page.cursor.is_none());
        Ok(BalanceHistoryAnswer { tip, hash, points, complete })
    })
    .await
}

//! The answers of `/address/…` and `/scripthash/…`: what a script was paid, has spent and holds.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use varve::{Height, Outpoint, ScriptHash, ScriptUnspent, Txid};

use super::super::answer::{Answer, Refusal};
use super::super::api::{Moment, Shared};
use super::history::{Row, Start, page};
use super::json::{self, Address, Script, Stats, Status, Summary, Sums, Tx, Utxo};
use super::{hash, plain_script_hash, script_of};

/// Confirmed transactions of a page.
pub(super) const CHAIN_PAGE: usize = 25;
/// Unconfirmed transactions of a page.
pub(super) const MEMPOOL_PAGE: usize = 50;
/// Entries of a summary, unless the client says how many, and at most.
const SUMMARY_PAGE: usize = 1_000;
const LONGEST_SUMMARY: usize = 5_000;

/// Which part of a history is asked for.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// Begin behind this transaction.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    pub(super) after_txid: Option<String>,
    /// The most transactions to list.
    #[param(minimum = 1)]
    pub(super) max_txs: Option<usize>,
}

impl PageQuery {
    pub(super) fn after(&self) -> Result<Option<Txid>, Refusal> {
        self.after_txid.as_deref().map(hash).transpose()
    }

    /// How many to list: what the client says, up to `most`.
    pub(super) fn count(&self, default: usize, most: usize) -> usize {
        self.max_txs.unwrap_or(default).clamp(1, most)
    }

    pub(super) fn summary_count(&self) -> usize {
        self.count(SUMMARY_PAGE, LONGEST_SUMMARY)
    }
}

/// How a path names a script.
#[derive(Clone, Debug)]
pub(super) enum Name {
    Address(String),
    Hash(String),
}

impl Name {
    fn script(&self, moment: &Moment<'_>) -> Result<ScriptHash, Refusal> {
        match self {
            Self::Address(text) => script_of(text, moment.network()),
            Self::Hash(text) => plain_script_hash(text),
        }
    }
}

pub(super) async fn stats(api: Shared, name: Name) -> Answer {
    api.ask(move |moment| {
        let hash = name.script(moment)?;
        let script = moment.script(hash)?;
        let sums = script.summary()?;
        let chain_stats = Sums {
            tx_count: sums.txs,
            funded_txo_count: sums.funded,
            funded_txo_sum: sums.received.to_sat(),
            spent_txo_count: sums.spent,
            spent_txo_sum: sums.sent.to_sat(),
        };
        let stats = Stats { chain_stats, mempool_stats: moment.unconfirmed_sums(hash) };
        let answer = match name {
            Name::Address(address) => Answer::json(&Address { address, stats }),
            Name::Hash(scripthash) => Answer::json(&Script { scripthash, stats }),
        };
        Ok(answer.at(script.tip()))
    })
    .await
}

/// Unconfirmed transactions, then confirmed ones.
pub(super) async fn txs(api: Shared, name: Name, query: PageQuery) -> Answer {
    api.ask(move |moment| mixed_page(moment, &[name.script(moment)?], &query)).await
}

/// A page that begins among the unconfirmed transactions of scripts and goes on with confirmed
/// ones. After a confirmed transaction it has confirmed ones alone.
pub(super) fn mixed_page(
    moment: &Moment<'_>,
    scripts: &[ScriptHash],
    query: &PageQuery,
) -> Result<Answer, Refusal> {
    let unconfirmed = moment.unconfirmed(scripts);
    let after = query.after()?;
    let seen = after.map(|after| unconfirmed.iter().position(|entry| entry.txid() == after));
    let (skip, start) = match (seen, after) {
        (None, _) | (_, None) => (0, Start::Top),
        (Some(Some(at)), _) => (at + 1, Start::Top),
        (Some(None), Some(after)) => (unconfirmed.len(), Start::Below(after)),
    };
    let shown = unconfirmed.into_iter().skip(skip).take(query.count(MEMPOOL_PAGE, MEMPOOL_PAGE));
    let mut txs: Vec<Tx> = shown.map(|entry| moment.shown_entry(entry)).collect();
    let (rows, tip) = page(moment, scripts, start, query.count(CHAIN_PAGE, MEMPOOL_PAGE))?;
    txs.extend(chain_txs(moment, &rows)?);
    Ok(Answer::json(&txs).at(tip))
}

fn chain_txs(moment: &Moment<'_>, rows: &[Row]) -> Result<Vec<Tx>, Refusal> {
    let lost = || Refusal::not_found("Transaction not found");
    let tx = |row: &Row| Ok(moment.shown_tx(row.tx.txid)?.ok_or_else(lost)?.0);
    rows.iter().map(tx).collect()
}

pub(super) async fn chain(
    api: Shared,
    name: Name,
    last: Option<String>,
    query: PageQuery,
) -> Answer {
    api.ask(move |moment| {
        let start = start(last.as_deref())?;
        let count = query.count(CHAIN_PAGE, MEMPOOL_PAGE);
        let (rows, tip) = page(moment, &[name.script(moment)?], start, count)?;
        Ok(Answer::json(&chain_txs(moment, &rows)?).at(tip))
    })
    .await
}

fn start(last: Option<&str>) -> Result<Start, Refusal> {
    Ok(match last {
        Some(last) => Start::Below(hash(last)?),
        None => Start::Top,
    })
}

pub(super) async fn mempool(api: Shared, name: Name, query: PageQuery) -> Answer {
    api.ask(move |moment| {
        let entries = moment.unconfirmed(&[name.script(moment)?]);
        let entries = entries.into_iter().take(query.count(MEMPOOL_PAGE, MEMPOOL_PAGE));
        let txs: Vec<Tx> = entries.map(|entry| moment.shown_entry(entry)).collect();
        Ok(Answer::json(&txs))
    })
    .await
}

pub(super) async fn summary(
    api: Shared,
    name: Name,
    last: Option<String>,
    query: PageQuery,
) -> Answer {
    api.ask(move |moment| {
        let start = start(last.as_deref())?;
        summaries(moment, &[name.script(moment)?], start, query.summary_count())
    })
    .await
}

/// What each transaction of a page did to the balance of scripts.
pub(super) fn summaries(
    moment: &Moment<'_>,
    scripts: &[ScriptHash],
    start: Start,
    count: usize,
) -> Result<Answer, Refusal> {
    let (rows, tip) = page(moment, scripts, start, count)?;
    let mut times = Times::default();
    let summary = |row: &Row| {
        let status = times.status(moment, row.tx.height)?;
        Ok(Summary {
            txid: json::txid(row.tx.txid),
            height: row.tx.height.to_u32(),
            value: row.value,
            time: status.block_time.unwrap_or_default(),
        })
    };
    let summaries: Vec<Summary> = rows.iter().map(summary).collect::<Result<_, Refusal>>()?;
    Ok(Answer::json(&summaries).at(tip))
}

/// The statuses of blocks that were asked for already.
#[derive(Default)]
struct Times(HashMap<u32, Status>);

impl Times {
    fn status(&mut self, moment: &Moment<'_>, height: Height) -> Result<Status, Refusal> {
        if let Some(status) = self.0.get(&height.to_u32()) {
            return Ok(status.clone());
        }
        let header = moment.snapshot.header(height)?;
        let status = header.as_ref().map(Status::of).unwrap_or_default();
        self.0.insert(height.to_u32(), status.clone());
        Ok(status)
    }
}

pub(super) async fn utxo(api: Shared, name: Name) -> Answer {
    api.ask(move |moment| {
        let hash = name.script(moment)?;
        let script = moment.script(hash)?;
        let sums = script.summary()?;
        let most = moment.api.limits.unspent;
        if sums.funded.saturating_sub(sums.spent) > most {
            let text = format!("Too many unspent transaction outputs (>{most})");
            return Err(Refusal::bad(text));
        }
        let mut times = Times::default();
        let mempool = moment.mempool.as_deref();
        let gone: HashSet<Outpoint> =
            mempool.map(|mempool| mempool.spent_confirmed(hash)).into_iter().flatten().collect();
        let mut utxos = Vec::new();
        for unspent in script.unspent()?.iter().filter(|coin| !gone.contains(&coin.outpoint)) {
            let ScriptUnspent { height, outpoint, value, .. } = *unspent;
            utxos.push(Utxo {
                txid: json::txid(outpoint.txid),
                vout: outpoint.vout,
                status: times.status(moment, height)?,
                value: value.to_sat(),
            });
        }
        let unconfirmed = mempool.map(|mempool| mempool.unspent(hash)).unwrap_or_default();
        utxos.extend(unconfirmed.iter().map(|coin| Utxo {
            txid: json::txid(coin.outpoint.txid),
            vout: coin.outpoint.vout,
            status: Status::default(),
            value: coin.value.to_sat(),
        }));
        Ok(Answer::json(&utxos).at(script.tip()))
    })
    .await
}

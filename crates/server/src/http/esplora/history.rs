//! Transactions as Esplora shows them, and pages of the transactions of scripts.
//!
//! A page is found without a walk: its place in the chain is that of the last transaction seen,
//! and the script's history is read from there down. Several scripts are merged by place.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use varve::{BlockHash, MempoolEntry, Order, Outpoint, Script, ScriptHash, ScriptTx, Tip, Txid};

use super::super::answer::Refusal;
use super::super::api::{Found, Moment, Spend, weight};
use super::json::{self, Outspend, Status, Sums, Tx, TxParts};

impl Moment<'_> {
    /// A transaction as it is shown; `None` when it is unknown.
    pub(super) fn shown_tx(&self, txid: Txid) -> Result<Option<(Tx, Status)>, Refusal> {
        match self.tx(txid)? {
            None => Ok(None),
            Some(Found::Unconfirmed(entry)) => {
                Ok(Some((self.shown_entry(&entry), Status::default())))
            }
            Some(Found::Stored(stored)) => {
                let status = Status::of(&stored.block);
                let view = stored.parse()?;
                Ok(Some((self.shown_view(txid, &view, status.clone())?, status)))
            }
        }
    }

    /// A transaction of a block as it is shown.
    pub(super) fn shown_view(
        &self,
        txid: Txid,
        view: &varve::types::Tx<'_>,
        status: Status,
    ) -> Result<Tx, Refusal> {
        let prevouts = self.snapshot.spent_outputs(view)?;
        let prevouts = prevouts.into_iter();
        let prevouts = prevouts
            .map(|spent| spent.map(|output| (output.value, Cow::Owned(output.script))))
            .collect();
        let (size, weight) = (view.bytes().len() as u64, weight(view) as u64);
        let parts = TxParts { txid, view: *view, size, weight, prevouts, status };
        Ok(Tx::new(&parts, self.network()))
    }

    /// An unconfirmed transaction as it is shown.
    pub(super) fn shown_entry(&self, entry: &MempoolEntry) -> Tx {
        let tx = entry.transaction();
        let spent = tx.inputs().map(|input| input.spent);
        let prevouts = spent
            .map(|spent| spent.map(|output| (output.value, Cow::Borrowed(output.script))))
            .collect();
        let parts = TxParts {
            txid: entry.txid(),
            view: tx.view(),
            size: entry.size(),
            weight: entry.weight(),
            prevouts,
            status: Status::default(),
        };
        Tx::new(&parts, self.network())
    }

    /// Where a block is in the confirmed chain, if it is.
    pub(super) fn status_of(&self, block: Option<BlockHash>) -> Result<Status, Refusal> {
        let Some(hash) = block else { return Ok(Status::default()) };
        let header = self.snapshot.header(hash)?;
        Ok(header.as_ref().map(Status::of).unwrap_or_default())
    }

    /// Whether an output is spent.
    pub(super) fn outspend(&self, outpoint: Outpoint) -> Result<Outspend, Refusal> {
        let Some(Spend { txid, vin, block }) = self.spend(outpoint)? else {
            return Ok(Outspend::default());
        };
        Ok(Outspend {
            spent: true,
            txid: Some(json::txid(txid)),
            vin: Some(vin),
            status: Some(self.status_of(block)?),
        })
    }

    /// Whether each output of a transaction is spent; `None` when it is unknown.
    pub(super) fn outspends(&self, txid: Txid) -> Result<Option<Vec<Outspend>>, Refusal> {
        let count = match self.tx(txid)? {
            None => return Ok(None),
            Some(Found::Unconfirmed(entry)) => entry.transaction().view().outputs().count(),
            Some(Found::Stored(stored)) => stored.parse()?.outputs().count(),
        };
        let outpoints = (0..).take(count).map(|vout| Outpoint::new(txid, vout));
        outpoints.map(|outpoint| self.outspend(outpoint)).collect::<Result<_, _>>().map(Some)
    }

    /// The history of a script. A node that does not keep them cannot answer.
    pub(super) fn script(&self, hash: ScriptHash) -> Result<Script, Refusal> {
        self.snapshot.script(hash).map_err(|error| Refusal::unavailable(error.to_string()))
    }

    /// The unconfirmed transactions of scripts, the newest first.
    pub(super) fn unconfirmed(&self, scripts: &[ScriptHash]) -> Vec<&MempoolEntry> {
        let Some(mempool) = &self.mempool else { return Vec::new() };
        let mut txids: Vec<Txid> = Vec::new();
        for script in scripts {
            txids.extend(mempool.history(*script).iter().map(|item| item.txid));
        }
        txids.sort_unstable();
        txids.dedup();
        let mut entries: Vec<_> = txids.iter().filter_map(|txid| mempool.entry(txid)).collect();
        // Children arrive after their parents, and have more ancestors in the same second.
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.time(), entry.ancestors().count)));
        entries
    }

    /// What unconfirmed transactions do to a script.
    pub(super) fn unconfirmed_sums(&self, script: ScriptHash) -> Sums {
        let delta = self.mempool.as_ref().map(|mempool| mempool.script_delta(script));
        let delta = delta.unwrap_or_default();
        Sums {
            tx_count: delta.txs,
            funded_txo_count: delta.funded_count,
            funded_txo_sum: delta.funded.to_sat(),
            spent_txo_count: delta.spent_count,
            spent_txo_sum: delta.spent.to_sat(),
        }
    }
}

/// Where a page begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    /// With the newest transaction.
    Top,
    /// Below this confirmed transaction.
    Below(Txid),
}

/// A confirmed transaction of one or more scripts, and what it did to their balance.
pub(super) struct Row {
    pub(super) tx: ScriptTx,
    pub(super) value: i64,
}

/// A page of the confirmed transactions of scripts, the newest first, and the tip it was read at.
pub(super) fn page(
    moment: &Moment<'_>,
    scripts: &[ScriptHash],
    start: Start,
    limit: usize,
) -> Result<(Vec<Row>, Tip), Refusal> {
    let mut tip = moment.tip();
    let mut rows: HashMap<(u32, u32), Row> = HashMap::new();
    let unique: HashSet<ScriptHash> = scripts.iter().copied().collect();
    let below = match start {
        Start::Top => None,
        Start::Below(txid) => Some(place(moment, txid)?),
    };
    for hash in unique {
        let script = moment.script(hash)?;
        tip = script.tip();
        let cursor = below.map(|(height, position)| script.cursor_below(height, position));
        let found = script.history(Order::Descending, cursor.transpose()?, limit)?;
        for tx in found.txs {
            let value = signed(tx.received.to_sat()) - signed(tx.sent.to_sat());
            let at = (tx.height.to_u32(), tx.position);
            rows.entry(at).or_insert(Row { tx, value: 0 }).value += value;
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.tx.height, row.tx.position)));
    rows.truncate(limit);
    Ok((rows, tip))
}

/// The place of a confirmed transaction in the chain.
fn place(moment: &Moment<'_>, txid: Txid) -> Result<(varve::Height, u32), Refusal> {
    let found = moment.snapshot.tx(txid)?.filter(varve::Transaction::is_confirmed);
    let found = found.ok_or_else(|| Refusal::not_found("Transaction not found in the chain"))?;
    Ok((found.block.height, found.position))
}

fn signed(satoshi: u64) -> i64 {
    i64::try_from(satoshi).unwrap_or(i64::MAX)
}

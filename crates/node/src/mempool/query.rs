//! Questions to one version.
//!
//! All answers are of the same moment. Questions by script or pushed item cost the rows they
//! return; questions by txid or outpoint cost one search.

use std::collections::BTreeMap;

use varve_types::pushdata::PushdataFlags;
use varve_types::{Amount, Outpoint, Txid};
use varve_types::{PushdataHash, ScriptHash};

use super::chain::Tip;
use super::entry::Entry;
use super::fee_rate::{FeeRate, Sum};
use super::rows::{RowKey, Side};
use super::version::Version;

/// The input that spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentBy {
    /// The transaction.
    pub txid: Txid,
    /// Its input.
    pub vin: u32,
}

/// A transaction in the history of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryItem {
    /// The transaction.
    pub txid: Txid,
    /// Electrum's height: 0 when all inputs are confirmed, else -1.
    pub height: i32,
    /// The fee.
    pub fee: Amount,
}

/// What one unconfirmed transaction does to a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptMove {
    /// The transaction, as in the history.
    pub item: HistoryItem,
    /// What it pays to the script.
    pub received: Amount,
    /// What it spends from the script.
    pub sent: Amount,
}

/// What unconfirmed transactions do to a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptDelta {
    /// Transactions that pay it or spend from it.
    pub txs: u64,
    /// Outputs that pay it.
    pub funded_count: u64,
    /// What they are worth.
    pub funded: Amount,
    /// Outputs of it that are spent, confirmed or not.
    pub spent_count: u64,
    /// What they were worth.
    pub spent: Amount,
}

impl ScriptDelta {
    /// The change of the balance in satoshi.
    #[must_use]
    pub fn balance(&self) -> i64 {
        let satoshi = |amount: Amount| i64::try_from(amount.to_sat()).unwrap_or(i64::MAX);
        satoshi(self.funded).saturating_sub(satoshi(self.spent))
    }
}

/// An output of an unconfirmed transaction that nothing spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnspentOutput {
    /// The output.
    pub outpoint: Outpoint,
    /// What it is worth.
    pub value: Amount,
    /// Electrum's height of its transaction.
    pub height: i32,
}

/// A place where an item is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushRow {
    /// The transaction.
    pub txid: Txid,
    /// The output or input that pushes it.
    pub side: Side,
    /// What kind of push it is.
    pub flags: PushdataFlags,
}

/// The whole mempool in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Transactions, virtual bytes and fees.
    pub sum: Sum,
    /// Bytes that are charged to the memory share.
    pub memory: u64,
    /// The lowest rate that is taken.
    pub min_rate: FeeRate,
}

impl Version {
    /// The confirmed tip that the version belongs to.
    #[must_use]
    pub const fn tip(&self) -> Tip {
        self.tip
    }

    /// Whether a transaction is here.
    #[must_use]
    pub fn contains(&self, txid: &Txid) -> bool {
        self.ids.contains(txid)
    }

    /// A transaction with its numbers.
    #[must_use]
    pub fn entry(&self, txid: &Txid) -> Option<&Entry> {
        self.ids.get(txid).map(|id| self.at(*id))
    }

    /// The unconfirmed transactions that spend outputs of a transaction, in the order of arrival.
    /// The transaction itself may be confirmed.
    #[must_use]
    pub fn spenders_of(&self, txid: Txid) -> Vec<Txid> {
        self.children(txid).into_iter().map(|id| self.at(id).txid()).collect()
    }

    /// Who spends an output.
    #[must_use]
    pub fn spender(&self, outpoint: &Outpoint) -> Option<SpentBy> {
        let spender = self.spends.get(outpoint)?;
        Some(SpentBy { txid: self.at(spender.id).txid(), vin: spender.vin })
    }

    fn script_rows(&self, script: ScriptHash) -> impl Iterator<Item = ScriptUse<'_>> {
        let rows = self.scripts.from(&RowKey::first(script));
        let rows = rows.take_while(move |(key, _)| key.hash == script);
        rows.map(|(key, value)| ScriptUse {
            entry: self.at(key.entry),
            side: key.side.side(),
            value: Amount::from_sat(*value),
        })
    }

    /// The transactions that pay a script or spend from it, in the order of Electrum's status:
    /// those with confirmed inputs first, then by txid as it is shown.
    #[must_use]
    pub fn history(&self, script: ScriptHash) -> Vec<HistoryItem> {
        let item = |row: ScriptUse<'_>| HistoryItem {
            txid: row.entry.txid(),
            height: row.entry.electrum_height(),
            fee: row.entry.fee(),
        };
        let mut items: Vec<HistoryItem> = self.script_rows(script).map(item).collect();
        items.dedup_by_key(|item| item.txid);
        items.sort_unstable_by_key(|item| (-item.height, shown(&item.txid)));
        items
    }

    /// What each of them does to the script, in the same order.
    #[must_use]
    pub fn moves(&self, script: ScriptHash) -> Vec<ScriptMove> {
        let mut moves: BTreeMap<Txid, (Amount, Amount)> = BTreeMap::new();
        let plus = |sum: Amount, value| sum.checked_add(value).unwrap_or(Amount::MAX_MONEY);
        for row in self.script_rows(script) {
            let (received, sent) = moves.entry(row.entry.txid()).or_default();
            match row.side {
                Side::Output(_) => *received = plus(*received, row.value),
                Side::Input(_) => *sent = plus(*sent, row.value),
            }
        }
        let items = self.history(script).into_iter();
        let with_amounts = |item: HistoryItem| {
            let (received, sent) = moves.get(&item.txid).copied().unwrap_or_default();
            ScriptMove { item, received, sent }
        };
        items.map(with_amounts).collect()
    }

    /// What unconfirmed transactions do to a script: counts, sums, and the balance.
    #[must_use]
    pub fn script_delta(&self, script: ScriptHash) -> ScriptDelta {
        let mut delta = ScriptDelta::default();
        let mut last = None;
        let plus = |sum: Amount, value| sum.checked_add(value).unwrap_or(Amount::MAX_MONEY);
        for row in self.script_rows(script) {
            let txid = row.entry.txid();
            delta.txs += u64::from(last.replace(txid) != Some(txid));
            match row.side {
                Side::Output(_) => {
                    delta.funded_count += 1;
                    delta.funded = plus(delta.funded, row.value);
                }
                Side::Input(_) => {
                    delta.spent_count += 1;
                    delta.spent = plus(delta.spent, row.value);
                }
            }
        }
        delta
    }

    /// The outputs that unconfirmed transactions pay to a script and that none spends.
    #[must_use]
    pub fn unspent(&self, script: ScriptHash) -> Vec<UnspentOutput> {
        let output = |row: ScriptUse<'_>| {
            let Side::Output(vout) = row.side else { return None };
            let outpoint = Outpoint::new(row.entry.txid(), vout);
            let height = row.entry.electrum_height();
            let free = !self.spends.contains(&outpoint);
            free.then_some(UnspentOutput { outpoint, value: row.value, height })
        };
        self.script_rows(script).filter_map(output).collect()
    }

    /// The confirmed outputs of a script that unconfirmed transactions spend.
    #[must_use]
    pub fn spent_confirmed(&self, script: ScriptHash) -> Vec<Outpoint> {
        let spent = |row: ScriptUse<'_>| {
            let Side::Input(vin) = row.side else { return None };
            let input = row.entry.transaction().view().inputs().nth(vin as usize)?;
            (!self.ids.contains(&input.outpoint.txid)).then_some(input.outpoint)
        };
        self.script_rows(script).filter_map(spent).collect()
    }

    /// The outputs and inputs that push an item, in the order of arrival.
    #[must_use]
    pub fn pushes(&self, item: PushdataHash) -> Vec<PushRow> {
        let rows = self.pushes.from(&RowKey::first(item));
        let row = |(key, flags): (&RowKey<PushdataHash>, &PushdataFlags)| PushRow {
            txid: self.at(key.entry).txid(),
            side: key.side.side(),
            flags: *flags,
        };
        rows.take_while(|(key, _)| key.hash == item).map(row).collect()
    }

    /// At most `limit` txids behind this one, in the order of their bytes.
    #[must_use]
    pub fn txids(&self, after: Option<&Txid>, limit: usize) -> Vec<Txid> {
        let start = after.copied().unwrap_or(Txid::ZERO);
        let ids = self.ids.from(&start).map(|(txid, _)| *txid);
        ids.filter(|txid| after != Some(txid)).take(limit).collect()
    }

    /// Those that pay the highest rates themselves, the best first.
    pub fn best(&self, count: usize) -> impl Iterator<Item = &Entry> {
        self.by_rate.iter_back().take(count).map(|((_, id), _)| self.at(*id))
    }

    /// The last arrivals, the newest first.
    pub fn recent(&self, count: usize) -> impl Iterator<Item = &Entry> {
        self.entries.iter_back().take(count).map(|(_, entry)| entry)
    }

    /// All transactions, parents before children.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Counts, sizes, fees.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        Totals { sum: self.sum, memory: self.memory, min_rate: self.min_rate }
    }
}

/// One row of a script.
struct ScriptUse<'a> {
    entry: &'a Entry,
    side: Side,
    value: Amount,
}

/// The bytes of a txid in the order in which they are shown.
fn shown(txid: &Txid) -> [u8; 32] {
    let mut bytes = txid.to_bytes();
    bytes.reverse();
    bytes
}

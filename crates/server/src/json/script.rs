//! The answer about a script.

use serde::Serialize;
use varve::{
    BlockHash, Mempool, Outpoint, Script, ScriptHash, ScriptMove, ScriptSummary, ScriptTx,
    ScriptUnspent, Tip, Txid, UnspentOutput,
};

use super::{optional_text, text};

/// `varve address`.
#[derive(Debug, Serialize)]
pub struct Address {
    #[serde(serialize_with = "text")]
    script_hash: ScriptHash,
    balance: Balance,
    counts: Counts,
    history: Vec<Entry>,
    utxos: Vec<Unspent>,
    tip: AnswerTip,
    cursor: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Balance {
    confirmed: u64,
    unconfirmed: i64,
}

#[derive(Debug, Serialize)]
struct Counts {
    funded: u64,
    spent: u64,
    txs: u64,
}

#[derive(Debug, Serialize)]
struct Entry {
    #[serde(serialize_with = "text")]
    txid: Txid,
    height: i64,
    #[serde(serialize_with = "optional_text")]
    blockhash: Option<BlockHash>,
    position: Option<u32>,
    received: u64,
    sent: u64,
}

#[derive(Debug, Serialize)]
struct Unspent {
    #[serde(serialize_with = "text")]
    txid: Txid,
    vout: u32,
    value: u64,
    height: i64,
}

#[derive(Debug, Serialize)]
struct AnswerTip {
    height: u32,
    #[serde(serialize_with = "text")]
    hash: BlockHash,
}

impl Address {
    /// The script, a page of its history and where the next begins, and its unspent outputs.
    #[must_use]
    pub fn new(
        script: &Script,
        summary: &ScriptSummary,
        (history, cursor): (&[ScriptTx], Option<u64>),
        utxos: &[ScriptUnspent],
    ) -> Self {
        let entry = |tx: &ScriptTx| Entry {
            txid: tx.txid,
            height: i64::from(tx.height.to_u32()),
            blockhash: Some(tx.block),
            position: Some(tx.position),
            received: tx.received.to_sat(),
            sent: tx.sent.to_sat(),
        };
        let unspent = |output: &ScriptUnspent| Unspent {
            txid: output.outpoint.txid,
            vout: output.outpoint.vout,
            value: output.value.to_sat(),
            height: i64::from(output.height.to_u32()),
        };
        let Tip { height, hash } = script.tip();
        Self {
            script_hash: script.hash(),
            balance: Balance { confirmed: summary.balance.to_sat(), unconfirmed: 0 },
            counts: Counts { funded: summary.funded, spent: summary.spent, txs: summary.txs },
            history: history.iter().map(entry).collect(),
            utxos: utxos.iter().map(unspent).collect(),
            tip: AnswerTip { height: height.to_u32(), hash },
            cursor,
        }
    }

    /// The same with what unconfirmed transactions do to the script. The last page of the history
    /// ends with them; outputs that they spend are not unspent, and theirs are.
    #[must_use]
    pub fn with_mempool(mut self, mempool: &Mempool, is_first_page: bool) -> Self {
        let script = self.script_hash;
        self.balance.unconfirmed = mempool.script_delta(script).balance();
        if self.cursor.is_none() {
            self.history.extend(mempool.moves(script).iter().map(unconfirmed));
        }
        if is_first_page {
            let spent = mempool.spent_confirmed(script);
            self.utxos.retain(|output| !spent.contains(&Outpoint::new(output.txid, output.vout)));
            self.utxos.extend(mempool.unspent(script).iter().map(unspent));
        }
        self
    }
}

/// An unconfirmed transaction: height 0, or −1 when one that it builds on is unconfirmed too.
fn unconfirmed(tx: &ScriptMove) -> Entry {
    Entry {
        txid: tx.item.txid,
        height: i64::from(tx.item.height),
        blockhash: None,
        position: None,
        received: tx.received.to_sat(),
        sent: tx.sent.to_sat(),
    }
}

fn unspent(output: &UnspentOutput) -> Unspent {
    let Outpoint { txid, vout } = output.outpoint;
    Unspent { txid, vout, value: output.value.to_sat(), height: i64::from(output.height) }
}

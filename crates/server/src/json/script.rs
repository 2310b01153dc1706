//! The answer about a script.

use serde::Serialize;
use varve::{BlockHash, Script, ScriptHash, ScriptSummary, ScriptTx, ScriptUnspent, Tip, Txid};

use super::text;

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
    height: u32,
    #[serde(serialize_with = "text")]
    blockhash: BlockHash,
    position: u32,
    received: u64,
    sent: u64,
}

#[derive(Debug, Serialize)]
struct Unspent {
    #[serde(serialize_with = "text")]
    txid: Txid,
    vout: u32,
    value: u64,
    height: u32,
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
            height: tx.height.to_u32(),
            blockhash: tx.block,
            position: tx.position,
            received: tx.received.to_sat(),
            sent: tx.sent.to_sat(),
        };
        let unspent = |output: &ScriptUnspent| Unspent {
            txid: output.outpoint.txid,
            vout: output.outpoint.vout,
            value: output.value.to_sat(),
            height: output.height.to_u32(),
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
}

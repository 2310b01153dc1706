//! What every script was paid and has spent, by walking over the bytes of all blocks: the oracle.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use serde_json::{Value, json};
use varve::types::script::MAX_SCRIPT_SIZE;
use varve::types::{Block, ScriptHash, ScriptStatus, Txid};
use varve::{Network, Outpoint};

/// A script's transactions and coins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) script: Vec<u8>,
    pub(crate) history: Vec<(Txid, u32)>,
    /// Height, position, value.
    pub(crate) coins: BTreeMap<(u32, u32, u32), (Outpoint, u64)>,
}

/// The whole chain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) accounts: HashMap<ScriptHash, Account>,
    pub(crate) blocks: Vec<Vec<u8>>,
    outputs: HashMap<Outpoint, (ScriptHash, (u32, u32, u32))>,
}

impl Ledger {
    /// A chain, genesis first.
    pub(crate) fn of(network: Network, blocks: &[Vec<u8>]) -> Self {
        let mut ledger = Self::default();
        blocks.iter().for_each(|block| ledger.add(network, block));
        ledger
    }

    fn add(&mut self, network: Network, bytes: &[u8]) {
        let height = u32::try_from(self.blocks.len()).unwrap();
        self.blocks.push(bytes.to_vec());
        let block = Block::parse(bytes, network.format()).unwrap();
        for (position, (tx, txid)) in (0..).zip(block.txs().iter().zip(block.txids())) {
            // The output of genesis is in no set, and in no history.
            if height == 0 {
                continue;
            }
            let mut touched = Vec::new();
            for input in tx.inputs().filter(|_| !tx.is_coinbase()) {
                if let Some((script, place)) = self.outputs.remove(&input.outpoint) {
                    self.accounts.get_mut(&script).unwrap().coins.remove(&place);
                    touched.push(script);
                }
            }
            for (vout, output) in (0..).zip(tx.outputs()) {
                if output.script.first() == Some(&0x6a) || output.script.len() > MAX_SCRIPT_SIZE {
                    continue;
                }
                let (hash, place) = (ScriptHash::of(output.script), (height, position, vout));
                let outpoint = Outpoint::new(txid, vout);
                self.outputs.insert(outpoint, (hash, place));
                let account = self.accounts.entry(hash).or_default();
                account.script = output.script.to_vec();
                account.coins.insert(place, (outpoint, output.value.to_sat()));
                touched.push(hash);
            }
            touched.sort_unstable();
            touched.dedup();
            for script in touched {
                self.accounts.get_mut(&script).unwrap().history.push((txid, height));
            }
        }
    }
}

impl Account {
    pub(crate) fn balance(&self) -> u64 {
        self.coins.values().map(|(_, value)| value).sum()
    }

    pub(crate) fn history(&self) -> Value {
        self.history_between(0, u32::MAX)
    }

    pub(crate) fn history_between(&self, from: u32, to: u32) -> Value {
        let within = self.history.iter().filter(|(_, height)| (from..to).contains(height));
        within
            .map(|(txid, height)| json!({"tx_hash": txid.to_string(), "height": height}))
            .collect()
    }

    pub(crate) fn unspent(&self) -> Value {
        let coin =
            |((height, _, vout), (outpoint, value)): (&(u32, u32, u32), &(Outpoint, u64))| {
                let txid = outpoint.txid.to_string();
                json!({"tx_hash": txid, "tx_pos": vout, "height": height, "value": value})
            };
        self.coins.iter().map(coin).collect()
    }

    /// The hash of the history written out.
    pub(crate) fn status(&self) -> Value {
        let mut text = String::new();
        for (txid, height) in &self.history {
            write!(text, "{txid}:{height}:").unwrap();
        }
        status_of(&text)
    }
}

/// The status with this text.
pub(crate) fn status_of(text: &str) -> Value {
    if text.is_empty() {
        return Value::Null;
    }
    // A script hash is the SHA-256 of bytes; shown as a status it is not reversed.
    let hash = ScriptHash::of(text.as_bytes()).to_bytes();
    json!(ScriptStatus::from_bytes(hash).to_string())
}

//! A chain read from its bytes by rust-bitcoin, and what Esplora should say of it: nothing here is
//! shared with the server.

use std::collections::{BTreeMap, HashMap};

use bitcoin::consensus::deserialize;
use bitcoin::hashes::{Hash as _, sha256};
use bitcoin::{Address, Block, BlockHash, OutPoint, Script, ScriptBuf, Transaction, TxOut, Txid};
use serde_json::{Value, json};

/// What transactions do to a script, by height and position.
type History = BTreeMap<(usize, usize), (Txid, Moved)>;

/// A confirmed transaction.
pub(crate) struct Confirmed {
    pub(crate) tx: Transaction,
    pub(crate) height: usize,
    pub(crate) position: usize,
}

/// What a transaction did to a script.
#[derive(Clone, Copy, Default)]
pub(crate) struct Moved {
    pub(crate) funded: (u64, u64),
    pub(crate) spent: (u64, u64),
}

/// The confirmed chain.
pub(crate) struct Model {
    /// By height.
    pub(crate) blocks: Vec<Block>,
    /// Blocks that are not in the chain.
    pub(crate) stale: Vec<Block>,
    pub(crate) txs: HashMap<Txid, Confirmed>,
    pub(crate) spenders: HashMap<OutPoint, (Txid, usize)>,
    /// Of each script that is indexed, what transactions did to it, by place in the chain.
    pub(crate) scripts: HashMap<ScriptBuf, History>,
}

impl Model {
    /// The chain that ends with this block, out of blocks in any order.
    pub(crate) fn new(blocks: &[Vec<u8>], tip: BlockHash) -> Self {
        let parsed: Vec<Block> = blocks.iter().map(|block| deserialize(block).unwrap()).collect();
        let mut by_hash: HashMap<BlockHash, Block> =
            parsed.into_iter().map(|block| (block.block_hash(), block)).collect();
        let mut chain = Vec::new();
        let mut next = tip;
        while let Some(block) = by_hash.remove(&next) {
            next = block.header.prev_blockhash;
            chain.push(block);
        }
        chain.reverse();
        let (txs, spenders, scripts) = Default::default();
        let stale = by_hash.into_values().collect();
        let mut model = Self { blocks: chain, stale, txs, spenders, scripts };
        for height in 0..model.blocks.len() {
            model.add(height);
        }
        model
    }

    fn add(&mut self, height: usize) {
        for (position, tx) in self.blocks[height].txdata.clone().into_iter().enumerate() {
            let txid = tx.compute_txid();
            for (vin, input) in tx.input.iter().enumerate().filter(|_| !tx.is_coinbase()) {
                let output = self.output(&input.previous_output).clone();
                self.spenders.insert(input.previous_output, (txid, vin));
                if let Some(moved) = self.moved(&output, (height, position), txid) {
                    moved.spent = (moved.spent.0 + 1, moved.spent.1 + output.value.to_sat());
                }
            }
            for output in tx.output.iter().filter(|_| height > 0) {
                if let Some(moved) = self.moved(output, (height, position), txid) {
                    moved.funded = (moved.funded.0 + 1, moved.funded.1 + output.value.to_sat());
                }
            }
            self.txs.insert(txid, Confirmed { tx, height, position });
        }
    }

    /// Scripts that can never be spent are not indexed.
    fn moved(&mut self, output: &TxOut, at: (usize, usize), txid: Txid) -> Option<&mut Moved> {
        let script = &output.script_pubkey;
        if script.is_op_return() || script.len() > 10_000 {
            return None;
        }
        let history = self.scripts.entry(script.clone()).or_default();
        Some(&mut history.entry(at).or_insert((txid, Moved::default())).1)
    }

    pub(crate) fn output(&self, outpoint: &OutPoint) -> &TxOut {
        &self.txs[&outpoint.txid].tx.output[outpoint.vout as usize]
    }

    pub(crate) fn status(&self, txid: &Txid) -> Value {
        self.txs.get(txid).map_or(json!({"confirmed": false}), |tx| self.status_at(tx.height))
    }

    pub(crate) fn status_at(&self, height: usize) -> Value {
        let header = &self.blocks[height].header;
        json!({
            "confirmed": true, "block_height": height,
            "block_hash": header.block_hash().to_string(), "block_time": header.time,
        })
    }

    /// `/tx/…` of a transaction, whose inputs `output` finds the outputs of.
    pub(crate) fn tx(&self, tx: &Transaction, status: Value) -> Value {
        let inputs: u64 = tx
            .input
            .iter()
            .filter(|_| !tx.is_coinbase())
            .map(|input| self.output(&input.previous_output).value.to_sat())
            .sum();
        let outputs: u64 = tx.output.iter().map(|output| output.value.to_sat()).sum();
        let vin: Vec<Value> =
            tx.input.iter().map(|input| self.vin(input, tx.is_coinbase())).collect();
        json!({
            "txid": tx.compute_txid().to_string(),
            "version": tx.version.0.cast_unsigned(), "locktime": tx.lock_time.to_consensus_u32(),
            "vin": vin,
            "vout": tx.output.iter().map(vout).collect::<Vec<_>>(),
            "size": tx.total_size(), "weight": tx.weight().to_wu(),
            "fee": if tx.is_coinbase() { 0 } else { inputs - outputs },
            "status": status,
        })
    }

    fn vin(&self, input: &bitcoin::TxIn, is_coinbase: bool) -> Value {
        let prevout = (!is_coinbase).then(|| self.output(&input.previous_output));
        let mut vin = json!({
            "txid": input.previous_output.txid.to_string(), "vout": input.previous_output.vout,
            "prevout": prevout.map(vout),
            "scriptsig": hex(input.script_sig.as_bytes()),
            "scriptsig_asm": input.script_sig.to_asm_string(),
            "is_coinbase": is_coinbase, "sequence": input.sequence.0,
        });
        if !input.witness.is_empty() {
            vin["witness"] = input.witness.iter().map(hex).collect();
        }
        let Some(prevout) = prevout else { return vin };
        let spent = &prevout.script_pubkey;
        let last = input.script_sig.instructions().last().and_then(Result::ok);
        let redeem = last.as_ref().and_then(|last| last.push_bytes()).filter(|_| spent.is_p2sh());
        if let Some(redeem) = redeem {
            vin["inner_redeemscript_asm"] =
                Script::from_bytes(redeem.as_bytes()).to_asm_string().into();
        }
        let nested = redeem.is_some_and(|redeem| Script::from_bytes(redeem.as_bytes()).is_p2wsh());
        let inner = if spent.is_p2tr() {
            input.witness.taproot_leaf_script().map(|leaf| leaf.script)
        } else if spent.is_p2wsh() || nested {
            input.witness.last().map(Script::from_bytes)
        } else {
            None
        };
        if let Some(inner) = inner {
            vin["inner_witnessscript_asm"] = inner.to_asm_string().into();
        }
        vin
    }

    /// Whether an output is spent.
    pub(crate) fn outspend(&self, outpoint: &OutPoint) -> Value {
        match self.spenders.get(outpoint) {
            None => json!({"spent": false}),
            Some((txid, vin)) => json!({
                "spent": true, "txid": txid.to_string(), "vin": vin, "status": self.status(txid),
            }),
        }
    }

    pub(crate) fn block(&self, block: &Block, height: usize, times: &[u32]) -> Value {
        let mut times = times.to_vec();
        times.sort_unstable();
        let header = &block.header;
        let previous = (height > 0).then(|| header.prev_blockhash.to_string());
        json!({
            "id": block.block_hash().to_string(), "height": height,
            "version": header.version.to_consensus().cast_unsigned(), "timestamp": header.time,
            "tx_count": block.txdata.len(), "size": block.total_size(),
            "weight": block.weight().to_wu(), "merkle_root": header.merkle_root.to_string(),
            "previousblockhash": previous, "mediantime": times[times.len() / 2],
            "nonce": header.nonce, "bits": header.bits.to_consensus(),
            "difficulty": header.difficulty_float(),
        })
    }

    /// The times of up to eleven blocks that end at a height.
    pub(crate) fn times(&self, height: usize) -> Vec<u32> {
        let from = (height + 1).saturating_sub(11);
        self.blocks[from..=height].iter().map(|block| block.header.time).collect()
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of a script, as Esplora writes it.
pub(crate) fn script_hash(script: &Script) -> String {
    sha256::Hash::hash(script.as_bytes()).to_string()
}

pub(crate) fn address(script: &Script) -> Option<String> {
    Address::from_script(script, bitcoin::Network::Regtest).ok().map(|found| found.to_string())
}

pub(crate) fn vout(output: &TxOut) -> Value {
    let script = &output.script_pubkey;
    let kind = if script.is_empty() {
        "empty"
    } else if script.is_op_return() {
        "op_return"
    } else if script.is_p2pk() {
        "p2pk"
    } else if script.is_p2pkh() {
        "p2pkh"
    } else if script.is_p2sh() {
        "p2sh"
    } else if script.is_p2wpkh() {
        "v0_p2wpkh"
    } else if script.is_p2wsh() {
        "v0_p2wsh"
    } else if script.is_p2tr() {
        "v1_p2tr"
    } else if script.as_bytes() == [0x51, 2, 0x4e, 0x73] {
        "anchor"
    } else if script.is_multisig() {
        "multisig"
    } else {
        "unknown"
    };
    let mut vout = json!({
        "scriptpubkey": hex(script.as_bytes()), "scriptpubkey_asm": script.to_asm_string(),
        "scriptpubkey_type": kind, "value": output.value.to_sat(),
    });
    if let Some(address) = address(script) {
        vout["scriptpubkey_address"] = address.into();
    }
    vout
}

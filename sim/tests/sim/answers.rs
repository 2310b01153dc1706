//! The answers of `expected.json`, computed a second time in the plainest way: read the block files
//! back, walk from the tip to genesis, and look at every transaction in order.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use bitcoin::consensus::deserialize;
use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::hashes::{Hash as _, sha256};
use bitcoin::{Block, BlockHash, OutPoint, ScriptBuf, Transaction};
use serde_json::{Value, json};
use varve_sim::{Config, Profile, write_chain};

fn config() -> Config {
    Config {
        transactions: Some(60),
        reorg_depth: Some(4),
        mempool: 80,
        xor: true,
        ..Config::new(Profile::Mainnet, 180, 31)
    }
}

/// Every block of the file, in order.
fn read_blocks(folder: &Path) -> Vec<Block> {
    let key = fs::read(folder.join("xor.dat")).unwrap();
    let mut bytes = fs::read(folder.join("blk00000.dat")).unwrap();
    bytes.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    let mut rest = bytes.as_slice();
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        assert_eq!(rest[..4], [0xfa, 0xbf, 0xb5, 0xda]);
        let size = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        blocks.push(deserialize(&rest[8..8 + size]).unwrap());
        rest = &rest[8 + size..];
    }
    blocks
}

/// The blocks from genesis to `tip`.
fn active(blocks: &[Block], tip: &Value) -> Vec<Block> {
    let by_hash: HashMap<BlockHash, &Block> =
        blocks.iter().map(|block| (block.block_hash(), block)).collect();
    let mut hash: BlockHash = tip.as_str().unwrap().parse().unwrap();
    let mut branch = Vec::new();
    while let Some(block) = by_hash.get(&hash) {
        branch.push((*block).clone());
        hash = block.header.prev_blockhash;
    }
    branch.reverse();
    branch
}

/// What a plain walk over the branch finds.
#[derive(Default)]
struct Walk {
    scripts: HashMap<OutPoint, ScriptBuf>,
    made: HashMap<OutPoint, Value>,
    spenders: HashMap<OutPoint, Value>,
    histories: HashMap<ScriptBuf, Vec<(usize, String)>>,
}

impl Walk {
    fn block(&mut self, height: usize, block: &Block) {
        for (position, transaction) in block.txdata.iter().enumerate() {
            let txid = transaction.compute_txid();
            let mut touched: Vec<ScriptBuf> = Vec::new();
            for (vin, input) in transaction.input.iter().enumerate() {
                if let Some(script) = self.scripts.get(&input.previous_output) {
                    touched.push(script.clone());
                    let hash = block.block_hash().to_string();
                    let spender = json!({
                        "txid": txid.to_string(), "vin": vin, "height": height, "blockhash": hash,
                    });
                    self.spenders.insert(input.previous_output, spender);
                }
            }
            for (vout, output) in (0..).zip(&transaction.output) {
                let outpoint = OutPoint { txid, vout };
                let made = json!([output.value.to_sat(), height, position == 0]);
                self.made.insert(outpoint, made);
                self.scripts.insert(outpoint, output.script_pubkey.clone());
                touched.push(output.script_pubkey.clone());
            }
            touched.sort();
            touched.dedup();
            for script in touched {
                self.histories.entry(script).or_default().push((height, txid.to_string()));
            }
        }
    }
}

#[test]
fn samples_are_what_a_plain_walk_finds() {
    let folder = tempfile::tempdir().unwrap();
    let summary = write_chain(&config(), folder.path(), |_| ()).unwrap();
    let expected: Value =
        serde_json::from_slice(&fs::read(folder.path().join("expected.json")).unwrap()).unwrap();
    let blocks = read_blocks(&folder.path().join("blocks"));
    assert_eq!(blocks.len() as u64, summary.blocks);
    let branch = active(&blocks, &expected["bestblock"]);
    assert_eq!(branch.len(), 181);
    let mut walk = Walk::default();
    branch.iter().enumerate().for_each(|(height, block)| walk.block(height, block));

    let outputs = expected["outputs"].as_array().unwrap();
    assert!(outputs.len() > 100);
    for output in outputs {
        let outpoint = OutPoint {
            txid: output["txid"].as_str().unwrap().parse().unwrap(),
            vout: u32::try_from(output["vout"].as_u64().unwrap()).unwrap(),
        };
        let made = json!([output["value"], output["height"], output["coinbase"]]);
        assert_eq!(made, walk.made[&outpoint]);
        assert_eq!(output["script_pubkey"], walk.scripts[&outpoint].to_hex_string());
        let spender = walk.spenders.get(&outpoint).cloned().unwrap_or_default();
        assert_eq!(output["spender"], spender);
    }
    check_scripts(&expected, &walk);
    check_mempool(&expected, &walk);
}

fn check_scripts(expected: &Value, walk: &Walk) {
    let scripts = expected["scripts"].as_array().unwrap();
    assert!(scripts.len() > 50);
    for script in scripts {
        let bytes = ScriptBuf::from_hex(script["script_pubkey"].as_str().unwrap()).unwrap();
        let mut scripthash = sha256::Hash::hash(bytes.as_bytes()).to_byte_array();
        scripthash.reverse();
        assert_eq!(script["scripthash"], sha256::Hash::from_byte_array(scripthash).to_string());

        let history = &walk.histories[&bytes];
        assert_eq!(script["history_count"], history.len());
        let entry = |(height, txid): &(usize, String)| json!({ "height": height, "tx_hash": txid });
        assert_eq!(script["history"], history.iter().map(entry).collect::<Value>());
        let text: String =
            history.iter().map(|(height, txid)| format!("{txid}:{height}:")).collect();
        assert_eq!(script["status"], sha256::Hash::hash(text.as_bytes()).to_string());

        let pays = |outpoint: &OutPoint| {
            walk.scripts[outpoint] == bytes && !walk.spenders.contains_key(outpoint)
        };
        let unspent: Vec<&OutPoint> = walk.scripts.keys().filter(|o| pays(o)).collect();
        let value = |outpoint: &&OutPoint| walk.made[outpoint][0].as_u64().unwrap();
        assert_eq!(script["unspent_count"], unspent.len());
        assert_eq!(script["unspent"].as_array().unwrap().len(), unspent.len());
        assert_eq!(script["balance"], unspent.iter().map(value).sum::<u64>());
    }
    let hottest = scripts[0]["history_count"].as_u64().unwrap();
    assert!(hottest > 200, "the hottest script has {hottest} entries");
}

fn check_mempool(expected: &Value, walk: &Walk) {
    let mempool = expected["mempool"].as_array().unwrap();
    assert_eq!(mempool.len(), 80);
    let unspent = walk.made.keys().filter(|outpoint| !walk.spenders.contains_key(outpoint));
    let mut confirmed: HashSet<OutPoint> = unspent.copied().collect();
    let mut unconfirmed: HashSet<OutPoint> = HashSet::new();
    let mut chained = 0;
    for entry in mempool {
        let transaction: Transaction = deserialize_hex(entry["hex"].as_str().unwrap()).unwrap();
        let txid = transaction.compute_txid();
        assert_eq!(entry["txid"], txid.to_string());
        for input in &transaction.input {
            if unconfirmed.remove(&input.previous_output) {
                chained += 1;
            } else {
                assert!(confirmed.remove(&input.previous_output), "spends what is not there");
            }
        }
        let vouts = 0..u32::try_from(transaction.output.len()).unwrap();
        unconfirmed.extend(vouts.map(|vout| OutPoint { txid, vout }));
    }
    assert!(chained > 10, "{chained} spends of unconfirmed outputs");
}

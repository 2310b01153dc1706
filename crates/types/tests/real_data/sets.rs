//! The set of unspent outputs, block by block, against the answers of a real node.
//!
//! The set is a plain map. What is tested is everything that goes into its hashes: parsing,
//! txids, `unspendable`, the coin's bytes, MuHash.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use varve_types::muhash::MuHash;
use varve_types::{
    Amount, Block, BlockHash, Coin, Height, Network, Outpoint, sha256d, unspendable,
};

use crate::load;

struct OwnedCoin {
    height: Height,
    coinbase: bool,
    value: Amount,
    script: Vec<u8>,
}

impl OwnedCoin {
    fn coin(&self) -> Coin<'_> {
        Coin {
            height: self.height,
            coinbase: self.coinbase,
            value: self.value,
            script: &self.script,
        }
    }
}

struct Set {
    network: Network,
    coins: BTreeMap<Outpoint, OwnedCoin>,
    muhash: MuHash,
    /// Scratch for a coin's bytes.
    bytes: Vec<u8>,
}

impl Set {
    fn new(network: Network) -> Self {
        Self { network, coins: BTreeMap::new(), muhash: MuHash::new(), bytes: Vec::new() }
    }

    fn connect(&mut self, block: &Block<'_>, height: Height) {
        if height == Height::GENESIS {
            return;
        }
        for (tx, txid) in block.txs().iter().zip(block.txids()) {
            let coinbase = tx.is_coinbase();
            for input in tx.inputs().filter(|_| !coinbase) {
                let coin = self.coins.remove(&input.outpoint).expect("a valid chain");
                self.bytes.clear();
                coin.coin().write_for_hash(&input.outpoint, &mut self.bytes);
                self.muhash.remove(&self.bytes);
            }
            for (vout, output) in tx.outputs().enumerate() {
                if unspendable(self.network, height, output.script) {
                    continue;
                }
                let outpoint = Outpoint::new(txid, vout as u32);
                let script = output.script.to_vec();
                let coin = OwnedCoin { height, coinbase, value: output.value, script };
                self.bytes.clear();
                coin.coin().write_for_hash(&outpoint, &mut self.bytes);
                self.muhash.insert(&self.bytes);
                assert!(self.coins.insert(outpoint, coin).is_none(), "no duplicates here");
            }
        }
    }

    /// Compares with one answer of `gettxoutsetinfo`.
    fn compare(&self, answer: &Value) {
        let height = &answer["height"];
        assert_eq!(self.coins.len() as u64, answer["txouts"].as_u64().unwrap(), "at {height}");
        let bogosize: u64 = self.coins.values().map(|coin| coin.coin().bogosize()).sum();
        assert_eq!(bogosize, answer["bogosize"].as_u64().unwrap(), "at {height}");
        let total: u64 = self.coins.values().map(|coin| coin.value.to_sat()).sum();
        assert_eq!(total, satoshi(&answer["total_amount"]), "at {height}");
        if let Some(muhash) = answer["muhash"].as_str() {
            assert_eq!(shown(self.muhash.finalize()), muhash, "at {height}");
        }
        if let Some(hash) = answer["hash_serialized_3"].as_str() {
            let mut bytes = Vec::new();
            for (outpoint, coin) in &self.coins {
                coin.coin().write_for_hash(outpoint, &mut bytes);
            }
            assert_eq!(shown(sha256d(&bytes)), hash, "at {height}");
        }
        if let Some(transactions) = answer["transactions"].as_u64() {
            let txids: BTreeSet<_> = self.coins.keys().map(|outpoint| outpoint.txid).collect();
            assert_eq!(txids.len() as u64, transactions, "at {height}");
        }
    }
}

fn shown(hash: [u8; 32]) -> String {
    BlockHash::from_bytes(hash).to_string()
}

/// An amount in coins, as a number or as text, in satoshi.
#[expect(clippy::cast_sign_loss, reason = "amounts are not negative")]
fn satoshi(amount: &Value) -> u64 {
    let coins = amount.as_f64().or_else(|| amount.as_str()?.parse().ok()).unwrap();
    (coins * 1e8).round() as u64
}

/// Connects a chain from genesis on and compares wherever there is an answer.
fn walk(network: Network, blocks: &[Vec<u8>], answers: &[&Value]) -> usize {
    let mut set = Set::new(network);
    let mut previous = BlockHash::ZERO;
    let mut compared = 0;
    for (height, bytes) in blocks.iter().enumerate() {
        let block = Block::parse(bytes, network.format()).unwrap();
        assert_eq!(block.header().previous(), previous, "the chain at {height}");
        previous = block.hash();
        set.connect(&block, Height::new(height as u32));
        for answer in answers.iter().filter(|answer| answer["height"] == height) {
            assert_eq!(previous.to_string(), answer["bestblock"].as_str().unwrap());
            set.compare(answer);
            compared += 1;
        }
    }
    compared
}

fn oracle(network: Network, blocks: Option<Vec<Vec<u8>>>, file: &str) {
    let (Some(blocks), Some(path)) = (blocks, varve_testdata::data(file)) else { return };
    let oracle = load::json(&path);
    let mut answers: Vec<_> = oracle["heights"].as_array().unwrap().iter().collect();
    answers.push(&oracle["tip"]);
    assert!(answers.len() >= 4);
    assert_eq!(walk(network, &blocks, &answers), answers.len());
}

#[test]
fn mainnet() {
    oracle(Network::Mainnet, load::mainnet(), "vectors/oracle_mainnet_0-4312.json");
}

#[test]
fn regtest() {
    oracle(Network::Regtest, load::regtest(), "vectors/oracle_regtest_kernel_0-206.json");
}

#[test]
fn signet() {
    oracle(Network::Signet, load::signet(), "vectors/oracle_signet_0-120.json");
}

#[test]
fn regtest_of_core_31() {
    let Some(path) = varve_testdata::data("regtest-core31/expected.json") else { return };
    let Some(blocks) = load::core_regtest() else { return };
    let expected = load::json(&path);
    let by_hash: BTreeMap<_, _> = blocks
        .into_iter()
        .map(|bytes| (Block::parse(&bytes, Network::Regtest.format()).unwrap().hash(), bytes))
        .collect();
    let hashes = expected["blockhash"].as_array().unwrap();
    let chain: Vec<_> = hashes
        .iter()
        .map(|hash| by_hash[&hash.as_str().unwrap().parse().unwrap()].clone())
        .collect();
    let mut answers: Vec<_> = expected["muhash"].as_object().unwrap().values().collect();
    answers.push(&expected["hash_serialized_3"]);
    assert_eq!(walk(Network::Regtest, &chain, &answers), answers.len());
    for tip in expected["chaintips"].as_array().unwrap() {
        let hash: BlockHash = tip["hash"].as_str().unwrap().parse().unwrap();
        assert!(by_hash.contains_key(&hash), "the stale tip {hash} is in the block file");
    }
}

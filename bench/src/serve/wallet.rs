//! What a wallet asks for: scripts of the chain and their transactions, found by reading it.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use varve_testdata::{Random, chains};
use varve_types::{Block, Network, Outpoint, ScriptHash, Txid};

/// Transactions of one script that are fetched.
const MOST: usize = 20;

/// Scripts with their transactions, in random order.
pub(super) struct Wallet(Vec<(ScriptHash, Vec<Txid>)>);

impl Wallet {
    /// Scripts of a chain's files.
    pub(super) fn of(chain: &Path, count: usize) -> Result<Self> {
        let mut scripts: HashMap<ScriptHash, Vec<Txid>> = HashMap::new();
        let mut outputs: HashMap<Outpoint, ScriptHash> = HashMap::new();
        for bytes in blocks(chain)? {
            let block = Block::parse(&bytes, Network::Regtest.format()).context("a block")?;
            for (tx, txid) in block.txs().iter().zip(block.txids()) {
                let spent = tx.inputs().filter_map(|input| outputs.get(&input.outpoint).copied());
                let mut touched: Vec<ScriptHash> = spent.collect();
                for (vout, output) in (0..).zip(tx.outputs()) {
                    let hash = ScriptHash::of(output.script);
                    if output.script.first() != Some(&0x6a) {
                        outputs.insert(Outpoint::new(txid, vout), hash);
                        touched.push(hash);
                    }
                }
                touched.sort_unstable();
                touched.dedup();
                for hash in touched {
                    scripts.entry(hash).or_default().push(txid);
                }
            }
        }
        let mut all: Vec<_> = scripts.into_iter().collect();
        all.sort_unstable_by_key(|(hash, _)| *hash);
        Random::new(4).shuffle(&mut all);
        all.truncate(count);
        Ok(Self(all))
    }

    /// One request a line, script by script.
    pub(super) fn requests(&self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for (hash, txids) in &self.0 {
            let name = json!([hash.to_string()]);
            for method in ["get_history", "get_balance", "listunspent"] {
                lines.push(request(&format!("blockchain.scripthash.{method}"), &name));
            }
            for txid in txids.iter().take(MOST) {
                lines.push(request("blockchain.transaction.get", &json!([txid.to_string()])));
            }
        }
        lines.iter().map(|line| line.to_string().into_bytes()).collect()
    }

    /// Where Esplora has the transactions, each path once.
    pub(super) fn paths(&self) -> Vec<String> {
        let txids: HashSet<&Txid> = self.0.iter().flat_map(|(_, txids)| txids).collect();
        txids.into_iter().map(|txid| format!("/api/tx/{txid}")).collect()
    }

    /// What a wallet of this many addresses sends: batches of subscriptions, then of histories,
    /// then of transactions.
    pub(super) fn batches(&self, addresses: usize) -> Vec<Vec<u8>> {
        let own = self.0.iter().take(addresses);
        let script = |method: &str| {
            let method = format!("blockchain.scripthash.{method}");
            own.clone().map(move |(hash, _)| request(&method, &json!([hash.to_string()])))
        };
        let txids = own.clone().flat_map(|(_, txids)| txids.iter().take(MOST));
        let get = |txid: &Txid| request("blockchain.transaction.get", &json!([txid.to_string()]));
        let all: Vec<Vec<Value>> = vec![
            script("subscribe").collect(),
            script("get_history").collect(),
            txids.map(get).collect(),
        ];
        let lines = all.iter().flat_map(|part| part.chunks(100));
        lines.map(|batch| json!(batch).to_string().into_bytes()).collect()
    }
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// The blocks of a simulated chain, in order.
pub(super) fn blocks(chain: &Path) -> Result<Vec<Vec<u8>>> {
    let mut blocks = Vec::new();
    for number in 0.. {
        let file = chain.join("blocks").join(format!("blk{number:05}.dat"));
        if !file.exists() {
            break;
        }
        blocks.extend(chains::blk_file(&std::fs::read(file)?));
    }
    Ok(blocks)
}

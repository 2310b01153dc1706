//! Unconfirmed transactions: handed in, listed, reported, compared with what their bytes say.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use hex_conservative::DisplayHex as _;
use serde_json::{Value, json};
use varve::types::{ScriptHash, Tx, Txid};
use varve::{LiveItem, Outpoint};
use varve_server::electrum::Limits;
use varve_sim::{Chain, Config, Profile, Unconfirmed};

use super::chain::NETWORK;
use super::client::Client;
use super::ledger::{Account, Ledger, status_of};
use super::server::{Server, wait_until};

/// A signed chain, and transactions that are valid on its tip, parents first.
fn simulated() -> (Vec<Vec<u8>>, Vec<Unconfirmed>) {
    let config = Config {
        transactions: Some(8),
        coins: Some(100),
        signed_percent: 100,
        mempool: 40,
        ..Config::new(Profile::Mainnet, 130, 5)
    };
    let mut chain = Chain::new(&config).unwrap();
    let blocks = chain.by_ref().map(|block| block.bytes).collect();
    (blocks, chain.into_mempool())
}

/// A server whose node follows a maker and has a mempool.
fn following(blocks: &[Vec<u8>]) -> Server {
    let mut server = Server::empty(NETWORK, Limits::default());
    blocks.iter().for_each(|block| server.feed(block.clone()));
    wait_until(|| server.node.snapshot().mempool().is_some());
    server
}

fn hex(tx: &Unconfirmed) -> String {
    tx.bytes.to_lower_hex_string()
}

/// What unconfirmed transactions do to each script.
#[derive(Default)]
struct Waiting {
    /// By order of the status: those with confirmed inputs first, then by txid as it is shown.
    txs: BTreeMap<(bool, String), u64>,
    delta: i64,
    created: Vec<(Outpoint, u64)>,
    spent: Vec<Outpoint>,
}

fn waiting(ledger: &Ledger, txs: &[Unconfirmed]) -> HashMap<ScriptHash, Waiting> {
    let mut coins: HashMap<Outpoint, (ScriptHash, u64)> = HashMap::new();
    for (hash, account) in &ledger.accounts {
        coins.extend(account.coins.values().map(|(out, value)| (*out, (*hash, *value))));
    }
    let ids: Vec<Txid> = txs.iter().map(|tx| tx.txid).collect();
    let mut all: HashMap<ScriptHash, Waiting> = HashMap::new();
    for tx in txs {
        let parsed = Tx::parse(&tx.bytes, NETWORK.format()).unwrap();
        let is_child = parsed.inputs().any(|input| ids.contains(&input.outpoint.txid));
        let paid: u64 = parsed.outputs().map(|output| output.value.to_sat()).sum();
        let taken: u64 = parsed.inputs().map(|input| coins[&input.outpoint].1).sum();
        let key = (is_child, tx.txid.to_string());
        for input in parsed.inputs() {
            let (hash, value) = coins[&input.outpoint];
            let entry = all.entry(hash).or_default();
            entry.txs.insert(key.clone(), taken - paid);
            entry.delta -= i64::try_from(value).unwrap();
            entry.spent.push(input.outpoint);
        }
        for (vout, output) in (0..).zip(parsed.outputs()) {
            let outpoint = Outpoint::new(tx.txid, vout);
            let (hash, value) = (ScriptHash::of(output.script), output.value.to_sat());
            coins.insert(outpoint, (hash, value));
            if output.script.first() == Some(&0x6a) {
                continue;
            }
            let entry = all.entry(hash).or_default();
            entry.txs.insert(key.clone(), taken - paid);
            entry.delta += i64::try_from(value).unwrap();
            entry.created.push((outpoint, value));
        }
    }
    all
}

fn check(client: &mut Client, hash: ScriptHash, account: &Account, waiting: &Waiting) {
    let name = json!([hash.to_string()]);
    let [history, mempool, balance, unspent, status] = &client.batch(&[
        ("blockchain.scripthash.get_history", name.clone()),
        ("blockchain.scripthash.get_mempool", name.clone()),
        ("blockchain.scripthash.get_balance", name.clone()),
        ("blockchain.scripthash.listunspent", name.clone()),
        ("blockchain.scripthash.get_status", name),
    ])[..] else {
        panic!("five answers")
    };
    let height = |is_child: bool| if is_child { -1 } else { 0 };
    let entry = |((is_child, txid), fee): (&(bool, String), &u64)| {
        let height = height(*is_child);
        json!({"tx_hash": txid, "height": height, "fee": fee})
    };
    let entries: Vec<Value> = waiting.txs.iter().map(entry).collect();
    assert_eq!(*mempool, json!(entries), "{hash}");
    let mut all = account.history().as_array().unwrap().clone();
    all.extend(entries);
    assert_eq!(*history, json!(all));
    assert_eq!(*balance, json!({"confirmed": account.balance(), "unconfirmed": waiting.delta}));
    let confirmed = account.coins.values().filter(|(out, _)| !waiting.spent.contains(out));
    let created = waiting.created.iter().filter(|(out, _)| !waiting.spent.contains(out));
    let mut wanted: Vec<_> =
        confirmed.chain(created).map(|(out, value)| (out.to_string(), *value)).collect();
    let coin = |coin: &Value| {
        let outpoint = format!("{}:{}", coin["tx_hash"].as_str().unwrap(), coin["tx_pos"]);
        (outpoint, coin["value"].as_u64().unwrap())
    };
    let mut found: Vec<_> = unspent.as_array().unwrap().iter().map(coin).collect();
    wanted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, wanted);
    let mut text = String::new();
    for (txid, height) in &account.history {
        write!(text, "{txid}:{height}:").unwrap();
    }
    for (is_child, txid) in waiting.txs.keys() {
        write!(text, "{txid}:{}:", height(*is_child)).unwrap();
    }
    assert_eq!(*status, status_of(&text));
}

#[test]
fn the_mempool_is_part_of_every_answer() {
    let (blocks, txs) = simulated();
    let mut server = following(&blocks);
    for tx in &txs {
        server.feed_item(LiveItem::Tx(tx.bytes.clone()));
    }
    let count = txs.len() as u64;
    wait_until(|| {
        server.node.snapshot().mempool().is_some_and(|all| all.totals().sum.count == count)
    });
    let ledger = Ledger::of(NETWORK, &blocks);
    let waiting = waiting(&ledger, &txs);
    assert!(waiting.values().any(|entry| entry.txs.keys().any(|(is_child, _)| *is_child)));
    let mut client = server.client();
    let none = Account::default();
    for (hash, waiting) in &waiting {
        let account = ledger.accounts.get(hash).unwrap_or(&none);
        if waiting.txs.is_empty() {
            continue;
        }
        check(&mut client, *hash, account, waiting);
    }
    let recent = client.ask("mempool.recent", json!([]));
    assert_eq!(recent.as_array().unwrap().len(), 10);
    assert_eq!(recent[0]["txid"], txs.last().unwrap().txid.to_string());
    let bins = client.ask("mempool.get_fee_histogram", json!([]));
    let sizes: u64 = bins.as_array().unwrap().iter().map(|bin| bin[1].as_u64().unwrap()).sum();
    assert_eq!(sizes, server.node.snapshot().mempool().unwrap().totals().sum.vsize);
    assert!(client.ask("blockchain.estimatefee", json!([1])).as_f64().unwrap() > 0.0);
    let txid = txs[0].txid.to_string();
    assert_eq!(client.ask("blockchain.transaction.get", json!([txid])), hex(&txs[0]));
    let words = client.ask("blockchain.transaction.get", json!([txid, true]));
    assert_eq!((&words["hex"], words.get("blockhash")), (&json!(hex(&txs[0])), None));
    assert_eq!(client.ask("blockchain.transaction.get_height", json!([txid])), json!(0));
    assert_eq!(client.fail("blockchain.transaction.get_merkle", json!([txid, 5])), 1);
}

#[test]
fn transactions_are_handed_in_and_reported() {
    let (blocks, txs) = simulated();
    let server = following(&blocks);
    let mut client = server.client();
    let txid = txs[0].txid.to_string();
    let parsed = Tx::parse(&txs[0].bytes, NETWORK.format()).unwrap();
    let spent = parsed.inputs().next().unwrap().outpoint;
    let script = ScriptHash::of(parsed.outputs().next().unwrap().script).to_string();
    client.ask("blockchain.scripthash.subscribe", json!([script]));
    client.ask("blockchain.outpoint.subscribe", json!([spent.txid.to_string(), spent.vout]));
    client.ask("blockchain.transaction.subscribe", json!([txid]));
    let tested = client.ask("blockchain.transaction.testmempoolaccept", json!([[hex(&txs[0])]]));
    assert_eq!((&tested[0]["txid"], &tested[0]["allowed"]), (&json!(txid), &json!(true)));
    assert_eq!(client.ask("blockchain.transaction.get_height", json!([txid])), Value::Null);
    assert_eq!(client.ask("blockchain.transaction.broadcast", json!([hex(&txs[0])])), txid);
    assert_eq!(client.ask("blockchain.transaction.get_height", json!([txid])), json!(0));
    let came: Vec<Value> = (0..3).map(|_| client.notification()).collect();
    let has = |method: &str, params: Value| {
        let method = format!("blockchain.{method}.subscribe");
        came.iter().any(|line| line["method"] == method && line["params"] == params)
    };
    assert!(has("transaction", json!([txid, 0])), "{came:?}");
    let status = client.ask("blockchain.scripthash.get_status", json!([script]));
    assert!(has("scripthash", json!([script, status])), "{came:?}");
    let status =
        client.ask("blockchain.outpoint.get_status", json!([spent.txid.to_string(), spent.vout]));
    assert_eq!((&status["spender_txhash"], &status["spender_height"]), (&json!(txid), &json!(0)));
    assert!(has("outpoint", json!([spent.txid.to_string(), spent.vout, status])), "{came:?}");
    assert!(client.notifications().is_empty());
}

#[test]
fn what_the_node_refuses_is_an_error_with_its_reason() {
    let (blocks, txs) = simulated();
    let server = following(&blocks);
    let mut client = server.client();
    let method = "blockchain.transaction.broadcast";
    assert_eq!(client.fail(method, json!(["00"])), 1);
    assert_eq!(client.fail(method, json!(["xyz"])), 1);
    let mut wrong = txs[0].bytes.clone();
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    assert_eq!(client.fail(method, json!([wrong.to_lower_hex_string()])), 1);
    let tested = client
        .ask("blockchain.transaction.testmempoolaccept", json!([[wrong.to_lower_hex_string()]]));
    assert_eq!(tested[0]["allowed"], json!(false));
    assert!(tested[0]["reason"].is_string());
    let package = client.ask("blockchain.transaction.broadcast_package", json!([[hex(&txs[0])]]));
    assert_eq!(package, json!({"success": true}));
    let wtxid = Tx::parse(&txs[0].bytes, NETWORK.format()).unwrap().wtxid().to_string();
    let package =
        client.ask("blockchain.transaction.broadcast_package", json!([[hex(&txs[0])], true]));
    assert_eq!(package["package_msg"], "success");
    assert_eq!(package["tx-results"][wtxid]["txid"], txs[0].txid.to_string());
    assert_eq!(client.fail("blockchain.transaction.broadcast_package", json!([[]])), 1);
    // Without a node that follows a source there is nobody to hand it to.
    let alone = Server::with(NETWORK, &blocks);
    assert_eq!(alone.client().fail(method, json!([hex(&txs[0])])), 2);
}

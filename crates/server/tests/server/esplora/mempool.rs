//! The mempool, and answers across a block that takes it in.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;

use bitcoin::consensus::deserialize;
use bitcoin::{Transaction, Txid};
use serde_json::{Value, json};
use tempfile::TempDir;
use varve::{LiveItem, Network, Source, SyncThread, Verify};
use varve_sim::{Chain, Config, Profile};

use crate::http::{Server, node, wait_for};
use crate::model::{Model, hex};

/// A node that follows a maker in this process, and transactions that are valid on its tip.
pub(crate) struct Live {
    pub(crate) server: Server,
    pub(crate) maker: Sender<LiveItem>,
    pub(crate) model: Model,
    pub(crate) unconfirmed: Vec<Transaction>,
    pub(crate) sync: Option<SyncThread>,
    _folder: TempDir,
}

impl Live {
    pub(crate) fn start(seed: u64) -> Self {
        let config = Config {
            transactions: Some(10),
            coins: Some(200),
            signed_percent: 100,
            mempool: 30,
            ..Config::new(Profile::Mainnet, 125, seed)
        };
        let mut chain = Chain::new(&config).unwrap();
        let blocks: Vec<Vec<u8>> = chain.by_ref().map(|block| block.bytes).collect();
        let unconfirmed = chain.into_mempool();
        assert!(unconfirmed.len() > 10);
        let folder = tempfile::tempdir().unwrap();
        let node = node(Network::Regtest, folder.path());
        let (maker, items) = std::sync::mpsc::channel();
        let sync = node.follow(Source::live(items)).verify(Verify::Spends).mempool(true);
        let sync = Some(sync.start().unwrap());
        for block in &blocks {
            maker.send(LiveItem::Block(block.clone())).unwrap();
        }
        wait_for("the chain", || {
            let snapshot = node.snapshot();
            snapshot.tip().height.to_u32() == 125 && snapshot.mempool().is_some()
        });
        let tip = node.snapshot().tip().hash.to_string().parse().unwrap();
        let model = Model::new(&blocks, tip);
        let unconfirmed = unconfirmed.iter().map(|tx| deserialize(&tx.bytes).unwrap()).collect();
        let server = Server::start(node, Default::default());
        Self { server, maker, model, unconfirmed, sync, _folder: folder }
    }

    pub(crate) fn send(&self, txs: &[Transaction]) {
        for tx in txs {
            self.maker.send(LiveItem::Tx(bitcoin::consensus::serialize(tx))).unwrap();
        }
        let txids: Vec<Txid> = txs.iter().map(Transaction::compute_txid).collect();
        wait_for("the transactions", || {
            let mempool = self.server.node.snapshot().mempool().unwrap();
            txids.iter().all(|txid| mempool.contains(&txid.to_string().parse().unwrap()))
        });
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.sync.take().unwrap().stop();
    }
}

/// The transactions whose inputs are all confirmed.
fn parents(live: &Live) -> Vec<Transaction> {
    let is_confirmed = |tx: &&Transaction| {
        tx.input.iter().all(|input| live.model.txs.contains_key(&input.previous_output.txid))
    };
    live.unconfirmed.iter().filter(is_confirmed).cloned().collect()
}

#[test]
fn unconfirmed_transactions_are_shown_and_listed() {
    let live = Live::start(41);
    let txs = parents(&live);
    live.send(&txs);
    let mut client = live.server.client();
    let unconfirmed = json!({"confirmed": false});
    let mut fees = 0;
    for tx in &txs {
        let txid = tx.compute_txid();
        let expected = live.model.tx(tx, unconfirmed.clone());
        fees += expected["fee"].as_u64().unwrap();
        assert_eq!(client.json(&format!("/api/tx/{txid}")), expected);
        assert_eq!(client.json(&format!("/api/tx/{txid}/status")), unconfirmed);
        let bytes = bitcoin::consensus::serialize(tx);
        assert_eq!(client.text(&format!("/api/tx/{txid}/hex")), hex(&bytes));
        for (vin, input) in tx.input.iter().enumerate() {
            let spent = input.previous_output;
            let spend = client.json(&format!("/api/tx/{}/outspend/{}", spent.txid, spent.vout));
            let expected = json!({
                "spent": true, "txid": txid.to_string(), "vin": vin, "status": unconfirmed,
            });
            assert_eq!(spend, expected);
        }
        let proof = client.get(&format!("/api/tx/{txid}/merkle-proof"));
        assert_eq!(proof.status, 404);
    }
    let figures = client.json("/api/mempool");
    assert_eq!((&figures["count"], &figures["total_fee"]), (&json!(txs.len()), &json!(fees)));
    let vsize: u64 = txs.iter().map(|tx| tx.vsize() as u64).sum();
    assert_eq!(figures["vsize"], vsize);
    let bins = figures["fee_histogram"].as_array().unwrap();
    assert_eq!(bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum::<u64>(), vsize);
    let expected: BTreeSet<String> = txs.iter().map(|tx| tx.compute_txid().to_string()).collect();
    let all = client.json("/api/mempool/txids");
    let all: Vec<&str> =
        all.as_array().unwrap().iter().map(|txid| txid.as_str().unwrap()).collect();
    assert_eq!(all.iter().map(|txid| (*txid).to_owned()).collect::<BTreeSet<_>>(), expected);
    let mut paged: Vec<String> = Vec::new();
    loop {
        let last = paged.last().map(|last| format!("/{last}")).unwrap_or_default();
        let page = client.json(&format!("/api/mempool/txids/page{last}?max_txs=4"));
        let page = page.as_array().unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page.iter().map(|txid| txid.as_str().unwrap().to_owned()));
    }
    assert_eq!(paged, all);
    let recent = client.json("/api/mempool/recent");
    let newest: Vec<String> =
        txs.iter().rev().take(10).map(|tx| tx.compute_txid().to_string()).collect();
    let recent: Vec<&str> =
        recent.as_array().unwrap().iter().map(|tx| tx["txid"].as_str().unwrap()).collect();
    assert_eq!(recent, newest);
    let estimates = client.json("/api/fee-estimates");
    assert_eq!(estimates.as_object().unwrap().len(), 28);
    assert!(estimates.as_object().unwrap().values().all(|rate| rate.as_f64().unwrap() >= 0.0));
    check_internal(&mut client, &live, &txs);
}

fn check_internal(client: &mut crate::http::Client, live: &Live, txs: &[Transaction]) {
    let shown = |tx: &Transaction| live.model.tx(tx, json!({"confirmed": false}));
    let all = client.get("/api/internal/mempool/txs/all");
    assert_eq!(all.status, 200);
    let expected: Vec<Value> = txs.iter().map(shown).collect();
    assert_eq!(all.json(), json!(expected), "in the order of arrival");
    let two: Vec<String> = txs[..2].iter().map(|tx| tx.compute_txid().to_string()).collect();
    let with_unknown = json!([two[0], "0".repeat(64), two[1]]);
    let found = client.post_json("/api/internal/mempool/txs", &with_unknown).json();
    assert_eq!(found, json!(expected[..2]));
    let page = client.json("/api/internal/mempool/txs?max_txs=3");
    assert_eq!(page.as_array().unwrap().len(), 3);
    let last = page[2]["txid"].as_str().unwrap();
    let next = client.json(&format!("/api/internal/mempool/txs/{last}?max_txs=1000"));
    assert_eq!(next.as_array().unwrap().len(), txs.len() - 3);
}

/// A script's figures, list and unspent outputs count what is unconfirmed.
#[test]
fn unconfirmed_transactions_of_a_script() {
    let live = Live::start(42);
    let txs = parents(&live);
    live.send(&txs);
    let mut client = live.server.client();
    let mut seen = 0;
    for tx in &txs {
        for output in tx.output.iter().filter(|output| !output.script_pubkey.is_op_return()) {
            let script = &output.script_pubkey;
            let name = format!("/api/scripthash/{}", crate::model::script_hash(script));
            let pays = |tx: &&Transaction| tx.output.iter().any(|out| out.script_pubkey == *script);
            let spends = |tx: &&Transaction| {
                let mut spent =
                    tx.input.iter().map(|input| live.model.output(&input.previous_output));
                spent.any(|out| out.script_pubkey == *script)
            };
            let mine: BTreeSet<String> = txs
                .iter()
                .filter(|tx| pays(tx) || spends(tx))
                .map(|tx| tx.compute_txid().to_string())
                .collect();
            let stats = client.json(&name);
            assert_eq!(stats["mempool_stats"]["tx_count"], mine.len());
            let listed = client.json(&format!("{name}/txs/mempool"));
            let listed: BTreeSet<String> = listed
                .as_array()
                .unwrap()
                .iter()
                .map(|tx| tx["txid"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(listed, mine);
            let utxos = client.json(&format!("{name}/utxo"));
            let sum: i64 =
                utxos.as_array().unwrap().iter().map(|coin| coin["value"].as_i64().unwrap()).sum();
            let part = |part: &str, sum: &str| stats[part][sum].as_i64().unwrap();
            let balance = ["chain_stats", "mempool_stats"]
                .iter()
                .map(|stats| part(stats, "funded_txo_sum") - part(stats, "spent_txo_sum"))
                .sum::<i64>();
            assert_eq!(sum, balance, "unspent outputs and figures agree");
            seen += 1;
        }
    }
    assert!(seen > 2, "{seen}");
}

#[test]
fn transactions_are_sent_tested_and_refused() {
    let live = Live::start(43);
    let txs = parents(&live);
    let mut client = live.server.client();
    let raw = |tx: &Transaction| hex(&bitcoin::consensus::serialize(tx));
    let tested = client.post_json("/api/txs/test", &json!([raw(&txs[0])]));
    assert_eq!(tested.status, 200, "{}", tested.text());
    let tested = tested.json();
    assert_eq!(tested[0]["allowed"], true, "{tested}");
    assert_eq!(tested[0]["txid"], txs[0].compute_txid().to_string());
    assert_eq!(client.json("/api/mempool")["count"], 0, "a test sends nothing");
    let sent = client.post("/api/tx", "text/plain", raw(&txs[0]).as_bytes());
    assert_eq!((sent.status, sent.text()), (200, txs[0].compute_txid().to_string().as_str()));
    wait_for("the transaction", || client.json("/api/mempool")["count"] == 1);
    let package = client.post_json("/api/txs/package", &json!([raw(&txs[1])]));
    assert_eq!(package.status, 200, "{}", package.text());
    let result = &package.json()["tx-results"][txs[1].compute_wtxid().to_string()];
    assert_eq!(result["txid"], txs[1].compute_txid().to_string());

    let mut broken = txs[2].clone();
    broken.output[0].value += bitcoin::Amount::from_sat(1_000_000_000_000);
    let refused = client.post("/api/tx", "text/plain", raw(&broken).as_bytes());
    assert_eq!(refused.status, 400, "{}", refused.text());
    let tested = client.post_json("/api/txs/test", &json!([raw(&broken)])).json();
    assert_eq!(tested[0]["allowed"], false);
    assert!(tested[0]["reject-reason"].is_string());
    for body in ["", "zz", "00"] {
        assert_eq!(client.post("/api/tx", "text/plain", body.as_bytes()).status, 400, "{body:?}");
    }
    for body in [json!([]), json!([1]), json!({}), json!(vec!["00"; 26])] {
        assert_eq!(client.post_json("/api/txs/package", &body).status, 400, "{body}");
    }
}

//! Esplora's API against what rust-bitcoin reads in the same blocks.

mod batches;
mod clients;
pub(crate) mod mempool;

use bitcoin::OutPoint;
use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::consensus::{deserialize, serialize};
use bitcoin::hashes::Hash as _;
use bitcoin::merkle_tree::MerkleBlock;
use serde_json::{Value, json};
use varve::Network;
use varve_sim::{Chain, Config, Profile};

use crate::http::{Client, Server};
use crate::model::{Model, address, hex, script_hash};

/// A chain with transactions and branches that lost.
pub(crate) fn simulated(blocks: u32, seed: u64) -> Vec<Vec<u8>> {
    let config = Config {
        transactions: Some(12),
        coins: Some(200),
        reorg_depth: Some(4),
        ..Config::new(Profile::Mainnet, blocks, seed)
    };
    Chain::new(&config).unwrap().map(|block| block.bytes).collect()
}

pub(crate) fn served(blocks: &[Vec<u8>]) -> (Server, Model) {
    let server = Server::with_blocks(Network::Regtest, blocks.to_vec());
    let tip = server.node.snapshot().tip().hash.to_string().parse().unwrap();
    let model = Model::new(blocks, tip);
    (server, model)
}

#[test]
fn a_simulated_chain() {
    let (server, model) = served(&simulated(135, 21));
    assert!(!model.stale.is_empty(), "there are branches that lost");
    check(&mut server.client(), &model);
}

/// Bitcoin Core's own chain: every script type, chains of transactions in a block, reorganisations.
#[test]
fn the_chain_of_core_31() {
    let Some(blocks) = varve_testdata::chains::core31() else { return };
    let (server, model) = served(&blocks);
    assert_eq!(model.blocks.len(), 601);
    let paged = check(&mut server.client(), &model);
    assert!(paged > 0, "some script has more than a page");
}

/// Asks everything; returns how many further pages the histories of scripts have.
fn check(client: &mut Client, model: &Model) -> usize {
    check_blocks(client, model);
    check_block_lists(client, model);
    for (txid, confirmed) in &model.txs {
        check_tx(client, model, &txid.to_string(), confirmed.height);
    }
    check_stale(client, model);
    check_scripts(client, model)
}

fn check_tx(client: &mut Client, model: &Model, txid: &str, height: usize) {
    let confirmed = &model.txs[&txid.parse::<bitcoin::Txid>().unwrap()];
    let tx = &confirmed.tx;
    let status = model.status_at(height);
    assert_eq!(client.json(&format!("/api/tx/{txid}")), model.tx(tx, status.clone()), "{txid}");
    assert_eq!(client.json(&format!("/api/tx/{txid}/status")), status);
    assert_eq!(client.text(&format!("/api/tx/{txid}/hex")), hex(&serialize(tx)));
    assert_eq!(client.get(&format!("/api/tx/{txid}/raw")).body, serialize(tx));
    let spends: Vec<Value> = (0..tx.output.len())
        .map(|vout| OutPoint::new(tx.compute_txid(), u32::try_from(vout).unwrap()))
        .map(|outpoint| model.outspend(&outpoint))
        .collect();
    assert_eq!(client.json(&format!("/api/tx/{txid}/outspends")), json!(spends));
    let last = spends.len() - 1;
    assert_eq!(client.json(&format!("/api/tx/{txid}/outspend/{last}")), spends[last]);
    let reply = client.get(&format!("/api/tx/{txid}/outspend/{}", spends.len()));
    assert_eq!((reply.status, reply.text()), (404, "Output not found"));

    let block = &model.blocks[height];
    let proof = client.json(&format!("/api/tx/{txid}/merkle-proof"));
    assert_eq!(
        (&proof["block_height"], &proof["pos"]),
        (&json!(height), &json!(confirmed.position))
    );
    let mut node = tx.compute_txid().to_raw_hash();
    for (level, sibling) in proof["merkle"].as_array().unwrap().iter().enumerate() {
        let sibling: bitcoin::Txid = sibling.as_str().unwrap().parse().unwrap();
        let (mine, other) = (node.to_byte_array(), sibling.to_byte_array());
        let is_left = confirmed.position >> level & 1 == 0;
        let pair = if is_left { [mine, other] } else { [other, mine] };
        node = bitcoin::hashes::sha256d::Hash::hash(pair.as_flattened());
    }
    assert_eq!(node, block.header.merkle_root.to_raw_hash(), "{txid}");
    let message = client.text(&format!("/api/tx/{txid}/merkleblock-proof"));
    let message: MerkleBlock = deserialize_hex(&message).unwrap();
    let (mut found, mut places) = (Vec::new(), Vec::new());
    message.extract_matches(&mut found, &mut places).unwrap();
    assert_eq!((message.header, found), (block.header, vec![tx.compute_txid()]));
}

fn check_blocks(client: &mut Client, model: &Model) {
    for (height, block) in model.blocks.iter().enumerate() {
        let hash = block.block_hash().to_string();
        let shown = client.json(&format!("/api/block/{hash}"));
        let mut expected = model.block(block, height, &model.times(height));
        let difficulty = |value: &Value| value["difficulty"].as_f64().unwrap();
        let ratio = difficulty(&shown) / difficulty(&expected);
        assert!((ratio - 1.0).abs() < 1e-9, "{shown}");
        expected["difficulty"] = shown["difficulty"].clone();
        assert_eq!(shown, expected);
        assert_eq!(client.text(&format!("/api/block-height/{height}")), hash);
        let header = client.text(&format!("/api/block/{hash}/header"));
        assert_eq!(header, hex(&serialize(&block.header)));
        assert_eq!(client.get(&format!("/api/block/{hash}/raw")).body, serialize(block));
        let next = model.blocks.get(height + 1).map(|next| next.block_hash().to_string());
        let status = json!({"in_best_chain": true, "height": height, "next_best": next});
        assert_eq!(client.json(&format!("/api/block/{hash}/status")), status);
        let txids: Vec<String> =
            block.txdata.iter().map(|tx| tx.compute_txid().to_string()).collect();
        assert_eq!(client.json(&format!("/api/block/{hash}/txids")), json!(txids));
        let last = txids.len() - 1;
        assert_eq!(client.text(&format!("/api/block/{hash}/txid/{last}")), txids[last]);
        let over = format!("/api/block/{hash}/txid/{}", txids.len());
        assert_eq!(client.refused(&over), (404, "tx index out of range".to_owned()));
        check_block_txs(client, model, height);
    }
}

fn check_block_txs(client: &mut Client, model: &Model, height: usize) {
    let block = &model.blocks[height];
    let hash = block.block_hash();
    let status = model.status_at(height);
    let txs: Vec<Value> = block.txdata.iter().map(|tx| model.tx(tx, status.clone())).collect();
    assert_eq!(client.json(&format!("/api/internal/block/{hash}/txs")), json!(txs));
    let mut paged = client.json(&format!("/api/block/{hash}/txs"));
    let first = client.json(&format!("/api/block/{hash}/txs/0"));
    assert_eq!(paged, first);
    let paged = paged.as_array_mut().unwrap();
    for start in (25..txs.len()).step_by(25) {
        let page = client.json(&format!("/api/block/{hash}/txs/{start}"));
        paged.extend(page.as_array().unwrap().clone());
    }
    assert_eq!(json!(paged), json!(txs));
    let over = format!("/api/block/{hash}/txs/{}", txs.len().next_multiple_of(25));
    assert_eq!(client.refused(&over), (404, "start index out of range".to_owned()));
    if txs.len() > 1 {
        let text = "start index must be a multipication of 25".to_owned();
        assert_eq!(client.refused(&format!("/api/block/{hash}/txs/1")), (400, text));
    }
}

fn check_block_lists(client: &mut Client, model: &Model) {
    let tip = model.blocks.len() - 1;
    assert_eq!(client.text("/api/blocks/tip/height"), tip.to_string());
    let hash = model.blocks[tip].block_hash().to_string();
    assert_eq!(client.text("/api/blocks/tip/hash"), hash);
    let reply = client.get("/api/blocks");
    assert_eq!(reply.header("x-varve-tip"), format!("{tip}:{hash}"));
    let newest = reply.json();
    assert_eq!(client.json("/api/blocks/tip"), newest);
    for start in [tip, 40, 9, 3, 0] {
        let blocks = client.json(&format!("/api/blocks/{start}"));
        let heights = blocks.as_array().unwrap().iter();
        let heights: Vec<u64> = heights.map(|block| block["height"].as_u64().unwrap()).collect();
        let expected: Vec<u64> = (0..=start as u64).rev().take(10).collect();
        assert_eq!(heights, expected);
        let id = blocks[0]["id"].as_str().unwrap();
        assert_eq!(client.json(&format!("/api/block/{id}")), blocks[0]);
    }
    assert_eq!(newest[0]["id"], json!(hash));
    let over = (404, "Block not found".to_owned());
    assert_eq!(client.refused(&format!("/api/blocks/{}", tip + 1)), over);
    assert_eq!(client.refused(&format!("/api/block-height/{}", tip + 1)), over);
}

fn check_scripts(client: &mut Client, model: &Model) -> usize {
    let mut paged = 0;
    for (script, history) in &model.scripts {
        let by_hash = format!("/api/scripthash/{}", script_hash(script));
        let name = address(script).map_or(by_hash.clone(), |name| format!("/api/address/{name}"));
        let moves = || history.values().map(|(_, moved)| moved);
        let stats = json!({
            "tx_count": history.len(),
            "funded_txo_count": moves().map(|moved| moved.funded.0).sum::<u64>(),
            "funded_txo_sum": moves().map(|moved| moved.funded.1).sum::<u64>(),
            "spent_txo_count": moves().map(|moved| moved.spent.0).sum::<u64>(),
            "spent_txo_sum": moves().map(|moved| moved.spent.1).sum::<u64>(),
        });
        for path in [&name, &by_hash] {
            let shown = client.json(path);
            assert_eq!(shown["chain_stats"], stats, "{path}");
            assert_eq!(shown["mempool_stats"]["tx_count"], 0);
            let (kind, text) = path.trim_start_matches("/api/").split_once('/').unwrap();
            assert_eq!(shown[kind], text);
        }
        paged += check_history(client, model, &name, script);
        check_unspent(client, model, &name, script);
    }
    paged
}

/// All pages of a script's history, and its summary; returns how many pages there were but one.
fn check_history(
    client: &mut Client,
    model: &Model,
    name: &str,
    script: &bitcoin::ScriptBuf,
) -> usize {
    let history = &model.scripts[script];
    let expected: Vec<String> = history.values().rev().map(|(txid, _)| txid.to_string()).collect();
    let mut found: Vec<String> = Vec::new();
    let mut pages = 0;
    loop {
        let path = match found.last() {
            None => format!("{name}/txs"),
            Some(last) => format!("{name}/txs/chain/{last}"),
        };
        let page = client.json(&path);
        let page = page.as_array().unwrap();
        let mut txids = page.iter().map(|tx| tx["txid"].as_str().unwrap().to_owned());
        if page.is_empty() {
            break;
        }
        for tx in page.iter().take(1) {
            let txid: bitcoin::Txid = tx["txid"].as_str().unwrap().parse().unwrap();
            assert_eq!(*tx, model.tx(&model.txs[&txid].tx, model.status(&txid)));
        }
        assert!(page.len() == 25 || found.len() + page.len() == expected.len());
        found.extend(txids.by_ref());
        pages += 1;
    }
    assert_eq!(found, expected, "{name}");
    let summary: Vec<Value> = history
        .iter()
        .rev()
        .map(|((height, _), (txid, moved))| {
            let value = moved.funded.1.cast_signed() - moved.spent.1.cast_signed();
            let time = model.blocks[*height].header.time;
            json!({"txid": txid.to_string(), "height": height, "value": value, "time": time})
        })
        .collect();
    assert_eq!(client.json(&format!("{name}/txs/summary?max_txs=5000")), json!(summary));
    assert_eq!(client.json(&format!("{name}/txs/mempool")), json!([]));
    pages - 1
}

fn check_unspent(client: &mut Client, model: &Model, name: &str, script: &bitcoin::ScriptBuf) {
    let mut expected = Vec::new();
    for ((height, _), (txid, _)) in &model.scripts[script] {
        for (vout, output) in model.txs[txid].tx.output.iter().enumerate() {
            let outpoint = OutPoint::new(*txid, u32::try_from(vout).unwrap());
            if output.script_pubkey == *script && !model.spenders.contains_key(&outpoint) {
                expected.push(json!({
                    "txid": txid.to_string(), "vout": vout, "value": output.value.to_sat(),
                    "status": model.status_at(*height),
                }));
            }
        }
    }
    assert_eq!(client.json(&format!("{name}/utxo")), json!(expected), "{name}");
}

/// Blocks that lost are found by their hash, and what they alone have is unconfirmed.
fn check_stale(client: &mut Client, model: &Model) {
    for block in &model.stale {
        let hash = block.block_hash().to_string();
        assert_eq!(client.json(&format!("/api/block/{hash}"))["id"], json!(hash));
        let status = json!({"in_best_chain": false, "height": null, "next_best": null});
        assert_eq!(client.json(&format!("/api/block/{hash}/status")), status);
        assert_eq!(client.get(&format!("/api/block/{hash}/raw")).body, serialize(block));
        let coinbase = block.txdata[0].compute_txid();
        let shown = client.json(&format!("/api/tx/{coinbase}"));
        assert_eq!(shown["status"], json!({"confirmed": false}));
        let proof = client.refused(&format!("/api/tx/{coinbase}/merkle-proof"));
        assert_eq!(proof, (404, "Transaction not found or is unconfirmed".to_owned()));
    }
}

#[test]
fn refusals_and_their_texts() {
    let (server, model) = served(&simulated(110, 22));
    let mut client = server.client();
    let zeros = "0".repeat(64);
    for path in ["", "/status", "/hex", "/raw", "/outspends", "/outspend/0"] {
        let refused = client.refused(&format!("/api/tx/{zeros}{path}"));
        assert_eq!(refused, (404, "Transaction not found".to_owned()), "{path}");
    }
    for path in ["", "/status", "/header", "/txs", "/txs/0", "/txids", "/txid/0", "/raw"] {
        let refused = client.refused(&format!("/api/block/{zeros}{path}"));
        assert_eq!(refused, (404, "Block not found".to_owned()), "{path}");
    }
    for (path, text) in [
        ("/api/tx/xyz", "Invalid hash string"),
        ("/api/block/00", "Invalid hash string"),
        ("/api/block-height/-1", "Invalid number"),
        ("/api/blocks/+1", "Invalid number"),
        ("/api/block-height/99999999999", "Invalid number"),
        ("/api/address/nonsense", "Invalid Bitcoin address"),
        ("/api/address/1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "Address on invalid network"),
        ("/api/scripthash/00", "Invalid scripthash"),
        ("/api/txs/outspends?txids=00", "Invalid hash string"),
        ("/api/address-prefix/a-b", "no address begins so"),
    ] {
        assert_eq!(client.refused(path), (400, text.to_owned()), "{path}");
    }
    assert_eq!(client.refused("/api/nothing").0, 404);
    let script = model.scripts.keys().find_map(|script| address(script)).unwrap();
    let lost = client.refused(&format!("/api/address/{script}/txs/chain/{zeros}"));
    assert_eq!(lost, (404, "Transaction not found in the chain".to_owned()));
    let unused = client.json(&format!("/api/scripthash/{zeros}"));
    assert_eq!(unused["chain_stats"]["tx_count"], 0);
}

#[test]
fn addresses_are_found_by_how_they_begin() {
    let (server, model) = served(&simulated(125, 24));
    let mut client = server.client();
    let mut all: Vec<String> = model.scripts.keys().filter_map(|script| address(script)).collect();
    all.sort();
    for wanted in all.iter().step_by(7) {
        let prefix = &wanted[..wanted.len() - 4];
        let found = client.json(&format!("/api/address-prefix/{prefix}"));
        assert_eq!(found, json!([wanted]), "{prefix}");
    }
    let many = client.json("/api/address-prefix/bcrt1");
    let expected: Vec<_> = all.iter().filter(|name| name.starts_with("bcrt1")).take(10).collect();
    assert_eq!(many, json!(expected));
    assert_eq!(client.json("/api/address-prefix/zzz"), json!([]));
}

/// What cannot change is kept by clients, and asked for again it costs nothing.
#[test]
fn unchanging_answers_are_known_by_a_tag() {
    let (server, model) = served(&simulated(120, 25));
    let mut client = server.client();
    let hash = model.blocks[50].block_hash();
    for path in [format!("/api/block/{hash}/raw"), format!("/api/block/{hash}")] {
        let reply = client.get(&path);
        assert!(reply.header("cache-control").contains("immutable"), "{path}");
        let tag = reply.header("etag").to_owned();
        let again = client.send("GET", &path, &[("if-none-match", &tag)], b"");
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        let other = client.send("GET", &path, &[("if-none-match", "\"x\"")], b"");
        assert_eq!(other.status, 200);
    }
    assert_eq!(client.get("/api/blocks/tip/hash").header("cache-control"), "public, max-age=10");
    let raw: bitcoin::Block =
        deserialize(&client.get(&format!("/api/block/{hash}/raw")).body).unwrap();
    assert_eq!(raw.block_hash(), hash);
}

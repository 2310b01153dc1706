//! Conduit's API on its own test chains, before and after their reorganisation.

mod notify;

use std::collections::BTreeSet;

use bitcoin::consensus::{deserialize, serialize};
use bitcoin::hashes::{Hash as _, sha256};
use bitcoin::{Block, OutPoint, Transaction};
use serde_json::{Value, json};
use varve::types::proof::TscProof;
use varve::types::{Format, Header};
use varve::{Network, Source, Verify};

use crate::http::{Client, Server};
use crate::model::{Model, hex};

const BINARY: (&str, &str) = ("accept", "application/octet-stream");

/// The blocks of one of Conduit's chains.
pub(crate) fn chain(name: &str) -> Option<Vec<Vec<u8>>> {
    let path = format!("chains/conduit-regtest/contrib/blockchains/blockchain_{name}");
    let files = std::fs::read_dir(varve_testdata::data(&path)?).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let blocks = files.filter(|file| file.file_name().is_some_and(|name| name.len() == 64));
    Some(blocks.map(|file| std::fs::read(file).unwrap()).collect())
}

pub(crate) fn take(server: &Server, blocks: &[Vec<u8>]) {
    let sync = server.node.sync(Source::blocks(blocks.to_vec())).verify(Verify::Spends);
    sync.run().unwrap();
}

fn model(server: &Server, blocks: &[Vec<u8>]) -> Model {
    let tip = server.node.snapshot().tip().hash.to_string().parse().unwrap();
    Model::new(blocks, tip)
}

/// A row of a search: flags, hash, output, and the input that spends it.
type Row = (u8, [u8; 32], OutPoint, Option<(bitcoin::Txid, usize)>);

/// What the documented rule finds in a chain, by a walk over all its scripts.
fn walk(model: &Model) -> BTreeSet<Row> {
    let mut rows = BTreeSet::new();
    for tx in model.blocks.iter().flat_map(|block| &block.txdata) {
        let txid = tx.compute_txid();
        for (vout, output) in (0..).zip(&tx.output) {
            let mut after_return = false;
            for part in output.script_pubkey.instructions().map_while(Result::ok) {
                after_return |= part.opcode() == Some(bitcoin::opcodes::all::OP_RETURN);
                let Some(item) = part.push_bytes().filter(|item| item.len() >= 20) else {
                    continue;
                };
                let hash = sha256::Hash::hash(item.as_bytes()).to_byte_array();
                let outpoint = OutPoint::new(txid, vout);
                let flags = if after_return { 5 } else { 1 };
                rows.insert((flags, hash, outpoint, model.spenders.get(&outpoint).copied()));
            }
        }
        for (vin, input) in tx.input.iter().enumerate().filter(|_| !tx.is_coinbase()) {
            for part in input.script_sig.instructions().map_while(Result::ok) {
                let item = part.push_bytes().filter(|item| matches!(item.len(), 20 | 33 | 65));
                let Some(item) = item else { continue };
                let hash = sha256::Hash::hash(item.as_bytes()).to_byte_array();
                rows.insert((2, hash, input.previous_output, Some((txid, vin))));
            }
        }
    }
    rows
}

fn record(row: &Row) -> Vec<u8> {
    let (flags, hash, locking, unlocking) = row;
    let (txid, vin) = match unlocking {
        Some((txid, vin)) => (txid.to_byte_array(), u32::try_from(*vin).unwrap()),
        None => ([0; 32], u32::MAX),
    };
    let parts = [
        &[*flags][..],
        hash,
        &locking.txid.to_byte_array(),
        &locking.vout.to_be_bytes(),
        &txid,
        &vin.to_be_bytes(),
    ];
    parts.concat()
}

fn line(row: &Row) -> Value {
    let (flags, hash, locking, unlocking) = row;
    json!({
        "flags": flags, "pushDataHashHex": hex(hash),
        "lockingTransactionId": locking.txid.to_string(), "lockingTransactionIndex": locking.vout,
        "unlockingTransactionId": unlocking.map(|(txid, _)| txid.to_string()),
        "unlockingInputIndex": unlocking.map_or(u64::from(u32::MAX), |(_, vin)| vin as u64),
    })
}

#[test]
fn every_question_before_and_after_the_reorganisation() {
    let names = ["115_3677f4", "116_7c9cd2", "117_28c2d3", "118_0ebc17"];
    let Some(chains) = names.iter().map(|name| chain(name)).collect::<Option<Vec<_>>>() else {
        return;
    };
    let server = Server::with_blocks(Network::BsvRegtest, Vec::new());
    let mut all = vec![Network::BsvRegtest.genesis_block()];
    for (name, blocks) in names.iter().zip(&chains) {
        take(&server, blocks);
        all.extend(blocks.iter().cloned());
        let model = model(&server, &all);
        assert_eq!((model.blocks.len() - 1).to_string(), name[..3]);
        let mut client = server.client();
        check_search(&mut client, &model);
        check_spends(&mut client, &model);
        check_proofs(&mut client, &model);
        check_headers(&mut client, &model);
        check_published(&mut client);
    }
}

fn check_search(client: &mut Client, model: &Model) {
    let rows = walk(model);
    let keys: BTreeSet<[u8; 32]> = rows.iter().map(|row| row.1).collect();
    assert!(keys.len() > 10);
    let body = json!({"filterKeys": keys.iter().map(|key| hex(key)).collect::<Vec<_>>()});
    let body = body.to_string();
    let kind = ("content-type", "application/json");
    let path = "/api/v1/restoration/search";
    let found = client.send("POST", path, &[kind, BINARY], body.as_bytes());
    assert_eq!((found.status, found.header("content-type")), (200, BINARY.1));
    let (end, records) = found.body.split_last().unwrap();
    assert_eq!((*end, records.len() % 105), (0, 0));
    let records: BTreeSet<Vec<u8>> = records.chunks(105).map(<[u8]>::to_vec).collect();
    assert_eq!(records, rows.iter().map(record).collect());

    let json_alone = ("accept", "application/json");
    for (accept, has_end) in [(json_alone, true), (("accept", "*/*"), false)] {
        let found = client.send("POST", path, &[kind, accept], body.as_bytes());
        let mut lines: Vec<Value> =
            found.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        if has_end {
            assert_eq!(lines.pop(), Some(json!({})));
        }
        assert_eq!(lines.len(), rows.len());
        assert!(rows.iter().all(|row| lines.contains(&line(row))));
    }
}

fn check_spends(client: &mut Client, model: &Model) {
    let mut outpoints: Vec<OutPoint> = Vec::new();
    for (txid, confirmed) in &model.txs {
        outpoints
            .extend((0..).zip(&confirmed.tx.output).map(|(vout, _)| OutPoint::new(*txid, vout)));
    }
    outpoints.push(OutPoint::new(bitcoin::Txid::all_zeros(), 7));
    let list: Vec<Value> =
        outpoints.iter().map(|out| json!([out.txid.to_string(), out.vout])).collect();
    let bytes: Vec<u8> = outpoints.iter().flat_map(outpoint_bytes).collect();
    let spent = outpoints.iter().filter_map(|out| Some((out, model.spenders.get(out)?)));
    let rows: Vec<Value> = spent
        .clone()
        .map(|(out, (txid, vin))| {
            let block = block_of(model, txid);
            let block = hex(&block.to_byte_array());
            json!([out.txid.to_string(), out.vout, txid.to_string(), vin, block])
        })
        .collect();
    let records: Vec<u8> =
        spent.flat_map(|(out, by)| spend_record(out, by, Some(block_of(model, &by.0)))).collect();
    assert!(rows.len() > 5);
    let path = "/api/v1/output-spend";
    let json_kind = ("content-type", "application/json");
    let body = json!(list).to_string();
    assert_eq!(client.send("POST", path, &[json_kind], body.as_bytes()).json(), json!(rows));
    let found = client.send("POST", path, &[json_kind, BINARY], body.as_bytes());
    assert_eq!(found.body, records);
    let binary_kind = ("content-type", "application/octet-stream");
    assert_eq!(client.send("POST", path, &[binary_kind, BINARY], &bytes).body, records);
}

pub(crate) fn outpoint_bytes(outpoint: &OutPoint) -> Vec<u8> {
    [&outpoint.txid.to_byte_array()[..], &outpoint.vout.to_be_bytes()].concat()
}

pub(crate) fn block_of(model: &Model, txid: &bitcoin::Txid) -> bitcoin::BlockHash {
    model.blocks[model.txs[txid].height].block_hash()
}

pub(crate) fn spend_record(
    outpoint: &OutPoint,
    (txid, vin): &(bitcoin::Txid, usize),
    block: Option<bitcoin::BlockHash>,
) -> Vec<u8> {
    let block = block.map_or([0; 32], |block| block.to_byte_array());
    let vin = u32::try_from(*vin).unwrap().to_be_bytes();
    [&outpoint_bytes(outpoint)[..], &txid.to_byte_array(), &vin, &block].concat()
}

fn check_proofs(client: &mut Client, model: &Model) {
    for (txid, confirmed) in &model.txs {
        let raw = serialize(&confirmed.tx);
        let path = format!("/api/v1/transaction/{txid}");
        assert_eq!(client.get(&path).json(), json!(hex(&raw)));
        assert_eq!(client.send("GET", &path, &[BINARY], b"").body, raw);
        let header: [u8; Header::LEN] =
            serialize(&model.blocks[confirmed.height].header).try_into().unwrap();
        for (query, target) in [
            ("", json!(block_of(model, txid).to_string())),
            ("?targetType=hash", json!(block_of(model, txid).to_string())),
            ("?targetType=header&includeFullTx=1", json!(hex(&header))),
            (
                "?targetType=merkleroot&includeFullTx=0",
                json!(model.blocks[confirmed.height].header.merkle_root.to_string()),
            ),
        ] {
            let path = format!("/api/v1/merkle-proof/{txid}{query}");
            let proof = client.get(&path).json();
            assert_eq!((&proof["target"], &proof["index"]), (&target, &json!(confirmed.position)));
            let full = query.contains("includeFullTx=1");
            let subject = if full { hex(&raw) } else { txid.to_string() };
            assert_eq!(proof["txOrId"], json!(subject));
            let bytes = client.send("GET", &path, &[BINARY], b"").body;
            let read = TscProof::decode(&bytes).unwrap();
            let proven = read.verify(Header::new(&header), Format::Legacy).unwrap();
            assert_eq!(proven.to_string(), txid.to_string());
            assert_eq!(proof["nodes"].as_array().unwrap().len(), read.nodes.len());
        }
    }
    let zeros = "0".repeat(64);
    assert_eq!(client.get(&format!("/api/v1/merkle-proof/{zeros}")).status, 404);
    assert_eq!(client.get(&format!("/api/v1/transaction/{zeros}")).status, 404);
    assert_eq!(client.get(&format!("/api/v1/merkle-proof/{zeros}?targetType=x")).status, 400);
}

fn check_headers(client: &mut Client, model: &Model) {
    let tip = model.blocks.len() - 1;
    let bytes: Vec<u8> = model.blocks.iter().flat_map(|block| serialize(&block.header)).collect();
    let path = format!("/api/v1/chain/header/byHeight?height=0&count={}", tip + 100);
    assert_eq!(client.send("GET", &path, &[BINARY], b"").body, bytes);
    let shown = |block: &Block| {
        let header = &block.header;
        json!({
            "hash": block.block_hash().to_string(), "version": header.version.to_consensus(),
            "prevBlockHash": header.prev_blockhash.to_string(),
            "merkleRoot": header.merkle_root.to_string(), "creationTimestamp": header.time,
            "difficultyTarget": header.bits.to_consensus(), "nonce": header.nonce,
            "transactionCount": 0, "work": 2,
        })
    };
    let expected: Vec<Value> = model.blocks[100..103].iter().map(shown).collect();
    assert_eq!(client.json("/api/v1/chain/header/byHeight?height=100&count=3"), json!(expected));
    assert_eq!(client.json("/api/v1/chain/header/byHeight?height=100000&count=3"), json!([]));
    for block in model.blocks.iter().chain(&model.stale) {
        let path = format!("/api/v1/chain/header/{}", block.block_hash());
        assert_eq!(client.json(&path), shown(block));
        assert_eq!(client.send("GET", &path, &[BINARY], b"").body, serialize(&block.header));
    }
    let tips = client.json("/api/v1/chain/tips");
    let best = json!({
        "header": shown(&model.blocks[tip]), "state": "LONGEST_CHAIN",
        "chainWork": 2 * (tip + 1), "height": tip,
    });
    assert!(tips.as_array().unwrap().contains(&best), "{tips}");
    let stale = tips.as_array().unwrap().iter().filter(|tip| tip["state"] == "STALE").count();
    assert_eq!(stale + 1, tips.as_array().unwrap().len());
    assert!(model.stale.is_empty() || stale > 0);
    assert_eq!(client.json("/api/v1/chain/tips?longest_chain=1"), json!([best]));
    assert_eq!(client.get(&format!("/api/v1/chain/header/{}", "0".repeat(64))).status, 404);
    assert_eq!(client.get("/api/v1/chain/header/00").status, 400);
}

/// The hashes that Conduit publishes for its wallets.
fn check_published(client: &mut Client) {
    let spend = "47f3f47a256d70950ff5690ea377c24464310489e3f54d01b817dd0088f0a095";
    for (key, receive, input) in [
        (
            "04bca2ae277997940152716854a95347819c2e07d370d22c093b39708fb9d5eb",
            "88c92bb09626c7d505ed861ae8fa7e7aaab5b816fc517eac7a8a6c7f28b1b210",
            0,
        ),
        (
            "e351e4d2499786e8a3ac5468cbf1444b3416b41e424524b50e2dafc8f6f454db",
            "d53a9ebfac748561132e49254c42dbe518080c2a5956822d5d3914d47324e842",
            1,
        ),
    ] {
        let found = client.post_json("/api/v1/restoration/search", &json!({"filterKeys": [key]}));
        let lines: Vec<Value> =
            found.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let output = lines.iter().find(|line| line["flags"] == 1).unwrap();
        assert_eq!(output["lockingTransactionId"], receive);
        assert_eq!(output["unlockingTransactionId"], spend);
        assert_eq!(output["unlockingInputIndex"], input);
    }
    let address = json!({"filterKeys": ["mhg6ENXhPL6LsEUG6oxdqi8LjE2bsW6NMW"]});
    let found = client.post_json("/api/v1/restoration/search_p2pkh", &address);
    let first: Value = serde_json::from_str(found.text().lines().next().unwrap()).unwrap();
    let key = "e351e4d2499786e8a3ac5468cbf1444b3416b41e424524b50e2dafc8f6f454db";
    assert_eq!(first["pushDataHashHex"], key);
}

#[test]
fn requests_that_conduit_could_not_take() {
    let Some(blocks) = chain("115_3677f4") else { return };
    let server = Server::with_blocks(Network::BsvRegtest, Vec::new());
    take(&server, &blocks);
    let mut client = server.client();
    assert_eq!(client.text("/"), "true");
    for path in ["/api/v1/restoration/search", "/api/v1/restoration/search_p2pkh"] {
        for body in ["", "{}", "[]", r#"{"filterKeys":[1]}"#, r#"{"filterKeys":["zz"]}"#] {
            let reply = client.post(path, "application/json", body.as_bytes());
            assert_eq!(reply.status, 400, "{path} {body}");
        }
    }
    let p2sh = json!({"filterKeys": ["2N5338aAPYmKM59AKpvxDB6FRAnGNXRsfBp"]});
    assert_eq!(client.post_json("/api/v1/restoration/search_p2pkh", &p2sh).status, 400);
    let none = json!({"filterKeys": ["00".repeat(32)]});
    let reply = client.post_json("/api/v1/restoration/search", &none);
    assert_eq!((reply.status, reply.text()), (200, ""));
    for path in ["/api/v1/output-spend", "/api/v1/output-spend/notifications"] {
        let text = client.post(path, "text/plain", b"[]");
        assert_eq!((text.status, text.text()), (400, "unknown request body content type"));
        let cut = client.post(path, "application/octet-stream", &[0; 37]);
        assert_eq!((cut.status, cut.text()), (400, "binary request body malformed"));
    }
    // A transaction of a block that was never there, and one that is.
    let coinbase: Transaction = deserialize::<Block>(&blocks[0]).unwrap().txdata[0].clone();
    assert_eq!(client.get(&format!("/api/v1/transaction/{}", coinbase.compute_txid())).status, 200);
}

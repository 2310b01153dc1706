//! Every method, on a simulated chain, compared with its bytes.

use hex_conservative::DisplayHex as _;
use serde_json::{Value, json};
use varve::types::merkle::{MerkleBranch, merkle_root};
use varve::types::{Block, Txid, address};

use super::chain::{NETWORK, bytes, simulated};
use super::client::Client;
use super::server::Server;

fn header(block: &[u8]) -> String {
    block[..80].to_lower_hex_string()
}

fn shown(node: [u8; 32]) -> String {
    Txid::from_bytes(node).to_string()
}

/// A chain without branches, its server and a client.
fn served(blocks: u32) -> (Vec<Vec<u8>>, Server, Client) {
    let blocks = bytes(&simulated(blocks, 5, None));
    let server = Server::with(NETWORK, &blocks);
    let client = server.client();
    (blocks, server, client)
}

#[test]
fn versions_are_negotiated_once() {
    let (_, server, mut client) = served(3);
    assert_eq!(client.ask("server.version", json!(["x", ["1.4", "1.6"], "more", {}]))[1], "1.6");
    assert_eq!(client.fail("server.version", json!(["x", "1.4"])), 1);
    assert_eq!(client.ask("server.ping", json!([])), Value::Null);
    for (version, negotiated) in [
        (json!(["x"]), "1.4"),
        (json!([]), "1.4"),
        (json!(["x", "1.4.2"]), "1.4.2"),
        (json!({"client_name": "x", "protocol_version": ["1.4", "2.0"]}), "1.7"),
    ] {
        assert_eq!(server.client().ask("server.version", version)[1], negotiated);
    }
    for wrong in [json!(["x", "1.3"]), json!(["x", ["1.8", "2"]]), json!(["x", "nonsense"])] {
        let mut client = server.client();
        assert_eq!(client.fail("server.version", wrong), 1);
        assert_eq!(client.line(), None, "without a common version the connection ends");
    }
}

#[test]
fn the_server_describes_itself() {
    let (blocks, server, mut client) = served(3);
    let features = client.ask("server.features", json!([]));
    let genesis = Block::parse(&blocks[0], NETWORK.format()).unwrap().hash().to_string();
    assert_eq!(features["genesis_hash"], genesis);
    assert_eq!(
        (&features["protocol_min"], &features["protocol_max"]),
        (&json!("1.4"), &json!("1.7"))
    );
    assert_eq!(
        (&features["hash_function"], &features["pruning"]),
        (&json!("sha256"), &Value::Null)
    );
    let mut newer = Client::speaking(server.tcp, "1.7");
    assert!(newer.ask("server.features", json!([])).get("hash_function").is_none());
    assert_eq!(newer.ask("server.ping", json!([4, "ff"])), json!({"data": "0000"}));
    assert_eq!(newer.ask("server.ping", json!([])), json!({"data": ""}));
    assert_eq!(newer.fail("server.ping", json!([1_000_000_000])), 1);
    assert_eq!(client.ask("server.banner", json!([])), "");
    assert_eq!(client.ask("server.donation_address", json!([])), "");
    assert_eq!(client.ask("server.peers.subscribe", json!([])), json!([]));
    assert_eq!(client.ask("server.add_peer", json!([{}])), json!(false));
}

#[test]
fn headers_one_by_one_and_in_rows() {
    let (blocks, server, mut client) = served(30);
    for height in [0, 1, 30] {
        assert_eq!(client.ask("blockchain.block.header", json!([height])), header(&blocks[height]));
    }
    assert_eq!(client.fail("blockchain.block.header", json!([31])), 1);
    assert_eq!(client.fail("blockchain.block.header", json!([-1])), 1);
    assert_eq!(client.fail("blockchain.block.header", json!([])), -32602);
    let row: Vec<String> = blocks.iter().map(|block| header(block)).collect();
    let old = client.ask("blockchain.block.headers", json!([28, 5000]));
    assert_eq!(old, json!({"count": 3, "max": 2016, "hex": row[28..].concat()}));
    let mut newer = Client::speaking(server.tcp, "1.6");
    let new = newer.ask("blockchain.block.headers", json!({"start_height": 3, "count": 2}));
    assert_eq!(new, json!({"count": 2, "max": 2016, "headers": row[3..5]}));
    let none = client.ask("blockchain.block.headers", json!([31, 1]));
    assert_eq!(none, json!({"count": 0, "max": 2016, "hex": ""}));
    let tip = json!({"height": 30, "hex": row[30]});
    assert_eq!(client.ask("blockchain.headers.get_tip", json!([])), tip);
    assert_eq!(client.ask("blockchain.headers.subscribe", json!([])), tip);
    assert_eq!(client.ask("blockchain.headers.unsubscribe", json!([])), json!(true));
    assert_eq!(client.ask("blockchain.headers.unsubscribe", json!([])), json!(false));
}

/// The tree over all block hashes up to the checkpoint, built whole.
#[test]
fn checkpoints_are_proven() {
    let (blocks, _server, mut client) = served(45);
    let hash = |block: &Vec<u8>| Block::parse(block, NETWORK.format()).unwrap().hash().to_bytes();
    let leaves: Vec<[u8; 32]> = blocks.iter().map(hash).collect();
    for (height, checkpoint) in [(0, 1), (5, 8), (8, 8), (44, 44), (31, 45), (45, 45)] {
        let tree = leaves[..=checkpoint].to_vec();
        let branch = MerkleBranch::new(tree.clone(), height).unwrap().siblings;
        let branch: Vec<String> = branch.into_iter().map(shown).collect();
        let root = merkle_root(tree).root.to_string();
        let answer = client.ask("blockchain.block.header", json!([height, checkpoint]));
        assert_eq!(
            answer,
            json!({"header": header(&blocks[height]), "branch": branch, "root": root})
        );
        let row = client.ask("blockchain.block.headers", json!([0, height + 1, checkpoint]));
        assert_eq!((&row["branch"], &row["root"]), (&json!(branch), &json!(root)));
    }
    assert_eq!(client.fail("blockchain.block.header", json!([9, 8])), 1);
    assert_eq!(client.fail("blockchain.block.header", json!([9, 46])), 1);
}

#[test]
fn transactions_and_their_proofs() {
    let (blocks, server, mut client) = served(125);
    let mut newer = Client::speaking(server.tcp, "1.7");
    for height in [0, 1, 110, 125] {
        let block = Block::parse(&blocks[height], NETWORK.format()).unwrap();
        let leaves: Vec<[u8; 32]> = block.txids().iter().map(|txid| txid.to_bytes()).collect();
        for (position, (tx, txid)) in block.txs().iter().zip(block.txids()).enumerate() {
            let txid = txid.to_string();
            let raw = client.ask("blockchain.transaction.get", json!([txid]));
            assert_eq!(raw, tx.bytes().to_lower_hex_string());
            let branch = MerkleBranch::new(leaves.clone(), position).unwrap().siblings;
            let branch: Vec<String> = branch.into_iter().map(shown).collect();
            let proof = json!({"merkle": branch, "block_height": height, "pos": position});
            assert_eq!(
                client.ask("blockchain.transaction.get_merkle", json!([txid, height])),
                proof
            );
            assert_eq!(newer.ask("blockchain.transaction.get_merkle", json!([txid])), proof);
            let method = "blockchain.transaction.id_from_pos";
            assert_eq!(client.ask(method, json!([height, position])), txid);
            let answer = client.ask(method, json!([height, position, true]));
            assert_eq!(answer, json!({"tx_hash": txid, "merkle": branch}));
            assert_eq!(
                client.ask("blockchain.transaction.get_height", json!([txid])),
                json!(height)
            );
            let confirmed =
                client.ask("blockchain.transaction.get_confirmed_blockhash", json!([txid, true]));
            assert_eq!(confirmed["block_hash"], block.hash().to_string());
            assert_eq!(confirmed["block_header"], header(&blocks[height]));
        }
        let count = block.txs().len();
        assert_eq!(client.fail("blockchain.transaction.id_from_pos", json!([height, count])), 1);
    }
    let unknown = "aa".repeat(32);
    assert_eq!(client.fail("blockchain.transaction.get", json!([unknown])), 2);
    assert_eq!(client.fail("blockchain.transaction.get", json!(["xyz"])), 1);
    assert_eq!(client.fail("blockchain.transaction.get_merkle", json!([unknown, 5])), 1);
    assert_eq!(client.ask("blockchain.transaction.get_height", json!([unknown])), Value::Null);
    let coinbase = client.ask("blockchain.transaction.id_from_pos", json!([7, 0]));
    assert_eq!(client.fail("blockchain.transaction.get_merkle", json!([coinbase, 8])), 1);
}

/// The fields that wallets read of Core's answer; the whole is compared with a real node in
/// `scripts.rs` and by hand here.
#[test]
fn a_transaction_in_words() {
    let (blocks, _server, mut client) = served(125);
    let block = Block::parse(&blocks[120], NETWORK.format()).unwrap();
    for (tx, txid) in block.txs().iter().zip(block.txids()) {
        let answer = client.ask("blockchain.transaction.get", json!([txid.to_string(), true]));
        assert_eq!(answer["txid"], txid.to_string());
        assert_eq!(answer["hash"], tx.wtxid().to_string());
        assert_eq!(answer["hex"], tx.bytes().to_lower_hex_string());
        assert_eq!(answer["size"], tx.bytes().len());
        assert_eq!(answer["weight"], 3 * tx.base_len() + tx.bytes().len());
        assert_eq!(
            (&answer["confirmations"], &answer["blockhash"]),
            (&json!(6), &json!(block.hash().to_string()))
        );
        assert_eq!(answer["blocktime"], block.header().time());
        for (input, shown) in tx.inputs().zip(answer["vin"].as_array().unwrap()) {
            if tx.is_coinbase() {
                assert_eq!(shown["coinbase"], input.script.to_lower_hex_string());
            } else {
                assert_eq!(shown["txid"], input.outpoint.txid.to_string());
                assert_eq!(shown["vout"], input.outpoint.vout);
                assert_eq!(shown["scriptSig"]["hex"], input.script.to_lower_hex_string());
            }
        }
        for (output, shown) in tx.outputs().zip(answer["vout"].as_array().unwrap()) {
            let script = &shown["scriptPubKey"];
            assert_eq!(script["hex"], output.script.to_lower_hex_string());
            let address = address::encode(output.script, NETWORK);
            assert_eq!(script.get("address").and_then(Value::as_str), address.as_deref());
            let value = shown["value"].as_f64().unwrap() * 1e8;
            assert_eq!(value.round(), output.value.to_sat() as f64);
        }
    }
}

#[test]
fn fees_without_a_node_are_numbers_still() {
    let (_, server, mut client) = served(3);
    assert_eq!(client.ask("blockchain.estimatefee", json!([2])), json!(-1));
    assert_eq!(client.ask("blockchain.estimatefee", json!([2, "economical"])), json!(-1));
    assert_eq!(client.fail("blockchain.estimatefee", json!([2, "greedy"])), 1);
    assert!(client.ask("blockchain.relayfee", json!([])).as_f64().unwrap() > 0.0);
    let info = client.ask("mempool.get_info", json!([]));
    for field in ["mempoolminfee", "minrelaytxfee", "incrementalrelayfee"] {
        assert!(info[field].as_f64().unwrap() > 0.0, "{field}");
    }
    assert_eq!(client.ask("mempool.get_fee_histogram", json!([])), json!([]));
    assert_eq!(Client::speaking(server.tcp, "1.7").ask("mempool.recent", json!([])), json!([]));
}

#[test]
fn batches_notifications_and_names() {
    let (blocks, _server, mut client) = served(5);
    // A request without id is not answered, and neither is a batch of such.
    client.send(br#"{"method":"server.ping"}"#);
    client.send(br#"[{"method":"server.ping"},{"method":"nonsense"}]"#);
    let named = r#"{"method":"blockchain.block.header","params":{"height":2},"id":"two"}"#;
    let rest = r#"{"method":"server.ping"},{"method":"no","id":null},7"#;
    client.send(format!("[{named},{rest}]").as_bytes());
    let answer = client.line().unwrap();
    let answers = answer.as_array().unwrap();
    assert_eq!(answers.len(), 3, "{answer}");
    assert_eq!(
        (&answers[0]["result"], &answers[0]["id"]),
        (&json!(header(&blocks[2])), &json!("two"))
    );
    assert_eq!((&answers[1]["error"]["code"], &answers[1]["id"]), (&json!(-32601), &Value::Null));
    assert_eq!(answers[2]["error"]["code"], -32600);
    assert_eq!(client.fail("blockchain.block.header", json!([1, 0, 3])), -32602);
    assert_eq!(client.fail("blockchain.nothing", json!([])), -32601);
}

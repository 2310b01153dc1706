//! Subscriptions: every change is reported once, and nothing else.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use varve::types::Block;

use super::chain::{NETWORK, branch, bytes, simulated};
use super::client::Client;
use super::ledger::Ledger;
use super::server::{Server, wait_until};

/// Takes notifications until what the client knows is what the server says when it is asked; every
/// notification must change what is known.
fn follow(client: &mut Client, known: &mut HashMap<String, Value>) {
    let names: Vec<String> = known.keys().cloned().collect();
    let get = |name: &String| ("blockchain.scripthash.get_status", json!([name]));
    let requests: Vec<_> = names.iter().map(get).collect();
    wait_until(|| {
        let now = client.batch(&requests);
        for line in client.notifications() {
            assert_eq!(line["method"], "blockchain.scripthash.subscribe");
            let [name, status] = &line["params"].as_array().unwrap()[..] else { panic!("{line}") };
            let before = known.insert(name.as_str().unwrap().to_owned(), status.clone());
            assert_ne!(before.as_ref(), Some(status), "a notification that says nothing new");
        }
        names.iter().zip(now).all(|(name, status)| known[name] == status)
    });
}

/// Every script of a chain, through all its reorganisations, block by block. Transactions of blocks
/// that left the chain are unconfirmed again.
#[test]
fn statuses_follow_reorganisations() {
    let blocks = simulated(140, 21, Some(6));
    let all = bytes(&blocks);
    let last = Ledger::of(NETWORK, &branch(&all, best(&blocks)));
    let mut server = Server::with(NETWORK, &all[..100]);
    let mut client = server.client();
    let mut known = HashMap::new();
    for name in last.accounts.keys().map(ToString::to_string) {
        let status = client.ask("blockchain.scripthash.subscribe", json!([name]));
        known.insert(name, status);
    }
    for (at, block) in blocks.iter().enumerate().skip(100) {
        server.feed(block.bytes.clone());
        server.wait_for(best(&blocks[..=at]));
        follow(&mut client, &mut known);
    }
    assert!(client.notifications().is_empty(), "nothing comes when nothing moves");
    for (name, account) in &last.accounts {
        let history = client.ask("blockchain.scripthash.get_history", json!([name.to_string()]));
        let confirmed = history.as_array().unwrap().iter();
        let confirmed = confirmed.filter(|entry| entry["height"].as_i64() > Some(0));
        assert_eq!(confirmed.cloned().collect::<Value>(), account.history());
    }
}

/// The tip after these blocks: the first of the highest.
fn best(blocks: &[varve_sim::Block]) -> varve::BlockHash {
    blocks.iter().rev().max_by_key(|block| block.height).unwrap().hash
}

#[test]
fn tips_outpoints_and_transactions_are_reported() {
    let blocks = bytes(&simulated(130, 4, None));
    let mut server = Server::with(NETWORK, &blocks[..130]);
    let mut client = server.client();
    let last = Block::parse(&blocks[130], NETWORK.format()).unwrap();
    let (tx, txid) = (&last.txs()[1], last.txids()[1].to_string());
    let spent = tx.inputs().next().unwrap().outpoint;
    client.ask("blockchain.headers.subscribe", json!([]));
    assert_eq!(client.ask("blockchain.transaction.subscribe", json!([txid])), Value::Null);
    let outpoint = json!([spent.txid.to_string(), spent.vout]);
    client.ask("blockchain.outpoint.subscribe", outpoint.clone());
    assert_eq!(client.ask("blockchain.outpoint.subscribe", json!([txid, 0])), json!({}));
    let gone = client.ask("blockchain.transaction.unsubscribe", json!(["00".repeat(32)]));
    assert_eq!(gone, json!(false));
    server.feed(blocks[130].clone());
    server.wait_for(last.hash());
    let mut came: Vec<Value> = (0..4).map(|_| client.notification()).collect();
    came.sort_by_key(ToString::to_string);
    let by = |method: &str| {
        let of = |line: &&Value| line["method"] == format!("blockchain.{method}.subscribe");
        came.iter().filter(of).map(|line| line["params"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(by("headers")[0][0]["height"], 130);
    assert_eq!(by("transaction"), [json!([txid, 130])]);
    let of_outpoints = by("outpoint");
    let funded = of_outpoints.iter().find(|params| params[0] == txid).unwrap();
    assert_eq!((&funded[1], &funded[2]["funder_height"]), (&json!(0), &json!(130)));
    let spends = of_outpoints.iter().find(|params| params[0] == outpoint[0]).unwrap();
    assert_eq!(spends[1], outpoint[1]);
    assert_eq!(
        (&spends[2]["spender_txhash"], &spends[2]["spender_height"]),
        (&json!(txid), &json!(130))
    );
    assert!(client.notifications().is_empty());
}

#[test]
fn nothing_is_sent_to_who_unsubscribes_or_leaves() {
    let blocks = bytes(&simulated(130, 4, None));
    let mut server = Server::with(NETWORK, &blocks[..130]);
    let (mut stays, mut leaves) = (server.client(), server.client());
    for client in [&mut stays, &mut leaves] {
        client.ask("blockchain.headers.subscribe", json!([]));
    }
    stays.ask("blockchain.headers.unsubscribe", json!([]));
    drop(leaves);
    server.feed(blocks[130].clone());
    server.wait_for(Block::parse(&blocks[130], NETWORK.format()).unwrap().hash());
    thread::sleep(Duration::from_millis(200));
    assert!(stays.notifications().is_empty());
}

/// Many clients subscribe while the chain moves: whenever each of them came, it ends up knowing
/// the present, and was never sent the same state twice.
#[test]
fn subscriptions_at_any_moment_end_up_right() {
    let blocks = simulated(150, 8, Some(5));
    let all = bytes(&blocks);
    let tip = best(&blocks);
    let last = Ledger::of(NETWORK, &branch(&all, tip));
    let mut busiest: Vec<_> = last.accounts.iter().collect();
    busiest.sort_by_key(|(hash, account)| (usize::MAX - account.history.len(), **hash));
    let names: Vec<String> = busiest.iter().take(40).map(|(hash, _)| hash.to_string()).collect();
    let mut server = Server::with(NETWORK, &all[..100]);
    let address = server.tcp;
    let clients: Vec<_> = (0..16)
        .map(|number| {
            let names = names.clone();
            thread::spawn(move || {
                let mut client = Client::connect(address);
                let mut known = HashMap::new();
                for name in &names {
                    thread::sleep(Duration::from_micros(500 * number));
                    let status = client.ask("blockchain.scripthash.subscribe", json!([name]));
                    known.insert(name.clone(), status);
                }
                wait_until(|| client.ask("blockchain.headers.get_tip", json!([]))["height"] == 150);
                follow(&mut client, &mut known);
                thread::sleep(Duration::from_millis(300));
                assert!(client.notifications().is_empty());
            })
        })
        .collect();
    for block in &blocks[100..] {
        server.feed(block.bytes.clone());
        thread::sleep(Duration::from_millis(2));
    }
    server.wait_for(tip);
    clients.into_iter().for_each(|client| client.join().unwrap());
}

/// Ten thousand connections would need as many descriptors on each side; what a developer's
/// machine allows is used, and the number printed. `cargo xtask bench serve` takes ten thousand.
#[test]
fn many_clients_and_a_block_every_few_moments() {
    const CLIENTS: usize = 300;
    let blocks = simulated(125, 2, Some(3));
    let all = bytes(&blocks);
    let mut server = Server::with(NETWORK, &all[..105]);
    let last = Ledger::of(NETWORK, &branch(&all, best(&blocks)));
    let names: Vec<String> = last.accounts.keys().take(10).map(ToString::to_string).collect();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.client()).collect();
    for client in &mut clients {
        client.ask("blockchain.headers.subscribe", json!([]));
        let subscribe = |name: &String| ("blockchain.scripthash.subscribe", json!([name]));
        client.batch(&names.iter().map(subscribe).collect::<Vec<_>>());
    }
    let begun = Instant::now();
    for block in &blocks[105..] {
        server.feed(block.bytes.clone());
    }
    server.wait_for(best(&blocks));
    for client in &mut clients {
        let mut tip = Value::Null;
        wait_until(|| {
            for line in client.notifications() {
                if line["method"] == "blockchain.headers.subscribe" {
                    assert_ne!(tip, line["params"], "the same tip twice");
                    tip = line["params"].clone();
                }
            }
            tip[0]["height"] == 125
        });
    }
    println!("{CLIENTS} clients know the tip {:?} after the first block", begun.elapsed());
}

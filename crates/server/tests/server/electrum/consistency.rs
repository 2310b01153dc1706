//! Every answer of a batch is of one tip, whatever happens to the chain meanwhile.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::chain::{NETWORK, bytes, simulated};
use super::client::Client;
use super::ledger::{Ledger, status_of};
use super::server::Server;

/// Asks for everything about a script in one batch, and compares the answers with one another.
fn check(client: &mut Client, name: &str) -> u64 {
    let name = json!([name]);
    let answers = client.batch(&[
        ("blockchain.headers.get_tip", json!([])),
        ("blockchain.scripthash.get_status", name.clone()),
        ("blockchain.scripthash.get_history", name.clone()),
        ("blockchain.scripthash.get_balance", name.clone()),
        ("blockchain.scripthash.listunspent", name.clone()),
        ("blockchain.scripthash.subscribe", name),
        ("blockchain.headers.get_tip", json!([])),
    ]);
    let [tip, status, history, balance, unspent, subscribed, again] = &answers[..] else {
        panic!("{answers:?}")
    };
    let mut text = String::new();
    for entry in history.as_array().unwrap() {
        write!(text, "{}:{}:", entry["tx_hash"].as_str().unwrap(), entry["height"]).unwrap();
        assert!(entry["height"].as_i64() <= tip["height"].as_i64());
    }
    assert_eq!(*status, status_of(&text), "the status is that of the history");
    assert_eq!(status, subscribed);
    let value = |coin: &Value| coin["value"].as_u64().unwrap();
    let sum: u64 = unspent.as_array().unwrap().iter().map(value).sum();
    let total = balance["confirmed"].as_i64().unwrap() + balance["unconfirmed"].as_i64().unwrap();
    assert_eq!(u64::try_from(total), Ok(sum), "the balance is that of the unspent outputs");
    let known = |coin: &Value| {
        // An unconfirmed output has no height but 0, its transaction may have -1.
        let height = |entry: &Value| entry["height"].as_i64().unwrap().max(0);
        let of =
            |entry: &Value| entry["tx_hash"] == coin["tx_hash"] && height(entry) == height(coin);
        history.as_array().unwrap().iter().any(of)
    };
    assert!(unspent.as_array().unwrap().iter().all(known), "each is of the history");
    assert_eq!(tip, again);
    tip["height"].as_u64().unwrap()
}

#[test]
fn batches_agree_under_constant_reorganisations() {
    let blocks = simulated(220, 33, Some(8));
    let all = bytes(&blocks);
    let mut server = Server::with(NETWORK, &all[..102]);
    let active: Vec<_> = blocks.iter().filter(|block| !block.stale).cloned().collect();
    let ledger = Ledger::of(NETWORK, &bytes(&active));
    let mut busiest: Vec<_> = ledger.accounts.iter().collect();
    busiest.sort_by_key(|(hash, account)| (usize::MAX - account.history.len(), **hash));
    let names: Vec<String> = busiest.iter().take(12).map(|(hash, _)| hash.to_string()).collect();
    let done = Arc::new(AtomicBool::new(false));
    let checkers: Vec<_> = (0..4)
        .map(|_| {
            let (names, done, mut client) = (names.clone(), Arc::clone(&done), server.client());
            thread::spawn(move || {
                let (mut heights, mut count) = (std::collections::HashSet::new(), 0);
                while !done.load(Ordering::Relaxed) {
                    for name in &names {
                        heights.insert(check(&mut client, name));
                        count += 1;
                    }
                }
                (heights.len(), count)
            })
        })
        .collect();
    for block in &blocks[102..] {
        server.feed(block.bytes.clone());
        thread::sleep(std::time::Duration::from_millis(3));
    }
    server.wait_for(active.last().unwrap().hash);
    done.store(true, Ordering::Relaxed);
    for checker in checkers {
        let (heights, count) = checker.join().unwrap();
        assert!(heights > 5 && count > 50, "{count} batches at {heights} heights");
    }
}

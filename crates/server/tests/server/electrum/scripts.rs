//! Scripts: histories, balances, unspent outputs and statuses, compared with a walk over all bytes.

use hex_conservative::DisplayHex as _;
use serde_json::{Value, json};
use varve::types::{ScriptHash, address};
use varve::{BlockHash, Outpoint};

use super::chain::{NETWORK, branch, bytes, of_core, simulated};
use super::client::Client;
use super::ledger::{Account, Ledger, status_of};
use super::server::Server;

/// Compares all that is asked of a script by its hash.
fn check(client: &mut Client, hash: ScriptHash, account: &Account) {
    let name = json!([hash.to_string()]);
    let answers = client.batch(&[
        ("blockchain.scripthash.get_history", name.clone()),
        ("blockchain.scripthash.get_balance", name.clone()),
        ("blockchain.scripthash.listunspent", name.clone()),
        ("blockchain.scripthash.get_mempool", name.clone()),
        ("blockchain.scripthash.get_status", name.clone()),
        ("blockchain.scripthash.subscribe", name),
    ]);
    let balance = json!({"confirmed": account.balance(), "unconfirmed": 0});
    let status = account.status();
    let expected =
        [account.history(), balance, account.unspent(), json!([]), status.clone(), status];
    assert_eq!(answers, expected, "{hash}");
}

/// The same by its bytes, by its address, and in parts.
fn check_names(client: &mut Client, hash: ScriptHash, account: &Account) {
    let script = json!([account.script.to_lower_hex_string()]);
    let ask = |client: &mut Client, method: &str, params: &Value| {
        client.ask(&format!("blockchain.{method}"), params.clone())
    };
    assert_eq!(
        ask(client, "scriptpubkey.get_history", &script),
        json!({"history": account.history()})
    );
    assert_eq!(ask(client, "scriptpubkey.get_mempool", &script), json!({"history": []}));
    assert_eq!(
        ask(client, "scriptpubkey.listunspent", &script),
        json!({"utxos": account.unspent()})
    );
    assert_eq!(ask(client, "scriptpubkey.get_balance", &script)["confirmed"], account.balance());
    assert_eq!(ask(client, "scriptpubkey.subscribe", &script), account.status());
    assert_eq!(ask(client, "scriptpubkey.unsubscribe", &script), json!(true));
    assert_eq!(ask(client, "scriptpubkey.unsubscribe", &script), json!(false));
    if let Some(address) = address::encode(&account.script, NETWORK) {
        let address = json!([address]);
        assert_eq!(ask(client, "address.get_history", &address), account.history());
        assert_eq!(ask(client, "address.get_scripthash", &address), hash.to_string());
    }
    let (txid, height) = account.history[0];
    let first = ask(client, "scripthash.get_first_use", &json!([hash.to_string()]));
    assert_eq!((&first["tx_hash"], &first["height"]), (&json!(txid.to_string()), &json!(height)));
    let (_, last) = *account.history.last().unwrap();
    for (from, to) in [(0, last), (height, height + 1), (height + 1, last + 1), (last + 1, last)] {
        let part = ask(client, "scripthash.get_history", &json!([hash.to_string(), from, to]));
        assert_eq!(part, account.history_between(from, to));
    }
    let all = ask(client, "scripthash.get_history", &json!([hash.to_string(), 0, -1]));
    assert_eq!(all, account.history());
}

fn check_chain(blocks: &[Vec<u8>], tip: BlockHash, every: usize) {
    let server = Server::with(NETWORK, blocks);
    assert_eq!(server.node.snapshot().tip().hash, tip);
    let ledger = Ledger::of(NETWORK, &branch(blocks, tip));
    let mut client = server.client();
    let mut accounts: Vec<_> = ledger.accounts.iter().collect();
    accounts.sort_by_key(|(hash, account)| (usize::MAX - account.history.len(), **hash));
    assert!(accounts[0].1.history.len() > 30, "one script is busy enough for a kept status");
    for (place, (hash, account)) in accounts.into_iter().enumerate() {
        if place < 50 || place % every == 0 {
            check(&mut client, *hash, account);
        }
        if place % 40 == 0 {
            check_names(&mut client, *hash, account);
        }
    }
    let unused = ScriptHash::of(b"nobody has used this");
    check(&mut client, unused, &Account::default());
    let first = client.ask("blockchain.scripthash.get_first_use", json!([unused.to_string()]));
    assert_eq!(first, Value::Null);
}

#[test]
fn a_simulated_chain_with_branches() {
    let blocks = simulated(180, 11, Some(5));
    let tip = blocks.iter().rfind(|block| !block.stale).unwrap().hash;
    check_chain(&bytes(&blocks), tip, 3);
}

#[test]
fn the_chain_that_core_wrote() {
    let Some((blocks, tip)) = of_core() else { return };
    check_chain(&blocks, tip, 10);
}

/// Outputs, who spends them, and what is unspent.
#[test]
fn outpoints() {
    let blocks = bytes(&simulated(130, 3, None));
    let server = Server::with(NETWORK, &blocks);
    let mut client = server.client();
    let ledger = Ledger::of(NETWORK, &blocks);
    let status = |client: &mut Client, outpoint: &Outpoint| {
        let name = json!([outpoint.txid.to_string(), outpoint.vout, "00"]);
        let status = client.ask("blockchain.outpoint.get_status", name.clone());
        assert_eq!(client.ask("blockchain.outpoint.subscribe", name), status);
        let name = json!([outpoint.txid.to_string(), outpoint.vout]);
        assert_eq!(client.ask("blockchain.outpoint.unsubscribe", name), json!(true));
        status
    };
    let (hash, account) = ledger.accounts.iter().find(|(_, a)| !a.coins.is_empty()).unwrap();
    let ((height, _, _), (unspent, value)) = account.coins.iter().next().unwrap();
    assert_eq!(status(&mut client, unspent), json!({"funder_height": height}));
    let info = |client: &mut Client, outpoint: &Outpoint| {
        client.ask("blockchain.utxo.get_info", json!([outpoint.txid.to_string(), outpoint.vout]))
    };
    let found = json!({"confirmed_height": height, "scripthash": hash.to_string(), "value": value});
    assert_eq!(info(&mut client, unspent), found);
    let last = varve::types::Block::parse(&blocks[130], NETWORK.format()).unwrap();
    let (tx, txid) = (&last.txs()[1], last.txids()[1]);
    let spent = tx.inputs().next().unwrap().outpoint;
    let answer = status(&mut client, &spent);
    assert_eq!(
        (&answer["spender_txhash"], &answer["spender_height"]),
        (&json!(txid.to_string()), &json!(130))
    );
    assert_eq!(info(&mut client, &spent), Value::Null);
    let none = Outpoint::new(txid, 9_999);
    assert_eq!((status(&mut client, &none), info(&mut client, &none)), (json!({}), Value::Null));
}

#[test]
fn wrong_names_are_refused() {
    let server = Server::with(NETWORK, &bytes(&simulated(3, 1, None)));
    let mut client = server.client();
    let long = "51".repeat(10_001);
    for (method, name) in [
        ("scripthash.get_history", "zz"),
        ("scripthash.subscribe", ""),
        ("scriptpubkey.subscribe", "0"),
        ("scriptpubkey.get_balance", long.as_str()),
        ("address.get_balance", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"),
        ("address.get_balance", "nonsense"),
    ] {
        assert_eq!(client.fail(&format!("blockchain.{method}"), json!([name])), 1, "{method}");
    }
    assert_eq!(status_of(""), Value::Null);
}

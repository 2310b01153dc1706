//! A real node agrees: it accepts a fully signed chain and gives the answers of `expected.json`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::fs;
use std::time::{Duration, Instant};

use bitcoin::hex::DisplayHex as _;
use serde_json::{Value, json};
use varve_sim::{Chain, Config, Profile, write_chain};
use varve_testdata::bitcoind::Bitcoind;

const LIMIT: Duration = Duration::from_secs(120);

fn config() -> Config {
    Config {
        signed_percent: 100,
        reorg_depth: Some(6),
        transactions: Some(60),
        mempool: 150,
        xor: true,
        ..Config::new(Profile::Mainnet, 200, 21)
    }
}

#[test]
fn a_node_that_reindexes_the_files_gives_the_same_answers() {
    let folder = tempfile::tempdir().unwrap();
    // The node looks for its blocks in the folder of its network.
    let network = folder.path().join("regtest");
    write_chain(&config(), &network, |_| ()).unwrap();
    let expected: Value =
        serde_json::from_slice(&fs::read(network.join("expected.json")).unwrap()).unwrap();
    let options = ["-reindex", "-coinstatsindex"];
    let Some(node) = Bitcoind::start_in(folder.path(), &options).map(Node) else { return };
    node.0.wait_for_height(expected["height"].as_u64().unwrap().try_into().unwrap());
    node.compare(&expected);
    node.compare_past_heights(&expected);
    node.compare_outputs(&expected);
    node.mine_mempool(&expected);
}

#[test]
fn a_node_that_gets_the_blocks_one_by_one_follows_every_reorg() {
    let Some(node) = Bitcoind::start(&[]).map(Node) else { return };
    let config = Config { seed: 22, ..config() };
    for block in Chain::new(&config).unwrap().skip(1) {
        let verdict = node.call("submitblock", &json!([block.bytes.to_lower_hex_string()]));
        // A block of a branch that is not yet longer is accepted without a verdict.
        assert!(verdict.is_null() || verdict == "inconclusive", "{}: {verdict}", block.height);
        // A losing branch is the tip until a longer one arrives, so its scripts have been run.
        if block.stale {
            assert_eq!(node.call("getbestblockhash", &json!([])), block.hash.to_string());
        }
    }
    let written = tempfile::tempdir().unwrap();
    write_chain(&config, written.path(), |_| ()).unwrap();
    let expected = fs::read(written.path().join("expected.json")).unwrap();
    node.compare(&serde_json::from_slice(&expected).unwrap());
}

struct Node(Bitcoind);

impl Node {
    fn call(&self, method: &str, params: &Value) -> Value {
        self.0.call(method, params)
    }

    /// The tip, the branches and the set.
    fn compare(&self, expected: &Value) {
        let set = self.call("gettxoutsetinfo", &json!(["hash_serialized_3"]));
        for field in ["height", "bestblock", "hash_serialized_3", "txouts", "bogosize"] {
            assert_eq!(set[field], expected[field], "{field}");
        }
        assert_eq!(set["transactions"], expected["transactions"]);
        assert_eq!(satoshi(&set["total_amount"]), expected["total_amount"]);
        let set = self.call("gettxoutsetinfo", &json!(["muhash"]));
        assert_eq!(set["muhash"], expected["muhash"]);

        let tips = |value: &Value| {
            let tip = |tip: &Value| {
                (tip["height"].as_u64(), tip["hash"].to_string(), tip["branchlen"].as_u64())
            };
            let mut tips: Vec<_> = value.as_array().unwrap().iter().map(tip).collect();
            tips.sort();
            tips
        };
        assert_eq!(tips(&self.call("getchaintips", &json!([]))), tips(&expected["chaintips"]));
    }

    /// The set at earlier heights, which the node knows from its own index.
    fn compare_past_heights(&self, expected: &Value) {
        let begin = Instant::now();
        while self.call("getindexinfo", &json!([]))["coinstatsindex"]["synced"] != true {
            assert!(begin.elapsed() < LIMIT, "the node's index does not get ready");
            std::thread::sleep(Duration::from_millis(100));
        }
        let heights = expected["at_heights"].as_object().unwrap();
        assert!(heights.len() > 5);
        for stats in heights.values() {
            let set = self.call("gettxoutsetinfo", &json!(["muhash", stats["height"]]));
            for field in ["bestblock", "muhash", "txouts", "bogosize"] {
                assert_eq!(set[field], stats[field], "{field} at {}", stats["height"]);
            }
            assert_eq!(satoshi(&set["total_amount"]), stats["total_amount"]);
        }
    }

    fn compare_outputs(&self, expected: &Value) {
        let (mut unspent, mut spent) = (0, 0);
        for output in expected["outputs"].as_array().unwrap() {
            let answer = self.call("gettxout", &json!([output["txid"], output["vout"], false]));
            if output["spender"].is_null() {
                let depth = answer["confirmations"].as_u64().unwrap() - 1;
                let height = expected["height"].as_u64().unwrap() - depth;
                assert_eq!(output["height"], height);
                assert_eq!(satoshi(&answer["value"]), output["value"]);
                assert_eq!(answer["scriptPubKey"]["hex"], output["script_pubkey"]);
                assert_eq!(answer["coinbase"], output["coinbase"]);
                unspent += 1;
            } else {
                assert_eq!(answer, Value::Null);
                spent += 1;
            }
        }
        assert!(unspent > 10 && spent > 10, "{unspent} unspent, {spent} spent");
    }

    /// The node makes a block of all unconfirmed transactions. (Submitted one by one, some would
    /// violate its policy, which differs between nodes and is not consensus.)
    fn mine_mempool(&self, expected: &Value) {
        let mempool = expected["mempool"].as_array().unwrap();
        assert!(mempool.len() > 100);
        let hex: Vec<&Value> = mempool.iter().map(|transaction| &transaction["hex"]).collect();
        let made = self.call("generateblock", &json!(["raw(51)", hex]));
        let block = self.call("getblock", &json!([made["hash"]]));
        let mined = block["tx"].as_array().unwrap().iter().skip(1);
        assert!(mined.eq(mempool.iter().map(|transaction| &transaction["txid"])));
    }
}

/// An amount in coins, as the node writes it, in satoshi.
fn satoshi(coins: &Value) -> u64 {
    bitcoin::Amount::from_str_in(&coins.to_string(), bitcoin::Denomination::Bitcoin)
        .or_else(|_| bitcoin::Amount::from_btc(coins.as_f64().unwrap()))
        .unwrap()
        .to_sat()
}

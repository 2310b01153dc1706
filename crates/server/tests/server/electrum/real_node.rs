//! Transactions in words, compared with what a real node says about the same chain.

use serde_json::{Value, json};
use varve_testdata::bitcoind::Bitcoind;

use super::chain::{NETWORK, branch, of_core};
use super::server::{Server, wait_until};

/// Core's descriptors of output scripts are left out of our answers.
fn without_descriptors(mut answer: Value) -> Value {
    for output in answer["vout"].as_array_mut().unwrap() {
        output["scriptPubKey"].as_object_mut().unwrap().remove("desc");
    }
    answer
}

#[test]
fn a_node_says_the_same_of_every_transaction() {
    let Some((blocks, tip)) = of_core() else { return };
    let Some(data) = varve_testdata::data("regtest-core31/blocks") else { return };
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("regtest/blocks");
    std::fs::create_dir_all(&own).unwrap();
    for file in std::fs::read_dir(data).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), own.join(file.file_name())).unwrap();
        }
    }
    let Some(node) = Bitcoind::start_in(folder.path(), &["-reindex=1", "-txindex=1"]) else {
        return;
    };
    node.wait_for_height(600);
    wait_until(|| node.call("getindexinfo", &json!(["txindex"]))["txindex"]["synced"] == true);
    let server = Server::with(NETWORK, &blocks);
    let mut client = server.client();
    let mut compared = 0;
    for bytes in branch(&blocks, tip).iter().skip(1) {
        let block = varve::types::Block::parse(bytes, NETWORK.format()).unwrap();
        for txid in block.txids() {
            let params = json!([txid.to_string(), true]);
            let theirs = without_descriptors(node.call("getrawtransaction", &params));
            let ours = client.ask("blockchain.transaction.get", params);
            assert_eq!(ours, theirs);
            compared += 1;
        }
    }
    assert!(compared > 3_000, "{compared}");
}

//! `varve proof` in both forms.

use serde_json::{Value, json};

use crate::varve::{ask, refusal, run, simulate};

#[test]
fn proofs_of_the_confirmed_chain_and_of_stale_branches() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    ask(&data, &["sync", "--from", chain.to_str().unwrap()]);

    let block = ask(&data, &["block", "123"]);
    let txids = block["tx"].as_array().unwrap();
    let txid = txids[1].as_str().unwrap();
    let electrum = ask(&data, &["proof", txid]);
    let names: Vec<_> = electrum.as_object().unwrap().keys().collect();
    assert_eq!(names, ["block_height", "merkle", "pos"]);
    assert_eq!((&electrum["block_height"], &electrum["pos"]), (&json!(123), &json!(1)));
    assert_eq!(electrum["merkle"][0], txids[0], "a node is written as a txid is");

    let tsc = ask(&data, &["proof", txid, "--format", "tsc"]);
    assert_eq!(
        tsc["nodes"].as_array().unwrap().len(),
        electrum["merkle"].as_array().unwrap().len()
    );
    let fields = |tsc: &Value| ["index", "txOrId", "target", "targetType"].map(|n| tsc[n].clone());
    assert_eq!(fields(&tsc), [json!(1), json!(txid), block["hash"].clone(), json!("hash")]);
    let args = ["proof", txid, "--format", "tsc", "--target", "header", "--full-tx"];
    let header = &block["hex"].as_str().unwrap()[..160];
    let bytes = ask(&data, &["tx", txid])["hex"].clone();
    assert_eq!(fields(&ask(&data, &args)), [json!(1), bytes, json!(header), json!("header")]);
    let args = ["proof", txid, "--format", "tsc", "--target", "merkleroot"];
    assert_eq!(ask(&data, &args)["target"], block["merkleroot"]);
    let message = refusal(&run(&data, &["proof", txid, "--full-tx"]));
    assert!(message.contains("pass --format tsc"), "{message}");

    // A height does not name a block of a stale branch, so the hash is there.
    let tips = expected["chaintips"].as_array().unwrap();
    let stale = tips.iter().find(|tip| tip["branchlen"] != 0).unwrap();
    let coinbase = ask(&data, &["block", stale["hash"].as_str().unwrap()])["tx"][0].clone();
    let proof = ask(&data, &["proof", coinbase.as_str().unwrap()]);
    assert_eq!((&proof["blockhash"], &proof["pos"]), (&stale["hash"], &json!(0)));
    let tsc = ask(&data, &["proof", coinbase.as_str().unwrap(), "--format", "tsc"]);
    assert_eq!(tsc["target"], stale["hash"]);
}

//! Blocks that break a rule: reported once with the reason, remembered, shown; and the chain stays.

use std::fs;
use std::path::Path;

use serde_json::json;
use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_types::blk::write_record;
use varve_types::{Header, Height, Network, Outpoint, Txid};

use crate::exit_codes::without_work;
use crate::varve::{ask, refusal, run};

const SUBSIDY: u64 = 50 * 100_000_000;

/// A block above another one.
pub(crate) fn above(below: &[u8], height: u32, salt: u8, txs: Vec<TxDraft>) -> BlockDraft {
    let header = Header::new(below.first_chunk().unwrap());
    let mut coinbase = TxDraft::coinbase(Height::new(height), SUBSIDY);
    coinbase.inputs[0].script.push(salt);
    let mut draft = BlockDraft::new([vec![coinbase], txs].concat());
    (draft.previous, draft.time) = (header.hash(), header.time() + 600);
    draft.mine();
    draft
}

pub(crate) fn hash(block: &[u8]) -> String {
    Header::new(block.first_chunk().unwrap()).hash().to_string()
}

pub(crate) fn write<'a>(path: &Path, blocks: impl IntoIterator<Item = &'a Vec<u8>>) {
    let mut file = Vec::new();
    blocks
        .into_iter()
        .for_each(|block| write_record(Network::Regtest.disk_magic(), block, &mut file));
    fs::write(path, file).unwrap();
}

#[test]
fn every_refused_block_is_reported_once_remembered_and_shown() {
    let mut chain = vec![Network::Regtest.genesis_block()];
    for height in 1..=4 {
        chain.push(above(&chain[chain.len() - 1], height, 1, Vec::new()).bytes());
    }
    let nothing = TxDraft::spending(&[Outpoint::new(Txid::from_bytes([9; 32]), 0)], 1);
    let missing = above(&chain[4], 5, 2, vec![nothing]).bytes();
    let on_missing = above(&missing, 6, 2, Vec::new()).bytes();
    let mut greedy = above(&chain[4], 5, 3, Vec::new());
    greedy.txs[0].outputs[0].value += 1;
    greedy.mine();
    let greedy = greedy.bytes();
    // Two headers that have not even the little work that regtest asks for.
    let [lazy, idle] = [4, 5].map(|salt| without_work(above(&chain[4], 5, salt, Vec::new())));
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("blk00000.dat"), folder.path().join("data"));
    // The refused ones are there twice.
    let refused = [&missing, &on_missing, &greedy, &lazy, &idle];
    write(&file, chain.iter().chain(refused).chain(refused));
    let from = ["sync", "--from", file.to_str().unwrap()];
    for round in 0..2 {
        let output = run(&data, &from);
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        let lines: Vec<&str> = said.lines().filter(|line| line.contains(" is refused: ")).collect();
        assert_eq!(lines.len(), 4, "{round}: {said}");
        for (block, reason) in [
            (&missing, "bad-txns-inputs-missingorspent"),
            (&greedy, "bad-cb-amount"),
            (&lazy, "high-hash: "),
            (&idle, "high-hash: "),
        ] {
            let begin = format!("block {} is refused: {reason}", hash(block));
            let count = lines.iter().filter(|line| line.starts_with(&begin)).count();
            assert_eq!(count, 1, "{round}, {begin}: {said}");
        }
        assert_eq!(output.status.code(), Some(1), "a branch with more work is refused");
        let done: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&done["refused"], &done["height"]), (&json!(4), &json!(4)), "{said}");
        assert_eq!(done["bestblock"], hash(&chain[4]));
    }
    let status = ask(&data, &["status"]);
    let invalid = status["invalid"].as_array().unwrap();
    assert_eq!(invalid.len(), 2, "{status}");
    for block in [&missing, &greedy] {
        assert!(invalid.iter().any(|found| found["hash"] == hash(block)), "{status}");
        let shown = ask(&data, &["block", &hash(block)]);
        assert_eq!((&shown["confirmed"], &shown["height"]), (&json!(false), &json!(5)));
        assert!(shown["invalid"].as_str().unwrap().starts_with("bad-"), "{shown}");
    }
    assert_eq!(ask(&data, &["block", "4"])["invalid"], json!(null));
    assert!(refusal(&run(&data, &["block", &hash(&lazy)])).contains("is not known"));
    // The chain still grows.
    chain.push(above(&chain[4], 5, 1, Vec::new()).bytes());
    write(&file, &chain);
    assert_eq!(ask(&data, &from)["bestblock"], hash(&chain[5]));
}

//! Transactions of many outputs, and transactions kept outside.

use std::fs;

use serde_json::json;

use super::store::{Store, error, ok};
use super::tx::{Input, Tx};

#[test]
fn forty_five_thousand_outputs_are_three_records() {
    let store = Store::new();
    let large = Tx::paying(&[Input::unknown(1, 100_000)], &vec![1; 45_000]);
    let spender = |vout| Tx::paying(&[large.output(vout)], &[1]);
    let answers = store.apply(&[
        json!({"op":"create","tx":large.extended,"block_height":5}),
        json!({"op":"spend","tx":spender(0).standard,"block_height":6}),
        json!({"op":"spend","tx":spender(44_999).standard,"block_height":6}),
        json!({"op":"get","txid":large.txid,"fields":["utxos","external"]}),
        json!({"op":"get","txid":large.txid,"fields":["tx"]}),
    ]);
    ok(&answers[1]);
    ok(&answers[2]);
    let record = ok(&answers[3]);
    assert_eq!(record["total_extra_recs"], 2);
    assert_eq!(record["total_utxos"], 45_000);
    assert_eq!(record["external"], true);
    let counts = |utxos, spent| json!({"record_utxos":utxos,"spent_utxos":spent});
    let expected = [counts(20_000, 1), counts(20_000, 0), counts(5_000, 1)];
    assert_eq!(record["records"], json!(expected));
    assert_eq!(record["utxos"].as_array().unwrap().len(), 45_000);
    assert_eq!(ok(&answers[4])["tx"], json!(large.extended));
}

#[test]
fn what_is_too_large_is_a_file_with_its_checksum() {
    let store = Store::with(&["--external-limit", "200"]);
    let script = vec![0x51; 300];
    let large = Tx::new(&[Input::unknown(1, 1_000)], &[(500, script)]);
    let small = Tx::paying(&[Input::unknown(2, 1_000)], &[500]);
    let answers = store.apply(&[
        json!({"op":"create","tx":large.extended,"block_height":5}),
        json!({"op":"create","tx":small.extended,"block_height":5}),
        json!({"op":"get","txid":large.txid}),
        json!({"op":"get","txid":small.txid}),
    ]);
    assert_eq!(ok(&answers[2])["external"], true);
    assert_eq!(ok(&answers[2])["tx"], json!(large.extended));
    assert_eq!(ok(&answers[3])["external"], false);
    let blob = store.path().join(format!("records/blobs/{}.tx", large.txid));
    assert_eq!(fs::read(&blob).unwrap()[..8], *b"T-1.0   ");
    assert!(blob.with_extension("tx.sha256").exists());
    fs::remove_file(&blob).unwrap();
    let answers = store.apply(&[
        json!({"op":"get","txid":large.txid}),
        json!({"op":"get_meta","txid":large.txid}),
    ]);
    assert_eq!(error(&answers[0]), "BLOB_NOT_FOUND");
    ok(&answers[1]);
}

#[test]
fn all_transactions_can_be_kept_outside() {
    let store = Store::with(&["--externalize-all", "--utxo-batch-size", "2"]);
    let tx = Tx::paying(&[Input::unknown(1, 1_000)], &[1, 2, 3]);
    let answers = store.apply(&[
        json!({"op":"create","tx":tx.extended,"block_height":5}),
        json!({"op":"get","txid":tx.txid}),
        json!({"op":"delete","txid":tx.txid}),
    ]);
    assert_eq!(ok(&answers[1])["external"], true);
    assert_eq!(ok(&answers[1])["total_extra_recs"], 1);
    let blobs = fs::read_dir(store.path().join("records/blobs")).unwrap();
    assert_eq!(blobs.count(), 0, "a blob goes with its record");
}

/// A line is read whole, as hex in JSON; what is kept of it is the transaction alone.
#[test]
fn a_long_line_costs_a_few_times_its_transaction() {
    const BYTES: usize = 16 << 20;
    let store = Store::new();
    let data = [&[0x00, 0x6a], vec![0x61; BYTES].as_slice()].concat();
    let large = Tx::new(&[Input::unknown(1, 1_000)], &[(0, data), (500, vec![0x51])]);
    let mut pipe = store.pipe();
    ok(&pipe.ask(&json!({"op":"create","tx":large.extended,"block_height":5})));
    let spender = Tx::paying(&[large.output(1)], &[1]);
    ok(&pipe.ask(&json!({"op":"spend","tx":spender.standard,"block_height":6})));
    let record = ok(&pipe.ask(&json!({"op":"get","txid":large.txid})));
    assert_eq!(record["tx"], json!(large.extended));
    let status = fs::read_to_string(format!("/proc/{}/status", pipe.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!("{} MiB at the peak for {} MiB", peak >> 10, BYTES >> 20);
    assert!(peak << 10 < 10 * BYTES + (32 << 20), "{peak} kB");
    pipe.close();
}

#[test]
fn too_little_memory_for_the_index_is_refused() {
    let store = Store::new();
    let line = json!({"op":"block_state"}).to_string();
    let file = store.path().join("lines");
    fs::write(&file, line).unwrap();
    let file = file.to_str().unwrap();
    let run = |memory| store.run(&["apply", file, "--memory", memory]);
    let (little, enough) = (run("1M"), run("64M"));
    assert!(enough.status.success() && enough.stderr.is_empty());
    let told = String::from_utf8_lossy(&little.stderr).into_owned();
    assert_eq!(little.status.code(), Some(1), "{told}");
    let sentence = "error: --memory 1M is too little for the records, whose index takes 0M; pass \
                    --memory 5M or more\n";
    assert_eq!(told, sentence);
    assert!(run("5M").status.success(), "what is said to be enough is enough");
}

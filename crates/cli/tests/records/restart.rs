//! What is answered is there after the end of the process, however it ends.

use std::fs;
use std::io::Write as _;
use std::thread;

use serde_json::{Value, json};

use super::store::{Store, error, ok};
use super::tx::{Input, Tx};

#[test]
fn a_second_run_finds_what_the_first_left() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[500, 400]);
    let child = Tx::paying(&[parent.output(0)], &[300]);
    let rival = Tx::paying(&[parent.output(0)], &[200]);
    let lines = [
        json!({"op":"set_block_height","block_height":100}),
        json!({"op":"set_median_block_time","median_time":5}),
        json!({"op":"create","tx":parent.extended,"created_at":1}),
        json!({"op":"spend_and_create","tx":child.extended,"created_at":2,"locked":true}),
        json!({"op":"freeze","txid":parent.txid,"vout":1}),
        json!({"op":"spend","tx":rival.extended}),
        json!({"op":"get","txid":parent.txid}),
        json!({"op":"block_state"}),
        json!({"op":"restart"}),
        json!({"op":"get","txid":child.txid}),
    ];
    let at_once = Store::new().apply(&lines);
    let each: Vec<Value> =
        lines.iter().map(|line| store.apply(std::slice::from_ref(line)).remove(0)).collect();
    assert_eq!(each, at_once, "one process a line is the same as one for all");
    assert_eq!(error(&each[5]), "UTXO_SPENT");
    assert_eq!(ok(&each[7]), json!({"height":100,"median_time":5}));
    assert_eq!(ok(&each[8])["unlocked"], json!([child.txid]));
}

#[test]
fn every_answered_line_survives_kill_9() {
    let store = Store::new();
    let mut txs = vec![Tx::paying(&[Input::unknown(1, 1_000)], &[1_000])];
    for _ in 0..20_000 {
        let next = Tx::paying(&[txs.last().unwrap().output(0)], &[1_000]);
        txs.push(next);
    }
    let line = |(place, tx): (usize, &Tx)| {
        let op = if place == 0 { "create" } else { "spend_and_create" };
        json!({"op":op,"tx":tx.extended,"block_height":1}).to_string() + "\n"
    };
    let text: String = txs.iter().enumerate().map(line).collect();
    for stop in [1, 700, 3_000] {
        let mut pipe = store.pipe();
        let mut input = pipe.input.take().unwrap();
        let lines = text.clone();
        // Ends with an error when the process is gone.
        let writer = thread::spawn(move || input.write_all(lines.as_bytes()));
        for _ in 0..stop {
            pipe.answer().unwrap();
        }
        pipe.child.kill().unwrap();
        let answered = stop + std::iter::from_fn(|| pipe.answer()).count();
        pipe.child.wait().unwrap();
        assert!(writer.join().unwrap().is_err(), "it was killed before the end");
        let txids: Vec<&str> = txs.iter().take(answered).map(|tx| tx.txid.as_str()).collect();
        let fields = ["spending_datas"];
        let found = store.ok(&json!({"op":"decorate","txids":txids,"fields":fields}));
        for (place, record) in found.as_array().unwrap().iter().enumerate() {
            let record = ok(record);
            let spender = &record["spending_datas"][0]["txid"];
            if place + 1 < answered {
                assert_eq!(*spender, json!(txs[place + 1].txid), "line {place} of {answered}");
            }
        }
    }
}

#[test]
fn a_second_process_is_told_who_has_the_store() {
    let store = Store::new();
    let mut pipe = store.pipe();
    pipe.ask(&json!({"op":"health"}));
    let sentence = store.refusal(&["conflicts"]);
    assert!(sentence.contains(&format!("process {}", pipe.child.id())), "{sentence}");
    pipe.close();
    assert!(store.run(&["conflicts"]).status.success());
}

#[test]
fn a_damaged_file_is_named_and_exit_code_1() {
    let store = Store::new();
    store.ok(&json!({"op":"set_block_height","block_height":100}));
    let tip = store.path().join("records/tip");
    let mut bytes = fs::read(&tip).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&tip, bytes).unwrap();
    let sentence = store.refusal(&["conflicts"]);
    assert!(sentence.contains("records/tip") && sentence.contains("checksum"), "{sentence}");
}

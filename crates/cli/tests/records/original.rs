//! Lines of someone who knows the original and has not read our document.

use serde_json::{Value, json};

use super::store::{Store, error, ok};
use super::tx::{Input, Tx};

/// The outputs of one record are spent one by one: what passes stands though others fail.
#[test]
fn outputs_of_one_record_are_spent_each_by_itself() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[300, 300]);
    let spends = |spenders: [&str; 2]| {
        let spend = |(vout, spender): (usize, &str)| {
            json!({"txid":parent.txid,"vout":vout,
                "spending_data":format!("{}00000000", spender.repeat(32))})
        };
        let spends: Vec<Value> = spenders.into_iter().enumerate().map(spend).collect();
        json!({"op":"spend_multi","spends":spends,"block_height":5})
    };
    let zero = json!({"op":"spend_multi","spends":[],"block_height":5});
    let answers = store.apply(&[
        json!({"op":"create","tx":parent.extended,"height":5}),
        json!({"op":"spend","outpoint":format!("{}:0", parent.txid),"height":5,
            "spending_data":{"txid":"aa".repeat(32),"vin":0}}),
        spends(["bb", "cc"]),
        spends(["aa", "cc"]),
        zero,
        json!({"op":"get","txid":parent.txid,"fields":["spent_utxos"]}),
    ]);
    assert_eq!(error(&answers[2]), "UTXO_SPENT");
    let items = answers[2]["spends"].as_array().unwrap();
    assert_eq!(items[0]["conflicting_txid"], "aa".repeat(32));
    assert_eq!((&items[1]["ok"], &items[1]["how"]), (&json!(true), &json!("SPENT")));
    let again = ok(&answers[3]);
    assert_eq!(again["spends"][0]["how"], "SPENT_BEFORE");
    assert_eq!(again["spends"][1]["how"], "SPENT_BEFORE");
    assert_eq!(ok(&answers[4])["spends"], json!([]));
    assert_eq!(ok(&answers[5])["spent_utxos"], 2);
}

/// The hash of an output is a hash, and some write those in the order of txids.
#[test]
fn a_hash_of_an_output_is_taken_in_either_order() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[300]);
    store.ok(&json!({"op":"create","tx":parent.extended,"height":5}));
    let record = store.ok(&json!({"op":"get","txid":parent.txid,"fields":["utxos"]}));
    let hash = record["utxos"][0].as_str().unwrap().to_owned();
    let pairs: Vec<&str> = hash.as_bytes().chunks(2).map(|p| str::from_utf8(p).unwrap()).collect();
    let reversed: String = pairs.into_iter().rev().collect();
    let state = |hash: &str| json!({"op":"get_spend","txid":parent.txid,"vout":0,"utxo_hash":hash});
    let answers = store.apply(&[state(&hash), state(&reversed), state(&"00".repeat(32))]);
    assert_eq!(ok(&answers[0]), ok(&answers[1]));
    assert_eq!(error(&answers[2]), "UTXO_MISMATCH");
}

#[test]
fn what_is_missing_is_named() {
    let store = Store::new();
    let missing = "77".repeat(32);
    let orphan = Tx::paying(&[Input::unknown(1, 1_000)], &[300]);
    let answers = store.apply(&[
        json!({"op":"set_locked","txids":[missing]}),
        json!({"op":"mark_on_longest_chain","hashes":[missing]}),
        json!({"op":"unspend","tx":orphan.extended}),
    ]);
    for answer in &answers {
        assert_eq!(error(answer), "TX_NOT_FOUND");
    }
    assert_eq!(answers[0]["missing"], json!([missing]));
    assert_eq!(answers[1]["missing"], json!([missing]));
    assert_eq!(answers[2]["txid"], "01".repeat(32));
}

/// Whether a transaction may pay out more than it takes in is a rule of whoever validates it.
#[test]
fn a_record_is_no_judge_of_amounts() {
    let store = Store::new();
    let tx = Tx::paying(&[Input::unknown(1, 100)], &[300]);
    assert_eq!(store.ok(&json!({"op":"create","tx":tx.extended,"height":5}))["fee"], 0);
}

#[test]
fn sizes_and_bytes_have_their_names() {
    let store = Store::new();
    let tx = Tx::paying(&[Input::unknown(1, 1_000)], &[300]);
    let size = tx.standard.len() / 2;
    let created = store.ok(&json!({"op":"create","tx":tx.extended,"height":5,"locked":true}));
    assert_eq!((&created["size"], &created["size_in_bytes"]), (&json!(size), &json!(size)));
    let get = |fields: Value| store.ok(&json!({"op":"get","txid":tx.txid,"fields":fields}));
    assert_eq!(get(json!(["size"])), json!({"txid":tx.txid,"size":size}));
    let inpoints = format!("01000000{}0100000000000000", "01".repeat(32));
    assert_eq!(get(json!(["tx_inpoints"]))["tx_inpoints"]["bytes"], inpoints);
    let meta = format!("bc02000000000000{size:02x}0000000000000008{inpoints}");
    assert_eq!(get(json!(["meta_bytes"]))["meta_bytes"], meta, "fee, size, flags, inpoints");
    let long = get(json!(["meta_bytes", "tx"]));
    assert_eq!(long["meta_bytes"], meta + &tx.extended);
}

#[test]
fn a_byte_order_mark_and_nulls_are_passed_over() {
    let store = Store::new();
    let text = "\u{feff}{\"op\":\"set_block_state\",\"height\":7,\"median_time\":8}\r\n\
                {\"op\":\"set_block_height\",\"block_height\":null,\"height\":9}\r\n";
    let answers = store.apply_text(text);
    assert_eq!(ok(&answers[0]), json!({"height":7,"median_time":8}));
    assert_eq!(ok(&answers[1]), json!({"height":9,"median_time":8}));
}

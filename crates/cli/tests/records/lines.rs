//! Lines that are wrong, lines that wait, and lines that are done together.

use std::fs;

use serde_json::{Value, json};

use super::store::{Store, error, ok};
use super::tx::{Input, Tx};

#[test]
fn a_wrong_line_is_answered_and_the_run_goes_on() {
    let store = Store::new();
    let text = "\n# a comment\n{\"op\":\"frobnicate\"}\n  \nnot json\n[1]\n{}\n{\"op\":\"get\"}\n\
                {\"op\":\"get\",\"txid\":\"12\"}\n{\"op\":\"create\",\"tx\":\"00\"}\n\
                {\"op\":\"spend\",\"block_height\":1}\n{\"op\":\"set_block_height\",\"height\":0}\n\
                {\"op\":\"set_locked\",\"txids\":\"x\"}\n{\"op\":\"health\"}";
    let answers = store.apply_text(text);
    let wrong = ["op", "JSON", "object", "op", "txid", "txid", "tx", "spending_data", "height"];
    assert_eq!(answers.len(), wrong.len() + 2, "{answers:?}");
    for (answer, word) in answers.iter().zip(wrong) {
        assert_eq!(error(answer), "INVALID_ARGUMENT");
        assert!(answer["message"].as_str().unwrap().contains(word), "{answer} names {word}");
    }
    assert_eq!(ok(&answers[10])["status"], 200, "the last line needs no end of line");
}

#[test]
fn whoever_waits_for_an_answer_gets_it_at_once() {
    let store = Store::new();
    let mut pipe = store.pipe();
    let mut tx = Tx::paying(&[Input::unknown(1, 1_000)], &[1_000]);
    ok(&pipe.ask(&json!({"op":"create","tx":tx.extended,"block_height":1})));
    for _ in 0..20 {
        let next = Tx::paying(&[tx.output(0)], &[1_000]);
        let line = json!({"op":"spend_and_create","tx":next.extended,"block_height":1});
        assert_eq!(ok(&pipe.ask(&line))["txid"], json!(next.txid));
        tx = next;
    }
    pipe.close();
}

/// Lines of a file are done together where that can be, those of a pipe one by one.
#[test]
fn lines_that_are_done_together_answer_as_one_by_one() {
    let parents: Vec<Tx> =
        (0..50).map(|byte| Tx::paying(&[Input::unknown(byte, 1_000)], &[400, 500])).collect();
    let mut lines = Vec::new();
    for (place, parent) in parents.iter().enumerate() {
        let child = Tx::paying(&[parent.output(0)], &[300]);
        let rival = Tx::paying(&[parent.output(0), parent.output(1)], &[300]);
        let create = json!({"op":"create","tx":parent.extended,"block_height":1,"created_at":1});
        let spend = |tx: &str| {
            json!({"op":"spend_and_create","tx":tx,"block_height":1,
            "created_at":1})
        };
        // A child before its parent, a rival before and behind, the same line twice.
        let mut some = vec![
            create.clone(),
            spend(&child.extended),
            spend(&rival.standard),
            create,
            spend(&child.standard),
            spend(&rival.extended),
        ];
        some.rotate_left(place % 6);
        lines.extend(some);
    }
    let (together, apart) = (Store::new(), Store::new());
    let file = together.path().join("lines.jsonl");
    fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let output = together.run(&["apply", file.to_str().unwrap()]);
    assert!(output.status.success());
    let answers: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let mut pipe = apart.pipe();
    let expected: Vec<Value> = lines.iter().map(|line| pipe.ask(line)).collect();
    pipe.close();
    assert_eq!(answers.len(), lines.len());
    for ((line, answer), expected) in lines.iter().zip(&answers).zip(&expected) {
        assert_eq!(answer, expected, "{line}");
    }
    let states = [&together, &apart].map(|store| {
        let txids = parents.iter().map(|tx| tx.txid.clone()).collect::<Vec<_>>();
        store.ok(&json!({"op":"decorate","txids":txids}))
    });
    assert_eq!(states[0], states[1]);
}

#[test]
fn a_file_that_is_not_there_is_exit_code_1() {
    let store = Store::new();
    let sentence = store.refusal(&["apply", "nowhere.jsonl"]);
    assert!(sentence.contains("cannot read nowhere.jsonl"), "{sentence}");
}

#[test]
fn operations_have_the_names_of_the_original_too() {
    let names = [
        "create",
        "spend",
        "spend_multi",
        "unspend",
        "spend_and_create",
        "spend_and_create_multi",
        "set_mined",
        "set_mined_multi",
        "mark_on_longest_chain",
        "mark_transactions_on_longest_chain",
        "set_locked",
        "lock",
        "unlock",
        "freeze",
        "freeze_utxos",
        "unfreeze",
        "unfreeze_utxos",
        "freeze_window",
        "set_freeze_window",
        "reassign",
        "reassign_utxo",
        "set_conflicting",
        "get",
        "get_meta",
        "get_spend",
        "decorate",
        "batch_decorate",
        "previous_outputs",
        "previous_outputs_decorate",
        "delete",
        "preserve_until",
        "preserve_transactions",
        "process_expired_preservations",
        "unmined",
        "get_unmined_tx_iterator",
        "unmined_iterator",
        "query_old_unmined",
        "query_old_unmined_transactions",
        "set_block_height",
        "get_block_height",
        "set_median_block_time",
        "set_block_state",
        "block_state",
        "get_block_state",
        "health",
        "get_conflicting_children",
        "get_counter_conflicting",
        "get_and_lock_children",
        "process_conflicting",
        "conflict_intents",
        "retry_conflict_intent",
        "abandon_conflict_intent",
        "sizes",
        "remove_from_conflicting_children",
        "remove_block_ids",
        "prune",
        "restart",
        "load_unmined",
        "scan",
    ];
    let lines = names.map(|name| json!({ "op": name }));
    for (name, answer) in names.iter().zip(Store::with(&["--engine", "memory:"]).apply(&lines)) {
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(!message.contains("known are"), "{name}: {answer}");
    }
}

#[test]
fn arguments_may_be_given_in_several_ways() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[300, 300]);
    let child = Tx::paying(&[parent.output(0)], &[200]);
    let grandchild = Tx::paying(&[child.output(0)], &[100]);
    let outpoint = format!("{}:1", parent.txid);
    let spender = "ab".repeat(32);
    let answers = store.apply(&[
        json!({"op":"create","tx":parent.extended,"height":5,"block_id":3}),
        // Standard forms, the child behind its child.
        json!({"op":"spend_and_create_multi","txs":[grandchild.standard,child.standard],
            "height":5}),
        json!({"op":"spend","outpoint":outpoint,"spending_data":{"txid":spender,"vin":2},
            "height":5}),
        json!({"op":"spend","spends":[{"outpoint":outpoint,
            "spending_data":format!("{spender}02000000")}],"height":5}),
        json!({"op":"set_mined","hashes":[child.txid],
            "mined_block_info":{"block_id":4,"height":5}}),
        json!({"op":"set_mined","hash":child.txid,"mined_block_infos":[{"block_id":5},
            {"block_id":4,"unset_mined":true}]}),
        json!({"op":"set_locked","hashes":[child.txid],"value":true}),
        json!({"op":"get","hash":child.txid,"fields":"locked,blockIDs"}),
        json!({"op":"unspend","tx":grandchild.standard,"flag_as_locked":true}),
    ]);
    let answers: Vec<Value> = answers.iter().map(ok).collect();
    let created = answers[1]["txs"].as_array().unwrap();
    created.iter().for_each(|tx| drop(ok(tx)));
    assert_eq!(answers[2]["spends"][0]["how"], "SPENT");
    assert_eq!(answers[2]["spends"][0]["block_ids"], json!([3]));
    assert_eq!(answers[3]["spends"][0]["how"], "SPENT_BEFORE");
    assert_eq!(answers[5]["block_ids"][&child.txid], json!([5]));
    assert_eq!((&answers[7]["locked"], &answers[7]["block_ids"]), (&json!(true), &json!([5])));
    assert_eq!(answers[8]["spends"][0]["unspent"], true);
}

#[test]
fn outputs_without_their_inputs_are_imported_under_the_given_txid() {
    let store = Store::new();
    let txid = "cd".repeat(32);
    let bare = Tx::paying(&[], &[300, 300]);
    let create =
        json!({"op":"create","tx":bare.standard,"txid":txid,"height":5,"is_coinbase":true});
    let answers = store.apply(&[create, json!({"op":"get","txid":txid})]);
    let record = ok(&answers[1]);
    assert_eq!(record["spending_height"], 105);
    assert_eq!(record["record_utxos"], 2);
    assert_eq!(record["tx_inpoints"]["parent_tx_hashes"], json!([]));
}

#[test]
fn answers_that_cannot_be_written_are_exit_code_1() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_varve"));
    command.args(["records", "apply", "-", "--engine", "memory:"]).stdout(full);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"{\"op\":\"health\"}\n").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("No space left"));
}

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

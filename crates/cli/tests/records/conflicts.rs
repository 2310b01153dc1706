//! The loser of a double spend wins after all.

use serde_json::json;

use super::store::{Store, error, ok};
use super::tx::{Input, Tx};

#[test]
fn what_builds_on_the_loser_gives_way() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[900]);
    let first = Tx::paying(&[parent.output(0)], &[800]);
    let built = Tx::paying(&[first.output(0)], &[700]);
    let winner = Tx::paying(&[parent.output(0)], &[600]);
    let later = Tx::paying(&[winner.output(0)], &[500]);
    let answers = store.apply(&[
        json!({"op":"set_block_height","block_height":100}),
        json!({"op":"create","tx":parent.extended,"mined_block_infos":[{"block_id":1,
            "block_height":100}]}),
        json!({"op":"spend_and_create","tx":first.extended}),
        json!({"op":"spend_and_create","tx":built.extended}),
        json!({"op":"create","tx":winner.extended,"conflicting":true}),
        json!({"op":"spend","tx":later.extended}),
        json!({"op":"get_counter_conflicting","txid":winner.txid}),
        json!({"op":"process_conflicting","txids":[first.txid],"block_height":101}),
        json!({"op":"process_conflicting","txids":[winner.txid],"block_height":101}),
        json!({"op":"get","txid":parent.txid,"fields":["spending_datas","locked"]}),
        json!({"op":"scan","kind":"conflicting"}),
        json!({"op":"conflict_intents"}),
        json!({"op":"spend_and_create","tx":later.extended}),
    ]);
    assert_eq!(error(&answers[5]), "TX_CONFLICTING");
    assert_eq!(ok(&answers[6]).as_array().unwrap().len(), 3);
    assert_eq!(error(&answers[7]), "PROCESSING", "it has not lost");
    let losers = ok(&answers[8])["losers"].clone();
    assert_eq!(losers, json!([first.txid, built.txid]));
    let record = ok(&answers[9]);
    assert_eq!(record["spending_datas"], json!([{"txid":winner.txid,"vin":0}]));
    assert_eq!(record["locked"], false);
    let mut expected = [first.txid, built.txid];
    let mut found: Vec<String> = serde_json::from_value(ok(&answers[10])).unwrap();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(ok(&answers[11]), json!([]));
    ok(&answers[12]);
    assert_eq!(store.json(&["conflicts"])["conflicting"].as_array().unwrap().len(), 2);
}

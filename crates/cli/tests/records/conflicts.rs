//! The loser of a double spend wins after all.

use std::sync::Arc;

use serde_json::{Value, json};
use varve_io::{Disk, StoreId};
use varve_records::conflicts::{Intent, IntentKind};
use varve_records::engine::Context;
use varve_records::record::PLACEHOLDER;
use varve_records::{EmbeddedEngine, EmbeddedOptions, Engine as _, Operation, StoreKey};
use varve_types::{BlockHash, Height};

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

/// An order bound the output to another script: the former owner's claim is refused, the new one's
/// wins, and a refusal changes nothing.
#[test]
fn a_former_owner_cannot_win_a_reassigned_output() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[900]);
    let former = Tx::paying(&[parent.output(0)], &[800]);
    let first = Tx::paying(&[parent.output(0).with_script(&[0x53])], &[700]);
    let second = Tx::paying(&[parent.output(0).with_script(&[0x53])], &[600]);
    let get = json!({"op":"get","txid":parent.txid});
    let answers = store.apply(&[
        json!({"op":"set_block_height","block_height":100}),
        json!({"op":"create","tx":parent.extended,"mined_block_infos":[{"block_id":1,
            "block_height":100}]}),
        json!({"op":"freeze","txid":parent.txid,"vout":0}),
        json!({"op":"reassign","txid":parent.txid,"vout":0,"new_script":"53"}),
        json!({"op":"set_block_height","block_height":1100}),
        json!({"op":"create","tx":former.extended,"conflicting":true}),
        json!({"op":"spend_and_create","tx":first.extended}),
        json!({"op":"create","tx":second.extended,"conflicting":true}),
        get.clone(),
        json!({"op":"process_conflicting","txids":[former.txid],"block_height":1101}),
        get.clone(),
        json!({"op":"process_conflicting","txids":[second.txid],"block_height":1101}),
        get,
    ]);
    assert_eq!(error(&answers[9]), "UTXO_MISMATCH", "{}", answers[9]);
    assert_eq!(answers[10], answers[8], "a refusal changes nothing");
    assert_eq!(ok(&answers[11])["losers"], json!([first.txid]));
    assert_eq!(ok(&answers[12])["spending_datas"], json!([{"txid":second.txid,"vin":0}]));
}

/// A bare spend, whose spender has no record, and a spender that was confirmed and pruned.
#[test]
fn who_has_no_record_gives_way_unless_it_was_confirmed() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[300, 300, 300]);
    let bare = Tx::paying(&[parent.output(0)], &[200]);
    let winner = Tx::paying(&[parent.output(0)], &[100]);
    let confirmed = Tx::paying(&[parent.output(1)], &[200]);
    let above = Tx::paying(&[confirmed.output(0)], &[100]);
    let late = Tx::paying(&[parent.output(1)], &[50]);
    let block = json!([{"block_id":1,"block_height":100}]);
    let answers = store.apply(&[
        json!({"op":"set_block_height","block_height":100}),
        json!({"op":"create","tx":parent.extended,"mined_block_infos":block}),
        json!({"op":"spend","tx":bare.extended}),
        json!({"op":"create","tx":winner.extended,"conflicting":true}),
        json!({"op":"process_conflicting","txids":[winner.txid],"block_height":101}),
        json!({"op":"spend_and_create","tx":confirmed.extended,"mined_block_infos":block}),
        json!({"op":"spend_and_create","tx":above.extended,"mined_block_infos":block}),
        json!({"op":"prune","block_height":500}),
        json!({"op":"get","txid":confirmed.txid}),
        json!({"op":"create","tx":late.extended,"conflicting":true}),
        json!({"op":"process_conflicting","txids":[late.txid],"block_height":501}),
        json!({"op":"get","txid":parent.txid,"fields":["spending_datas"]}),
        json!({"op":"conflict_intents"}),
    ]);
    assert_eq!(ok(&answers[4])["losers"], json!([bare.txid]));
    assert_eq!(error(&answers[8]), "TX_NOT_FOUND");
    assert_eq!(error(&answers[10]), "PROCESSING", "{}", answers[10]);
    let spenders = [json!({"txid":winner.txid,"vin":0}), json!({"txid":confirmed.txid,"vin":0})];
    assert_eq!(ok(&answers[11])["spending_datas"], json!([spenders[0], spenders[1], null]));
    assert_eq!(ok(&answers[12]), json!([]));
}

/// A rival was confirmed and pruned, and so was the owner of the output: nothing says who spent it.
#[test]
fn a_winner_whose_parent_was_pruned_is_refused() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[900]);
    let confirmed = Tx::paying(&[parent.output(0)], &[800]);
    let above = Tx::paying(&[confirmed.output(0)], &[700]);
    let late = Tx::paying(&[parent.output(0)], &[600]);
    let block = json!([{"block_id":1,"block_height":100}]);
    let answers = store.apply(&[
        json!({"op":"set_block_height","block_height":100}),
        json!({"op":"create","tx":parent.extended,"mined_block_infos":block}),
        json!({"op":"spend_and_create","tx":confirmed.extended,"mined_block_infos":block}),
        json!({"op":"spend_and_create","tx":above.extended,"mined_block_infos":block}),
        json!({"op":"prune","block_height":500}),
        json!({"op":"get_meta","txid":parent.txid}),
        json!({"op":"create","tx":late.extended,"conflicting":true}),
        json!({"op":"process_conflicting","txids":[late.txid],"block_height":501}),
        json!({"op":"get","txid":late.txid,"fields":["conflicting"]}),
        json!({"op":"conflict_intents"}),
    ]);
    assert_eq!(error(&answers[5]), "TX_NOT_FOUND");
    assert_eq!(error(&answers[7]), "TX_NOT_FOUND", "{}", answers[7]);
    assert_eq!(ok(&answers[8])["conflicting"], true);
    assert_eq!(ok(&answers[9]), json!([]));
}

/// A crash left a resolution behind whose winner's output was frozen since.
#[test]
fn a_stuck_resolution_is_shown_retried_and_abandoned() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[300, 300]);
    let loser = Tx::paying(&[parent.output(1)], &[200]);
    let winner = Tx::paying(&[parent.output(0)], &[100]);
    for line in [
        json!({"op":"set_block_height","block_height":100}),
        json!({"op":"create","tx":parent.extended}),
        json!({"op":"spend_and_create","tx":loser.extended}),
        json!({"op":"create","tx":winner.extended,"conflicting":true}),
        json!({"op":"freeze","txid":parent.txid,"vout":0}),
    ] {
        store.ok(&line);
    }
    let leave = || {
        let key = StoreKey { id: StoreId([1; 16]), secret: [1; 16] };
        let folder = Disk::open(&store.path().join("records")).unwrap();
        let engine = EmbeddedEngine::open(Arc::new(folder), EmbeddedOptions::new(key)).unwrap();
        let txid = |tx: &Tx| tx.txid.parse().unwrap();
        let intent = Intent {
            kind: IntentKind::ResolveConflicts,
            height: Height::new(101),
            block: BlockHash::from_bytes([3; 32]),
            txids: vec![txid(&winner), PLACEHOLDER, txid(&loser)],
            created_at: 1,
        };
        let context = Context { height: Height::new(100), retention: 288 };
        engine.apply(&context, &[Operation::BeginIntent(intent)]).unwrap();
    };
    leave();
    let output = store.run(&["intents", "--json"]);
    assert!(output.status.success());
    let warning = String::from_utf8(output.stderr).unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = found[0]["id"].as_str().unwrap();
    assert!(warning.contains("is stuck") && warning.contains(id), "{warning}");
    assert_eq!(found[0]["winners"], json!([winner.txid]));
    let restart = store.ok(&json!({"op":"restart","best_block_ids":[1]}));
    assert_eq!(restart["stuck"][0]["id"], id, "a restart goes on");
    assert_eq!(store.json(&["get", &parent.txid])["locked"], true);
    assert!(store.refusal(&["retry", id]).contains("UTXO_FROZEN"));
    store.json(&["abandon", id]);
    assert_eq!(store.json(&["intents"]), json!([]));
    assert_eq!(store.json(&["get", &parent.txid])["locked"], false);
    leave();
    store.json(&["unfreeze", &format!("{}:0", parent.txid)]);
    assert_eq!(store.json(&["intents"]), json!([]), "opening resumes what can be finished");
    let record = store.json(&["get", &parent.txid]);
    assert_eq!(record["spending_datas"], json!([{"txid":winner.txid,"vin":0}, null]));
}

//! The life of a transaction, from its creation to its removal.

use serde_json::json;

use super::store::{Store, error, ok};
use super::tx::{Input, Tx};

#[test]
fn created_locked_handed_on_unlocked_spent_mined_pruned() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[900]);
    let child = Tx::paying(&[parent.output(0)], &[800]);
    let grandchild = Tx::paying(&[child.output(0)], &[700]);
    let rival = Tx::paying(&[parent.output(0)], &[600]);
    let answers = store.apply(&[
        json!({"op":"set_block_height","block_height":100}),
        json!({"op":"create","tx":parent.extended,"block_height":101}),
        // Two-phase commit: nobody builds on it before block assembly has it.
        json!({"op":"spend_and_create","tx":child.extended,"block_height":101,"locked":true}),
        json!({"op":"spend","tx":grandchild.extended,"block_height":101}),
        json!({"op":"set_locked","txids":[child.txid],"locked":false}),
        json!({"op":"spend_and_create","tx":grandchild.standard,"block_height":101}),
        // A double spend names who was first.
        json!({"op":"spend_and_create","tx":rival.extended,"block_height":101}),
        json!({"op":"get","txid":rival.txid}),
        json!({"op":"get","txid":parent.txid}),
    ]);
    ok(&answers[2]);
    assert_eq!(error(&answers[3]), "TX_LOCKED");
    assert_eq!(answers[3]["code"], 37);
    assert_eq!(ok(&answers[5])["fee"], 100, "extended from the parent's record");
    assert_eq!(error(&answers[6]), "UTXO_SPENT");
    assert_eq!(answers[6]["wrapped_in"], "UTXO_ERROR");
    assert_eq!(answers[6]["spends"][0]["conflicting_txid"], json!(child.txid));
    assert_eq!(answers[6]["spends"][0]["spending_data"], json!({"txid":child.txid,"vin":0}));
    assert_eq!(error(&answers[7]), "TX_NOT_FOUND", "nothing of a refused unit is there");
    let record = ok(&answers[8]);
    assert_eq!(record["spending_datas"], json!([{"txid":child.txid,"vin":0}]));
    assert_eq!(record["utxos"][0].as_str().unwrap().len(), 136);
    assert_eq!((&record["unmined_since"], &record["delete_at_height"]), (&json!(101), &json!(0)));

    let mine = |block| {
        json!({"op":"set_mined","txids":[parent.txid,child.txid,grandchild.txid],
        "block_id":block,"block_height":101,"subtree_idx":1})
    };
    let answers = store.apply(&[
        mine(123),
        mine(124),
        json!({"op":"set_mined","txids":[parent.txid],"block_id":123,"unset_mined":true}),
        json!({"op":"get","txid":parent.txid}),
        json!({"op":"set_block_height","block_height":389}),
        json!({"op":"prune"}),
        json!({"op":"set_block_height","block_height":390}),
        json!({"op":"prune"}),
        json!({"op":"get","txid":parent.txid}),
        json!({"op":"get","txid":grandchild.txid,"fields":["unmined_since","delete_at_height"]}),
        // The parent is gone, but whoever has a record has spent it.
        json!({"op":"spend","tx":child.extended,"block_height":390}),
        json!({"op":"spend","tx":rival.extended,"block_height":390}),
    ]);
    assert_eq!(ok(&answers[2])["block_ids"][&parent.txid], json!([124]));
    let record = ok(&answers[3]);
    assert_eq!(record["block_ids"], json!([124]));
    assert_eq!(record["block_heights"], json!([101]));
    assert_eq!(record["subtree_idxs"], json!([1]));
    assert_eq!(record["unmined_since"], 0);
    assert_eq!(record["delete_at_height"], 389, "height 101 and the retention");
    assert_eq!(ok(&answers[5])["removed"], 2);
    assert_eq!(error(&answers[8]), "TX_NOT_FOUND");
    assert_eq!(ok(&answers[9])["delete_at_height"], 0, "its output is unspent");
    assert_eq!(error(&answers[11]), "TX_NOT_FOUND");
}

#[test]
fn a_transaction_leaves_its_block_and_waits_again() {
    let store = Store::new();
    let tx = Tx::paying(&[Input::unknown(1, 1_000)], &[900]);
    let answers = store.apply(&[
        json!({"op":"set_block_height","block_height":100}),
        json!({"op":"create","tx":tx.extended,"created_at":5}),
        json!({"op":"set_mined","txid":tx.txid,"block_id":1,"block_height":101}),
        json!({"op":"unmined"}),
        json!({"op":"set_mined","txid":tx.txid,"block_id":1,"unset_mined":true}),
        json!({"op":"unmined"}),
        json!({"op":"mark_on_longest_chain","txid":tx.txid}),
        json!({"op":"query_old_unmined","cutoff":1000}),
        json!({"op":"mark_on_longest_chain","txid":"00".repeat(32)}),
    ]);
    assert_eq!(ok(&answers[3]), json!([]));
    let waiting = ok(&answers[5]);
    assert_eq!(waiting[0]["txid"], json!(tx.txid));
    assert_eq!(waiting[0]["created_at"], 5);
    assert_eq!(ok(&answers[7]), json!([]));
    assert_eq!(error(&answers[8]), "TX_NOT_FOUND");
}

#[test]
fn the_parent_of_an_old_unmined_transaction_is_preserved() {
    let store = Store::with(&["--retention", "10", "--unmined-retention", "20"]);
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[900]);
    let child = Tx::paying(&[parent.output(0)], &[800]);
    let answers = store.apply(&[
        json!({"op":"set_block_height","block_height":100}),
        json!({"op":"create","tx":parent.extended,"mined_block_infos":[{"block_id":1,
            "block_height":100}]}),
        json!({"op":"spend_and_create","tx":child.extended,"block_height":101}),
        json!({"op":"prune","block_height":130}),
        json!({"op":"get","txid":parent.txid,"fields":["preserve_until"]}),
        json!({"op":"preserve_until","txid":parent.txid,"preserve_until":140}),
        json!({"op":"process_expired_preservations","block_height":140}),
        json!({"op":"get","txid":parent.txid,"fields":["preserve_until","deleteAtHeight"]}),
        json!({"op":"prune","block_height":150}),
        json!({"op":"get","txid":parent.txid,"fields":["preserve_until"]}),
    ]);
    assert_eq!(ok(&answers[3])["preserved"], 1);
    assert_eq!(ok(&answers[4])["preserve_until"], 130 + 1_440);
    assert_eq!(ok(&answers[6])["expired"], 1);
    assert_eq!(ok(&answers[7])["delete_at_height"], 150);
    assert_eq!(ok(&answers[8])["removed"], 0, "an unmined transaction spends it");
    ok(&answers[9]);
}

#[test]
fn a_coinbase_rests_for_a_hundred_blocks() {
    let store = Store::new();
    let coinbase = Tx::coinbase(1, 5_000);
    let spender = Tx::paying(&[coinbase.output(0)], &[4_000]);
    let answers = store.apply(&[
        json!({"op":"create","tx":coinbase.extended,"block_height":10}),
        json!({"op":"spend","tx":spender.extended,"block_height":109}),
        json!({"op":"spend","tx":spender.extended,"block_height":110}),
    ]);
    assert_eq!(error(&answers[1]), "TX_COINBASE_IMMATURE");
    ok(&answers[2]);
}

/// Pages of a scan are disjoint and together everything.
#[test]
fn a_scan_comes_in_pages() {
    let store = Store::new();
    let txs: Vec<Tx> =
        (1..=7).map(|byte| Tx::paying(&[Input::unknown(byte, 1_000)], &[900])).collect();
    let lines: Vec<_> = txs.iter().map(|tx| json!({"op":"create","tx":tx.extended})).collect();
    store.apply(&lines);
    for kind in ["all", "unmined"] {
        let (mut found, mut after) = (Vec::new(), json!(null));
        loop {
            let page = store.ok(&json!({"op":"scan","kind":kind,"limit":3,"after":after}));
            let txids: Vec<String> = serde_json::from_value(page["txids"].clone()).unwrap();
            assert!(txids.len() <= 3);
            found.extend(txids);
            after = page["next"].clone();
            if after.is_null() {
                break;
            }
        }
        found.sort();
        let mut expected: Vec<String> = txs.iter().map(|tx| tx.txid.clone()).collect();
        expected.sort();
        assert_eq!(found, expected, "{kind}");
    }
    let sizes = store.ok(&json!({"op":"sizes"}));
    assert_eq!((&sizes["keys"], &sizes["intents"]), (&json!(7), &json!(0)));
    assert!(sizes["memory"].as_u64().unwrap() > 0 && sizes["live"].as_u64().unwrap() > 0);
}

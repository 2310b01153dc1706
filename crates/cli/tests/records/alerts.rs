//! Freezing and reassigning.

use serde_json::json;

use super::store::{Store, error, ok};
use super::tx::{Input, Tx};

#[test]
fn frozen_unfrozen_reassigned_and_spent_after_a_thousand_blocks() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[500, 400]);
    let spender = Tx::paying(&[parent.output(0)], &[300]);
    let heir = Tx::paying(&[parent.output(0).with_script(&[0x53])], &[300]);
    let at = |height| json!({"op":"spend","tx":heir.extended,"block_height":height});
    let answers = store.apply(&[
        json!({"op":"set_block_height","block_height":101}),
        json!({"op":"create","tx":parent.extended}),
        json!({"op":"reassign","txid":parent.txid,"vout":0,"new_script":"53"}),
        json!({"op":"freeze","txid":parent.txid,"vout":0}),
        json!({"op":"freeze","txid":parent.txid,"vout":0}),
        json!({"op":"spend","tx":spender.extended}),
        json!({"op":"get_spend","txid":parent.txid,"vout":0}),
        json!({"op":"unfreeze","txid":parent.txid,"vout":0}),
        json!({"op":"get_spend","txid":parent.txid,"vout":0}),
        json!({"op":"freeze","txid":parent.txid,"vout":0}),
        json!({"op":"reassign","txid":parent.txid,"vout":0,"new_script":"53","satoshis":500}),
        json!({"op":"spend","tx":spender.extended}),
        json!({"op":"get_spend","txid":parent.txid,"vout":0}),
        at(1_100),
        at(1_101),
        json!({"op":"get","txid":parent.txid}),
    ]);
    assert_eq!(error(&answers[2]), "UTXO_INVALID_SIZE");
    assert_eq!(answers[4]["reason"], "ALREADY_FROZEN");
    assert_eq!(error(&answers[5]), "UTXO_FROZEN");
    let frozen = ok(&answers[6]);
    assert_eq!(frozen["status"], "FROZEN");
    assert_eq!(frozen["spending_data"], json!({"txid":"ff".repeat(32),"vin":0}));
    assert_eq!(ok(&answers[8])["status"], "OK");
    assert_eq!(error(&answers[11]), "UTXO_MISMATCH");
    assert_eq!(ok(&answers[12])["status"], "IMMATURE");
    assert_eq!(error(&answers[13]), "UTXO_FROZEN");
    assert_eq!(answers[13]["spends"][0]["reason"], "FROZEN_UNTIL");
    assert_eq!(answers[13]["spends"][0]["spendable_in"], 1_101);
    ok(&answers[14]);
    let record = ok(&answers[15]);
    assert_eq!(record["reassignments"][0]["block_height"], 101);
    assert_eq!(record["utxo_spendable_in"], json!({"0":1_101}));
    assert_eq!(record["record_utxos"], 3, "one more, so that it is kept for ever");
}

#[test]
fn a_window_ends_before_its_last_height() {
    let store = Store::new();
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[500]);
    let spender = Tx::paying(&[parent.output(0)], &[300]);
    let at = |height| json!({"op":"spend","tx":spender.extended,"height":height});
    let answers = store.apply(&[
        json!({"op":"create","tx":parent.extended,"block_height":1}),
        json!({"op":"freeze_window","txid":parent.txid,"vout":0,"from":110,"until":120}),
        at(110),
        at(119),
        json!({"op":"spend","tx":spender.extended,"height":130,"tier":"policy"}),
        at(120),
    ]);
    assert_eq!(error(&answers[2]), "UTXO_FROZEN");
    assert_eq!(error(&answers[3]), "UTXO_FROZEN");
    assert_eq!(error(&answers[4]), "UTXO_FROZEN", "policy does not expire by itself");
    ok(&answers[5]);
}

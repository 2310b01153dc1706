//! What makes no sense is refused with a sentence, and nothing ends the server.

use super::client::get;
use super::rig::SHARED;

#[test]
fn a_refusal_says_why() {
    let rig = &*SHARED;
    let unknown = "0123456789abcdef".repeat(4);
    let long = "a".repeat(200);
    let table = [
        (404, format!("block/{unknown}")),
        (404, "block/151".to_owned()),
        (404, "block/4294967295".to_owned()),
        (400, "block/-1".to_owned()),
        (400, "block/4294967296".to_owned()),
        (400, "block/zz".to_owned()),
        (404, format!("block/{unknown}/txs")),
        (400, "block/0/txs?from=-1".to_owned()),
        (400, "blocks?before=x".to_owned()),
        (400, "blocks?limit=99999999999".to_owned()),
        (404, format!("tx/{unknown}")),
        (400, format!("tx/{}", &unknown[1..])),
        (400, format!("tx/{unknown}?limit=x")),
        (404, format!("outpoint/{unknown}/0")),
        (400, format!("outpoint/{unknown}/x")),
        (400, format!("outpoint/{unknown}/4294967296")),
        (404, format!("proof/{unknown}")),
        (400, "proof/x".to_owned()),
        (400, "script/1BoatSLRHtKNngkdXEeobR76b53LETtpyT".to_owned()),
        (400, "script/bcrt1qqqq".to_owned()),
        (400, format!("script/{unknown}?at=151")),
        (400, format!("script/{unknown}?at=-1")),
        (400, format!("script/{unknown}/history?order=up")),
        (400, format!("script/{unknown}/history?cursor=x")),
        (400, format!("script/{unknown}/utxos?at=4294967296")),
        (400, "set?points=x".to_owned()),
        (400, "search".to_owned()),
        (400, format!("search?q={long}")),
        (400, "events?cursor=x".to_owned()),
        (400, format!("events?cursor=7:{unknown}")),
    ];
    for (status, path) in table {
        let response = get(&rig.address, &format!("/api/varve/v1/{path}"));
        let json = response.json();
        assert_eq!(response.status, status, "{path}: {json}");
        assert!(json["error"].as_str().is_some_and(|error| error.len() > 10), "{path}: {json}");
        assert_eq!(response.header("content-type"), Some("application/json"), "{path}");
    }
}

#[test]
fn a_script_that_nobody_paid_holds_nothing() {
    let unknown = "0123456789abcdef".repeat(4);
    let found = SHARED.ask(&format!("script/{unknown}"));
    assert_eq!((&found["balance"]["confirmed"], &found["counts"]["txs"]), (&0.into(), &0.into()));
    let found = SHARED.ask(&format!("script/{unknown}/history"));
    assert_eq!(
        (&found["txs"], &found["cursor"]),
        (&serde_json::json!([]), &serde_json::Value::Null)
    );
    assert_eq!(SHARED.ask(&format!("script/{unknown}/balance-history"))["complete"], true);
}

#[test]
fn limits_hold_whatever_is_asked_for() {
    let found = SHARED.ask("blocks?limit=4000000000");
    assert_eq!(found["blocks"].as_array().unwrap().len(), 100);
    assert_eq!(SHARED.ask("blocks?limit=0")["blocks"].as_array().unwrap().len(), 1);
    let response = get(&SHARED.address, "/api/varve/v1/blocks");
    assert_eq!(response.header("cache-control"), Some("no-store"));
}

//! Search: what a text names.

use serde_json::Value;
use varve::types::{Block as Parsed, address};
use varve::{Outpoint, ScriptHash};

use super::rig::{NETWORK, Rig, SHARED};

fn find(rig: &Rig, text: &str) -> Vec<(String, String)> {
    let found = rig.ask(&format!("search?q={text}"));
    let field = |hit: &Value, name: &str| hit[name].as_str().unwrap().to_owned();
    let hits = found["results"].as_array().unwrap();
    hits.iter().map(|hit| (field(hit, "kind"), field(hit, "path"))).collect()
}

#[test]
fn whole_names_are_found_on_every_branch() {
    let rig = &*SHARED;
    for block in rig.blocks.iter().filter(|block| block.height > 130) {
        let hash = block.hash.to_string();
        let expected = ("block".to_owned(), format!("/block/{hash}"));
        assert_eq!(find(rig, &hash), [expected]);
        let parsed = Parsed::parse(&block.bytes, NETWORK.format()).unwrap();
        let tx = parsed.txs().last().unwrap();
        let txid = tx.txid();
        let expected = ("transaction".to_owned(), format!("/tx/{txid}"));
        assert_eq!(find(rig, &txid.to_string()), [expected]);
        let outpoint = Outpoint::new(txid, 0);
        let expected = ("output".to_owned(), format!("/tx/{txid}#out-0"));
        assert_eq!(find(rig, &outpoint.to_string()), [expected]);
        let script = tx.outputs().next().unwrap().script;
        if let Some(shown) = address::encode(script, NETWORK).filter(|_| !block.stale) {
            let expected = ("address".to_owned(), format!("/address/{shown}"));
            assert_eq!(find(rig, &shown), [expected]);
            let hash = ScriptHash::of(script).to_string();
            assert_eq!(find(rig, &hash), [("script".to_owned(), format!("/script/{hash}"))]);
        }
    }
}

#[test]
fn heights_and_beginnings_are_completed() {
    let rig = &*SHARED;
    let at = |height: u32| {
        let block = rig.blocks.iter().find(|block| block.height == height && !block.stale);
        ("block".to_owned(), format!("/block/{}", block.unwrap().hash))
    };
    assert_eq!(find(rig, "14"), [at(14), at(140)]);
    assert_eq!(find(rig, "%20149%20"), [at(149)]);
    assert!(find(rig, "151").is_empty());
    let tip = rig.blocks.iter().rfind(|block| !block.stale).unwrap();
    let parsed = Parsed::parse(&tip.bytes, NETWORK.format()).unwrap();
    for txid in parsed.txids() {
        let text = txid.to_string();
        let found = find(rig, &text[..10]);
        assert_eq!(found, [("transaction".to_owned(), format!("/tx/{text}"))]);
        assert_eq!(find(rig, &text[..10].to_uppercase()), found);
    }
    assert_eq!(find(rig, &tip.hash.to_string()[..12]), [at(tip.height)]);
}

#[test]
fn a_date_is_its_first_block() {
    let rig = &*SHARED;
    let snapshot = rig.node.snapshot();
    let header = |height: u32| snapshot.header(varve::Height::new(height)).unwrap().unwrap();
    let tip = snapshot.tip().height.to_u32();
    let of_day = |time: u32| time / 86_400;
    // A day that begins after genesis and on which the chain has blocks.
    let day = of_day(header(tip).median_time);
    let first = (0..=tip).find(|height| of_day(header(*height).median_time) >= day).unwrap();
    let found = rig.ask(&format!("search?q={}", date(day)));
    assert_eq!(found["results"][0]["path"], format!("/block/{}", header(first).hash));
}

/// The date of a day since 1970, counted up year by year.
fn date(day: u32) -> String {
    let (mut left, mut year) = (day, 1970);
    let leap = |year: u32| {
        let is_century = year.is_multiple_of(100) && !year.is_multiple_of(400);
        year.is_multiple_of(4) && !is_century
    };
    while left >= 365 + u32::from(leap(year)) {
        left -= 365 + u32::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u32::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    format!("{year:04}-{:02}-{:02}", month + 1, left + 1)
}

#[test]
fn what_is_not_there_is_not_found() {
    let rig = &*SHARED;
    let unknown = "0123456789abcdef".repeat(4);
    for nothing in
        [unknown.as_str(), "zz", "abc", "%3Cscript%3E", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT", ""]
    {
        assert!(find(rig, nothing).is_empty(), "{nothing}");
    }
}

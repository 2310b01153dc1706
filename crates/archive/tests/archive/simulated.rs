//! A simulated chain with reorganisations, against the answers that come with it.

use serde_json::Value;
use varve_archive::contract::Disk;
use varve_archive::{Page, Scope};
use varve_sim::{Config, Profile, write_chain};
use varve_types::ScriptHash;
use varve_types::{Amount, Outpoint};

use crate::back_ends::on_every_back_end;
use crate::load;
use crate::rig::Rig;

fn simulated<D: Disk>(disk: D) {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        transactions: Some(20),
        coins: Some(500),
        reorg_depth: Some(6),
        ..Config::new(Profile::Mainnet, 250, 11)
    };
    write_chain(&config, dir.path(), |_| {}).unwrap();
    let answers = std::fs::read(dir.path().join("expected.json")).unwrap();
    let answers: Value = serde_json::from_slice(&answers).unwrap();
    let blocks = load::blk_file(&std::fs::read(dir.path().join("blocks/blk00000.dat")).unwrap());
    let mut rig = Rig::new(config.network(), disk);
    rig.add_all(&blocks);
    assert!(answers["reorgs"].as_array().unwrap().len() > 1);
    assert_eq!(rig.model.active.last().unwrap().to_string(), answers["tip"].as_str().unwrap());
    rig.check();
    check_outputs(&rig, &answers["outputs"]);
    check_scripts(&rig, &answers["scripts"]);
}

fn check_outputs<D: Disk>(rig: &Rig<D>, outputs: &Value) {
    let view = rig.view();
    let outputs = outputs.as_array().unwrap();
    assert!(outputs.len() > 100);
    for answer in outputs {
        let txid = answer["txid"].as_str().unwrap().parse().unwrap();
        let vout = u32::try_from(answer["vout"].as_u64().unwrap()).unwrap();
        let point = Outpoint::new(txid, vout);
        let output = view.output(point).unwrap().unwrap();
        assert_eq!(output.value.to_sat(), answer["value"].as_u64().unwrap());
        assert_eq!(u64::from(output.tx.height.to_u32()), answer["height"].as_u64().unwrap());
        let spender = view.confirmed_spender(point).unwrap();
        let expected = answer["spender"].as_object();
        assert_eq!(spender.is_some(), expected.is_some(), "{point}");
        if let Some((spender, expected)) = spender.zip(expected) {
            assert_eq!(
                view.txid(&spender.tx).unwrap().to_string(),
                expected["txid"].as_str().unwrap()
            );
            assert_eq!(u64::from(spender.vin), expected["vin"].as_u64().unwrap());
            let hash = view.header(spender.tx.block).unwrap().hash;
            assert_eq!(hash.to_string(), expected["blockhash"].as_str().unwrap());
        }
    }
}

fn check_scripts<D: Disk>(rig: &Rig<D>, scripts: &Value) {
    use hex_conservative::FromHex as _;
    let view = rig.view();
    let scripts = scripts.as_array().unwrap();
    assert!(scripts.len() > 10);
    for answer in scripts {
        let script = Vec::from_hex(answer["script_pubkey"].as_str().unwrap()).unwrap();
        let script = ScriptHash::of(&script);
        let history = view.script_history(script, Scope::Confirmed, Page::ALL).unwrap();
        let count = answer["history_count"].as_u64().unwrap();
        assert_eq!(history.len() as u64, count);
        let balance = view.script_balance(script).unwrap();
        assert_eq!(balance.value.to_sat(), answer["balance"].as_u64().unwrap());
        assert_eq!(balance.outputs as u64, answer["unspent_count"].as_u64().unwrap());
        let Some(expected) = answer["history"].as_array() else { continue };
        let found: Vec<_> = history.iter().map(|tx| tx.txid.to_string()).collect();
        let expected: Vec<_> =
            expected.iter().map(|entry| entry["tx_hash"].as_str().unwrap()).collect();
        assert_eq!(found, expected);
        // The same in pages of three.
        let mut paged = Vec::new();
        let mut after = None;
        loop {
            let page = Page { after, limit: 3 };
            let part = view.script_history(script, Scope::Confirmed, page).unwrap();
            let Some(last) = part.last() else { break };
            after = Some((last.height, last.position));
            paged.extend(part);
        }
        assert_eq!(paged, history);
        let unspent = view.script_unspent(script, Amount::ZERO, Page::ALL).unwrap();
        for entry in answer["unspent"].as_array().unwrap() {
            let hash = entry["tx_hash"].as_str().unwrap();
            let vout = entry["tx_pos"].as_u64().unwrap();
            let is = |output: &&varve_archive::Output| {
                output.tx.txid.to_string() == hash && u64::from(output.vout) == vout
            };
            let output = unspent.iter().find(is).expect("it is unspent");
            assert_eq!(output.value.to_sat(), entry["value"].as_u64().unwrap());
        }
    }
}

on_every_back_end!(simulated);

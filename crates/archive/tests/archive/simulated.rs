//! A simulated chain with reorganisations, against the answers that come with it.

use serde_json::Value;
use varve_archive::contract::Disk;
use varve_sim::{Config, Profile, write_chain};
use varve_types::Outpoint;

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

on_every_back_end!(simulated);

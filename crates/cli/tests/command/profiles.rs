//! Every profile and option of `varve sim`, synced through the command and compared with the
//! answers of the simulator's own model.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::varve::{json, tips, varve};

/// Heights at which every profile has laid up its coins, and has spent some.
const BLOCKS: [(&str, &str, &str); 3] =
    [("mainnet", "regtest", "117"), ("dense", "regtest", "123"), ("bsv", "bsv-regtest", "114")];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Simulates, syncs and compares.
fn check(profile: (&str, &str, &str), options: &[&str], sync_options: &[&str]) {
    let (name, network, blocks) = profile;
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let sim = ["sim", "--out", text(&chain), "--blocks", blocks, "--profile", name];
    json(&varve(&[&sim[..], options, &["--json"]].concat()));
    let expected: Value =
        serde_json::from_slice(&fs::read(chain.join("expected.json")).unwrap()).unwrap();
    let ask = |args: &[&str]| {
        let global = ["--network", network, "--datadir", text(&data), "--json"];
        json(&varve(&[args, &global].concat()))
    };
    let sync = ask(&[&["sync", "--from", text(&chain)], sync_options].concat());
    let what = format!("{name} {options:?}: {sync}");
    assert_eq!((&sync["height"], &sync["bestblock"]), (&expected["height"], &expected["tip"]));
    assert_eq!(sync["refused"], 0, "{what}");
    let status = ask(&["status"]);
    assert_eq!(tips(&status["chaintips"]), tips(&expected["chaintips"]), "{what}");
    let stats = ask(&["utxo", "stats"]);
    for field in ["height", "bestblock", "txouts", "bogosize", "hash_serialized_3", "total_amount"]
    {
        assert_eq!(stats[field], expected[field], "{field} of {what}");
    }
    for output in expected["outputs"].as_array().unwrap().iter().step_by(150) {
        let point = format!("{}:{}", output["txid"].as_str().unwrap(), output["vout"]);
        let spender = ask(&["spender", &point]);
        for field in ["txid", "vin", "height", "blockhash"] {
            assert_eq!(spender[field], output["spender"][field], "{field} of {point} of {what}");
        }
    }
    let has_key = chain.join("blocks/xor.dat").exists();
    assert_eq!(has_key, options.contains(&"--xor"));
    if options.contains(&"--reorgs") {
        assert!(tips(&expected["chaintips"]).len() > 1, "{what}");
    }
}

#[test]
fn masked_chains_with_branches_of_every_profile() {
    for profile in BLOCKS {
        check(profile, &["--reorgs", "3", "--xor", "--seed", "6"], &[]);
    }
}

#[test]
fn signed_chains_pass_the_scripts_where_scripts_are_checked() {
    for profile in BLOCKS {
        let verify = if profile.0 == "bsv" { "spends" } else { "scripts" };
        let options = ["--signed", "100", "--reorgs", "--seed", "7"];
        check(profile, &options, &["--verify", verify]);
    }
}

/// Chains that end within the warm-up, or before it.
#[test]
fn short_unsigned_chains_of_every_profile() {
    for (name, network, _) in BLOCKS {
        for blocks in ["1", "102"] {
            check((name, network, blocks), &["--signed", "0", "--seed", "8"], &[]);
        }
    }
}

/// A giant transaction of the BSV profile has more than 20,000 outputs and is in the chain.
#[test]
fn a_bsv_chain_has_its_giant_transactions() {
    let folder = tempfile::tempdir().unwrap();
    let chain = folder.path().join("chain");
    let sim = ["sim", "--out", text(&chain), "--blocks", "113", "--profile", "bsv", "--seed", "9"];
    json(&varve(&[&sim[..], &["--json"]].concat()));
    let file = fs::read(chain.join("blocks/blk00000.dat")).unwrap();
    let network = varve_types::Network::BsvRegtest;
    let blocks = varve_types::blk::Records::new(&file, network.disk_magic());
    let most = blocks
        .flat_map(|record| {
            let block = varve_types::Block::parse(record.block, network.format()).unwrap();
            block.txs().iter().map(|tx| tx.outputs().len()).collect::<Vec<_>>()
        })
        .max();
    assert!(most > Some(20_000), "{most:?}");
}

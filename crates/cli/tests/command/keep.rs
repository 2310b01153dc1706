//! How a folder is kept, through the command: pruning, optional indexes, and folders that are
//! refused.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use varve_io::{Disk, Envelope, Kind, replace};
use varve_node::source::directory::Directory;
use varve_node::{FORMAT_VERSION, Options, Organizer, Prune, SettingsChange, SyncOptions, Verify};
use varve_types::Network;
use varve_utxo::UndoConfig;

use crate::varve::{ask, json, refusal, run, simulate, varve};

/// Syncs with files and undo records so small that old blocks go.
fn sync_pruned(chain: &Path, data: &Path) {
    fs::create_dir_all(data).unwrap();
    let settings = SettingsChange { prune: Some(Prune::To(1)), ..SettingsChange::default() };
    let undo = UndoConfig { blocks: 10, ..UndoConfig::default() };
    let options = Options {
        settings,
        undo,
        block_segment: 100_000,
        ..Options::new(Network::Regtest, [5; 32])
    };
    let mut node = Organizer::open(Arc::new(Disk::open(data).unwrap()), options).unwrap();
    let mut source = Directory::open(chain, Network::Regtest, false).unwrap();
    let options = SyncOptions {
        verify: Verify::Spends,
        assume_valid: None,
        stop_height: None,
        follow: false,
        mempool: false,
        all_branches: true,
        stop: Arc::default(),
        clock: Arc::new(|| std::time::Duration::ZERO),
        now: Arc::new(|| 4_000_000_000),
    };
    node.sync(&mut source, &options, &mut |_| {}).unwrap();
}

/// Scripts that were not checked and cannot be are no success of a sync that was to check them.
#[test]
fn scripts_of_pruned_blocks_cannot_be_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    sync_pruned(&chain, &data);
    let from = ["sync", "--from", chain.to_str().unwrap()];
    for _ in 0..2 {
        let output = run(&data, &[&from[..], &["--verify", "scripts"]].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&answer["complete"], &answer["bestblock"]), (&json!(false), &expected["tip"]));
        let unchecked = answer["scripts"]["unchecked"].as_u64().unwrap();
        assert_eq!(unchecked, 124);
        let sentence = told.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert!(sentence.contains("124 blocks") && sentence.contains("pruned"), "{told}");
    }
    assert_eq!(ask(&data, &from)["complete"], true, "scripts were not asked for");
    let place = ["--network", "regtest", "--datadir", data.to_str().unwrap()];
    let shown = varve(&[&["status"], &place[..]].concat());
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("not of 124 blocks\n"), "{shown}");
}

#[test]
fn pruned_blocks_are_told_as_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    sync_pruned(&chain, &data);
    let status = ask(&data, &["status"]);
    assert_eq!((&status["prune"], &status["bestblock"]), (&json!(1), &expected["tip"]));
    let below = status["pruned_below"].as_u64().unwrap();
    assert!((2..=115).contains(&below), "{below}");

    let low = (below - 1).to_string();
    let old = expected["outputs"].as_array().unwrap().iter().find_map(|output| {
        let txid = output["txid"].as_str().unwrap();
        let tx = run(&data, &["tx", txid]);
        (!tx.status.success()).then(|| (txid.to_owned(), refusal(&tx)))
    });
    let (txid, message) = old.expect("some sampled outputs are old");
    assert!(message.contains("pruned"), "{message}");
    for args in [
        &["block", &low][..],
        &["spender", &format!("{txid}:0")],
        &["utxo", "stats", "--at", "100"],
        &["repair"],
    ] {
        let message = refusal(&run(&data, args));
        assert!(message.contains("pruned"), "{args:?}: {message}");
    }
    // What does not need them is answered.
    assert_eq!(ask(&data, &["block", "124"])["hash"], expected["tip"]);
    let verified = ask(&data, &["verify"]);
    assert_eq!(verified["txouts"], expected["txouts"]);
    assert!(verified["pruned"].as_u64() > Some(0));
    let stats = ask(&data, &["utxo", "stats"]);
    assert_eq!(stats["hash_serialized_3"], expected["hash_serialized_3"]);
    // Without the option it stays as it is; `off` ends it.
    let from = chain.to_str().unwrap();
    assert_eq!(ask(&data, &["sync", "--from", from])["connected"], 0);
    assert_eq!(ask(&data, &["status"]), status);
    ask(&data, &["sync", "--from", from, "--prune", "off"]);
    let status = ask(&data, &["status"]);
    assert_eq!((&status["prune"], &status["pruned_below"]), (&Value::Null, &json!(below)));
    let message = refusal(&run(&data, &["sync", "--from", from, "--index", "filter"]));
    assert!(message.contains("pruned"), "{message}");
}

#[test]
fn a_size_and_indexes_are_chosen_kept_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let from = chain.to_str().unwrap();
    let sync = |more: &[&str]| run(&data, &[&["sync", "--from", from], more].concat());
    json(&sync(&["--prune", "2GB"]));
    let status = ask(&data, &["status"]);
    assert_eq!((&status["prune"], &status["indexes"]), (&json!(2_u64 << 30), &json!([])));
    assert_eq!(status["pruned_below"], Value::Null);
    // Nothing is pruned yet, so an index can still be added.
    json(&sync(&["--index", "stats"]));
    let status = ask(&data, &["status"]);
    assert_eq!(
        (&status["prune"], &status["indexes"][0]["name"]),
        (&json!(2_u64 << 30), &json!("stats"))
    );

    json(&sync(&["--prune", "off", "--index", "stats,filter,script"]));
    let all = json!(
        ["filter", "script", "stats"]
            .map(|name| { json!({ "name": name, "height": 124, "damaged": Value::Null }) })
    );
    assert_eq!(ask(&data, &["status"])["indexes"], all);
    json(&sync(&[]));
    assert_eq!(ask(&data, &["status"])["indexes"], all);
    let found = ask(&data, &["utxo", "stats", "--at", "100"]);
    assert_eq!(found["muhash"], expected["at_heights"]["100"]["muhash"]);
    json(&sync(&["--index", "none"]));
    assert_eq!(ask(&data, &["status"])["indexes"], json!([]));
    assert_eq!(fs::read_dir(data.join("stats")).unwrap().count(), 0);
    ask(&data, &["verify"]);

    let unknown = sync(&["--index", "stats,wallet"]);
    assert_eq!(unknown.status.code(), Some(2));
    let message = String::from_utf8(unknown.stderr).unwrap();
    assert!(
        message.contains("`wallet`") && message.contains("filter,pushdata,script,stats"),
        "{message}"
    );
}

#[test]
fn a_folder_of_a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    simulate(&chain);
    let from = chain.to_str().unwrap();
    ask(&data, &["sync", "--from", from, "--stop-height", "5"]);
    let node = fs::read(data.join("node")).unwrap();
    let newer = Envelope { version: FORMAT_VERSION + 1, payload: &b"of the future"[..] };
    replace(&Disk::open(&data).unwrap(), "node", Kind(*b"NODE\0\0\0\0"), &newer).unwrap();
    for args in [&["status"][..], &["sync", "--from", from], &["verify"], &["repair"]] {
        let message = refusal(&run(&data, args));
        let (found, read) = (FORMAT_VERSION + 1, FORMAT_VERSION);
        assert!(message.contains(&format!("format {found}, ")), "{message}");
        assert!(message.contains(&format!("reads format {read}")), "{message}");
    }
    fs::write(data.join("node"), node).unwrap();
    assert_eq!(ask(&data, &["status"])["height"], 5, "nothing was touched");
}

#[test]
fn an_imported_set_is_not_synced_on() {
    let Some(snapshot) = varve_testdata::data("regtest-core31/snapshot.dat") else { return };
    let Some(blocks) = varve_testdata::data("regtest-core31/blocks") else { return };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let import = ["utxo", "import", snapshot.to_str().unwrap(), "--height", "600"];
    ask(&data, &import);
    let before = ask(&data, &["utxo", "stats"]);
    let message = refusal(&run(&data, &["sync", "--from", blocks.to_str().unwrap()]));
    assert!(
        message.contains("an imported set") && message.contains("another --datadir"),
        "{message}"
    );
    assert_eq!(ask(&data, &["utxo", "stats"]), before);
}

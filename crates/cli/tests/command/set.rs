//! `varve utxo` as a user types it, on a set that Bitcoin Core wrote.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::varve::{json, refusal, varve};

/// Core's snapshot of its regtest chain, and what Core says about it.
fn core31() -> Option<(PathBuf, Value)> {
    let snapshot = varve_testdata::data("regtest-core31/snapshot.dat")?;
    let expected = varve_testdata::data("regtest-core31/expected.json")?;
    Some((snapshot, serde_json::from_slice(&fs::read(expected).unwrap()).unwrap()))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn import_stats_get_and_export() {
    let Some((snapshot, expected)) = core31() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("again.dat"));
    let height = expected["height"].to_string();
    let on = |args: &[&str]| {
        let global = ["--network", "regtest", "--datadir", text(&data), "--json"];
        varve(&[args, &global[..]].concat())
    };
    let imported = json(&on(&["utxo", "import", text(&snapshot), "--height", &height]));
    assert_eq!(imported["bestblock"], expected["hash_serialized_3"]["bestblock"]);
    assert!(data.join("utxo/manifest").exists());

    let core = &expected["hash_serialized_3"];
    let found = json(&on(&["utxo", "stats"]));
    for field in ["height", "bestblock", "txouts", "bogosize", "hash_serialized_3"] {
        assert_eq!(found[field], core[field], "{field}");
    }
    let coins = found["total_amount"].as_u64().unwrap();
    let amount: f64 = core["total_amount"].to_string().trim_matches('"').parse().unwrap();
    assert_eq!(coins.to_string(), format!("{:.0}", amount * 1e8));
    let muhash = json(&on(&["utxo", "stats", "--hash", "muhash"]));
    assert_eq!(muhash["muhash"], expected["muhash"][&height]["muhash"]);
    assert_eq!(muhash.get("hash_serialized_3"), None);
    let plain = json(&on(&["utxo", "stats", "--hash", "none"]));
    assert_eq!(plain["txouts"], core["txouts"]);
    assert_eq!((plain.get("muhash"), plain.get("hash_serialized_3")), (None, None));

    json(&on(&["utxo", "export", text(&file)]));
    assert!(fs::read(&file).unwrap() == fs::read(&snapshot).unwrap(), "byte for byte");
    assert!(refusal(&on(&["utxo", "export", text(&file)])).contains("does not exist yet"));

    // The first coin of the file: the txid behind the header, its count and its number.
    let bytes = fs::read(&snapshot).unwrap();
    let txid: String = bytes[51..83].iter().rev().map(|byte| format!("{byte:02x}")).collect();
    let outpoint = format!("{txid}:{}", bytes[84]);
    let coin = json(&on(&["utxo", "get", &outpoint]));
    assert_eq!((&coin["txid"], &coin["vout"]), (&Value::from(txid), &Value::from(bytes[84])));
    for field in ["height", "coinbase", "value", "script_pubkey"] {
        assert!(!coin[field].is_null(), "{field}");
    }
    let again = varve(&["--datadir", text(&data), "utxo", "get", &outpoint, "--network=regtest"]);
    assert!(String::from_utf8(again.stdout).unwrap().contains(&outpoint), "options stand anywhere");

    let missing = format!("{}:0", "11".repeat(32));
    let sentence = refusal(&on(&["utxo", "get", &missing]));
    assert!(sentence.contains("never was there, or it is spent"), "{sentence}");
    let sentence = refusal(&on(&["utxo", "import", text(&snapshot), "--height", &height]));
    assert!(sentence.contains("is not empty"), "{sentence}");
    assert_eq!(json(&on(&["utxo", "stats"])), found, "a refused command changes nothing");
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    let Some((snapshot, _)) = core31() else { return };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let on = |network: &str, args: &[&str]| {
        varve(&[args, &["--network", network, "--datadir", text(&data)]].concat())
    };
    let sentence = refusal(&on("regtest", &["utxo", "stats"]));
    assert!(sentence.contains("there is no unspent set in"), "{sentence}");
    assert!(!data.exists(), "asking makes nothing");
    let import = ["utxo", "import", text(&snapshot)];
    let sentence = refusal(&on("regtest", &import));
    assert!(sentence.contains("pass --height"), "{sentence}");
    let sentence = refusal(&on("mainnet", &import));
    assert!(sentence.contains("not of mainnet"), "{sentence}");
    assert!(!data.exists(), "nothing was made");
    // A letter in place of a snapshot, and half a snapshot.
    let letter = folder.path().join("letter");
    fs::write(&letter, "dear node").unwrap();
    let sentence = refusal(&on("regtest", &["utxo", "import", text(&letter), "--height", "1"]));
    assert!(sentence.contains("letter"), "{sentence}");
    let half = folder.path().join("half");
    let bytes = fs::read(&snapshot).unwrap();
    fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
    let sentence = refusal(&on("regtest", &["utxo", "import", text(&half), "--height", "999"]));
    assert!(sentence.contains("the snapshot ends within"), "{sentence}");
    assert!(!data.exists(), "nothing stays of it");
    // The same directory takes the whole file afterwards.
    assert!(on("regtest", &[&import[..], &["--height", "999"]].concat()).status.success());
    let sentence = refusal(&on("signet", &["utxo", "stats"]));
    assert!(sentence.contains("not of signet"), "{sentence}");
}

#[test]
fn a_folder_of_something_else_is_refused() {
    let Some((snapshot, _)) = core31() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("utxo")).unwrap();
    fs::write(folder.path().join("utxo/diary"), "today").unwrap();
    let data = text(folder.path());
    let args = ["utxo", "import", text(&snapshot), "--height", "1", "--datadir", data];
    let sentence = refusal(&varve(&[&args[..], &["--network", "regtest"]].concat()));
    assert!(sentence.contains("is not empty"), "{sentence}");
    assert_eq!(fs::read_dir(folder.path().join("utxo")).unwrap().count(), 1);
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for args in [
        &["utxo"][..],
        &["utxo", "get"],
        &["utxo", "get", "nonsense"],
        &["utxo", "stats", "--hash", "md5"],
        &["utxo", "stats", "--memory", "much"],
        &["utxo", "stats", "--network", "moon"],
        &["utxo", "import"],
        &["utxo", "import", "file", "--height", "-1"],
    ] {
        let output = varve(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty());
    }
}

//! `varve sim`, `varve demo`, and wrong command lines.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::varve::{json, varve};

fn sim(folder: &Path, seed: &str) -> Output {
    let out = folder.to_str().expect("a temporary path is UTF-8");
    varve(&["sim", "--out", out, "--blocks", "104", "--seed", seed, "--reorgs", "--json"])
}

/// Every file below a folder with its content, by name.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            found.push((name, fs::read(&path).expect("the file can be read")));
        }
    }
    found.sort();
    found
}

#[test]
fn sim_twice_gives_the_same_files_and_another_seed_others() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second, other] = ["a", "b", "c"].map(|name| folder.path().join(name));
    assert_eq!(json(&sim(&first, "7"))["height"], 104);
    assert!(sim(&second, "7").status.success());
    assert!(sim(&other, "8").status.success());
    let names: Vec<String> = files(&first).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["blk00000.dat", "expected.json"]);
    assert!(files(&first) == files(&second), "the same seed gave other bytes");
    assert!(files(&first) != files(&other), "another seed gave the same bytes");
}

#[test]
fn sim_refuses_a_folder_that_holds_a_chain() {
    let folder = tempfile::tempdir().unwrap();
    assert!(sim(folder.path(), "1").status.success());
    let before = files(folder.path());
    let again = sim(folder.path(), "2");
    assert_eq!(again.status.code(), Some(1));
    let message = String::from_utf8(again.stderr).unwrap();
    assert!(message.contains("already has block files"), "{message}");
    assert!(again.stdout.is_empty());
    assert!(files(folder.path()) == before, "a refused command changed files");
}

#[test]
fn demo_checks_its_chain_and_says_so_in_json() {
    let answer = json(&varve(&["demo", "--blocks", "103", "--json"]));
    assert_eq!(answer["network"], "regtest");
    assert_eq!(answer["height"], 103);
    assert_eq!(answer["blocks"], 104);
    assert!(answer["transactions"].as_u64().unwrap() > 104);
    assert!(answer["txouts"].as_u64().unwrap() > 104);
    assert_eq!(answer["hash_serialized_3"].as_str().unwrap().len(), 64);
}

#[test]
fn demo_leaves_a_set_that_can_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let demo = json(&varve(&["demo", "--blocks", "103", "--keep", data, "--json"]));
    let stats = json(&varve(&[
        "utxo",
        "stats",
        "--datadir",
        &format!("{data}/data"),
        "--network=regtest",
        "--json",
    ]));
    for field in ["height", "bestblock", "txouts", "hash_serialized_3"] {
        assert_eq!(stats[field], demo[field], "{field}");
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for args in [&["sim"][..], &["sim", "--out", "x", "--signed", "101"], &["frobnicate"]] {
        let output = varve(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty());
    }
}

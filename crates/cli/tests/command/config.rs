//! Options from the environment and from a file, beside flags.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::serve::Place;
use crate::served::Served;
use crate::varve::{ask, varve};

/// A varve command with variables in its environment.
fn with(variables: &[(&str, &str)], args: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_varve"));
    command.args(args).envs(variables.iter().copied()).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let place = Place::new();
    let from = text(&place.chain);
    ask(&place.data, &["sync", "--from", from, "--stop-height", "20"]);
    let file = place.folder.path().join("options.toml");
    let network = |variables: &[(&str, &str)], flags: &[&str]| {
        let args = [&["status", "--datadir", text(&place.data)], flags].concat();
        let output = with(variables, &args);
        String::from_utf8(output.stderr).unwrap()
    };
    let config = ["--config", text(&file)];
    // Which network was asked for shows in the refusal.
    fs::write(&file, "network = \"signet\"\n").unwrap();
    assert!(network(&[], &[]).contains("not of mainnet"), "the default");
    assert!(network(&[], &config).contains("not of signet"), "the file");
    let testnet = ("VARVE_NETWORK", "testnet4");
    assert!(network(&[testnet], &config).contains("not of testnet4"), "the environment");
    let flag = [&config[..], &["--network", "bsv"]].concat();
    assert!(network(&[testnet], &flag).contains("not of bsv"), "the flag");
    let named = ("VARVE_CONFIG", text(&file));
    assert!(network(&[named], &[]).contains("not of signet"), "a file named by the environment");
}

#[test]
fn the_file_of_the_data_directory_is_read() {
    let place = Place::new();
    fs::create_dir(&place.data).unwrap();
    let options = format!(
        "network = \"regtest\"\nfrom = {:?}\nhttp = \"127.0.0.1:0\"\nelectrum = \"off\"\n\
         index = \"filter\"\nmemory = \"512M\"\njson = true\n",
        text(&place.chain)
    );
    fs::write(place.data.join("varve.toml"), options).unwrap();
    let mut serve = std::process::Command::new(env!("CARGO_BIN_EXE_varve"));
    let served = Served::spawn(serve.args(["serve", "--datadir", text(&place.data)]));
    served.until_tip(place.tip());
    assert_eq!(served.places["electrum"], Value::Null);
    served.stop();
    let status = varve(&["status", "--datadir", text(&place.data)]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["indexes"].as_array().unwrap().len(), 1, "{status}");
    assert_eq!(status["memory"]["budget"], 512 << 20, "{status}");
}

#[test]
fn a_source_in_one_place_hides_those_below_it() {
    let place = Place::new();
    let file = place.folder.path().join("options.toml");
    fs::write(&file, "peer = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\n").unwrap();
    let from = text(&place.chain);
    let sync = |variables: &[(&str, &str)], flags: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let args = ["sync", "--config", text(&file), "--datadir", text(&data), "--json"];
        with(variables, &[&args, &["--network", "regtest"][..], flags].concat())
    };
    let done = sync(&[("VARVE_RPC", "http://127.0.0.1:1")], &["--from", from]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let done = sync(&[("VARVE_FROM", from)], &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let both = sync(&[("VARVE_FROM", from), ("VARVE_RPC", "http://127.0.0.1:1")], &[]);
    assert_eq!(both.status.code(), Some(2), "two in one place are two sources");
}

#[test]
fn mistakes_name_their_place() {
    let place = Place::new();
    let file = place.folder.path().join("options.toml");
    let refused = |contents: &str| {
        fs::write(&file, contents).unwrap();
        let output = varve(&["status", "--config", text(&file), "--datadir", text(&place.data)]);
        assert_eq!(output.status.code(), Some(2), "{contents}");
        String::from_utf8(output.stderr).unwrap()
    };
    let message = refused("netwrok = \"regtest\"\n");
    assert!(message.contains("unknown key `netwrok`") && message.contains("network"), "{message}");
    let message = refused("network = \"regtest\"\nhttp = = 3\n");
    assert!(message.contains("options.toml, line 2"), "{message}");
    let message = refused("[server]\nhttp = \"x\"\n");
    assert!(message.contains("unknown key `server`"), "{message}");
    let message = refused("memory = 1.5\n");
    assert!(message.contains("`memory`"), "{message}");
    let message = refused("memory = \"lots\"\n");
    assert!(message.contains("--memory") && message.contains("options.toml"), "{message}");
    let message = refused("json = \"perhaps\"\n");
    assert!(message.contains("write true or false"), "{message}");
    let output = with(&[("VARVE_MEMORY", "lots")], &["status", "--datadir", text(&place.data)]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("VARVE_MEMORY in the environment"), "{message}");
    fs::remove_file(&file).unwrap();
    let output = varve(&["status", "--config", text(&file)]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("cannot read") && message.contains("options.toml"), "{message}");
    fs::create_dir(&place.data).unwrap();
    fs::write(place.data.join("varve.toml"), "datadir = \"elsewhere\"\n").unwrap();
    let output = varve(&["status", "--datadir", text(&place.data)]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("cannot have the key `datadir`"), "{message}");
}

#[test]
fn shells_and_readers_get_their_scripts_and_pages() {
    for shell in ["bash", "zsh", "fish"] {
        let script = varve(&["completions", shell]);
        assert!(script.status.success());
        let script = String::from_utf8(script.stdout).unwrap();
        assert!(script.contains("serve") && script.contains("electrum-tls"), "{shell}");
    }
    let page = varve(&["man"]);
    assert!(String::from_utf8(page.stdout).unwrap().contains(".TH varve 1"));
    let folder = tempfile::tempdir().unwrap();
    assert!(varve(&["man", "--out", text(folder.path())]).status.success());
    let page = fs::read_to_string(folder.path().join("varve-serve.1")).unwrap();
    assert!(page.contains("electrum\\-tls"), "{page}");
    assert!(folder.path().join("varve-utxo-get.1").exists());
    assert!(!folder.path().join("varve-sql.1").exists(), "what is not built has no page");
}

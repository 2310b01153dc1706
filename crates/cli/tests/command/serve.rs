//! `varve serve`: what it serves from the first block on, and how it ends.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::served::Served;
use crate::varve::{ask, command, refusal, run, simulate, varve};

/// A simulated chain and an empty place for data.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) chain: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) expected: Value,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
        let expected = simulate(&chain);
        Self { folder, chain, data, expected }
    }

    pub(crate) fn tip(&self) -> &str {
        self.expected["tip"].as_str().unwrap()
    }

    pub(crate) fn serve(&self, options: &[&str]) -> Served {
        let from = ["--from", self.chain.to_str().unwrap()];
        Served::start(&self.data, &[&from, options].concat())
    }
}

#[test]
fn a_chain_is_synced_and_served_with_all_indexes() {
    let place = Place::new();
    let served = place.serve(&[]);
    assert_eq!(served.places["network"], "regtest");
    assert_eq!(served.places["pid"], served.id());
    assert_eq!(served.places["electrum_tls"], Value::Null);
    served.until_tip(place.tip());
    let tip = served.electrum("blockchain.headers.subscribe", json!([]));
    assert_eq!(tip["height"], place.expected["height"]);
    for script in place.expected["scripts"].as_array().unwrap().iter().take(20) {
        let hash = &script["scripthash"];
        let status = served.electrum("blockchain.scripthash.subscribe", json!([hash]));
        assert_eq!(status, script["status"], "{hash}");
        let balance = served.electrum("blockchain.scripthash.get_balance", json!([hash]));
        assert_eq!(balance["confirmed"], script["balance"], "{hash}");
    }
    let log = served.stop();
    assert!(log.contains(" tip "), "{log}");
    let indexes = ask(&place.data, &["index", "list"]);
    let kept = |index: &Value| index["kept"] == json!(true);
    assert!(indexes["indexes"].as_array().unwrap().iter().all(kept), "{indexes}");
    ask(&place.data, &["verify"]);
}

#[test]
fn blocks_that_are_added_to_the_folder_are_served() {
    let place = Place::new();
    let file = place.chain.join("blocks/blk00000.dat");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 3]).unwrap();
    let served = place.serve(&[]);
    served.until("some blocks are there", |served| served.ok("/api/blocks/tip/height") != "0");
    assert_ne!(served.ok("/api/blocks/tip/hash"), place.tip());
    fs::write(&file, &bytes).unwrap();
    served.until_tip(place.tip());
    served.stop();
}

#[test]
fn a_folder_is_served_without_a_source_and_nothing_changes() {
    let place = Place::new();
    ask(&place.data, &["sync", "--from", place.chain.to_str().unwrap(), "--stop-height", "110"]);
    let served = Served::start(&place.data, &[]);
    assert_eq!(served.ok("/api/blocks/tip/height"), "110");
    let script = &place.expected["scripts"][0]["scripthash"];
    served.until("the script index is built", |served| {
        assert!(!served.log().contains("sync_failed"), "{}", served.log());
        let found = ask(&place.data, &["index", "list"]);
        let is_whole = |index: &Value| index["height"] == json!(110);
        found["indexes"].as_array().unwrap().iter().all(is_whole)
    });
    served.electrum("blockchain.scripthash.get_history", json!([script]));
    served.stop();
    assert_eq!(ask(&place.data, &["status"])["height"], 110);
}

#[test]
fn it_ends_in_order_at_any_moment_of_its_first_sync() {
    let place = Place::new();
    for (signal, milliseconds) in [("-TERM", 0), ("-INT", 20), ("-TERM", 100), ("-TERM", 400)] {
        let served = place.serve(&[]);
        std::thread::sleep(Duration::from_millis(milliseconds));
        served.signal(signal);
        let (status, log) = served.wait();
        assert_eq!(status.code(), Some(0), "{log}");
    }
    ask(&place.data, &["verify"]);
    let served = place.serve(&[]);
    served.until_tip(place.tip());
    served.stop();
}

#[test]
fn after_a_kill_it_serves_again_what_it_had() {
    let place = Place::new();
    let served = place.serve(&[]);
    served.until("blocks are there", |served| served.ok("/api/blocks/tip/height") != "0");
    let height: u64 = served.ok("/api/blocks/tip/height").parse().unwrap();
    served.kill();
    assert!(place.data.join("socket").exists(), "a kill leaves the socket");
    // The first answer after the kill is no lower than the last before it.
    let served = Served::start(&place.data, &[]);
    let again: u64 = served.ok("/api/blocks/tip/height").parse().unwrap();
    assert!(again >= height, "{again} < {height}");
    served.stop();
    let served = place.serve(&[]);
    served.until_tip(place.tip());
    served.stop();
    ask(&place.data, &["verify"]);
}

#[test]
fn a_port_in_use_is_found_before_a_folder_is_made() {
    let place = Place::new();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    for (option, other) in [("--http", "--electrum"), ("--electrum", "--http")] {
        let args = ["serve", option, &address, other, "127.0.0.1:0"];
        let message = refusal(&run(&place.data, &args));
        assert!(message.contains(&format!("cannot listen at {address}")), "{message}");
        assert!(message.contains(&format!("pass {option} HOST:PORT")), "{message}");
        assert!(!place.data.exists());
    }
}

#[test]
fn mistakes_are_found_before_a_folder_is_made() {
    let place = Place::new();
    let file = |name: &str, text: &str| -> String {
        let path = place.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (cert, key) = (file("cert.pem", "no certificate"), file("key.pem", "no key"));
    let ports = ["--http", "127.0.0.1:0", "--electrum", "127.0.0.1:0"];
    let refused = |options: &[&str]| {
        let message = refusal(&run(&place.data, &[&["serve"][..], &ports, options].concat()));
        assert!(!place.data.exists(), "{message}");
        message
    };
    let tls = ["--electrum-tls", "127.0.0.1:0"];
    assert!(refused(&tls).contains("needs --cert FILE and --key FILE"));
    assert!(refused(&["--cert", &cert]).contains("both --cert FILE and --key FILE"));
    let message = refused(&[&tls[..], &["--cert", &cert, "--key", &key]].concat());
    assert!(message.contains("cert.pem"), "{message}");
    let message = refused(&["--from", "no/such/folder"]);
    assert!(message.contains("no/such/folder"), "{message}");
    let message = refused(&["--rpc", "http://127.0.0.1:1", "--assume-valid", &"1f".repeat(32)]);
    assert!(message.contains("--verify scripts"), "{message}");
    let wrong = varve(&["serve", "--http", "3000"]);
    assert_eq!(wrong.status.code(), Some(2));
    let both = varve(&["serve", "--from", "a", "--peer", "b"]);
    assert_eq!(both.status.code(), Some(2), "one source at a time");
}

#[test]
fn a_folder_of_something_else_is_refused_and_left_alone() {
    let place = Place::new();
    fs::create_dir(&place.data).unwrap();
    fs::write(place.data.join("letter.txt"), "mine").unwrap();
    let ports = ["serve", "--http", "127.0.0.1:0", "--electrum", "127.0.0.1:0"];
    let message = refusal(&run(&place.data, &ports));
    assert!(message.contains("is not empty and holds no Varve database"), "{message}");
    let names: Vec<_> = fs::read_dir(&place.data).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_source_that_is_away_is_tried_again_while_the_rest_is_served() {
    let place = Place::new();
    ask(&place.data, &["sync", "--from", place.chain.to_str().unwrap(), "--stop-height", "105"]);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let served = Served::start(&place.data, &["--rpc", &format!("http://u:geheim@{nobody}")]);
    assert_eq!(served.ok("/api/blocks/tip/height"), "105");
    served.until("the trouble is logged", |served| {
        let log = served.log();
        log.contains("sync_failed") || log.contains(" source ")
    });
    let metrics = served.ok("/metrics");
    let line = |line: &str| metrics.lines().any(|found| found == line);
    assert!(line("varve_tip_height 105"), "{metrics}");
    assert!(!line(r#"varve_sync_state{state="following"} 1"#), "{metrics}");
    let log = served.stop();
    assert!(!log.contains("geheim") && !metrics.contains("geheim"), "a password is no news: {log}");
}

#[test]
fn every_line_of_a_json_log_is_an_event() {
    let place = Place::new();
    let served = place.serve(&["--log", "json", "--log-level", "debug"]);
    served.until_tip(place.tip());
    let log = served.stop();
    let mut events = Vec::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(event["time"].as_str().unwrap().ends_with('Z'), "{line}");
        events.push(event["event"].as_str().unwrap().to_owned());
    }
    for wanted in ["listening", "sync", "tip", "stopping", "stopped"] {
        assert!(events.iter().any(|event| event == wanted), "no {wanted}: {events:?}");
    }
    assert_eq!(events.last().map(String::as_str), Some("stopped"));
}

#[test]
fn servers_that_are_off_are_not_there() {
    let place = Place::new();
    let mut serve = command(&place.data, &["serve", "--http", "127.0.0.1:0", "--electrum", "off"]);
    let served = Served::spawn(&mut serve);
    assert_eq!(served.places["electrum"], Value::Null);
    assert_eq!(served.ok("/api/blocks/tip/height"), "0");
    served.stop();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let place = Place::new();
    let served = place.serve(&[]);
    served.until_tip(place.tip());
    served.signal("-TERM");
    served.signal("-TERM");
    let (status, log) = served.wait();
    // The first may have been enough.
    assert!([Some(0), Some(143)].contains(&status.code()), "{status}: {log}");
    ask(&place.data, &["status"]);
}

#[test]
fn people_read_where_it_serves() {
    let place = Place::new();
    let data = place.data.to_str().unwrap();
    let mut serve = std::process::Command::new(env!("CARGO_BIN_EXE_varve"));
    serve.args(["serve", "--network", "regtest", "--datadir", data]);
    serve.args(["--http", "127.0.0.1:0", "--electrum", "127.0.0.1:0"]);
    let mut serve = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(serve.stdout.take().unwrap()));
    let text: Vec<String> = lines.by_ref().take(3).map(Result::unwrap).collect();
    let kill = std::process::Command::new("kill").arg(serve.id().to_string()).status();
    assert!(kill.unwrap().success());
    assert!(serve.wait().unwrap().success());
    assert!(text[0].contains("serving regtest from"), "{text:?}");
    assert!(text[1].contains("http://127.0.0.1:"), "{text:?}");
    assert!(text[2].contains("electrum") && text[2].ends_with(":t"), "{text:?}");
}

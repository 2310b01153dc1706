//! Sources that are none: each ends with one sentence that says what to do.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::varve::{ask, command, refusal, run, simulate, varve};

#[test]
fn what_holds_no_blocks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("empty"), []).unwrap();
    fs::write(path("zeros"), vec![0; 100_000]).unwrap();
    fs::write(path("text"), "not blocks at all\n".repeat(100)).unwrap();
    fs::create_dir_all(path("nothing")).unwrap();
    fs::create_dir_all(path("odd/blk00000.dat")).unwrap();
    let some = [
        (path("nowhere"), "No such file"),
        (path("empty"), "holds no blocks"),
        (path("zeros"), "holds no blocks"),
        (path("text"), "choose the network"),
        (path("nothing"), "has no blk*.dat files"),
        (path("odd"), "has no blk*.dat files"),
        ("/dev/zero".to_owned(), "no block of regtest came in"),
        ("/dev/urandom".to_owned(), "choose the network"),
    ];
    for (from, reason) in some {
        let output = run(&folder.path().join("data"), &["sync", "--from", &from]);
        let message = refusal(&output);
        assert!(message.contains(reason), "{from}: {message}");
    }
}

/// A pipe may end before it has begun: the chain is where it was.
#[test]
fn an_empty_pipe_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let answer = ask(&folder.path().join("data"), &["sync", "--from", "/dev/null"]);
    assert_eq!((&answer["height"], &answer["connected"]), (&json!(0), &json!(0)));
    assert_eq!(answer["complete"], true);
}

#[test]
fn an_endless_pipe_of_zeros_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut sync = command(&folder.path().join("data"), &["sync", "--from", "-"]);
    let output = sync.stdin(Stdio::from(File::open("/dev/zero").unwrap())).output().unwrap();
    assert!(refusal(&output).contains("no block of regtest came in"));
}

/// The error names the network, so that the next command is right.
#[test]
fn blocks_of_another_network_are_named() {
    let folder = tempfile::tempdir().unwrap();
    simulate(&folder.path().join("chain"));
    let chain = folder.path().join("chain").to_str().unwrap().to_owned();
    let file = folder.path().join("chain/blocks/blk00000.dat");
    for network in ["mainnet", "signet", "testnet4"] {
        let data = folder.path().join(network).to_str().unwrap().to_owned();
        for follow in [&[][..], &["--follow"]] {
            let args = ["sync", "--from", &chain, "--network", network, "--datadir", &data];
            let message = refusal(&varve(&[&args, follow].concat()));
            let told = format!("holds blocks of regtest or bsv-regtest, not of {network}");
            assert!(message.contains(&told), "{message}");
            assert!(message.contains("pass --network regtest"), "{message}");
        }
        let mut pipe = Command::new(env!("CARGO_BIN_EXE_varve"));
        pipe.args(["sync", "--from", "-", "--network", network, "--datadir", &data]);
        let output = pipe.stdin(Stdio::from(File::open(&file).unwrap())).output().unwrap();
        let message = refusal(&output);
        assert!(message.contains("holds blocks of regtest"), "{message}");
    }
}

#[test]
fn impossible_addresses_are_mistakes_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in [
        ["--peer", "host:99999"],
        ["--peer", "host:0"],
        ["--peer", ""],
        ["--rpc", "http://h:0"],
        ["--rpc", "http://user:password@h:65536"],
        ["--rpc", "https://h:8332"],
        ["--rpc", "http://h"],
        ["--rpc", "http://"],
        ["--rpc", ""],
    ] {
        let output = run(&folder.path().join("data"), &[&["sync"], &wrong[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(!folder.path().join("data").exists(), "nothing was made");
    }
}

#[test]
fn a_node_that_is_not_there_is_said_within_three_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    for address in [nobody, silent.local_addr().unwrap()] {
        let url = format!("http://user:password@{address}");
        let refused_in = || {
            let begin = Instant::now();
            let message = refusal(&run(&folder.path().join("data"), &["sync", "--rpc", &url]));
            assert!(message.contains(&address.to_string()), "{message}");
            assert!(!folder.path().join("data").exists(), "nothing was made");
            begin.elapsed()
        };
        // On a busy machine the process may begin late: then it is asked again.
        assert!((0..5).any(|_| refused_in() < Duration::from_secs(3)), "{address}");
    }
}

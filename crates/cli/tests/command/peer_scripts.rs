//! What is checked of blocks that other nodes send, from a peer of our own over a real socket.

use std::process::Output;

use serde_json::json;
use varve_consensus::contract::draft::TxDraft;
use varve_types::script::opcode::OP_0;
use varve_types::{Network, Outpoint};

use crate::exit_codes::{chain, genesis};
use crate::peer::{self, Blocks};
use crate::refused::{above, hash};
use crate::varve::{ask, run, varve};

const NETWORK: Network = Network::Regtest;

fn first_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned()
}

/// 101 blocks, and one whose last transaction spends an output that nobody can.
fn with_failing_script() -> Vec<Vec<u8>> {
    let mut blocks = [vec![genesis()], chain(&genesis(), 0, 1, 101)].concat();
    let first = varve_types::Block::parse(&blocks[1], NETWORK.format()).unwrap();
    let coin = Outpoint::new(first.txids()[0], 0);
    let mut made = TxDraft::spending(&[coin], 2);
    made.outputs[0].script = vec![OP_0];
    let spent = TxDraft::spending(&[Outpoint::new(made.txid(), 0)], 1);
    blocks.push(above(&blocks[101], 102, 1, vec![made, spent]).bytes());
    blocks
}

#[test]
fn scripts_are_checked_of_what_peers_send() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = with_failing_script();
    let bad = hash(&blocks[102]);
    let peer = peer::start(NETWORK, &blocks[1..], Blocks::Sends);
    let data = folder.path().join("scripts");
    let output = run(&data, &["sync", "--peer", &peer]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(first_line(&output), "spends and all scripts are checked");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains(&bad) && told.contains("block-script-verify-flag-failed"), "{told}");
    let none: Option<u32> = None;
    let scripts = json!({ "checked_to": 101, "assumed_to": none, "unchecked": 0 });
    assert_eq!(ask(&data, &["status"])["scripts"], scripts);
    // Whoever does not want that says so.
    let data = folder.path().join("spends");
    let output = run(&data, &["sync", "--peer", &peer, "--verify", "spends"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(first_line(&output), "spends are checked, scripts are not");
    assert_eq!(ask(&data, &["status"])["height"], 102);
}

/// The first line names the block that is built in.
#[test]
fn scripts_below_the_built_in_block_are_assumed_to_be_valid() {
    let folder = tempfile::tempdir().unwrap();
    let check = |network: Network| {
        let data = folder.path().join(network.name());
        let data = data.to_str().unwrap();
        let place = ["--network", network.name(), "--datadir", data];
        let output = varve(&[&["sync", "--peer", "127.0.0.1:1"][..], &place].concat());
        let line = first_line(&output);
        match varve_consensus::Params::new(network).assume_valid {
            Some(block) => {
                assert!(line.contains(&format!("up to block {block} are assumed")), "{line}");
            }
            None if network.is_bsv() => assert!(line.contains("cannot be"), "{line}"),
            None => assert_eq!(line, "spends and all scripts are checked"),
        }
    };
    // Each waits for a peer that is not there, so they wait together.
    std::thread::scope(|scope| {
        for network in Network::ALL {
            scope.spawn(move || check(network));
        }
    });
}

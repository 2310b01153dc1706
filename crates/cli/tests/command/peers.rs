//! `sync --peer` and its exit code: an operator's mark, headers that nobody has blocks of, a peer
//! with too little work, a clock that is wrong.

use std::path::Path;

use varve_types::Network;

use crate::exit_codes::{chain, end, genesis, short};
use crate::peer::{self, Blocks};
use crate::refused::{above, hash};
use crate::varve::{ask, run, varve};

const REGTEST: Network = Network::Regtest;

/// An operator's mark says nothing about the peers whose chain has the block.
#[test]
fn a_mark_of_the_operator_is_no_offence_of_the_peer() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = chain(&genesis(), 0, 1, 30);
    let other = [&first[..10], &chain(&first[9], 10, 2, 15)].concat();
    let [one, two] = [&first, &other].map(|blocks| peer::start(REGTEST, blocks, Blocks::Sends));
    assert_eq!(end(&run(&data, &["sync", "--peer", &one])).1, None);
    assert_eq!(ask(&data, &["invalidate", &hash(&first[19])])["height"], 19);
    for peers in [&["--peer", &one][..], &["--peer", &one, "--peer", &two]] {
        let output = run(&data, &[&["sync"], peers].concat());
        let (answer, sentence) = end(&output);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("banned") && !said.contains("refused"), "{said}");
        assert_eq!((sentence, answer["refused"].as_u64()), (None, Some(0)), "{said}");
        let height = if peers.len() == 2 { 19 } else { 25 };
        assert_eq!(answer["height"].as_u64(), Some(height), "{said}");
    }
    ask(&data, &["reconsider", &hash(&first[19])]);
    assert_eq!(end(&run(&data, &["sync", "--peer", &one])).0["height"], 30);
}

/// Headers that a hostile peer has left behind: the sentence says how to get rid of them.
#[test]
fn headers_without_blocks_can_be_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (good, hostile) = (chain(&genesis(), 0, 1, 30), chain(&genesis(), 0, 2, 60));
    let withholds = peer::start(REGTEST, &hostile, Blocks::Lacks);
    let honest = peer::start(REGTEST, &good, Blocks::Sends);
    let give_up = format!("`varve invalidate {}`", hash(&hostile[0]));
    short(&run(&data, &["sync", "--peer", &withholds]), 0, &["headers go up to 60", &give_up]);
    for _ in 0..2 {
        short(&run(&data, &["sync", "--peer", &honest]), 30, &["headers go up to 60", &give_up]);
    }
    ask(&data, &["invalidate", &hash(&hostile[0])]);
    let (answer, sentence) = end(&run(&data, &["sync", "--peer", &honest]));
    assert_eq!((answer["height"].as_u64(), sentence), (Some(30), None));
}

fn mainnet(data: &Path, more: &[&str]) -> std::process::Output {
    let data = ["--network", "mainnet", "--json", "--datadir", data.to_str().unwrap()];
    varve(&[more, &data].concat())
}

/// A node of mainnet that has just been started.
#[test]
fn a_chain_of_peers_below_the_known_work_comes_short() {
    let folder = tempfile::tempdir().unwrap();
    let (data, empty) =
        (folder.path().join("data"), peer::start(Network::Mainnet, &[], Blocks::Sends));
    let parts = ["less work than the chain of mainnet has", "name other peers"];
    short(&mainnet(&data, &["sync", "--peer", &empty]), 0, &parts);
    let stopped = mainnet(&data, &["sync", "--peer", &empty, "--stop-height", "0"]);
    assert_eq!(end(&stopped).1, None);
}

/// With a clock that is years behind all headers seem to come too early. Nobody is to blame, and
/// the chain is not where it should be.
#[test]
fn headers_that_seem_to_come_too_early_are_missed() {
    let folder = tempfile::tempdir().unwrap();
    let (data, good) = (folder.path().join("data"), chain(&genesis(), 0, 1, 12));
    let mut early = above(&good[11], 13, 1, Vec::new());
    early.time = u32::MAX;
    early.mine();
    let early = early.bytes();
    let address =
        peer::start(REGTEST, &[&good[..], std::slice::from_ref(&early)].concat(), Blocks::Sends);
    let output = run(&data, &["sync", "--peer", &address]);
    short(&output, 12, &[&hash(&early), "time-too-new", "check the clock"]);
    assert!(!String::from_utf8(output.stderr).unwrap().contains("banned"));
}

/// The headers are there and the blocks are not: the sync came short. A peer with them mends it.
#[test]
fn a_peer_that_keeps_its_blocks_back_leaves_the_sync_short() {
    let blocks = chain(&genesis(), 0, 1, 6);
    for manner in [Blocks::Lacks, Blocks::HangsUp] {
        let folder = tempfile::tempdir().unwrap();
        let bad = peer::start(REGTEST, &blocks, manner);
        let output = run(folder.path(), &["sync", "--peer", &bad]);
        match manner {
            // Nobody is left.
            Blocks::HangsUp => {
                let told = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(1), "{told}");
                assert!(told.contains("closed the connection"), "{told}");
            }
            _ => short(&output, 0, &["headers go up to 6", "sync from another source"]),
        }
        let good = peer::start(REGTEST, &blocks, Blocks::Sends);
        let (answer, sentence) =
            end(&run(folder.path(), &["sync", "--peer", &bad, "--peer", &good]));
        assert_eq!((sentence, &answer["height"]), (None, &6.into()));
    }
}

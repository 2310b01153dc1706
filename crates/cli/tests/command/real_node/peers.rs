//! More than one `--peer`.

use std::time::{Duration, Instant};

use serde_json::json;
use varve_testdata::bitcoind::Bitcoind;

use super::check_tip;
use super::proxy::losing_blocks;
use crate::varve::ask;

#[test]
fn a_peer_that_stalls_does_not_hold_up_the_others() {
    let Some(node) = Bitcoind::start(&[]) else { return };
    node.mine(600);
    let folder = tempfile::tempdir().unwrap();
    for blocks in [0, 20] {
        let data = folder.path().join(blocks.to_string());
        let stalls = losing_blocks(node.p2p_address(), blocks);
        let begin = Instant::now();
        let done = ask(&data, &["sync", "--peer", &stalls, "--peer", &node.p2p_address()]);
        assert_eq!((&done["bestblock"], &done["refused"]), (&json!(node.tip()), &json!(0)));
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        check_tip(&data, &node);
    }
}

#[test]
fn the_best_chain_of_two_nodes_in_any_order() {
    let Some((one, other)) = Bitcoind::start_two(120) else { return };
    one.mine(60);
    other.mine(50);
    let folder = tempfile::tempdir().unwrap();
    let peers = [one.p2p_address(), other.p2p_address()];
    for (name, peers) in [("forth", [&peers[0], &peers[1]]), ("back", [&peers[1], &peers[0]])] {
        let data = folder.path().join(name);
        ask(&data, &["sync", "--peer", peers[0], "--peer", peers[1], "--verify", "scripts"]);
        check_tip(&data, &one);
    }
    // The other wins, by one block; both of ours are turned.
    other.mine(11);
    for name in ["forth", "back"] {
        let data = folder.path().join(name);
        let done = ask(&data, &["sync", "--peer", &peers[1], "--verify", "scripts"]);
        assert_eq!(done["bestblock"], other.tip());
        check_tip(&data, &other);
        let tips = ask(&data, &["status"])["chaintips"].clone();
        let stale = |tip: &&serde_json::Value| tip["branchlen"] == 60;
        let stale = tips.as_array().unwrap().iter().find(stale).unwrap();
        assert_eq!(stale["hash"], one.tip());
    }
}

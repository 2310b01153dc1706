//! A network whose chain is known to have some work: headers below it are not stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use varve_consensus::{Params, Work};
use varve_node::test_suite::wire::Message;
use varve_node::{Options, Organizer};
use varve_types::Network;

use super::{LONG, SHORT, assert_tip, open_with, source, sync, sync_from};
use crate::miner::{Mined, young_options};
use crate::rig::options;
use crate::script_peer::{ScriptPeer, Served, send};

/// Regtest whose chain is known to have this many blocks.
fn known(blocks: u32) -> Options {
    let params = young_options().params;
    let minimum_work = Work::of(params.pow.limit).times(blocks + 1);
    Options { params: Params { minimum_work, ..params }, ..young_options() }
}

#[track_caller]
fn assert_empty(node: &Organizer) {
    assert_eq!((node.header_height().to_u32(), node.chain_tips().len()), (0, 1));
}

#[test]
fn headers_below_the_known_work_are_never_stored() {
    let low = ScriptPeer::honest(&SHORT);
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let mut node = open_with(folder.path(), known(3000));
        assert_empty(&node);
        let outcome = sync(&mut node, &[&low]);
        assert_empty(&node);
        assert_eq!(outcome.said.len(), 1, "{:#?}", outcome.said);
        assert_eq!(outcome.count("less work than the network's"), 1, "{:#?}", outcome.said);
    }
    let high = ScriptPeer::honest(&LONG);
    for peers in [[&low, &high], [&high, &low]] {
        let folder = tempfile::tempdir().unwrap();
        let mut node = open_with(folder.path(), known(3000));
        let outcome = sync(&mut node, &peers);
        assert_tip(&node, &LONG[4499], &outcome);
        assert_eq!(node.chain_tips().len(), 1, "nothing of the other");
    }
}

/// The last message of a branch is full, and the one after it empty.
#[test]
fn a_branch_that_ends_with_a_full_message_is_one_sentence_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = open_with(folder.path(), known(4400));
    let outcome = sync(&mut node, &[&ScriptPeer::honest(&LONG[..4000])]);
    assert_empty(&node);
    assert_eq!(outcome.said.len(), 1, "{:#?}", outcome.said);
    assert_eq!(outcome.count("less work than the network's"), 1, "{:#?}", outcome.said);
}

/// The real network's rules and known work, and the first 4,312 of its real headers.
#[test]
fn the_first_real_headers_are_not_stored() {
    let Some(blocks) = varve_testdata::chains::mainnet() else { return };
    for count in [4313, 4001] {
        let served = Served::of_blocks(Network::Mainnet, blocks[..count].to_vec());
        let peer = ScriptPeer::start(served, Arc::new(|_, _| false));
        let folder = tempfile::tempdir().unwrap();
        let mut node = open_with(folder.path(), options(Network::Mainnet));
        let outcome = sync_from(source(10, Network::Mainnet, &[&peer]), &mut node);
        assert_empty(&node);
        assert_eq!(outcome.said.len(), 1, "{:#?}", outcome.said);
        assert_eq!(outcome.count("less work than the network's"), 1, "{:#?}", outcome.said);
    }
}

/// The first time it sends a chain with enough work, the second time another one.
#[test]
fn who_changes_its_story_is_banned_and_nothing_is_stored() {
    let (first, second) = (Served::new(&LONG), Served::new(&Mined::genesis().plain_chain(3, 4500)));
    let passes = AtomicUsize::new(0);
    let genesis = Network::Regtest.genesis_hash();
    let peer = ScriptPeer::start(
        first.clone(),
        Arc::new(move |message, stream| {
            let Message::GetHeaders(locator) = message else { return false };
            let begins = usize::from(locator[0] == genesis);
            let passes = passes.fetch_add(begins, Ordering::Relaxed) + begins;
            let served = if passes < 2 { &first } else { &second };
            send(stream, &Message::Headers(served.above(locator)));
            true
        }),
    );
    let folder = tempfile::tempdir().unwrap();
    let mut node = open_with(folder.path(), known(4000));
    let outcome = sync(&mut node, &[&peer]);
    let error = outcome.error.expect("nobody is left").to_string();
    assert!(error.contains("other headers the second time"), "{error}");
    assert_eq!(peer.connections.load(Ordering::Relaxed), 1);
    assert_empty(&node);
    drop(node);
    assert_empty(&open_with(folder.path(), known(4000)));
}

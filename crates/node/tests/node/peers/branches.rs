//! Branches longer than a message of headers, whatever their first batches weigh.

use super::{LONG, SHORT, assert_tip, fill, open, sync};
use crate::script_peer::ScriptPeer;

#[test]
fn a_longer_branch_from_genesis_is_followed_though_its_first_batch_has_less_work() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = open(folder.path());
    fill(&mut node, &SHORT);
    let peer = ScriptPeer::honest(&LONG);
    let outcome = sync(&mut node, &[&peer]);
    assert_tip(&node, &LONG[4499], &outcome);
    assert!(outcome.said.is_empty(), "{:#?}", outcome.said);
}

#[test]
fn a_longer_branch_of_another_peer_is_followed_beside_the_peer_of_the_shorter() {
    let (short, long) = (ScriptPeer::honest(&SHORT), ScriptPeer::honest(&LONG));
    for peers in [[&short, &long], [&long, &short]] {
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        let outcome = sync(&mut node, &[&short]);
        assert_tip(&node, &SHORT[2499], &outcome);
        let outcome = sync(&mut node, &peers);
        assert_tip(&node, &LONG[4499], &outcome);
    }
}

#[test]
fn a_shorter_branch_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = open(folder.path());
    fill(&mut node, &LONG);
    let outcome = sync(&mut node, &[&ScriptPeer::honest(&SHORT)]);
    assert_tip(&node, &LONG[4499], &outcome);
    assert_eq!(node.chain_tips().len(), 1, "its headers are not stored");
}

//! Headers whose blocks nobody sends, and headers that come in drops, beside an honest peer.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{LONG, SHORT, assert_tip, open, sync};
use crate::miner::Mined;
use crate::script_peer::{
    Manner, ScriptPeer, Served, chats, drips, finds_nothing, repeats, withholds,
};

/// One peer promises `promised` blocks and gives none, the other serves `honest`.
fn check(promised: usize, manner: Manner, honest: &[Mined]) {
    let bad = ScriptPeer::start(Served::new(&LONG[..promised]), manner);
    let good = ScriptPeer::honest(honest);
    let tip = honest.last().unwrap();
    for peers in [[&bad, &good], [&good, &bad]] {
        // The second greets when the first has had time to send its headers.
        peers[1].open.store(false, Ordering::Relaxed);
        let gate = peers[1].open.clone();
        let opens = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            gate.store(true, Ordering::Relaxed);
        });
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        let outcome = sync(&mut node, &peers);
        opens.join().unwrap();
        assert_tip(&node, tip, &outcome);
        assert!(outcome.said.len() <= 8, "one sentence, not one for each: {:#?}", outcome.said);
        drop(node);
        // What is left of the promise does not count after a restart either.
        let mut node = open(folder.path());
        let outcome = sync(&mut node, &[&good]);
        assert_tip(&node, tip, &outcome);
        drop(node);
        // Nor where the promise came first, alone.
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        sync(&mut node, &[&bad]);
        drop(node);
        let mut node = open(folder.path());
        let outcome = sync(&mut node, &[&good]);
        assert_tip(&node, tip, &outcome);
    }
}

#[test]
fn a_batch_of_headers_without_blocks_beside_a_longer_chain() {
    check(2000, withholds(), &SHORT);
}

#[test]
fn a_batch_and_a_header_without_blocks_beside_a_longer_chain() {
    check(2001, withholds(), &SHORT);
}

#[test]
fn headers_without_blocks_that_have_the_most_work() {
    check(4001, withholds(), &SHORT);
}

#[test]
fn headers_without_blocks_beside_a_short_chain() {
    check(2000, withholds(), &SHORT[..125]);
    check(4001, finds_nothing(), &SHORT[..125]);
}

#[test]
fn signs_of_life_do_not_excuse_blocks_that_do_not_come() {
    check(2000, chats(), &SHORT[..125]);
}

#[test]
fn blocks_that_are_not_found_are_one_sentence() {
    let bad = ScriptPeer::start(Served::new(&LONG[..4001]), finds_nothing());
    let good = ScriptPeer::honest(&SHORT);
    let folder = tempfile::tempdir().unwrap();
    let mut node = open(folder.path());
    let outcome = sync(&mut node, &[&bad, &good]);
    assert_tip(&node, &SHORT[2499], &outcome);
    assert_eq!(outcome.count("Missing"), 1, "{:#?}", outcome.said);
}

/// A header every 29 seconds of the source's clock, each of them new.
#[test]
fn headers_in_drops_do_not_keep_the_others_waiting() {
    let served = Served::new(&LONG);
    let bad = ScriptPeer::start(served.clone(), drips(&served, Duration::from_millis(2900)));
    let good = ScriptPeer::honest(&SHORT);
    for peers in [[&bad, &good], [&good, &bad]] {
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        let outcome = sync(&mut node, &peers);
        assert_tip(&node, &SHORT[2499], &outcome);
        assert!(outcome.took < Duration::from_secs(60), "{:?}", outcome.took);
    }
}

/// The first 2,000 headers, whatever it is asked.
#[test]
fn the_same_headers_for_ever_do_not_keep_the_others_waiting() {
    let served = Served::new(&LONG);
    let bad = ScriptPeer::start(served.clone(), repeats(&served));
    let good = ScriptPeer::honest(&SHORT);
    for peers in [[&bad, &good], [&good, &bad]] {
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        let outcome = sync(&mut node, &peers);
        assert_tip(&node, &SHORT[2499], &outcome);
        assert_eq!(outcome.count("again and again"), 1, "{:#?}", outcome.said);
    }
}

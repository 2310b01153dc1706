//! Headers whose blocks nobody sends, and headers that come in drops, beside an honest peer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use varve_node::Report;
use varve_node::source::p2p::wire::Message;

use super::{LONG, SHORT, assert_tip, open, sync};
use crate::miner::Mined;
use crate::script_peer::{
    Manner, ScriptPeer, Served, chats, drips, finds_nothing, repeats, withholds,
};

const WITHHELD: &str = "does not send the blocks of its headers; the connection is given up";

/// One peer promises `promised` blocks and gives none, the other serves `honest`. What is said of
/// it is one sentence of the lowest block, and `warning`.
fn check(promised: usize, manner: Manner, warning: Option<&str>, honest: &[Mined]) {
    let bad = ScriptPeer::start(Served::new(&LONG[..promised]), manner);
    let good = ScriptPeer::honest(honest);
    let tip = honest.last().unwrap();
    let mut expected = vec![format!("{:?}", Report::Missing { hash: LONG[0].hash })];
    expected.extend(warning.map(|warning| format!("warning: {}: {warning}", bad.address)));
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
        let mut outcome = sync(&mut node, &peers);
        opens.join().unwrap();
        assert_tip(&node, tip, &outcome);
        outcome.said.sort();
        // When the honest chain has overtaken the promise before, nobody asks for its blocks.
        let unasked = peers[0].address == good.address && promised < honest.len();
        let said = outcome.said;
        assert!(said == expected || (unasked && said.is_empty()), "{said:#?}");
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
    check(2000, withholds(), Some(WITHHELD), &SHORT);
}

#[test]
fn a_batch_and_a_header_without_blocks_beside_a_longer_chain() {
    check(2001, withholds(), Some(WITHHELD), &SHORT);
}

#[test]
fn headers_without_blocks_that_have_the_most_work() {
    check(4001, withholds(), Some(WITHHELD), &SHORT);
}

#[test]
fn headers_without_blocks_beside_a_short_chain() {
    check(2000, withholds(), Some(WITHHELD), &SHORT[..125]);
    check(4001, finds_nothing(), None, &SHORT[..125]);
}

#[test]
fn signs_of_life_do_not_excuse_blocks_that_do_not_come() {
    check(2000, chats(), Some(WITHHELD), &SHORT[..125]);
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
    let (served, answered) = (Served::new(&LONG), Arc::new(AtomicUsize::new(0)));
    let manner = drips(&served, Duration::from_millis(2900), &answered);
    let bad = ScriptPeer::start(served, manner);
    // How many drops have come when the other is asked for headers first.
    let before: Arc<OnceLock<usize>> = Arc::default();
    let (counter, at) = (answered.clone(), before.clone());
    let good = ScriptPeer::start(
        Served::new(&SHORT),
        Arc::new(move |message, _| {
            if matches!(message, Message::GetHeaders(_)) {
                at.get_or_init(|| counter.load(Ordering::Relaxed));
            }
            false
        }),
    );
    for peers in [[&bad, &good], [&good, &bad]] {
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        let outcome = sync(&mut node, &peers);
        assert_tip(&node, &SHORT[2499], &outcome);
        assert_eq!(before.get(), Some(&0), "the other is asked after two seconds");
        // At worst it is given up three times, each time after two or three drops.
        assert!(outcome.took < Duration::from_secs(40), "{:?}", outcome.took);
        assert!(outcome.count("the connection is given up") <= 1, "{:#?}", outcome.said);
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

//! Headers whose blocks nobody sends, and headers that come in drops, beside an honest peer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use varve_node::Report;
use varve_node::test_suite::wire::Message;

use super::{LONG, SHORT, assert_tip, open, sync};
use crate::miner::Mined;
use crate::script_peer::{
    Manner, ScriptPeer, Served, chats, drips, finds_nothing, repeats, withholds,
};

const WITHHELD: &str = "does not send the blocks of its headers; the connection is given up";

/// A peer, and whether it has been asked for headers.
fn start(chain: &[Mined], manner: Manner) -> (ScriptPeer, Arc<AtomicBool>) {
    let asked = Arc::new(AtomicBool::new(false));
    let noted = asked.clone();
    let manner: Manner = Arc::new(move |message, stream| {
        noted.fetch_or(matches!(message, Message::GetHeaders(_)), Ordering::Relaxed);
        manner(message, stream)
    });
    (ScriptPeer::start(Served::new(chain), manner), asked)
}

/// One peer promises `promised` blocks and gives none, the other serves `honest`. What is said of
/// it is one sentence of the lowest block, and `warning`.
///
/// The orders in which they come have peers of their own: all of them wait, so they wait together.
fn check(promised: usize, manner: &Manner, warning: Option<&str>, honest: &[Mined]) {
    let bad = || start(&LONG[..promised], manner.clone());
    let good = || start(honest, Arc::new(|_, _| false));
    let tip = honest.last().unwrap();
    let said_of = |bad: &ScriptPeer| {
        let mut expected = vec![format!("{:?}", Report::Missing { hash: LONG[0].hash })];
        expected.extend(warning.map(|warning| format!("warning: {}: {warning}", bad.address)));
        expected
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let ((bad, asked), (good, _)) = (bad(), good());
            let said = beside([&bad, &good], &asked, (&good, tip));
            assert!(said == said_of(&bad), "{said:#?}");
        });
        scope.spawn(|| {
            let ((bad, _), (good, asked)) = (bad(), good());
            let said = beside([&good, &bad], &asked, (&good, tip));
            // When the honest chain has overtaken the promise before, nobody asks for its blocks.
            let unasked = promised < honest.len() && said.is_empty();
            assert!(unasked || said == said_of(&bad), "{said:#?}");
        });
        // The promise comes first, alone.
        scope.spawn(|| {
            let ((bad, _), (good, _)) = (bad(), good());
            let folder = tempfile::tempdir().unwrap();
            let mut node = open(folder.path());
            sync(&mut node, &[&bad]);
            drop(node);
            let mut node = open(folder.path());
            let outcome = sync(&mut node, &[&good]);
            assert_tip(&node, tip, &outcome);
        });
    });
}

/// Syncs from two peers, and then again from the good one: both end at the tip. The second greets
/// when the first was `asked` and has had time to send its headers. Gives what was said, sorted.
fn beside(
    peers: [&ScriptPeer; 2],
    asked: &Arc<AtomicBool>,
    (good, tip): (&ScriptPeer, &Mined),
) -> Vec<String> {
    peers[1].open.store(false, Ordering::Relaxed);
    let (gate, asked) = (peers[1].open.clone(), asked.clone());
    let opens = thread::spawn(move || {
        while !asked.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(500));
        gate.store(true, Ordering::Relaxed);
    });
    let folder = tempfile::tempdir().unwrap();
    let mut node = open(folder.path());
    let mut outcome = sync(&mut node, &peers);
    opens.join().unwrap();
    assert_tip(&node, tip, &outcome);
    outcome.said.sort();
    drop(node);
    // What is left of the promise does not count after a restart either.
    let mut node = open(folder.path());
    let again = sync(&mut node, &[good]);
    assert_tip(&node, tip, &again);
    outcome.said
}

#[test]
fn a_batch_of_headers_without_blocks_beside_a_longer_chain() {
    check(2000, &withholds(), Some(WITHHELD), &SHORT);
}

#[test]
fn a_batch_and_a_header_without_blocks_beside_a_longer_chain() {
    check(2001, &withholds(), Some(WITHHELD), &SHORT);
}

#[test]
fn headers_without_blocks_that_have_the_most_work() {
    check(4001, &withholds(), Some(WITHHELD), &SHORT);
}

#[test]
fn headers_without_blocks_beside_a_short_chain() {
    // Both wait, so they wait together.
    thread::scope(|scope| {
        scope.spawn(|| check(2000, &withholds(), Some(WITHHELD), &SHORT[..125]));
        scope.spawn(|| check(4001, &finds_nothing(), None, &SHORT[..125]));
    });
}

#[test]
fn signs_of_life_do_not_excuse_blocks_that_do_not_come() {
    check(2000, &chats(), Some(WITHHELD), &SHORT[..125]);
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

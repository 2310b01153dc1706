//! Announcements without end, beside an honest peer: it is heard, and the sync ends or is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::follow::Follower;
use super::{LONG, SHORT, assert_tip, open, sync};
use crate::miner::Mined;
use crate::script_peer::{Manner, ScriptPeer, Served, floods, strays, teases};

/// The honest peer's blocks are there, whoever is named first.
fn check(served: &Arc<Served>, manner: &Manner) {
    let good = ScriptPeer::honest(&SHORT[..600]);
    let bad = ScriptPeer::start(served.clone(), manner.clone());
    for peers in [[&bad, &good], [&good, &bad]] {
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        let outcome = sync(&mut node, &peers);
        assert_tip(&node, &SHORT[599], &outcome);
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
    }
}

#[test]
fn a_flood_of_announcements_keeps_nobody_waiting() {
    check(&Served::new(&[]), &floods());
}

#[test]
fn a_flood_of_announcements_does_not_keep_a_sync_from_being_stopped() {
    let good = ScriptPeer::honest(&SHORT[..600]);
    let bad = ScriptPeer::start(Served::new(&[]), floods());
    let follower = Follower::start(&[&bad, &good]);
    follower.reaches(&SHORT[599]);
    let (error, _, took) = follower.stop();
    assert!(error.is_none(), "{error:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// It is asked ten times, and then once in a second of the source's clock, while the sync lasts.
#[test]
fn announcements_before_every_answer_keep_nobody_waiting() {
    let asked = Arc::new(AtomicUsize::new(0));
    check(&Served::new(&[]), &teases(&asked));
    assert!((20..1000).contains(&asked.load(Ordering::Relaxed)), "{asked:?}");
}

#[test]
fn headers_that_link_to_nothing_before_every_answer_keep_nobody_waiting() {
    let asked = Arc::new(AtomicUsize::new(0));
    let header = |block: &Mined| *block.bytes.first_chunk().unwrap();
    check(&Served::new(&SHORT[..1]), &strays(header(&LONG[700]), header(&SHORT[0]), &asked));
    assert!((2..1000).contains(&asked.load(Ordering::Relaxed)), "{asked:?}");
}

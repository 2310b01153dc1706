//! Peers whose blocks come slowly, or after a pause.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use varve_node::test_suite::wire::Message;
use varve_types::Network;

use super::{SHORT, assert_tip, open, source, sync, sync_from};
use crate::script_peer::{ScriptPeer, Served, dawdles};

/// A block every ten seconds, which is not silence. Its sixteen blocks of each window would take
/// minutes.
#[test]
fn a_peer_that_sends_blocks_slowly_does_not_hold_up_another() {
    let served = Served::new(&SHORT[..1200]);
    let slow = ScriptPeer::start(served.clone(), dawdles(&served, Duration::from_secs(10)));
    let quick = ScriptPeer::honest(&SHORT[..1200]);
    for peers in [[&slow, &quick], [&quick, &slow]] {
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        let outcome = sync_from(source(1, Network::Regtest, &peers), &mut node);
        assert_tip(&node, &SHORT[1199], &outcome);
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        assert!(outcome.took < Duration::from_secs(60), "{:?}", outcome.took);
    }
}

/// Ten seconds by the source's clock: half of what counts as silence.
#[test]
fn a_pause_is_no_offence_when_the_others_do_not_have_the_blocks() {
    let has_paused = AtomicBool::new(false);
    let pausing = ScriptPeer::start(
        Served::new(&SHORT[..16]),
        Arc::new(move |message, _| {
            if matches!(message, Message::GetData(_)) && !has_paused.swap(true, Ordering::Relaxed) {
                thread::sleep(Duration::from_secs(1));
            }
            false
        }),
    );
    let idle = ScriptPeer::honest(&[]);
    let folder = tempfile::tempdir().unwrap();
    let mut node = open(folder.path());
    let outcome = sync(&mut node, &[&pausing, &idle]);
    assert_tip(&node, &SHORT[15], &outcome);
    assert!(outcome.error.is_none() && outcome.said.is_empty(), "{:#?}", outcome.said);
}

//! A node that follows its peers until it is stopped, and a peer that reorganises. The clock of the
//! source runs as ours does.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use varve_node::test_suite::wire::{Inventory, Message};
use varve_node::{Error, NodeReader, Report, SyncOptions, Verify};
use varve_types::Network;

use super::{LIMIT, open, source};
use crate::miner::Mined;
use crate::rig::sync_options;
use crate::script_peer::{ScriptPeer, Served, send};

/// A sync that follows, in a thread.
pub(super) struct Follower {
    reader: NodeReader,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Option<Error>, Vec<String>)>,
    _folder: TempDir,
}

impl Follower {
    pub(super) fn start(peers: &[&ScriptPeer]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        let (reader, stop) = (node.reader(), Arc::new(AtomicBool::new(false)));
        let mut source = source(1, Network::Regtest, peers);
        let options = SyncOptions {
            verify: Verify::Spends,
            follow: true,
            all_branches: false,
            stop: stop.clone(),
            ..sync_options()
        };
        let thread = thread::spawn(move || {
            let mut said = Vec::new();
            let ended = node.sync(&mut source, &options, &mut |report| match report {
                Report::Refused { .. } | Report::Missing { .. } => said.push(format!("{report:?}")),
                Report::Warning(warning) => said.push(format!("warning: {warning}")),
                _ => {}
            });
            (ended.err(), said)
        });
        Self { reader, stop, thread, _folder: folder }
    }

    /// Waits until its tip is this block.
    #[track_caller]
    pub(super) fn reaches(&self, tip: &Mined) {
        let begin = Instant::now();
        while self.reader.snapshot().tip.1 != tip.hash {
            let at = self.reader.snapshot().tip.0;
            assert!(!self.thread.is_finished(), "it ended at {at}");
            assert!(begin.elapsed() < LIMIT, "it is at {at}, not at {}", tip.height);
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops it. Gives how it ended, what it said, and how long that took.
    pub(super) fn stop(self) -> (Option<Error>, Vec<String>, Duration) {
        let begin = Instant::now();
        self.stop.store(true, Ordering::Relaxed);
        while !self.thread.is_finished() {
            assert!(begin.elapsed() < LIMIT, "it does not stop");
            thread::sleep(Duration::from_millis(1));
        }
        let (error, said) = self.thread.join().unwrap();
        (error, said, begin.elapsed())
    }
}

/// An honest node at height 300 moves to a branch from genesis, block by block, and announces each
/// by its header. Those above the first 155 are the first that have enough work to be stored.
#[test]
fn a_deep_reorganisation_that_is_announced_header_by_header() {
    let (one, other) = (Mined::genesis().plain_chain(1, 300), Mined::genesis().plain_chain(2, 320));
    let served = Arc::new(Mutex::new(Served::new(&one)));
    let line: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    let (current, connected) = (served.clone(), line.clone());
    let peer = ScriptPeer::start(
        Served::new(&one),
        Arc::new(move |message, stream| {
            connected.lock().unwrap().get_or_insert_with(|| stream.try_clone().unwrap());
            let served = current.lock().unwrap().clone();
            served.answer(message, stream);
            true
        }),
    );
    let follower = Follower::start(&[&peer]);
    follower.reaches(&one[299]);
    let mut stream = line.lock().unwrap().take().unwrap();
    for count in 1..=other.len() {
        *served.lock().unwrap() = Served::new(&other[..count]);
        let block = &other[count - 1];
        let header = *block.bytes.first_chunk().unwrap();
        let hash = vec![Inventory::block(block.hash, Network::Regtest)];
        let message = if count == 1 { Message::Inv(hash) } else { Message::Headers(vec![header]) };
        send(&mut stream, &message);
    }
    follower.reaches(&other[319]);
    let (error, said, _) = follower.stop();
    assert!(error.is_none() && said.is_empty(), "{error:?}: {said:#?}");
}

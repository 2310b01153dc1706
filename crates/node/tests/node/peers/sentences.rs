//! What is reported of peers that cannot be used, and of blocks that are refused.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use varve_consensus::contract::draft::BlockDraft;

use super::{SHORT, assert_tip, open, sync};
use crate::miner::Mined;
use crate::script_peer::ScriptPeer;

/// A listener that does something with each connection.
fn listener(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> ScriptPeer {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    ScriptPeer { address, open: Arc::new(AtomicBool::new(true)), connections: Arc::default() }
}

/// A sync from this peer alone ends with an error that says so, after a sentence or two; and the
/// same peer does not keep a good one from being heard. Both wait, so they wait together.
fn fails(peer: &ScriptPeer, words: &str) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let folder = tempfile::tempdir().unwrap();
            let outcome = sync(&mut open(folder.path()), &[peer]);
            let error = outcome.error.as_ref().expect("there is nobody to ask").to_string();
            assert!(error.contains(words) && error.contains(&peer.address), "{error}");
            assert!((1..=3).contains(&outcome.said.len()), "{:#?}", outcome.said);
            assert!(outcome.count("os error") == 0 && !error.contains("os error"), "{error}");
        });
        let good = ScriptPeer::honest(&SHORT[..50]);
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        let outcome = sync(&mut node, &[peer, &good]);
        assert_tip(&node, &SHORT[49], &outcome);
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
    });
}

#[test]
fn nobody_listens() {
    let address = "127.0.0.1:1".to_owned();
    let open = Arc::new(AtomicBool::new(true));
    fails(&ScriptPeer { address, open, connections: Arc::default() }, "refuses the connection");
}

#[test]
fn somebody_listens_and_says_nothing() {
    fails(&listener(forget), "does not answer");
}

fn forget(stream: TcpStream) {
    thread::sleep(Duration::from_secs(600));
    drop(stream);
}

#[test]
fn somebody_hangs_up() {
    fails(&listener(drop), "closes the connection");
}

#[test]
fn a_web_server() {
    let serve = |mut stream: TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        forget(stream);
    };
    fails(&listener(serve), "does not speak the protocol");
}

/// Six good blocks, and a longer branch with a bad one that two peers have.
fn refused_once(reason: &str, spoil: impl FnOnce(&mut BlockDraft)) {
    let main = Mined::genesis().chain(1, 6);
    let mut branch = main[..3].to_vec();
    let mut draft = branch[2].draft(2, Vec::new());
    spoil(&mut draft);
    branch.push(branch[2].mine(draft));
    branch.extend(branch[3].chain(2, 5));
    let bad = branch[3].hash;
    let (good, one, two) =
        (ScriptPeer::honest(&main), ScriptPeer::honest(&branch), ScriptPeer::honest(&branch));
    for peers in [[&good, &one, &two], [&one, &two, &good]] {
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        let outcome = sync(&mut node, &peers);
        assert_tip(&node, &main[5], &outcome);
        let refused: Vec<_> =
            outcome.said.iter().filter(|line| line.starts_with("Refused")).collect();
        let is_it = |line: &str| line.contains(&bad.to_string()) && line.contains(reason);
        assert!(refused.len() == 1 && is_it(refused[0]), "{reason}: {:#?}", outcome.said);
    }
}

#[test]
fn a_block_that_is_refused_before_it_is_stored_is_reported_once() {
    refused_once("bad-cb-length", |draft| draft.txs[0].inputs[0].script = vec![0; 101]);
}

#[test]
fn a_block_that_is_refused_by_the_set_is_reported_once() {
    refused_once("bad-cb-amount", |draft| draft.txs[0].outputs[0].value += 1);
}

//! Opening, making and locking folders.

use std::fs;

use varve::{Error, Node};

use crate::chain::{NETWORK, blocks, synced};

#[test]
fn open_takes_a_chain_that_is_there_and_create_makes_one_that_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain");
    let builder = || Node::builder().network(NETWORK).datadir(&path);
    assert!(matches!(builder().open(), Err(Error::NoChain { .. })));
    assert!(matches!(builder().repair(), Err(Error::NoChain { .. })));
    assert!(!path.exists(), "a failed opening makes no folder");
    let tip = builder().create().unwrap().snapshot().tip();
    assert_eq!(tip.hash, NETWORK.genesis_hash());
    assert!(matches!(builder().create(), Err(Error::ChainExists { .. })));
    assert_eq!(builder().open_or_create().unwrap().snapshot().tip(), tip);
    assert_eq!(builder().repair().unwrap().snapshot().tip(), tip);
}

#[test]
fn the_network_of_a_folder_is_found_and_another_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(synced(folder.path(), &[]));
    assert_eq!(Node::open(folder.path()).unwrap().network(), NETWORK);
    let other = Node::builder().network(varve::Network::Signet).datadir(folder.path()).open();
    let message = other.unwrap_err().to_string();
    assert!(message.contains("regtest") && message.contains("signet"), "{message}");
}

#[test]
fn a_folder_of_others_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let message = Node::builder().datadir(folder.path()).create().unwrap_err().to_string();
    assert!(message.contains("letter.txt"), "{message}");
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1);
}

#[test]
fn a_folder_is_locked_until_the_last_handle_and_snapshot_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let live = synced(folder.path(), &blocks(3, 1));
    let is_locked = || {
        let error = Node::open(folder.path()).err().map(|error| error.to_string());
        error.is_some_and(|message| message.contains("in use by"))
    };
    let other = live.clone();
    drop(live);
    assert!(is_locked());
    let snapshot = other.snapshot();
    drop(other);
    assert!(is_locked(), "by the snapshot of a live node");
    drop(snapshot);
    let at_rest = Node::open(folder.path()).unwrap();
    let set = at_rest.snapshot().unspent().unwrap();
    drop(at_rest);
    assert!(is_locked(), "by the set of a node at rest");
    drop(set);
    assert!(!is_locked());
}

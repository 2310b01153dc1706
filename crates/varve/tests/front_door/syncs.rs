//! Syncs in threads: stopping, waiting, refusing, subscribing.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use varve::types::blk::write_record;
use varve::{Error, Height, Node, PeerAddress, Source, SyncEvent, Verify};

use crate::chain::{Expected, NETWORK, blocks, bytes, synced};

/// Writes the blocks as a node's file.
fn file_of(blocks: &[varve_sim::Block]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut records = Vec::new();
    blocks.iter().for_each(|b| write_record(NETWORK.disk_magic(), &b.bytes, &mut records));
    file.write_all(&records).unwrap();
    file
}

#[test]
fn one_thread_syncs_while_others_read_and_a_second_writer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(20, 1);
    let file = file_of(&blocks);
    let node = synced(folder.path(), &[]);
    let mut tips = node.tips();
    let sync = node.follow(Source::folder(file.path())).start().unwrap();
    let seen = tips.by_ref().find(|tip| tip.height == Height::new(20)).unwrap();
    assert_eq!(node.snapshot().tip(), seen, "what is announced can be read");
    let refused = [
        node.sync(Source::blocks([])).run().err(),
        node.invalidate(seen.hash).err(),
        node.verify(&mut |_, _| {}).err(),
    ];
    assert!(refused.iter().all(|error| matches!(error, Some(Error::Busy))), "{refused:?}");
    let status = thread::scope(|scope| scope.spawn(|| node.status()).join().unwrap().unwrap());
    assert_eq!((status.tip, status.memory.is_some()), (seen, true));
    assert!(!sync.is_finished());
    sync.stop();
    let done = sync.wait().unwrap();
    assert_eq!((done.stopped, done.tip), (true, seen));
    assert!(node.verify(&mut |_, _| {}).is_ok(), "the writer is free again");
}

#[test]
fn a_sync_that_is_dropped_stops_and_leaves_the_folder_at_rest() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(&blocks(5, 1));
    let node = synced(folder.path(), &[]);
    let mut tips = node.tips();
    let sync = node.follow(Source::folder(file.path())).start().unwrap();
    assert!(tips.next_within(Duration::from_secs(60)).is_some());
    drop(sync);
    let tip = node.snapshot().tip();
    drop(node);
    assert_eq!(tips.find(|_| false), None, "the subscription ends with the node");
    assert_eq!(Node::open(folder.path()).unwrap().snapshot().tip(), tip);
}

#[test]
fn events_tell_what_the_result_counts() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(110, 2);
    let node = synced(folder.path(), &[]);
    let (mut connected, mut committed) = (0, None);
    let job = node.sync(Source::blocks(bytes(&blocks))).on_event(|event| match event {
        SyncEvent::Connected { .. } => connected += 1,
        SyncEvent::Committed { height, hash } => committed = Some((height, hash)),
        _ => {}
    });
    let done = job.run().unwrap();
    assert_eq!((done.connected, Some((done.tip.height, done.tip.hash))), (connected, committed));
    assert_eq!((done.refused, done.stopped, done.shortfall), (0, false, None));
    Expected::up_to(&blocks, 110).check(&node.snapshot());
}

#[test]
fn a_sync_ends_at_its_stop_height_and_a_later_one_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(115, 5);
    let node = synced(folder.path(), &[]);
    let source = || Source::blocks(bytes(&blocks));
    let done = node.sync(source()).stop_height(Height::new(108)).run().unwrap();
    assert_eq!(done.tip.height, Height::new(108));
    Expected::up_to(&blocks, 108).check(&node.snapshot());
    node.sync(source()).run().unwrap();
    Expected::up_to(&blocks, 115).check(&node.snapshot());
}

#[test]
fn a_verdict_moves_the_tip_and_its_reversal_brings_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(12, 1);
    drop(synced(folder.path(), &blocks));
    let node = Node::open(folder.path()).unwrap();
    let (tip, mut tips) = (node.snapshot().tip(), node.tips());
    let parent = node.snapshot().header(tip.hash).unwrap().unwrap().previous.unwrap();
    let verdict = node.invalidate(tip.hash).unwrap();
    assert!(verdict.invalid.is_some_and(|invalid| invalid.is_by_operator()));
    assert_eq!((verdict.tip.hash, tips.try_next()), (parent, Some(verdict.tip)));
    assert_eq!(node.snapshot().invalid_blocks().len(), 1);
    let verdict = node.reconsider(tip.hash).unwrap();
    assert_eq!((verdict.tip, verdict.invalid, tips.try_next()), (tip, None, Some(tip)));
    assert!(matches!(node.invalidate(varve::BlockHash::ZERO), Err(Error::Node(_))));
}

#[test]
fn mistakes_of_a_source_are_found_before_it_is_used() {
    assert!(Source::folder("/no/such/folder").connect(NETWORK).is_err());
    let folder = tempfile::tempdir().unwrap();
    let node = synced(folder.path(), &[]);
    let other = Source::blocks([]).connect(varve::Network::Signet).unwrap();
    assert!(matches!(node.sync(other).run(), Err(Error::OtherSource { .. })));
    assert!("http://node:1".parse::<PeerAddress>().is_err());
}

#[test]
fn scripts_are_checked_on_request() {
    let folder = tempfile::tempdir().unwrap();
    // Most inputs of the simulator carry dummies in place of signatures.
    let blocks = blocks(110, 2);
    let node = synced(folder.path(), &[]);
    let job = node.sync(Source::blocks(bytes(&blocks))).verify(Verify::Scripts);
    let done = job.run().unwrap();
    assert!(done.refused > 0 && done.tip.height < Height::new(110), "{done:?}");
    assert!(done.shortfall.is_some());
}

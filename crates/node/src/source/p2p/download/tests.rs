//! What peers owe and lose, without a network.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const A: Giver = Giver(1);
const B: Giver = Giver(2);

fn hashes(count: u8) -> Vec<BlockHash> {
    (0..count).map(|number| BlockHash::from_bytes([number; 32])).collect()
}

fn two_peers() -> Download {
    let mut download = Download::default();
    download.add_peer(A);
    download.add_peer(B);
    download
}

fn none() -> BTreeSet<Giver> {
    BTreeSet::new()
}

#[test]
fn a_block_is_asked_for_once_and_comes_once() {
    let mut download = two_peers();
    let blocks = hashes(16);
    assert_eq!(download.room(A), Some(16));
    assert_eq!(download.ask(A, &blocks), blocks);
    assert_eq!(download.ask(A, &blocks), [], "it owes them already");
    assert_eq!((download.room(A), download.room(B)), (Some(0), Some(16)));
    assert_eq!(download.received(A, &blocks[0]), Some(vec![]));
    assert_eq!(download.received(A, &blocks[0]), None, "not twice");
    assert_eq!(download.received(B, &blocks[1]), None, "not of another");
    assert_eq!(download.room(A), Some(1));
}

#[test]
fn what_a_lost_peer_owed_comes_back_in_its_order() {
    let mut download = two_peers();
    let blocks = hashes(10);
    download.ask(A, &blocks);
    assert_eq!(download.remove_peer(A), blocks);
    assert_eq!((download.room(A), download.received(A, &blocks[0])), (None, None));
    assert_eq!(download.remove_peer(A), []);
}

#[test]
fn what_a_peer_passes_over_comes_back() {
    let mut download = two_peers();
    let blocks = hashes(8);
    download.ask(A, &blocks);
    assert_eq!(download.received(A, &blocks[3]), Some(blocks[..3].to_vec()));
    assert_eq!(download.received(A, &blocks[4]), Some(vec![]));
    // Late is as good as in time, and it is not asked for what it owes.
    assert_eq!(download.ask(A, &blocks[1..3]), []);
    assert_eq!(download.received(A, &blocks[1]), Some(vec![]));
    assert!(!download.not_found(A, &blocks[0]), "others have been asked");
    assert!(download.not_found(A, &blocks[2]));
    assert!(!download.not_found(A, &blocks[2]) && !download.not_found(B, &blocks[6]));
}

#[test]
fn who_sends_no_part_of_a_block_is_given_up_and_keeps_its_work_until_then() {
    let mut download = two_peers();
    let blocks = hashes(40);
    download.ask(A, &blocks[..16]);
    download.ask(B, &blocks[16..17]);
    // B has room, and A is as slow as can be.
    let delivering = BTreeSet::from([A, B]);
    for _ in 0..100 {
        assert_eq!((download.room(A), download.room(B)), (Some(0), Some(15)));
        assert!((0..19).all(|_| download.waited(SECOND, &BTreeSet::from([B])).is_empty()));
        assert_eq!(download.waited(SECOND, &delivering), []);
    }
    // Anything but a part of a block does not count: the caller does not name it.
    let silent = (1..).find_map(|seconds| {
        let silent = download.waited(SECOND, &BTreeSet::from([B]));
        silent.first().map(|peer| (seconds, *peer))
    });
    assert_eq!(silent, Some((20, A)));
    let mut idle = two_peers();
    assert!((0..100).all(|_| idle.waited(SECOND, &none()).is_empty()));
}

#[test]
fn a_peer_that_owes_too_much_is_given_up() {
    let mut download = two_peers();
    let blocks = hashes(200);
    // Of two blocks the second comes, so the first is late.
    let owed = blocks.chunks(2).position(|pair| {
        download.ask(A, pair);
        download.received(A, &pair[1]);
        download.waited(Duration::ZERO, &none()) == [A]
    });
    assert_eq!(owed, Some(MAX_OWED));
}

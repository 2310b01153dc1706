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
fn who_sends_no_part_of_a_block_loses_its_work_and_at_last_its_room() {
    let mut download = two_peers();
    let blocks = hashes(100);
    let mut asked = 0;
    for limit in [16, 8, 4, 2, 1] {
        assert_eq!(download.room(A), Some(limit));
        let next = &blocks[asked..asked + limit];
        asked += limit;
        download.ask(A, next);
        assert_eq!(download.waited(SECOND, &none()), Late::default());
        // Anything but a part of a block does not count: the caller does not name it.
        let late = download.waited(SECOND, &BTreeSet::from([B]));
        assert_eq!(late.taken_back, next);
        assert_eq!(late.withholding, if limit == 1 { vec![A] } else { vec![] });
    }
    assert_eq!((download.room(A), download.room(B)), (Some(0), Some(16)));
    // One that comes after all gives a little back, and so do news.
    assert_eq!(download.received(A, &blocks[3]), Some(vec![]));
    assert_eq!(download.room(A), Some(1));
    download.told(A);
    assert_eq!(download.room(A), Some(2));
}

#[test]
fn a_slow_peer_keeps_its_work_while_parts_of_blocks_come_or_nobody_else_could_take_it() {
    let mut download = two_peers();
    let blocks = hashes(40);
    download.ask(A, &blocks[..16]);
    let delivering = BTreeSet::from([A]);
    assert!((0..100).all(|_| download.waited(SECOND, &delivering) == Late::default()));
    download.ask(B, &blocks[16..32]);
    let silent = (0..).find_map(|seconds| {
        let late = download.waited(SECOND, &delivering);
        assert!(late.taken_back.is_empty(), "A has no room");
        late.silent.first().map(|peer| (seconds + 1, *peer))
    });
    assert_eq!(silent, Some((20, B)), "silent all the same");
    let mut idle = two_peers();
    assert!((0..100).all(|_| idle.waited(SECOND, &none()) == Late::default()));
}

#[test]
fn when_nobody_has_room_left_they_are_better_than_nobody() {
    let mut download = two_peers();
    let mut blocks = hashes(100).into_iter();
    while download.room(A) != Some(0) {
        let next: Vec<_> = blocks.by_ref().take(download.room(A).unwrap()).collect();
        download.ask(A, &next);
        (0..2).for_each(|_| drop(download.waited(SECOND, &none())));
    }
    download.remove_peer(B);
    assert_eq!(download.room(A), Some(1));
}

#[test]
fn a_peer_that_owes_too_much_is_given_up() {
    let mut download = two_peers();
    let blocks = hashes(200);
    // Of two blocks the second comes, so the first is late.
    let owed = blocks.chunks(2).position(|pair| {
        download.ask(A, pair);
        download.received(A, &pair[1]);
        download.waited(Duration::ZERO, &none()).silent == [A]
    });
    assert_eq!(owed, Some(MAX_OWED));
}

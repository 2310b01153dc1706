//! The decisions of a download, without a network.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const A: Giver = Giver(1);
const B: Giver = Giver(2);

fn hashes(count: u8) -> Vec<BlockHash> {
    (0..count).map(|number| BlockHash::from_bytes([number; 32])).collect()
}

fn two_peers(count: u8) -> (Download, Vec<BlockHash>) {
    let mut download = Download::default();
    let blocks = hashes(count);
    download.want(&blocks);
    download.want(&blocks);
    download.add_peer(A);
    download.add_peer(B);
    (download, blocks)
}

fn all(assigned: &[(Giver, Vec<BlockHash>)]) -> Vec<BlockHash> {
    let mut all: Vec<_> = assigned.iter().flat_map(|(_, hashes)| hashes.clone()).collect();
    all.sort();
    all
}

#[test]
fn the_lowest_go_first_and_no_peer_has_more_than_its_share() {
    let (mut download, blocks) = two_peers(50);
    let assigned = download.assign();
    assert_eq!(all(&assigned), blocks[..32]);
    assert!(assigned.iter().all(|(_, hashes)| hashes.len() == IN_FLIGHT));
    assert!(download.assign().is_empty());
    let (peer, first) = (assigned[0].0, assigned[0].1[0]);
    assert_eq!(download.received(peer, &first), Receipt::Wanted);
    assert_eq!(download.received(peer, &first), Receipt::Unasked, "not twice");
    assert_eq!(download.assign(), [(peer, vec![blocks[32]])]);
    assert_eq!(download.received(A, &blocks[49]), Receipt::Unasked);
}

#[test]
fn what_a_lost_peer_owed_goes_to_the_others_in_its_order() {
    let (mut download, blocks) = two_peers(50);
    let assigned = download.assign();
    let owed = assigned.iter().find(|(peer, _)| *peer == A).unwrap().1.clone();
    for (_, hashes) in assigned.iter().filter(|(peer, _)| *peer == B) {
        hashes.iter().for_each(|hash| assert_eq!(download.received(B, hash), Receipt::Wanted));
    }
    download.remove_peer(A);
    assert_eq!(download.assign(), [(B, owed)]);
    assert_eq!(download.received(A, &blocks[0]), Receipt::Unasked);
}

#[test]
fn who_holds_the_window_loses_its_work() {
    let (mut download, _) = two_peers(8);
    let assigned = download.assign();
    let slow: BTreeSet<_> =
        assigned.iter().find(|(p, _)| *p == A).unwrap().1.clone().into_iter().collect();
    for hash in assigned.iter().filter(|(peer, _)| *peer == B).flat_map(|(_, hashes)| hashes) {
        download.received(B, hash);
    }
    let heard = BTreeSet::from([A, B]);
    for _ in 0..2 {
        assert!(download.waited(SECOND, &heard).is_empty());
        assert!(download.assign().is_empty());
    }
    download.waited(SECOND, &heard);
    let again = download.assign();
    assert_eq!(again.len(), 1, "all to B: {again:?}");
    assert_eq!((again[0].0, again[0].1.iter().copied().collect()), (B, slow.clone()));
    // Both deliver: the first copy counts, the second is no offence.
    let first = *slow.first().unwrap();
    assert_eq!(download.received(A, &first), Receipt::Wanted);
    assert_eq!(download.received(B, &first), Receipt::Late);
}

#[test]
fn a_silent_peer_is_given_up_and_a_slow_one_is_not() {
    let (mut download, _) = two_peers(40);
    download.assign();
    let heard = BTreeSet::from([B]);
    let given_up = (0..20).map(|_| download.waited(SECOND, &heard)).find(|peers| !peers.is_empty());
    assert_eq!(given_up, Some(vec![A]));
    let mut idle = Download::default();
    idle.add_peer(A);
    assert!((0..100).all(|_| idle.waited(SECOND, &BTreeSet::new()).is_empty()));
}

#[test]
fn a_block_is_missing_when_every_peer_lacks_it() {
    let (mut download, blocks) = two_peers(1);
    let first = download.assign()[0].0;
    assert!(!download.not_found(first, &blocks[0]));
    let second = download.assign()[0].0;
    assert_ne!(first, second);
    assert!(download.not_found(second, &blocks[0]));
    assert!(download.assign().is_empty());
    download.want(&blocks);
    assert_eq!(all(&download.assign()), blocks, "it can be wanted again");
}

/// A network in which peers come, go, dawdle and lie about what they have: in the end every block
/// has come exactly once, as long as one honest peer stays.
#[test]
fn every_block_comes_once_whatever_the_peers_do() {
    for seed in 0..200_u64 {
        let mut random = seed;
        let mut below = |limit: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
            (random >> 33) % limit
        };
        let mut download = Download::default();
        let blocks = hashes(120);
        download.want(&blocks);
        let mut asked: BTreeMap<Giver, Vec<BlockHash>> = BTreeMap::from([(A, Vec::new())]);
        download.add_peer(A);
        let mut given = BTreeSet::new();
        let mut next = 10;
        for _ in 0..20_000 {
            if given.len() == blocks.len() {
                break;
            }
            for (peer, hashes) in download.assign() {
                asked.get_mut(&peer).unwrap().extend(hashes);
                assert!(download.peers[&peer].flying <= IN_FLIGHT);
            }
            let peers: Vec<Giver> = asked.keys().copied().collect();
            let peer = peers[usize::try_from(below(peers.len() as u64)).unwrap()];
            let owed = asked.get_mut(&peer).unwrap();
            match below(20) {
                0 if peers.len() < 5 => {
                    download.add_peer(Giver(next));
                    asked.insert(Giver(next), Vec::new());
                    next += 1;
                }
                1 if peer != A => {
                    download.remove_peer(peer);
                    asked.remove(&peer);
                }
                2 | 3 => {
                    for peer in download.waited(SECOND, &peers.iter().copied().collect()) {
                        assert_ne!(peer, A, "not so slow");
                        download.remove_peer(peer);
                        asked.remove(&peer);
                    }
                }
                4 if peer != A && !owed.is_empty() => {
                    let hash = owed.swap_remove(0);
                    assert!(!download.not_found(peer, &hash), "the honest one has it");
                }
                _ if !owed.is_empty() => {
                    let hash = owed.remove(0);
                    match download.received(peer, &hash) {
                        Receipt::Wanted => assert!(given.insert(hash), "twice"),
                        Receipt::Late => assert!(given.contains(&hash)),
                        Receipt::Unasked => panic!("it was asked"),
                    }
                }
                _ => {}
            }
        }
        assert_eq!(given.len(), blocks.len(), "seed {seed}");
        assert!(download.wanted.is_empty() && download.flying.is_empty());
        assert!(download.peers.values().all(|load| load.flying == 0), "seed {seed}");
    }
}

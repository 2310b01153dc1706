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
fn a_block_is_missing_when_peers_say_nothing_of_it_again_and_again() {
    let mut download = Download::default();
    let blocks = hashes(2);
    download.want(&blocks);
    for silences in 1..=SILENCES {
        let peer = Giver(silences);
        download.add_peer(peer);
        let asked = download.assign();
        assert!(asked.iter().any(|(_, asked)| asked.contains(&blocks[0])));
        if silences == 1 {
            assert_eq!(download.received(peer, &blocks[1]), Receipt::Wanted);
            download.assign();
        }
        assert_eq!(download.waited(SILENCE, &BTreeSet::new()), [peer]);
        download.remove_peer(peer);
        let missing = download.unanswered();
        assert_eq!(missing.len(), usize::from(silences == SILENCES), "{silences}");
        assert!(missing.iter().all(|hash| *hash == blocks[0]));
    }
    download.add_peer(Giver(9));
    assert_eq!(download.assign(), [], "it is wanted no longer");
    download.want(&blocks[..1]);
    assert_eq!(download.assign().len(), 1, "unless somebody asks again");
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

#[test]
fn what_a_peer_passes_over_goes_to_another() {
    let (mut download, _) = two_peers(8);
    let assigned = download.assign();
    let [(A, first), (B, second)] = &assigned[..] else { panic!("{assigned:?}") };
    assert_eq!(download.received(A, &first[2]), Receipt::Wanted);
    assert_eq!(download.assign(), [(B, first[..2].to_vec())]);
    // B has all that is in flight, and A could take more.
    assert_eq!(download.received(A, &first[3]), Receipt::Wanted);
    for _ in 0..3 {
        assert!(download.assign().is_empty());
        download.waited(SECOND, &BTreeSet::from([A, B]));
    }
    // A still owes the first two, and is not asked for them twice.
    assert_eq!(download.assign(), [(A, second.clone())]);
}

#[test]
fn who_told_of_a_block_is_asked_for_it() {
    let (mut download, blocks) = two_peers(40);
    download.told(B, &blocks[..20]);
    let (of_a, of_b) = (blocks[20..36].to_vec(), blocks[..16].to_vec());
    assert_eq!(download.assign(), [(A, of_a.clone()), (B, of_b)]);
    of_a.iter().for_each(|hash| assert_eq!(download.received(A, hash), Receipt::Wanted));
    assert_eq!(download.assign(), [(A, blocks[36..].to_vec())], "four wait for B");
    // B does not send them, nor does anybody send anything.
    (0..2).for_each(|_| assert!(download.waited(SECOND, &BTreeSet::new()).is_empty()));
    let assigned = download.assign();
    assert_eq!(assigned, [(A, blocks[..12].to_vec()), (B, blocks[16..20].to_vec())]);
    // Of many blocks the newest count.
    download.told(A, &hashes(200));
    assert_eq!(download.told.values().filter(|peer| **peer == A).count(), NEWEST);
    assert_eq!(download.told[&hashes(200)[199]], A);
}

#[test]
fn who_tells_of_blocks_and_sends_none_is_waited_for_a_few_times() {
    let (mut download, blocks) = two_peers(60);
    download.told(A, &blocks);
    let (mut received, mut seconds) = (0, 0);
    while received < blocks.len() {
        for (_, hashes) in download.assign().into_iter().filter(|(peer, _)| *peer == B) {
            hashes.iter().for_each(|hash| assert_eq!(download.received(B, hash), Receipt::Wanted));
            received += hashes.len();
        }
        // It sends something else.
        download.waited(SECOND, &BTreeSet::from([A]));
        seconds += 1;
    }
    assert!(seconds < 20, "{seconds}");
}

#[test]
fn who_never_delivers_is_not_asked_until_it_tells_of_something() {
    let mut download = Download::default();
    download.add_peer(A);
    download.add_peer(B);
    let mut number = 0;
    let mut asked = |download: &mut Download| {
        number += 1;
        let hash = BlockHash::from_bytes([number; 32]);
        download.want(&[hash]);
        let peer = download.assign()[0].0;
        match peer {
            B => drop(download.received(B, &hash)),
            _ => (0..4).for_each(|_| drop(download.waited(SECOND, &BTreeSet::new()))),
        }
        if let Some((B, _)) = download.assign().first() {
            download.received(B, &hash);
        }
        peer
    };
    let peers: Vec<Giver> = (0..20).map(|_| asked(&mut download)).collect();
    assert_eq!(peers.iter().filter(|peer| **peer == A).count(), 5, "sixteen halved five times");
    assert_eq!(peers[10..], [B; 10]);
    download.told(A, &[]);
    assert_eq!(asked(&mut download), A);
    // Alone, it is the best there is.
    download.remove_peer(B);
    download.waited(SECOND, &BTreeSet::new());
    download.want(&hashes(1));
    assert_eq!(download.assign(), [(A, hashes(1))]);
}

//! Offers, and what follows from them, on a tree without blocks.

use varve_consensus::{Params, Work};
use varve_types::{Header, Network};

use super::*;
use crate::fixture::{NOW, chain_above, genesis};
use crate::source::HeaderBytes;

const A: Giver = Giver(1);
const B: Giver = Giver(2);

fn insert(tree: &mut HeaderTree, headers: &[HeaderBytes]) -> Vec<HeaderId> {
    headers.iter().map(|header| tree.insert(Header::new(header), NOW).unwrap()).collect()
}

fn tree() -> HeaderTree {
    HeaderTree::new(Params::new(Network::Regtest), [7; 16])
}

fn aim() -> Aim {
    let (tip, stop) = (HeaderId::GENESIS, Height::new(u32::MAX));
    Aim { tip, stop, is_trusted: false, now: Duration::ZERO }
}

fn hashes(tree: &HeaderTree, ids: &[HeaderId]) -> Vec<BlockHash> {
    ids.iter().map(|id| tree.hash(*id)).collect()
}

#[test]
fn a_giver_is_asked_for_its_own_branch_alone() {
    let mut tree = tree();
    let one = insert(&mut tree, &chain_above(&genesis(), 50, 1));
    let other = insert(&mut tree, &chain_above(&genesis(), 20, 2));
    let mut fetch = Fetch::default();
    fetch.offer(&tree, A, one[49]);
    fetch.offer(&tree, B, other[19]);
    let choose = |fetch: &mut Fetch, giver| fetch.choose(&tree, &aim(), giver, 16);
    assert_eq!(choose(&mut fetch, A), hashes(&tree, &one[..16]));
    assert_eq!(choose(&mut fetch, B), hashes(&tree, &other[..16]), "though A has the most work");
    // What A does not send is not asked of it again, nor of B, which does not offer it.
    hashes(&tree, &one[..16]).iter().for_each(|hash| fetch.missed(&tree, hash, A));
    assert_eq!(choose(&mut fetch, A), hashes(&tree, &one[16..32]));
    assert_eq!(choose(&mut fetch, B), hashes(&tree, &other[16..]));
    assert_eq!(fetch.missing(&tree), hashes(&tree, &one[..1]), "one sentence");
    assert_eq!(fetch.missing(&tree), []);
    assert_eq!(choose(&mut fetch, Giver(9)), [], "nobody offers the rest of the tree");
}

#[test]
fn a_block_is_asked_of_one_at_a_time_and_then_of_another() {
    let mut tree = tree();
    let chain = insert(&mut tree, &chain_above(&genesis(), 40, 1));
    let mut fetch = Fetch::default();
    fetch.offer(&tree, A, chain[39]);
    fetch.offer(&tree, A, chain[4]);
    fetch.offer(&tree, B, chain[29]);
    let choose = |fetch: &mut Fetch, giver| fetch.choose(&tree, &aim(), giver, 16);
    assert_eq!(choose(&mut fetch, A), hashes(&tree, &chain[..16]));
    assert_eq!(choose(&mut fetch, B), hashes(&tree, &chain[16..30]));
    hashes(&tree, &chain[..3]).iter().for_each(|hash| fetch.missed(&tree, hash, A));
    assert_eq!(choose(&mut fetch, B), hashes(&tree, &chain[..3]));
    fetch.missed(&tree, &tree.hash(chain[0]), B);
    assert_eq!(choose(&mut fetch, B), []);
    fetch.forget(A);
    fetch.offer(&tree, Giver(3), chain[39]);
    assert_eq!(choose(&mut fetch, Giver(3))[0], tree.hash(chain[0]), "the next one may have it");
}

/// The slow one keeps its blocks; who has nothing else to do is asked for the lowest of them too.
#[test]
fn a_block_that_is_late_is_asked_of_one_more() {
    const C: Giver = Giver(3);
    let mut tree = tree();
    let chain = insert(&mut tree, &chain_above(&genesis(), 40, 1));
    let mut fetch = Fetch::default();
    [A, B, C].into_iter().for_each(|giver| fetch.offer(&tree, giver, chain[39]));
    let at = |millis| Aim { now: Duration::from_millis(millis), ..aim() };
    let of = |from: usize, to: usize| hashes(&tree, &chain[from..to]);
    assert_eq!(fetch.choose(&tree, &at(0), A, 16), of(0, 16));
    assert_eq!(fetch.choose(&tree, &at(1000), B, 16), of(16, 32));
    assert_eq!(fetch.choose(&tree, &at(1999), B, 16), of(32, 40), "not late yet");
    assert_eq!(fetch.choose(&tree, &at(2000), B, 4), of(0, 4), "nothing else, and as room allows");
    assert_eq!(fetch.choose(&tree, &at(2000), C, 2), of(4, 6), "never of three");
    assert_eq!(fetch.choose(&tree, &at(2000), A, 16), [], "A owes its own, and B is not late");
    // Whichever does not send it, the other still owes it.
    fetch.missed(&tree, &of(0, 1)[0], B);
    fetch.missed(&tree, &of(1, 2)[0], A);
    assert_eq!(fetch.choose(&tree, &at(2500), C, 2), of(0, 2));
    // The first copy counts, and the second changes nothing.
    of(0, 40).iter().for_each(|hash| fetch.arrived(hash));
    assert!(!fetch.is_waiting());
    fetch.missed(&tree, &of(2, 3)[0], A);
    assert!(!fetch.is_waiting());
}

#[test]
fn what_cannot_become_the_chain_is_not_asked_for() {
    let mut params = Params::new(Network::Regtest);
    params.minimum_work = Work::of(params.pow.limit).times(31);
    let mut tree = HeaderTree::new(params, [7; 16]);
    let chain = insert(&mut tree, &chain_above(&genesis(), 40, 1));
    let other = insert(&mut tree, &chain_above(&genesis(), 29, 2));
    let mut fetch = Fetch::default();
    fetch.offer(&tree, A, chain[39]);
    fetch.offer(&tree, B, other[28]);
    let count = |fetch: &mut Fetch, giver, aim: &Aim| {
        let hashes = fetch.choose(&tree, aim, giver, 100);
        hashes.iter().for_each(|hash| fetch.arrived(hash));
        hashes.len()
    };
    assert_eq!(count(&mut fetch, B, &aim()), 0, "less than the known work");
    assert_eq!(count(&mut fetch, B, &Aim { is_trusted: true, ..aim() }), 29);
    assert_eq!(count(&mut fetch, A, &aim()), 40);
    assert_eq!(count(&mut fetch, A, &Aim { stop: Height::new(7), ..aim() }), 7);
    assert_eq!(count(&mut fetch, A, &Aim { tip: chain[39], ..aim() }), 0, "no more than the tip");
    tree.mark_invalid(chain[35], "bad");
    let count = fetch.choose(&tree, &aim(), A, 100).len();
    assert_eq!(count, 35, "up to the block below the bad one");
}

#[test]
fn bytes_that_are_not_the_block_are_asked_for_a_few_times() {
    let mut tree = tree();
    let chain = insert(&mut tree, &chain_above(&genesis(), 1, 1));
    let hash = tree.hash(chain[0]);
    let mut fetch = Fetch::default();
    let aim = Aim { is_trusted: true, ..aim() };
    fetch.offer(&tree, Giver::ONLY, chain[0]);
    let times = (0..10)
        .take_while(|_| {
            let chosen = fetch.choose(&tree, &aim, Giver::ONLY, usize::MAX);
            fetch.arrived(&hash);
            fetch.spoiled(&tree, &hash, Giver::ONLY);
            !chosen.is_empty()
        })
        .count();
    assert_eq!(times, 3);
    assert_eq!(fetch.missing(&tree), [hash]);
    fetch.try_again();
    assert_eq!(fetch.choose(&tree, &aim, Giver::ONLY, usize::MAX), [hash]);
}

/// A folder without the blocks of twenty thousand headers is asked for each of them once, and what
/// it does not have is not looked at again until the next try.
#[test]
fn what_was_asked_for_in_vain_is_not_walked_past() {
    let mut tree = tree();
    let chain = insert(&mut tree, &chain_above(&genesis(), 20_000, 1));
    let mut fetch = Fetch::new(true);
    chain.iter().for_each(|id| fetch.add_unfetched(tree.height(*id), *id));
    fetch.offer(&tree, Giver::ONLY, chain[19_999]);
    let aim = Aim { is_trusted: true, stop: Height::new(15_000), ..aim() };
    for round in 0..3 {
        let mut asked = 0;
        loop {
            let chosen = fetch.choose(&tree, &aim, Giver::ONLY, usize::MAX);
            if chosen.is_empty() {
                break;
            }
            asked += chosen.len();
            chosen.iter().for_each(|hash| fetch.missed(&tree, hash, Giver::ONLY));
        }
        assert_eq!((asked, fetch.unfetched.len()), (15_000, 5000), "round {round}");
        assert!(fetch.try_again());
    }
    // Bytes that are not the block, from a folder: a few times, and then with the next try.
    let hash = tree.hash(chain[0]);
    for expected in [Some(hash), Some(hash), Some(hash), None] {
        let chosen = fetch.choose(&tree, &Aim { stop: Height::new(1), ..aim }, Giver::ONLY, 10);
        assert_eq!(chosen.first().copied(), expected);
        fetch.arrived(&hash);
        fetch.spoiled(&tree, &hash, Giver::ONLY);
    }
}

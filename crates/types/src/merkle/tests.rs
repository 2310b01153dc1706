//! Roots and branches against a plain recursive tree.

use proptest::prelude::*;

use super::*;
use crate::hash::sha256d;

fn leaves(count: usize) -> Vec<[u8; 32]> {
    (0..count as u64).map(|at| sha256d(&at.to_le_bytes())).collect()
}

/// The definition, one hash at a time.
fn plain(level: &[[u8; 32]]) -> MerkleTree {
    let mutated = level.chunks_exact(2).any(|pair| pair[0] == pair[1]);
    match level {
        [] => MerkleTree { root: MerkleRoot::ZERO, mutated: false },
        [root] => MerkleTree { root: MerkleRoot::from_bytes(*root), mutated: false },
        _ => {
            let pairs = level.chunks(2).map(|pair| [pair[0], pair[pair.len() - 1]]);
            let above: Vec<_> = pairs.map(|pair| sha256d(pair.as_flattened())).collect();
            let tree = plain(&above);
            MerkleTree { mutated: mutated || tree.mutated, ..tree }
        }
    }
}

#[test]
fn every_small_tree_and_some_large_ones() {
    let counts = (0..70).chain(250..262).chain(510..515).chain([767, 768, 769, 1023, 1025, 5000]);
    for count in counts {
        let leaves = leaves(count);
        let expected = plain(&leaves);
        assert!(!expected.mutated);
        assert_eq!(merkle_root(leaves), expected, "{count} leaves");
    }
}

#[test]
fn the_root_of_block_100000() {
    let txids = [
        "8c14f0db3df150123e6f3dbbf30f8b955a8249b62ac1d1ff16284aefa3d06d87",
        "fff2525b8931402dd09222c50775608f75787bd2b87e56995a7bdd30f79702c4",
        "6359f0868171b1d194cbee1af2f16ea598ae8fad666d9b012c8ed2b79a236ec4",
        "e9a66845e05d5abc0ad04ec80f774a7e585c6e8db975962d069a522137b80c1d",
    ];
    let leaves = txids.iter().map(|txid| txid.parse::<crate::Txid>().unwrap().to_bytes());
    let root = "f3e94742aca4b5ef85488dc37c06c3282295ffec960994b2c0d5ac2a25a95766";
    assert_eq!(merkle_root(leaves.collect()).root.to_string(), root);
}

#[test]
fn repeated_tails_are_flagged() {
    // CVE-2012-2459: repeat the last 1, 2, 4 … leaves of a tree in which they have no partner.
    for (count, tail) in [(3, 1), (6, 2), (5, 1), (12, 4), (300, 4), (1536, 512), (257, 1)] {
        let leaves = leaves(count);
        let mut repeated = leaves.clone();
        repeated.extend_from_slice(&leaves[count - tail..]);
        let tree = merkle_root(repeated);
        assert_eq!(tree.root, merkle_root(leaves).root, "{count} + {tail}");
        assert!(tree.mutated, "{count} + {tail}");
    }
}

#[test]
fn a_branch_outside_the_tree_is_refused() {
    assert_eq!(MerkleBranch::new(leaves(5), 5), None);
    let mut branch = MerkleBranch::new(leaves(5), 4).unwrap();
    assert_eq!(branch.siblings.len(), 3);
    branch.index += 8;
    assert_eq!(branch.root(leaves(5)[4]), None);
}

proptest! {
    #[test]
    fn every_branch_leads_to_the_root(count in 1_usize..40, pick: prop::sample::Index) {
        let leaves = leaves(count);
        let index = pick.index(count);
        let branch = MerkleBranch::new(leaves.clone(), index).unwrap();
        prop_assert_eq!(branch.root(leaves[index]), Some(merkle_root(leaves.clone()).root));
        prop_assert_ne!(branch.root([0; 32]), Some(merkle_root(leaves).root));
    }

    #[test]
    fn few_distinct_leaves_flag_alike(picks in prop::collection::vec(0_u8..3, 0..600)) {
        let leaves: Vec<_> = picks.iter().map(|pick| [*pick; 32]).collect();
        prop_assert_eq!(merkle_root(leaves.clone()), plain(&leaves));
    }
}

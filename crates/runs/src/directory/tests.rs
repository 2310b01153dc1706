//! Every outpoint leads to the leaf that holds it.

use proptest::prelude::*;
use varve_types::Txid;

use super::*;

/// An outpoint whose txid begins with these 8 bytes and ends with that byte.
fn outpoint(prefix: u64, end: u8, vout: u32) -> Outpoint {
    let mut txid = [0; 32];
    txid[..8].copy_from_slice(&prefix.to_be_bytes());
    txid[31] = end;
    Outpoint::new(Txid::from_bytes(txid), vout)
}

/// The directory of leaves with these keys; every tenth leaf has three spilled pages before it.
fn build(leaves: &[Vec<Outpoint>]) -> Directory {
    let mut builder = DirectoryBuilder::default();
    let mut page = 0;
    for (index, keys) in leaves.iter().enumerate() {
        page += if index % 10 == 9 { 4 } else { 1 };
        let leaf = builder.next().unwrap();
        builder.push(leaf, (keys[0], *keys.last().unwrap()), PageNumber(page));
    }
    builder.finish()
}

fn check(leaves: &[Vec<Outpoint>]) {
    let built = build(leaves);
    let decoded = Directory::decode(&built.encode(), built.counts()).unwrap();
    assert_eq!(built.encode(), decoded.encode());
    let mut page = 0;
    for (index, keys) in leaves.iter().enumerate() {
        page += if index % 10 == 9 { 4 } else { 1 };
        for key in keys {
            let leaf = decoded.locate(key).unwrap();
            assert_eq!(leaf.0 as usize, index, "{key}");
            assert_eq!(decoded.page(leaf), PageNumber(page));
        }
    }
}

fn leaves(mut keys: Vec<Outpoint>, each: usize) -> Vec<Vec<Outpoint>> {
    keys.sort_unstable();
    keys.dedup();
    keys.chunks(each).map(<[Outpoint]>::to_vec).collect()
}

proptest! {
    #[test]
    fn every_key_has_its_leaf(
        keys in prop::collection::vec((0_u64..5, 0_u8..4, 0_u32..9), 1..200),
        spread in 0_u32..62,
        each in 1_usize..9,
    ) {
        let keys = keys.into_iter();
        let keys = keys.map(|(prefix, end, vout)| outpoint(prefix << spread, end, vout));
        check(&leaves(keys.collect(), each));
    }

    #[test]
    fn hostile_sections(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (leaves, ties, jumps) in [(1, 0, 0), (3, 1, 1), (u32::MAX, u32::MAX, u32::MAX)] {
            let counts = Counts { leaves, ties, jumps };
            prop_assert!(Directory::decode(&[], counts).is_err());
            let len = usize::try_from(counts.encoded_len()).unwrap().min(bytes.len());
            if let Ok(directory) = Directory::decode(&bytes[..len], counts) {
                let leaf = directory.locate(&outpoint(1 << 60, 1, 1));
                leaf.map(|leaf| directory.page(leaf));
            }
        }
    }
}

#[test]
fn keys_between_and_outside_the_leaves() {
    let directory = build(&leaves((1..1000).map(|n| outpoint(n << 40, 0, 0)).collect(), 10));
    assert_eq!(directory.locate(&outpoint(0, 0, 0)), None);
    assert_eq!(directory.locate(&outpoint(u64::MAX, 0, 0)), Some(LeafNumber(99)));
    assert_eq!(directory.locate(&outpoint((5 << 40) + 1, 0, 0)), Some(LeafNumber(0)));
    assert_eq!(directory.locate(&outpoint((10 << 40) + 1, 0, 0)), Some(LeafNumber(0)));
    assert_eq!(directory.locate(&outpoint(11 << 40, 0, 0)), Some(LeafNumber(1)));
    assert_eq!(Directory::default().locate(&outpoint(1, 0, 0)), None);
}

#[test]
fn twenty_thousand_siblings_have_one_leaf_each() {
    let mut keys: Vec<Outpoint> = (0..20_000).map(|vout| outpoint(7 << 50, 1, vout)).collect();
    keys.extend((0..1000).map(|n| outpoint(n << 45, 0, 0)));
    check(&leaves(keys, 130));
}

/// A million outpoints that agree in their first bytes, however many, are searched by halving: the
/// steps are counted, since a clock would count the machine's other work.
#[test]
fn ground_prefixes_cost_a_logarithm() {
    let count: u32 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    for shared in [0_usize, 3, 8, 28] {
        let key = |n: u32| {
            let mut txid = [0xab; 32];
            let spread = n.wrapping_mul(0x9e37_79b1).to_be_bytes();
            txid[shared..shared + 4].copy_from_slice(&spread);
            Outpoint::new(Txid::from_bytes(txid), 0)
        };
        let leaves = leaves((0..count).map(key).collect(), 70);
        let directory = build(&leaves);
        let (low, high) = directory.bounds(&key(1));
        let steps = (high - low).max(1).ilog2();
        assert!(steps <= leaves.len().ilog2(), "at most one search over all leaves");
        assert_eq!(directory.counts().ties > 0, shared >= 8, "ties only where prefixes are equal");
        check(&leaves);
    }
}

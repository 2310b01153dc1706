//! Every key leads to the leaf, or the leaves, that hold it.

use proptest::prelude::*;

use super::*;
use crate::fixture::Tiny;

/// Keys of 36 bytes, in the order of their bytes.
#[derive(Debug)]
enum Wide {}

type WideKey = [u8; 36];

impl Keys for Wide {
    type Key = WideKey;
    const KEY_LEN: usize = 36;
    const IS_PREFIX: bool = false;

    fn prefix(key: &WideKey) -> u64 {
        u64::from_be_bytes(*key.first_chunk().unwrap())
    }

    fn encode_key(key: &WideKey, out: &mut Vec<u8>) {
        out.extend_from_slice(key);
    }

    fn decode_key(bytes: &[u8]) -> Option<WideKey> {
        bytes.try_into().ok()
    }
}

/// A key that begins with these 8 bytes and ends with those.
fn wide(prefix: u64, end: u8, last: u32) -> WideKey {
    let mut key = [0; 36];
    key[..8].copy_from_slice(&prefix.to_be_bytes());
    key[31] = end;
    key[32..].copy_from_slice(&last.to_be_bytes());
    key
}

fn locate<K: Keys>(directory: &Directory<K>, key: &K::Key) -> Option<LeafNumber> {
    directory.leaf(key, directory.bounds(key))
}

/// The directory of leaves with these keys; every tenth leaf has three spilled pages before it.
fn build<K: Keys>(leaves: &[Vec<K::Key>]) -> Directory<K> {
    let mut builder = DirectoryBuilder::default();
    let mut page = 0;
    for (index, keys) in leaves.iter().enumerate() {
        page += if index % 10 == 9 { 4 } else { 1 };
        let leaf = builder.next().unwrap();
        builder.push(leaf, keys[0], *keys.last().unwrap(), PageNumber(page));
    }
    builder.finish()
}

fn check(leaves: &[Vec<WideKey>]) {
    let built = build::<Wide>(leaves);
    let decoded = Directory::<Wide>::decode(&built.encode(), built.counts()).unwrap();
    assert_eq!(built.encode(), decoded.encode());
    let mut page = 0;
    for (index, keys) in leaves.iter().enumerate() {
        page += if index % 10 == 9 { 4 } else { 1 };
        for key in keys {
            let leaf = locate(&decoded, key).unwrap();
            assert_eq!(leaf.0 as usize, index, "{key:?}");
            assert_eq!(decoded.page(leaf), PageNumber(page));
        }
    }
}

fn leaves<T: Copy + Ord>(mut keys: Vec<T>, each: usize) -> Vec<Vec<T>> {
    keys.sort_unstable();
    keys.dedup();
    keys.chunks(each).map(<[T]>::to_vec).collect()
}

proptest! {
    #[test]
    fn every_key_has_its_leaf(
        keys in prop::collection::vec((0_u64..5, 0_u8..4, 0_u32..9), 1..200),
        spread in 0_u32..62,
        each in 1_usize..9,
    ) {
        let keys = keys.into_iter();
        let keys = keys.map(|(prefix, end, last)| wide(prefix << spread, end, last));
        check(&leaves(keys.collect(), each));
    }

    #[test]
    fn hostile_sections(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (leaves, ties, jumps) in [(1, 0, 0), (3, 1, 1), (u32::MAX, u32::MAX, u32::MAX)] {
            let counts = Counts { leaves, ties, jumps };
            prop_assert!(Directory::<Wide>::decode(&[], counts).is_err());
            let len = usize::try_from(counts.encoded_len(Wide::KEY_LEN)).unwrap().min(bytes.len());
            if let Ok(directory) = Directory::<Wide>::decode(&bytes[..len], counts) {
                let leaf = locate(&directory, &wide(1 << 60, 1, 1));
                leaf.map(|leaf| directory.page(leaf));
            }
        }
    }
}

#[test]
fn keys_between_and_outside_the_leaves() {
    let keys = (1..1000).map(|n| wide(n << 40, 0, 0)).collect();
    let directory = build::<Wide>(&leaves(keys, 10));
    assert_eq!(locate(&directory, &wide(0, 0, 0)), None);
    assert_eq!(locate(&directory, &wide(u64::MAX, 0, 0)), Some(LeafNumber(99)));
    assert_eq!(locate(&directory, &wide((5 << 40) + 1, 0, 0)), Some(LeafNumber(0)));
    assert_eq!(locate(&directory, &wide((10 << 40) + 1, 0, 0)), Some(LeafNumber(0)));
    assert_eq!(locate(&directory, &wide(11 << 40, 0, 0)), Some(LeafNumber(1)));
    assert_eq!(locate(&build::<Wide>(&[]), &wide(1, 0, 0)), None);
}

#[test]
fn twenty_thousand_siblings_have_one_leaf_each() {
    let mut keys: Vec<WideKey> = (0..20_000).map(|last| wide(7 << 50, 1, last)).collect();
    keys.extend((0..1000).map(|n| wide(n << 45, 0, 0)));
    check(&leaves(keys, 130));
}

/// A million keys with equal first bytes are searched by halving. Steps are counted, because a
/// clock would also measure other work of the machine.
#[test]
fn ground_prefixes_cost_a_logarithm() {
    let count: u32 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    for shared in [0_usize, 3, 8, 28] {
        let key = |n: u32| {
            let mut key = [0xab; 36];
            let spread = n.wrapping_mul(0x9e37_79b1).to_be_bytes();
            key[shared..shared + 4].copy_from_slice(&spread);
            key
        };
        let leaves = leaves((0..count).map(key).collect(), 70);
        let directory = build::<Wide>(&leaves);
        let (low, high) = directory.bounds(&key(1));
        let steps = (high - low).max(1).ilog2();
        assert!(steps <= leaves.len().ilog2(), "at most one search over all leaves");
        assert_eq!(directory.counts().ties > 0, shared >= 8, "ties only where prefixes are equal");
        check(&leaves);
    }
}

/// Every leaf that has rows of a key is in its range, which is no longer than it must be.
#[test]
fn keys_that_repeat_have_a_range_of_leaves() {
    let leaves: &[Vec<u64>] = &[
        vec![3, 5, 5],
        vec![5, 5, 5],
        vec![5, 5, 5],
        vec![5, 6, 7],
        vec![8, 8, u64::MAX],
        vec![u64::MAX; 3],
    ];
    let built = build::<Tiny>(leaves);
    assert_eq!(built.counts().ties, 0, "the prefix is the whole key");
    let directory = Directory::<Tiny>::decode(&built.encode(), built.counts()).unwrap();
    let range = |key: u64| locate(&directory, &key).map(|last| directory.leaves(&key, last));
    assert_eq!(range(2), None, "below all");
    assert_eq!(range(3), Some(0..1), "there is none before the first");
    assert_eq!((range(4), range(5)), (Some(0..1), Some(0..4)));
    assert_eq!((range(6), range(7)), (Some(3..4), Some(3..4)));
    assert_eq!(range(8), Some(3..5), "an 8 could be the end of the leaf before");
    assert_eq!(range(u64::MAX), Some(4..6));
    assert_eq!(directory.memory(), 6 * 8 + 3 * 4, "8 bytes a leaf, and the radix table");
}

//! Core's published vectors, and the laws of a set.

use proptest::prelude::*;

use super::*;

/// The element that Core's tests call `FromInt`: a byte and 31 zeros.
fn element(first: u8) -> [u8; 32] {
    let mut element = [0; 32];
    element[0] = first;
    element
}

fn shown(set: &MuHash) -> String {
    crate::hash::BlockHash::from_bytes(set.finalize()).to_string()
}

#[test]
fn vectors_of_core() {
    // src/test/crypto_tests.cpp and test/functional/test_framework/crypto/muhash.py
    let mut set = MuHash::new();
    set.insert(&element(0));
    set.insert(&element(1));
    set.remove(&element(2));
    let expected = "10d312b100cbd32ada024a6646e40d3482fcff103668d2625f10002a607d5863";
    assert_eq!(shown(&set), expected);
    let empty = "dd5ad2a105c2d29495f577245c357409002329b9f4d6182c0af3dc2f462555c8";
    assert_eq!(shown(&MuHash::new()), empty);
}

#[test]
fn a_state_above_the_prime_is_reduced() {
    // Core: "overflow, meaning the internal data is larger than the modulus".
    let mut state = [0xff; MuHash::LEN];
    state[BYTES..].fill(0);
    state[BYTES] = 1;
    let set = MuHash::from_bytes(&state);
    let expected = "3a31e6903aff0de9f62f9a9f7f8b861de76ce2cda09822b90014319ae5dc2271";
    let hash: String = set.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, expected);
}

#[test]
fn extreme_numbers_multiply_rightly() {
    // −1 · −1 = 1, with −1 as the prime minus one and as its unreduced twin 2^3072 − 1 + …
    let mut minus_one = [0xff; BYTES];
    minus_one[..8].copy_from_slice(&(u64::MAX - 1_103_717).to_le_bytes());
    let mut number = Num3072::from_bytes(&minus_one);
    number.multiply(&number.clone());
    assert_eq!(number.to_bytes(), Num3072::ONE.to_bytes());
    // (2^3072 − 1)² ≡ (1103717 − 1)².
    let mut number = Num3072::from_bytes(&[0xff; BYTES]);
    number.multiply(&number.clone());
    let mut expected = [0; BYTES];
    expected[..8].copy_from_slice(&(1_103_716_u64 * 1_103_716).to_le_bytes());
    assert_eq!(number.to_bytes(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn order_and_grouping_do_not_matter(
        elements in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..12),
        split: prop::sample::Index,
    ) {
        let mut all = MuHash::new();
        elements.iter().for_each(|element| all.insert(element));
        let (first, second) = elements.split_at(split.index(elements.len()));
        let (mut parts, mut others) = (MuHash::new(), MuHash::new());
        second.iter().rev().for_each(|element| parts.insert(element));
        first.iter().for_each(|element| others.insert(element));
        parts.combine(&others);
        prop_assert_eq!(parts.finalize(), all.finalize());
        prop_assert_eq!(MuHash::from_bytes(&all.to_bytes()).finalize(), all.finalize());

        elements.iter().for_each(|element| all.remove(element));
        prop_assert_eq!(all.finalize(), MuHash::new().finalize());
        all.insert(b"one more");
        prop_assert_ne!(all.finalize(), MuHash::new().finalize());
    }

    #[test]
    fn inverse_is_an_inverse(bytes in prop::collection::vec(any::<u8>(), BYTES)) {
        let number = Num3072::from_bytes(bytes.as_slice().try_into().unwrap());
        let mut product = number.inverse();
        product.multiply(&number);
        prop_assert_eq!(product.to_bytes(), Num3072::ONE.to_bytes());
    }
}

//! A keyed hash of a 32-byte id and a number: where tables and filters place a key.
//!
//! Txids can be chosen: an adversary can create transactions until many txids share their first
//! bytes, and an output index is free to choose. So a store never places anything by plain bytes of
//! the key. The hash of the five words w₀ … w₄ of a key (four of the id, then the number) is
//!
//! ```text
//! sum  = a + k₀·w₀ + … + k₄·w₄      modulo 2^128, a and kᵢ secret numbers of 128 bits
//! hash = mix64(the upper 64 bits of sum)
//! ```
//!
//! - The upper half of such a sum is *strongly universal*: for any two different keys, chosen
//!   without knowledge of the secret, the two hashes are independent and uniform over the choice of
//!   the secret (Lemire and Kaser, "Strongly universal string hashing is fast"). So two chosen keys
//!   collide as often as two random ones, whatever they have in common.
//! - [`mix64`] is a bijection of 64 bits, so it preserves this. It breaks up arithmetic
//!   progressions, which the outputs 0, 1, 2, … of one transaction would otherwise be, and on which
//!   linear probing degrades.
//!
//! Ten multiplications, a few nanoseconds, and independent of one another from key to key. Stored
//! structures are built from these hashes, so the function is part of their formats.

use crate::hash::sha256d;

/// Hashes keys under the secret of one store.
#[derive(Clone)]
pub struct KeyedHasher {
    factors: [u128; 5],
    addend: u128,
}

impl KeyedHasher {
    /// The hasher of a store that drew `secret` when it was created. Hashers of different `domain`s
    /// are independent, so two kinds of keys may share one secret.
    #[must_use]
    pub fn new(domain: &[u8], secret: &[u8; 16]) -> Self {
        let number = |index: u8| {
            let digest = sha256d(&[domain, &secret[..], &[index]].concat());
            u128::from_le_bytes(*digest.first_chunk().expect("a digest has 32 bytes"))
        };
        Self { factors: [0, 1, 2, 3, 4].map(number), addend: number(5) }
    }

    /// The hash of a key.
    #[must_use]
    #[inline]
    pub fn hash(&self, id: &[u8; 32], number: u32) -> u64 {
        let [k0, k1, k2, k3, k4] = &self.factors;
        let (words, _) = id.as_chunks::<8>();
        let mut sum = self.addend.wrapping_add(k4.wrapping_mul(u128::from(number)));
        for (word, factor) in words.iter().zip([k0, k1, k2, k3]) {
            sum = sum.wrapping_add(factor.wrapping_mul(u128::from(u64::from_le_bytes(*word))));
        }
        mix64(upper_half(sum))
    }
}

impl std::fmt::Debug for KeyedHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedHasher(secret)")
    }
}

#[inline]
const fn upper_half(sum: u128) -> u64 {
    (sum >> 64) as u64
}

/// The finaliser of `MurmurHash3`: a bijection in which every input bit changes half of the output.
#[must_use]
#[inline]
pub const fn mix64(mut word: u64) -> u64 {
    word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_key_secret_and_domain_counts() {
        let hasher = KeyedHasher::new(b"a", &[1; 16]);
        let hash = hasher.hash(&[7; 32], 1);
        assert_eq!(hash, KeyedHasher::new(b"a", &[1; 16]).hash(&[7; 32], 1), "it is a function");
        assert_ne!(hash, KeyedHasher::new(b"a", &[2; 16]).hash(&[7; 32], 1));
        assert_ne!(hash, KeyedHasher::new(b"b", &[1; 16]).hash(&[7; 32], 1));
        assert_ne!(hash, hasher.hash(&[7; 32], 2));
        for byte in 0..32 {
            let mut id = [7; 32];
            id[byte] = 8;
            assert_ne!(hash, hasher.hash(&id, 1));
        }
    }

    /// Files on disk are built from it: these are the values of the two stores that use it.
    #[test]
    fn the_hash_never_changes() {
        let hash = |domain: &[u8]| KeyedHasher::new(domain, &[1; 16]).hash(&[7; 32], 1);
        assert_eq!(hash(b"varve/outpoint-hasher/"), 0x6b71_0da6_e901_f5f9);
        assert_eq!(hash(b"varve/records-hasher/"), 13_914_636_708_969_611_464);
    }
}

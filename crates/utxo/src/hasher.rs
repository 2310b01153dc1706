//! Where an outpoint goes: a keyed hash that nobody outside can steer.
//!
//! Txids can be ground: whoever makes transactions may try until many txids share their first
//! bytes, and the `vout` is free to choose. So nothing is placed by bytes of the key itself. The
//! hash of the five words w₀ … w₄ of an outpoint (four of the txid, then `vout`) is
//!
//! ```text
//! sum  = a + k₀·w₀ + … + k₄·w₄      modulo 2^128, a and kᵢ secret numbers of 128 bits
//! hash = mix(the upper 64 bits of sum)
//! ```
//!
//! - The upper half of such a sum is *strongly universal*: for any two different outpoints, chosen
//!   without knowledge of the secret, the two hashes are independent and uniform over the choice of
//!   the secret (Lemire and Kaser, "Strongly universal string hashing is fast"). So two ground keys
//!   collide as often as two random ones, whatever they have in common.
//! - `mix` is a bijection of 64 bits, so it takes none of that away. It breaks up arithmetic
//!   progressions, which the outputs 0, 1, 2, … of one transaction would be without it, and which
//!   linear probing does not like.
//!
//! One hash serves the tables of the window and the filters and tags of the runs. Answers never
//! depend on it, only their cost: entries hold the whole outpoint. The feature `weak-hash` leaves
//! runs one byte of it, so that the tests prove it.
//!
//! Ten multiplications, a few ns, and independent of one another from key to key.

#![expect(clippy::cast_possible_truncation, reason = "halves and low bits are what is wanted")]

use varve_types::{Outpoint, sha256d};

/// What runs get of a hash: everything, or one byte in the tests' weak build.
const KEPT: u64 = if cfg!(feature = "weak-hash") { 0xff } else { u64::MAX };

/// Hashes outpoints under the secret of one store.
#[derive(Clone)]
pub struct OutpointHasher {
    factors: [u128; 5],
    addend: u128,
}

impl OutpointHasher {
    /// The hasher of a store that drew these bytes when it was made.
    #[must_use]
    pub fn new(secret: &[u8; 16]) -> Self {
        let number = |index: u8| {
            let digest = sha256d(&[b"varve/outpoint-hasher/", &secret[..], &[index]].concat());
            u128::from_le_bytes(*digest.first_chunk().expect("a digest has 32 bytes"))
        };
        Self { factors: [0, 1, 2, 3, 4].map(number), addend: number(5) }
    }

    /// Gives every outpoint the same hash: what must still work, only slowly.
    #[cfg(all(test, not(loom)))]
    pub(crate) const fn constant() -> Self {
        Self { factors: [0; 5], addend: 0 }
    }

    /// The hash of an outpoint.
    #[must_use]
    #[inline]
    pub(crate) fn hash(&self, outpoint: &Outpoint) -> OutpointHash {
        let [k0, k1, k2, k3, k4] = &self.factors;
        let (words, _) = outpoint.txid.as_bytes().as_chunks::<8>();
        let mut sum = self.addend.wrapping_add(k4.wrapping_mul(u128::from(outpoint.vout)));
        for (word, factor) in words.iter().zip([k0, k1, k2, k3]) {
            sum = sum.wrapping_add(factor.wrapping_mul(u128::from(u64::from_le_bytes(*word))));
        }
        OutpointHash(mix(upper_half(sum)))
    }
}

impl std::fmt::Debug for OutpointHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OutpointHasher(secret)")
    }
}

/// The hash of an outpoint. Its lowest bits choose the shard, its highest the place in the shard's
/// table, and bits between them are the tag there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutpointHash(u64);

impl OutpointHash {
    /// All bits, for the filters and tags of runs.
    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0 & KEPT
    }

    /// One of `count` shards, a power of two of at most 2^16.
    #[inline]
    pub(crate) fn shard(self, count: usize) -> usize {
        self.0 as usize & (count - 1)
    }

    /// One of `len` places, spread evenly whatever `len` is.
    #[inline]
    pub(crate) fn place(self, len: usize) -> usize {
        upper_half(u128::from(self.0) * len as u128) as usize
    }

    /// 24 bits that are independent of the shard, and of the place in tables of up to 2^24 slots.
    #[inline]
    pub(crate) const fn tag(self) -> u64 {
        (self.0 >> 16) & 0xff_ffff
    }
}

#[inline]
const fn upper_half(product: u128) -> u64 {
    (product >> 64) as u64
}

/// The finaliser of `MurmurHash3`: every bit of the input changes half of the output.
#[inline]
const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use varve_types::Txid;

    use super::*;

    #[test]
    fn every_part_of_the_outpoint_and_of_the_secret_counts() {
        let outpoint = Outpoint::new(Txid::from_bytes([7; 32]), 1);
        let hasher = OutpointHasher::new(&[1; 16]);
        let hash = hasher.hash(&outpoint);
        assert_eq!(hash, OutpointHasher::new(&[1; 16]).hash(&outpoint), "it is a function");
        assert_ne!(hash, OutpointHasher::new(&[2; 16]).hash(&outpoint));
        assert_ne!(hash, hasher.hash(&Outpoint { vout: 2, ..outpoint }));
        for byte in 0..32 {
            let mut txid = [7; 32];
            txid[byte] = 8;
            assert_ne!(hash, hasher.hash(&Outpoint::new(Txid::from_bytes(txid), 1)));
        }
    }

    /// The hash is part of the format: filters and tags on disk are made of it.
    #[test]
    fn the_hash_never_changes() {
        let outpoint = Outpoint::new(Txid::from_bytes([7; 32]), 1);
        assert_eq!(
            OutpointHasher::new(&[1; 16]).hash(&outpoint),
            OutpointHash(0x6b71_0da6_e901_f5f9)
        );
    }
}

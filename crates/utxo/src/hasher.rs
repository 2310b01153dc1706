//! Where an outpoint goes: a hash under the store's secret.
//!
//! One [`KeyedHasher`] serves the tables of the window and the filters and tags of the runs, so
//! chosen txids gain an adversary nothing. Only the cost of an answer depends on the hash, never
//! the answer: entries hold the whole outpoint. The feature `weak-hash` reduces the hash in runs to
//! one byte, so that the tests prove it.

#![expect(clippy::cast_possible_truncation, reason = "halves and low bits are what is wanted")]

use varve_types::{KeyedHasher, Outpoint};

/// Separates these hashes from those of other stores. Part of the format.
const DOMAIN: &[u8] = b"varve/outpoint-hasher/";
/// The bits of a hash that runs get: all of them, or one byte in the tests' weak build.
const KEPT: u64 = if cfg!(feature = "weak-hash") { 0xff } else { u64::MAX };

/// Hashes outpoints under the secret of one store.
#[derive(Clone, Debug)]
pub struct OutpointHasher {
    keyed: KeyedHasher,
    #[cfg(test)]
    is_constant: bool,
}

impl OutpointHasher {
    /// The hasher of a store that drew these bytes when it was created.
    #[must_use]
    pub fn new(secret: &[u8; 16]) -> Self {
        Self {
            keyed: KeyedHasher::new(DOMAIN, secret),
            #[cfg(test)]
            is_constant: false,
        }
    }

    /// Gives every outpoint the same hash: everything must still work, only slowly.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn constant() -> Self {
        Self { is_constant: true, ..Self::new(&[0; 16]) }
    }

    /// The hash of an outpoint.
    #[must_use]
    #[inline]
    pub(crate) fn hash(&self, outpoint: &Outpoint) -> OutpointHash {
        #[cfg(test)]
        if self.is_constant {
            return OutpointHash(0);
        }
        OutpointHash(self.keyed.hash(outpoint.txid.as_bytes(), outpoint.vout))
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
        ((u128::from(self.0) * len as u128) >> 64) as usize
    }

    /// 24 bits that are independent of the shard, and of the place in tables of up to 2^24 slots.
    #[inline]
    pub(crate) const fn tag(self) -> u64 {
        (self.0 >> 16) & 0xff_ffff
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use varve_types::Txid;

    use super::*;

    /// The hash is part of the format: filters and tags on disk are built from it.
    #[test]
    fn the_hash_never_changes() {
        let outpoint = Outpoint::new(Txid::from_bytes([7; 32]), 1);
        assert_eq!(
            OutpointHasher::new(&[1; 16]).hash(&outpoint),
            OutpointHash(0x6b71_0da6_e901_f5f9)
        );
    }
}

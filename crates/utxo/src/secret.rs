//! The store's secret, and the keyed hash of an outpoint.
//!
//! Whoever makes transactions chooses their txids by trying, and would choose those that fall into
//! one place of a table or pass one filter. So nothing here places an outpoint by its own bytes: tables,
//! filters and tags take SipHash-1-3 of its 36 bytes under 16 random bytes that every store
//! draws for itself and nobody outside knows.
//!
//! A hash stands for an outpoint only to find it quickly; the stored outpoint decides. The feature
//! `weak-hash` cuts hashes to one byte, so that the tests prove it.

use std::fmt;

use siphasher::sip::SipHasher13;
use varve_types::Outpoint;

/// What a hash keeps: everything, or one byte in the tests' weak build.
const KEPT: u64 = if cfg!(feature = "weak-hash") { 0xff } else { u64::MAX };

/// 16 random bytes of one store, and the hash under them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; Secret::LEN]);

impl Secret {
    /// The length in bytes.
    pub const LEN: usize = 16;

    /// The secret with these bytes, which the caller drew at random.
    #[must_use]
    pub const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes, for the manifest.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        self.0
    }

    /// The keyed hash of an outpoint.
    #[must_use]
    #[inline]
    pub fn hash(&self, outpoint: &Outpoint) -> u64 {
        SipHasher13::new_with_key(&self.0).hash(&outpoint.to_bytes()) & KEPT
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use varve_types::Txid;

    use super::*;

    #[test]
    fn every_part_of_the_outpoint_and_of_the_secret_counts() {
        let outpoint = Outpoint::new(Txid::from_bytes([7; 32]), 1);
        let hash = Secret::new([1; 16]).hash(&outpoint);
        assert_eq!(hash, Secret::new([1; 16]).hash(&outpoint), "it is a function");
        if cfg!(not(feature = "weak-hash")) {
            assert_ne!(hash, Secret::new([2; 16]).hash(&outpoint));
            assert_ne!(hash, Secret::new([1; 16]).hash(&Outpoint { vout: 2, ..outpoint }));
            let mut txid = [7; 32];
            txid[31] = 8;
            let other = Outpoint::new(Txid::from_bytes(txid), 1);
            assert_ne!(hash, Secret::new([1; 16]).hash(&other));
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret::new([0x5e; 16])), "Secret(..)");
    }
}

//! Where a key goes: a keyed hash that an attacker cannot steer.
//!
//! An attacker can grind transactions until their hashes fall into one bucket. So keys are placed
//! by SipHash-1-3 under 16 random bytes, drawn for each store. A hash only finds a row quickly; the
//! stored bytes decide. The feature `weak-hash` truncates hashes to one byte, so that the tests
//! prove it.
//!
//! ```text
//!  63 …                              … 40       0
//!  ┌───────────────────────┬───────────┬────────┐
//!  │ bucket: hash·n / 2^64 │           │ filter │      filter bits: bytes 0 to 4
//!  └───────────────────────┴───────────┴────────┘
//! ```
//!
//! The hasher is a type parameter of the tables, so that a test can use a poor one with known
//! buckets.

use std::fmt;

use siphasher::sip::SipHasher13;

/// Hashes keys to 64 bits: the high ones choose the bucket, the low ones the filter bits.
pub trait KeyHasher: Send + Sync {
    /// The hash of a key.
    fn hash(&self, key: &[u8]) -> u64;
}

/// The hasher of a store: `SipHash` under the store's secret.
#[derive(Clone, Copy)]
pub struct Keyed([u8; Keyed::LEN]);

impl Keyed {
    /// The length of the secret in bytes.
    pub const LEN: usize = 16;

    /// The hasher with this secret, which the caller drew at random when the store was made.
    #[must_use]
    pub const fn new(secret: [u8; Self::LEN]) -> Self {
        Self(secret)
    }
}

impl KeyHasher for Keyed {
    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        let hash = SipHasher13::new_with_key(&self.0).hash(key);
        if cfg!(feature = "weak-hash") { (hash & 0xff) * 0x0101_0101_0101_0101 } else { hash }
    }
}

impl fmt::Debug for Keyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyed(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_the_key_and_of_the_secret_counts() {
        let hash = Keyed::new([1; 16]).hash(&[7; 36]);
        assert_eq!(hash, Keyed::new([1; 16]).hash(&[7; 36]), "it is a function");
        if cfg!(feature = "weak-hash") {
            assert_eq!(hash, (hash & 0xff) * 0x0101_0101_0101_0101);
            return;
        }
        assert_ne!(hash, Keyed::new([2; 16]).hash(&[7; 36]));
        for byte in 0..36 {
            let mut key = [7; 36];
            key[byte] ^= 1;
            assert_ne!(hash, Keyed::new([1; 16]).hash(&key));
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Keyed::new([0x5e; 16])), "Keyed(..)");
    }
}

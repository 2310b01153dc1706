//! Which script, and which output, a row is about: keyed hashes in place of the hashes themselves.
//!
//! ```text
//!  79                     40 39                      0
//!  ┌────────────────────────┬────────────────────────┐
//!  │ fingerprint, 40 bits   │ check, 40 bits         │     identity of a script
//!  └────────────────────────┴────────────────────────┘
//! ```
//!
//! Both halves come from one 128-bit SipHash-1-3 of the script hash under the store's secret, so
//! nobody outside can search for scripts that share an identity. Among the 1.3 billion scripts of
//! mainnet any two do with probability 7 · 10⁻⁷. The fingerprint alone places a group among
//! others; the feature `weak-hash` cuts it to one byte, and the check still tells scripts apart.
//!
//! An output is named by the exact height of its block and 64 keyed bits of its outpoint.

use std::fmt;

use siphasher::{sip, sip128};
use varve_runs::StoreKey;
use varve_types::Outpoint;

use varve_types::ScriptHash;

/// Bits of the fingerprint, and of the check.
pub(super) const HALF_BITS: u32 = 40;
/// Bits of an identity.
pub(super) const IDENTITY_BITS: u32 = 2 * HALF_BITS;

/// 80 keyed bits that stand for a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity(u128);

impl Identity {
    pub(super) const MAX: Self = Self((1 << IDENTITY_BITS) - 1);

    /// The identity with this fingerprint and check, of [`HALF_BITS`] each.
    #[inline]
    pub(super) fn new(fingerprint: u64, check: u64) -> Self {
        debug_assert!(fingerprint >> HALF_BITS == 0 && check >> HALF_BITS == 0, "40 bits each");
        Self(u128::from(fingerprint) << HALF_BITS | u128::from(check))
    }

    /// `None` when there are more than 80 bits.
    pub(super) fn from_bits(bits: u128) -> Option<Self> {
        (bits <= Self::MAX.0).then_some(Self(bits))
    }

    #[inline]
    pub(super) const fn bits(self) -> u128 {
        self.0
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "40 bits")]
    pub(super) const fn fingerprint(self) -> u64 {
        (self.0 >> HALF_BITS) as u64
    }

    #[inline]
    pub(super) const fn check(self) -> u64 {
        (self.0 & ((1 << HALF_BITS) - 1)) as u64
    }

    /// The top 64 bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "64 bits")]
    pub(super) const fn prefix(self) -> u64 {
        (self.0 >> (IDENTITY_BITS - u64::BITS)) as u64
    }
}

/// The keyed hashes of one history table.
#[derive(Clone, Copy)]
pub struct HistoryKeys {
    store: StoreKey,
    /// Fingerprints of one byte, to prove that the check decides.
    one_byte: bool,
}

impl HistoryKeys {
    /// The hashes of the store with this key, drawn at random when it was made.
    #[must_use]
    pub const fn new(store: StoreKey) -> Self {
        Self { store, one_byte: cfg!(feature = "weak-hash") }
    }

    /// The same with fingerprints of one byte, as under the feature `weak-hash`.
    #[cfg(feature = "test-suite")]
    #[must_use]
    pub const fn one_byte(store: StoreKey) -> Self {
        Self { store, one_byte: true }
    }

    pub(super) const fn store(&self) -> StoreKey {
        self.store
    }

    #[inline]
    pub(super) fn identity(&self, script: &ScriptHash) -> Identity {
        let hasher = sip128::SipHasher13::new_with_key(&self.store.secret.to_bytes());
        let (high, low) = hasher.hash(script.as_bytes()).as_u64();
        let fingerprint = high >> (u64::BITS - HALF_BITS);
        let weak = (high & 0xff) * 0x01_0101_0101;
        let fingerprint = if self.one_byte { weak } else { fingerprint };
        Identity::new(fingerprint, low >> (u64::BITS - HALF_BITS))
    }

    #[inline]
    pub(super) fn output(&self, outpoint: &Outpoint) -> u64 {
        let hasher = sip::SipHasher13::new_with_key(&self.store.secret.to_bytes());
        hasher.hash(&outpoint.to_bytes())
    }
}

impl fmt::Debug for HistoryKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HistoryKeys(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_io::StoreId;
    use varve_runs::Secret;

    fn keys(secret: u8) -> HistoryKeys {
        HistoryKeys::new(StoreKey { id: StoreId([1; 16]), secret: Secret::new([secret; 16]) })
    }

    #[test]
    fn an_identity_depends_on_script_and_secret_and_has_two_independent_halves() {
        let script = |byte| ScriptHash::from_bytes([byte; 32]);
        let identity = keys(1).identity(&script(7));
        assert_eq!(identity, keys(1).identity(&script(7)));
        assert_ne!(identity.check(), keys(2).identity(&script(7)).check());
        assert_ne!(identity.check(), keys(1).identity(&script(8)).check());
        assert_eq!(identity, Identity::new(identity.fingerprint(), identity.check()));
        let prefix = u128::from(identity.prefix()) << 16;
        assert_eq!(identity.bits() >> 16 << 16, prefix);
        assert_eq!(Identity::from_bits(1 << 80), None);
    }

    #[test]
    fn one_byte_fingerprints_keep_the_check() {
        let strong = keys(1);
        let weak = HistoryKeys { one_byte: true, ..strong };
        for byte in 0..20 {
            let (a, b) = (
                weak.identity(&ScriptHash::from_bytes([byte; 32])),
                strong.identity(&ScriptHash::from_bytes([byte; 32])),
            );
            assert_eq!(a.fingerprint() % 0x01_0101_0101, 0);
            assert_eq!(a.check(), b.check());
        }
    }
}

//! MuHash3072: a hash of a set that can be updated.
//!
//! Each element becomes a number modulo the prime 2^3072 − 1103717, and the hash of a set is the
//! product of its elements. Order does not matter, adding is a multiplication and removing a
//! division. Since a division costs a thousand multiplications, removed elements are multiplied
//! into a denominator and the one division is left to [`MuHash::finalize`].
//!
//! ```text
//! element ─► SHA-256 ─► key of ChaCha20 (nonce 0, counter 0) ─► 384 bytes, a number, little-endian
//!
//! state   │ numerator 384 │ denominator 384 │   little-endian, as Core serialises it
//! hash    SHA-256 of the 384 bytes of numerator / denominator
//! ```

mod num3072;
mod product;

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit as _, StreamCipher as _};

use num3072::{BYTES, Num3072};

/// The hash of a set of byte strings, to which elements can be added and from which they can be
/// removed.
///
/// ```
/// use varve_types::muhash::MuHash;
///
/// let mut set = MuHash::new();
/// set.insert(b"a");
/// set.insert(b"b");
/// set.remove(b"a");
/// let mut other = MuHash::new();
/// other.insert(b"b");
/// assert_eq!(set.finalize(), other.finalize());
/// ```
#[derive(Clone, Debug)]
pub struct MuHash {
    numerator: Num3072,
    denominator: Num3072,
}

impl MuHash {
    /// The length of the serialised state.
    pub const LEN: usize = 2 * BYTES;

    /// The hash of the empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { numerator: Num3072::ONE, denominator: Num3072::ONE }
    }

    /// Adds an element.
    pub fn insert(&mut self, element: &[u8]) {
        self.numerator.multiply(&number(element));
    }

    /// Removes an element.
    pub fn remove(&mut self, element: &[u8]) {
        self.denominator.multiply(&number(element));
    }

    /// Adds and removes all that `other` has added and removed: combines sets that were hashed
    /// separately, for instance in threads.
    pub fn combine(&mut self, other: &Self) {
        self.numerator.multiply(&other.numerator);
        self.denominator.multiply(&other.denominator);
    }

    /// The hash, in internal byte order: Core shows it reversed, as it does every hash.
    #[must_use]
    pub fn finalize(&self) -> [u8; 32] {
        let mut quotient = self.denominator.inverse();
        quotient.multiply(&self.numerator);
        varve_sha256::digest(&quotient.to_bytes())
    }

    /// The state: numerator, then denominator.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (numerator, denominator) = bytes.split_at_mut(BYTES);
        numerator.copy_from_slice(&self.numerator.to_bytes());
        denominator.copy_from_slice(&self.denominator.to_bytes());
        bytes
    }

    /// The state from its bytes. Every value is allowed; a number above the prime is reduced.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let (numerator, denominator) = bytes.split_first_chunk().expect("768 bytes hold 384");
        let denominator = denominator.first_chunk().expect("and another 384");
        Self {
            numerator: Num3072::from_bytes(numerator),
            denominator: Num3072::from_bytes(denominator),
        }
    }
}

impl Default for MuHash {
    fn default() -> Self {
        Self::new()
    }
}

/// The number that stands for an element.
fn number(element: &[u8]) -> Num3072 {
    let key = varve_sha256::digest(element);
    let mut keystream = [0; BYTES];
    ChaCha20::new(&key.into(), &[0; 12].into()).apply_keystream(&mut keystream);
    Num3072::from_bytes(&keystream)
}

#[cfg(test)]
mod tests;

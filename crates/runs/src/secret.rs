//! The store's secret.
//!
//! An adversary can choose keys, for instance many that share one place of a table or pass one
//! filter. So nothing here places a key by its plain bytes: filters and tables take its [keyed
//! hash](crate::Codec::hash) under 16 random bytes that each store draws and keeps secret.

use std::fmt;

/// 16 random bytes of one store.
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
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret::new([0x5e; 16])), "Secret(..)");
    }
}

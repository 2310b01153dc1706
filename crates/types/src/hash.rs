//! Hashes of transactions and blocks, each with a type of its own.
//!
//! A hash is 32 bytes in the order in which SHA-256 gives them (the *internal* order). This is the
//! order on disk, on the wire and of `Ord`. People write the same bytes reversed, in hex: that is
//! what `Display` and `FromStr` do, and nothing else.
//!
//! ```text
//! internal   6f e2 8c 0a b6 f1 b3 72 … 00 00 00 00
//! shown      000000 … 72b3f1b60a8ce26f
//! ```

use std::fmt;
use std::str::FromStr;

use hex_conservative::FromHex as _;

/// Double SHA-256 of one message: the hash behind every identifier here.
#[must_use]
pub fn sha256d(message: &[u8]) -> [u8; 32] {
    varve_sha256::double(message)
}

/// A text that is not a hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a hash: expected 64 hex digits")]
pub struct ParseHashError {
    text: String,
}

macro_rules! hash_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name([u8; 32]);

        impl $name {
            /// All bytes zero: what stands where there is no hash.
            pub const ZERO: Self = Self([0; 32]);

            /// The hash with these bytes, in internal order.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The bytes in internal order.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// The bytes in internal order.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 32] {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().rev().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = ParseHashError;

            fn from_str(text: &str) -> Result<Self, ParseHashError> {
                let mut bytes = <[u8; 32]>::from_hex(text)
                    .map_err(|_| ParseHashError { text: text.to_owned() })?;
                bytes.reverse();
                Ok(Self(bytes))
            }
        }

        impl From<[u8; 32]> for $name {
            fn from(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }
        }
    };
}

hash_type! {
    /// The hash of a transaction without its witness: what outpoints refer to.
    Txid
}
hash_type! {
    /// The hash of a transaction with its witness (BIP141). Equal to the txid when it has none.
    Wtxid
}
hash_type! {
    /// The hash of a block header.
    BlockHash
}
hash_type! {
    /// The root of the merkle tree over a block's txids.
    MerkleRoot
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENESIS: &str = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";

    #[test]
    fn shown_reversed() {
        let hash: BlockHash = GENESIS.parse().unwrap();
        assert_eq!(hash.to_string(), GENESIS);
        assert_eq!(hash.as_bytes()[..4], [0x6f, 0xe2, 0x8c, 0x0a]);
        assert_eq!(format!("{hash:?}"), format!("BlockHash({GENESIS})"));
        assert_eq!(GENESIS.to_uppercase().parse(), Ok(hash));
    }

    #[test]
    fn ordered_by_internal_bytes() {
        let (mut low, mut high) = ([0; 32], [0; 32]);
        low[31] = 1;
        high[0] = 1;
        assert!(Txid::from_bytes(low) < Txid::from_bytes(high));
    }

    #[test]
    fn refuses_what_is_not_64_hex_digits() {
        for text in ["", "00", &GENESIS[1..], &format!("{GENESIS}0"), &GENESIS.replace('d', "x")] {
            let error = text.parse::<Txid>().unwrap_err();
            assert!(error.to_string().contains("expected 64 hex digits"), "{error}");
        }
    }
}

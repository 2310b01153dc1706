//! Hashes, one type for each thing that is hashed.
//!
//! A hash is 32 bytes in the order in which SHA-256 produces them (the *internal* order). This is
//! the order on disk, on the wire and of `Ord`. `Display` and `FromStr` use hex; Bitcoin writes
//! most hashes with their bytes reversed:
//!
//! ```text
//! internal   6f e2 8c 0a b6 f1 b3 72 … 00 00 00 00
//! shown      000000 … 72b3f1b60a8ce26f
//! ```
//!
//! | type | shown |
//! |---|---|
//! | [`Txid`], [`Wtxid`], [`BlockHash`], [`MerkleRoot`] | reversed |
//! | [`ScriptHash`] | reversed, as Electrum writes it |
//! | [`PushdataHash`], [`ScriptStatus`] | in internal order |

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

const fn reversed(mut bytes: [u8; 32]) -> [u8; 32] {
    bytes.reverse();
    bytes
}

const fn forward(bytes: [u8; 32]) -> [u8; 32] {
    bytes
}

macro_rules! hash_type {
    ($(#[$doc:meta])* $name:ident, shown $order:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name([u8; 32]);

        impl $name {
            /// All bytes zero: stands for "no hash".
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
                $order(self.0).iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
                <[u8; 32]>::from_hex(text)
                    .map(|bytes| Self($order(bytes)))
                    .map_err(|_| ParseHashError { text: text.to_owned() })
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
    Txid, shown reversed
}
hash_type! {
    /// The hash of a transaction with its witness (BIP141). Equal to the txid when it has none.
    Wtxid, shown reversed
}
hash_type! {
    /// The hash of a block header.
    BlockHash, shown reversed
}
hash_type! {
    /// The root of the merkle tree over a block's txids.
    MerkleRoot, shown reversed
}
hash_type! {
    /// The SHA-256 of an output script, by which Electrum identifies it. (Esplora writes the same
    /// bytes in internal order.)
    ScriptHash, shown reversed
}
hash_type! {
    /// The SHA-256 of an item that a script pushes, by which Conduit finds it.
    PushdataHash, shown forward
}
hash_type! {
    /// Electrum's status of a script: the SHA-256 of its whole history. Two servers with the same
    /// history give the same status.
    ScriptStatus, shown forward
}

impl ScriptHash {
    /// The hash of this output script.
    #[must_use]
    pub fn of(script: &[u8]) -> Self {
        Self(varve_sha256::digest(script))
    }
}

impl PushdataHash {
    /// The hash of this item.
    #[must_use]
    pub fn of(item: &[u8]) -> Self {
        Self(varve_sha256::digest(item))
    }
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

    /// The example of the Electrum protocol: the script of the address in the genesis block.
    #[test]
    fn script_hashes_as_electrum_shows_them() {
        let script = Vec::from_hex("76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac").unwrap();
        let shown = "8b01df4e368ea28f8dc0423bcf7a4923e3a12d307c875e47a0cfbf90b5c39161";
        assert_eq!(ScriptHash::of(&script).to_string(), shown);
        assert_eq!(shown.parse(), Ok(ScriptHash::of(&script)));
    }

    /// A key hash of Conduit's test chain and its published pushdata hash.
    #[test]
    fn pushdata_hashes_are_not_reversed() {
        let item = Vec::from_hex("17aa9ecb9e38b91bddcc5e8d2d26154be90d8996").unwrap();
        let shown = "e351e4d2499786e8a3ac5468cbf1444b3416b41e424524b50e2dafc8f6f454db";
        assert_eq!(PushdataHash::of(&item).to_string(), shown);
        assert_eq!(shown.parse(), Ok(PushdataHash::of(&item)));
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

//! A reference to one output of one transaction.
//!
//! ```text
//! │ txid 32 │ vout u32le │   36 bytes, as in a transaction's input
//! ```
//!
//! `Ord` is by txid bytes, then by `vout` as a number. That is not the order of the encoded bytes
//! (`vout` is little-endian there), but it is the order of `hash_serialized_3`.

use std::fmt;
use std::str::FromStr;

use crate::hash::Txid;

/// One output of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outpoint {
    /// The transaction.
    pub txid: Txid,
    /// The index of the output in it, from zero.
    pub vout: u32,
}

/// A text that is not an outpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an outpoint: expected TXID:VOUT")]
pub struct ParseOutpointError {
    text: String,
}

impl Outpoint {
    /// The outpoint in the input of a coinbase transaction: no output.
    pub const NULL: Self = Self { txid: Txid::ZERO, vout: u32::MAX };

    /// The length of the encoding.
    pub const LEN: usize = 36;

    /// The output `vout` of the transaction `txid`.
    #[must_use]
    pub const fn new(txid: Txid, vout: u32) -> Self {
        Self { txid, vout }
    }

    /// Whether this is [`Outpoint::NULL`].
    #[must_use]
    pub fn is_null(&self) -> bool {
        *self == Self::NULL
    }

    /// Decodes the 36 bytes.
    #[must_use]
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let (txid, vout) = bytes.split_first_chunk().expect("36 bytes are more than 32");
        let vout = vout.first_chunk().expect("36 − 32 = 4 bytes are left");
        Self { txid: Txid::from_bytes(*txid), vout: u32::from_le_bytes(*vout) }
    }

    /// The 36 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (txid, vout) = bytes.split_at_mut(32);
        txid.copy_from_slice(self.txid.as_bytes());
        vout.copy_from_slice(&self.vout.to_le_bytes());
        bytes
    }
}

impl fmt::Display for Outpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.txid, self.vout)
    }
}

impl FromStr for Outpoint {
    type Err = ParseOutpointError;

    fn from_str(text: &str) -> Result<Self, ParseOutpointError> {
        let parse = || {
            let (txid, vout) = text.split_once(':')?;
            // `u32::from_str` accepts a plus sign, which an outpoint must not have.
            let digits = vout.bytes().all(|byte| byte.is_ascii_digit());
            Some(Self::new(txid.parse().ok()?, vout.parse().ok().filter(|_| digits)?))
        };
        parse().ok_or_else(|| ParseOutpointError { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn order_is_numeric_in_vout() {
        let at = |vout| Outpoint::new(Txid::ZERO, vout);
        assert!(at(1) < at(256), "little-endian bytes would sort these the other way");
        assert!(Outpoint::new(Txid::from_bytes([1; 32]), 0) > at(u32::MAX));
    }

    #[test]
    fn refuses_other_texts() {
        let txid = Txid::ZERO.to_string();
        for text in [
            "",
            ":",
            &txid,
            &format!("{txid}:"),
            &format!("{txid}:+1"),
            &format!("{txid}:4294967296"),
        ] {
            assert!(text.parse::<Outpoint>().is_err(), "{text}");
        }
        assert!(Outpoint::NULL.is_null());
    }

    proptest! {
        #[test]
        fn round_trips(txid: [u8; 32], vout: u32) {
            let outpoint = Outpoint::new(Txid::from_bytes(txid), vout);
            prop_assert_eq!(Outpoint::from_bytes(&outpoint.to_bytes()), outpoint);
            prop_assert_eq!(outpoint.to_string().parse(), Ok(outpoint));
        }
    }
}

//! Who spent an output: the spending transaction and which of its inputs.
//!
//! ```text
//! bytes   │ txid 32, internal order │ vin u32le │                           36
//! text    64 hex digits of the txid as shown (reversed) ‖ 8 hex digits of vin as stored (LE)
//! frozen  │ ff × 36 │
//! ```
//!
//! Thirty-six bytes of `ff` are no spender but the mark of a frozen output. Their first 32 bytes
//! are also what block templates write where the coinbase is not known yet, so that "txid" never
//! counts as a transaction ([`PLACEHOLDER`]).

use std::fmt;
use std::str::FromStr;

use hex_conservative::FromHex as _;
use varve_types::Txid;

/// Thirty-two bytes of `ff`: the frozen "spender", and the placeholder of a coinbase.
pub const PLACEHOLDER: Txid = Txid::from_bytes([0xff; 32]);

/// The input that spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpendingData {
    /// The spending transaction.
    pub txid: Txid,
    /// The place of the input in it, from zero.
    pub vin: u32,
}

/// A text that is not spending data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not spending data: expected 72 hex digits")]
pub struct ParseSpendingDataError {
    text: String,
}

impl SpendingData {
    /// The length of the encoding.
    pub const LEN: usize = 36;

    /// The mark of a frozen output.
    pub const FROZEN: Self = Self { txid: PLACEHOLDER, vin: u32::MAX };

    /// The input `vin` of the transaction `txid`.
    #[must_use]
    pub const fn new(txid: Txid, vin: u32) -> Self {
        Self { txid, vin }
    }

    /// Whether this is [`SpendingData::FROZEN`] and no spender.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        *self == Self::FROZEN
    }

    /// Decodes the 36 bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let (txid, vin) = bytes.split_first_chunk().expect("36 bytes are more than 32");
        let vin = vin.first_chunk().expect("36 − 32 = 4 bytes are left");
        Self { txid: Txid::from_bytes(*txid), vin: u32::from_le_bytes(*vin) }
    }

    /// The 36 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (txid, vin) = bytes.split_at_mut(32);
        txid.copy_from_slice(self.txid.as_bytes());
        vin.copy_from_slice(&self.vin.to_le_bytes());
        bytes
    }
}

/// The txid as people write it, then the four bytes of the input number as stored.
impl fmt::Display for SpendingData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.txid)?;
        self.vin.to_le_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for SpendingData {
    type Err = ParseSpendingDataError;

    fn from_str(text: &str) -> Result<Self, ParseSpendingDataError> {
        let bytes = <[u8; Self::LEN]>::from_hex(text)
            .map_err(|_| ParseSpendingDataError { text: text.to_owned() })?;
        let mut data = Self::from_bytes(&bytes);
        let mut txid = data.txid.to_bytes();
        txid.reverse();
        data.txid = Txid::from_bytes(txid);
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_text_has_the_txid_reversed_and_the_input_as_stored() {
        let mut bytes = [0; 36];
        bytes[0] = 0xaa;
        bytes[31] = 0xbb;
        bytes[32] = 2;
        let data = SpendingData::from_bytes(&bytes);
        assert_eq!(data.vin, 2);
        let text = format!("bb{}aa02000000", "00".repeat(30));
        assert_eq!(data.to_string(), text);
        assert_eq!(text.parse(), Ok(data));
    }

    #[test]
    fn only_72_digits_parse() {
        for text in ["", &"0".repeat(71), &"0".repeat(74), &"g".repeat(72)] {
            let error = text.parse::<SpendingData>().unwrap_err();
            assert!(error.to_string().contains("72 hex digits"), "{error}");
        }
    }

    #[test]
    fn the_frozen_mark_is_all_ones() {
        assert_eq!(SpendingData::FROZEN.to_bytes(), [0xff; 36]);
        assert!(SpendingData::from_bytes(&[0xff; 36]).is_frozen());
        assert!(!SpendingData::new(PLACEHOLDER, 0).is_frozen());
    }

    proptest! {
        #[test]
        fn round_trips(txid: [u8; 32], vin: u32) {
            let data = SpendingData::new(Txid::from_bytes(txid), vin);
            prop_assert_eq!(SpendingData::from_bytes(&data.to_bytes()), data);
            prop_assert_eq!(data.to_string().parse(), Ok(data));
        }
    }
}

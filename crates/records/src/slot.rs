//! One output of a record: unspent, spent or frozen.
//!
//! ```text
//! unspent   │ utxo hash 32 │                                  32
//! spent     │ utxo hash 32 │ spender 32 │ vin u32le │         68
//! frozen    │ utxo hash 32 │ ff × 36                │         68
//! ```
//!
//! The length gives the state. An output that can never be spent has no slot at all; its place
//! in the list stays empty, so that a slot is always found by its output number. Which outputs
//! those are is decided by [`is_stored`], and by nothing else: neither the coinbase flag nor the
//! height plays a part.

use varve_types::TxOut;
use varve_types::script::opcode::{OP_0, OP_RETURN};

use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;

/// The length of an unspent slot.
pub(crate) const UNSPENT_LEN: usize = UtxoHash::LEN;
/// The length of a spent or frozen slot.
pub const SPENT_LEN: usize = UtxoHash::LEN + SpendingData::LEN;

const _: () = assert!(UNSPENT_LEN == 32 && SPENT_LEN == 68);

/// One output that can be spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// What a spender must know.
    pub hash: UtxoHash,
    /// Who spent it, or [`SpendingData::FROZEN`].
    pub spending: Option<SpendingData>,
}

/// What a slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Unspent.
    Unspent,
    /// It is spent.
    Spent(SpendingData),
    /// Frozen: it cannot be spent.
    Frozen,
}

/// A slot of neither 32 nor 68 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a slot of {len} bytes: expected 32 (unspent) or 68 (spent or frozen)")]
pub struct SlotSizeError {
    /// The length found.
    pub len: usize,
}

impl Slot {
    /// An unspent output.
    #[must_use]
    pub const fn unspent(hash: UtxoHash) -> Self {
        Self { hash, spending: None }
    }

    /// Whether it is unspent, spent or frozen.
    #[must_use]
    pub fn state(&self) -> SlotState {
        match self.spending {
            None => SlotState::Unspent,
            Some(data) if data.is_frozen() => SlotState::Frozen,
            Some(data) => SlotState::Spent(data),
        }
    }

    /// The input that spent it; `None` when it is frozen.
    #[must_use]
    pub fn spender(&self) -> Option<SpendingData> {
        self.spending.filter(|data| !data.is_frozen())
    }

    /// Whether it bears the mark of a frozen output.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.spending.is_some_and(|data| data.is_frozen())
    }

    /// Decodes a slot of 32 or 68 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, SlotSizeError> {
        let error = SlotSizeError { len: bytes.len() };
        let (hash, rest) = bytes.split_first_chunk().ok_or(error)?;
        let spending = match rest.len() {
            0 => None,
            _ => Some(SpendingData::from_bytes(rest.try_into().map_err(|_| error)?)),
        };
        Ok(Self { hash: UtxoHash::from_bytes(*hash), spending })
    }

    /// Appends the 32 or 68 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.hash.as_bytes());
        if let Some(data) = self.spending {
            out.extend_from_slice(&data.to_bytes());
        }
    }
}

/// Whether an output gets a slot: all that are worth something, and of the worthless ones those
/// whose script begins neither with `OP_RETURN` nor with `OP_FALSE OP_RETURN`.
#[must_use]
pub(crate) fn is_stored(output: &TxOut<'_>) -> bool {
    let data =
        output.script.first() == Some(&OP_RETURN) || output.script.starts_with(&[OP_0, OP_RETURN]);
    output.value.to_sat() > 0 || !data
}

#[cfg(test)]
mod tests {
    use varve_types::{Amount, Txid};

    use super::*;

    #[test]
    fn the_length_tells_the_state() {
        let hash = UtxoHash::from_bytes([1; 32]);
        let spender = SpendingData::new(Txid::from_bytes([2; 32]), 3);
        let cases = [
            (Slot::unspent(hash), 32, SlotState::Unspent),
            (Slot { hash, spending: Some(spender) }, 68, SlotState::Spent(spender)),
            (Slot { hash, spending: Some(SpendingData::FROZEN) }, 68, SlotState::Frozen),
        ];
        for (slot, len, state) in cases {
            let mut bytes = Vec::new();
            slot.encode(&mut bytes);
            assert_eq!(bytes.len(), len);
            assert_eq!(Slot::decode(&bytes), Ok(slot));
            assert_eq!(slot.state(), state);
            assert_eq!(slot.is_frozen(), state == SlotState::Frozen);
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        for len in [0, 31, 33, 64, 67, 69] {
            assert_eq!(Slot::decode(&vec![0; len]), Err(SlotSizeError { len }));
        }
    }

    #[test]
    fn worthless_data_gets_no_slot() {
        let stored =
            |value, script: &[u8]| is_stored(&TxOut { value: Amount::from_sat(value), script });
        assert!(stored(1, &[0x6a]));
        assert!(stored(1, &[0x00, 0x6a]));
        assert!(!stored(0, &[0x6a]));
        assert!(!stored(0, &[0x6a, 0x01]));
        assert!(!stored(0, &[0x00, 0x6a]));
        assert!(stored(0, &[0x00]));
        assert!(stored(0, &[0x00, 0x00]));
        assert!(stored(0, &[0x51]));
        assert!(stored(0, &[]));
    }
}

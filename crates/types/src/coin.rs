//! An output that can be spent, and its bytes in the hashes of the set.
//!
//! Both set hashes of Core, `hash_serialized_3` and `muhash`, take each coin as these bytes:
//!
//! ```text
//! │ txid 32 │ vout u32le │ height·2 + coinbase u32le │ value u64le │ CompactSize │ script │
//! ```
//!
//! `hash_serialized_3` is the double SHA-256 of all of them in the order of [`Outpoint`];
//! [`MuHash`](crate::muhash::MuHash) takes them one by one in any order.

use crate::amount::Amount;
use crate::compact_size;
use crate::height::Height;
use crate::outpoint::Outpoint;

/// An output, and where it was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Coin<'a> {
    /// The height of the block that created it.
    pub height: Height,
    /// Whether a coinbase transaction created it.
    pub coinbase: bool,
    /// The amount.
    pub value: Amount,
    /// The locking script.
    pub script: &'a [u8],
}

impl Coin<'_> {
    /// Height and coinbase in one number, as Core stores them: `height · 2 + coinbase`.
    #[must_use]
    pub const fn code(&self) -> u64 {
        ((self.height.to_u32() as u64) << 1) | self.coinbase as u64
    }

    /// Appends the bytes that the set hashes take for this coin.
    ///
    /// Core has 31 bits for the height here; the topmost bit of a larger one is dropped.
    pub fn write_for_hash(&self, outpoint: &Outpoint, out: &mut Vec<u8>) {
        let code = self.height.to_u32().wrapping_shl(1) | u32::from(self.coinbase);
        out.extend_from_slice(&outpoint.to_bytes());
        out.extend_from_slice(&code.to_le_bytes());
        out.extend_from_slice(&self.value.to_sat().to_le_bytes());
        compact_size::write(self.script.len() as u64, out);
        out.extend_from_slice(self.script);
    }

    /// Core's measure of a coin's size, independent of any database:
    /// txid 32, vout 4, height and coinbase 4, value 8, script length 2, script.
    #[must_use]
    pub const fn bogosize(&self) -> u64 {
        32 + 4 + 4 + 8 + 2 + self.script.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Txid;

    #[test]
    fn bytes_for_the_set_hashes() {
        let script = [0x51; 253];
        let coin = Coin {
            height: Height::new(0x0102),
            coinbase: true,
            value: Amount::from_sat(0x0304),
            script: &script,
        };
        let mut bytes = Vec::new();
        coin.write_for_hash(&Outpoint::new(Txid::from_bytes([9; 32]), 5), &mut bytes);
        let mut expected = vec![9; 32];
        expected.extend([5, 0, 0, 0, 0x05, 0x02, 0, 0, 0x04, 0x03, 0, 0, 0, 0, 0, 0]);
        expected.extend([0xfd, 253, 0]);
        expected.extend(script);
        assert_eq!(bytes, expected);
        assert_eq!(coin.code(), 0x0205);
        assert_eq!(coin.bogosize(), 50 + 253);
    }
}

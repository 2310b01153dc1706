//! The commitment to one output: what a spender must know to spend it.
//!
//! ```text
//! SHA-256 of │ txid 32 │ CompactSize vout │ script, without its length │ CompactSize satoshi │
//! ```
//!
//! One round of SHA-256, kept in the order in which the algorithm gives it. A spender that names
//! an output with another script or another value gets another hash and is refused.

use std::fmt;

use bitcoin_hashes::{Hash as _, HashEngine as _, sha256};
use varve_types::{Outpoint, TxOut, compact_size};

/// The hash of an output: its outpoint, its script and its value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct UtxoHash([u8; 32]);

impl UtxoHash {
    /// The length in bytes.
    pub const LEN: usize = 32;

    /// The hash of this output.
    #[must_use]
    pub fn of(outpoint: &Outpoint, output: &TxOut<'_>) -> Self {
        let mut numbers = Vec::with_capacity(2 * compact_size::MAX_LEN);
        compact_size::write(u64::from(outpoint.vout), &mut numbers);
        let vout_len = numbers.len();
        compact_size::write(output.value.to_sat(), &mut numbers);
        let (vout, value) = numbers.split_at(vout_len);
        let mut engine = sha256::Hash::engine();
        engine.input(outpoint.txid.as_bytes());
        engine.input(vout);
        engine.input(output.script);
        engine.input(value);
        Self(sha256::Hash::from_engine(engine).to_byte_array())
    }

    /// The hash with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// The bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        self.0
    }
}

/// In hex, in the order of the bytes.
impl fmt::Display for UtxoHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for UtxoHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UtxoHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use varve_types::{Amount, Block, Network, Txid};

    use super::*;

    /// Computed apart from this code: the output of the first coinbase.
    #[test]
    fn the_first_coinbase() {
        let bytes = Network::Mainnet.genesis_block();
        let block = Block::parse(&bytes, Network::Mainnet.format()).unwrap();
        let output = block.txs()[0].outputs().next().unwrap();
        let hash = UtxoHash::of(&Outpoint::new(block.txids()[0], 0), &output);
        let expected = "b896d6c9de3d37e0cbe6c8209104d0d478c92c17ee567b9792a3eb4aff1dce55";
        assert_eq!(hash.to_string(), expected);
        assert_eq!(UtxoHash::from_bytes(hash.to_bytes()), hash);
    }

    #[test]
    fn every_part_counts() {
        let output = |value, script| TxOut { value: Amount::from_sat(value), script };
        let at = |vout| Outpoint::new(Txid::from_bytes([7; 32]), vout);
        let hashes = [
            UtxoHash::of(&at(0), &output(1, &[0x51])),
            UtxoHash::of(&at(1), &output(1, &[0x51])),
            UtxoHash::of(&at(0), &output(2, &[0x51])),
            UtxoHash::of(&at(0), &output(1, &[0x52])),
            UtxoHash::of(&at(253), &output(1, &[0x51])),
            UtxoHash::of(&Outpoint::new(Txid::ZERO, 0), &output(1, &[0x51])),
        ];
        let distinct: std::collections::BTreeSet<_> = hashes.iter().collect();
        assert_eq!(distinct.len(), hashes.len());
    }
}

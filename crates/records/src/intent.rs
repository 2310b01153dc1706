//! The durable note of a work of several steps.
//!
//! Conflict resolution changes many records, one operation after the other. Before the first step
//! it writes down what it is about to do; after the last step it crosses the note out. A note that
//! is found at start belongs to a work that was cut off, and is done again. The id is made from
//! the content, so the same work has one note, however often it begins.

use std::fmt;
use std::str::FromStr;

use bitcoin_hashes::{Hash as _, HashEngine as _, sha256};
use varve_types::{BlockHash, Height, Txid};

use crate::spending_data::PLACEHOLDER;

/// The name of an intent: a hash of what it says, its time apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(pub [u8; 32]);

impl fmt::Display for IntentId {
    /// As hashes are written: the last byte first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        BlockHash::from_bytes(self.0).fmt(f)
    }
}

impl FromStr for IntentId {
    type Err = <BlockHash as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(|hash: BlockHash| Self(hash.to_bytes()))
    }
}

/// What kind of work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IntentKind {
    /// Transactions of a block win against those that spent their inputs before.
    ResolveConflicts = 1,
}

/// A work that is about to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// What is to be done.
    pub kind: IntentKind,
    /// The height of the block that asks for it.
    pub height: Height,
    /// That block.
    pub block: BlockHash,
    /// The transactions that it is about: winners, the placeholder, losers.
    pub txids: Vec<Txid>,
    /// When it was written down, in milliseconds of the caller's clock.
    pub created_at: u64,
}

impl Intent {
    /// Those that are to win.
    #[must_use]
    pub fn winners(&self) -> &[Txid] {
        self.part(0)
    }

    /// Those that are to lose.
    #[must_use]
    pub fn losers(&self) -> &[Txid] {
        self.part(1)
    }

    fn part(&self, number: usize) -> &[Txid] {
        let mut parts = self.txids.split(|txid| *txid == PLACEHOLDER);
        parts.nth(number).unwrap_or_default()
    }

    /// The name: kind, height, block and transactions decide.
    #[must_use]
    pub fn id(&self) -> IntentId {
        let mut engine = sha256::Hash::engine();
        engine.input(&[self.kind as u8]);
        engine.input(&self.height.to_u32().to_le_bytes());
        engine.input(self.block.as_bytes());
        self.txids.iter().for_each(|txid| engine.input(txid.as_bytes()));
        IntentId(sha256::Hash::from_engine(engine).to_byte_array())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_work_has_the_same_name() {
        let intent = Intent {
            kind: IntentKind::ResolveConflicts,
            height: Height::new(5),
            block: BlockHash::from_bytes([1; 32]),
            txids: vec![Txid::from_bytes([2; 32])],
            created_at: 7,
        };
        let later = Intent { created_at: 8, ..intent.clone() };
        assert_eq!(later.id(), intent.id());
        let higher = Intent { height: Height::new(6), ..intent.clone() };
        assert_ne!(higher.id(), intent.id());
        let more = Intent { txids: vec![Txid::ZERO; 2], ..intent.clone() };
        assert_ne!(more.id(), intent.id());
    }
}

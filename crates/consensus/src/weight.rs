//! Weight: the measure of a block's size since segwit (BIP141).
//!
//! ```text
//! weight = 4 · bytes without witness + bytes of witness = 3 · base size + size
//! ```

use varve_types::{Block, Tx};

/// What a byte outside of the witness weighs.
pub const WITNESS_SCALE: u64 = 4;
/// The most that a block may weigh.
pub(crate) const MAX_BLOCK_WEIGHT: u64 = 4_000_000;

/// The bytes of a transaction without its witness: those whose hash is the txid.
#[must_use]
pub const fn base_size(tx: &Tx<'_>) -> u64 {
    tx.base_len() as u64
}

/// The bytes of a block without its witnesses.
#[must_use]
pub fn block_base_size(block: &Block<'_>) -> u64 {
    let witness = |tx: &Tx<'_>| tx.bytes().len() as u64 - base_size(tx);
    block.bytes().len() as u64 - block.txs().iter().map(witness).sum::<u64>()
}

/// The weight of a block.
#[must_use]
pub fn block_weight(block: &Block<'_>) -> u64 {
    (WITNESS_SCALE - 1) * block_base_size(block) + block.bytes().len() as u64
}

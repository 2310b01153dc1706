//! The commitment to the witnesses of a block (BIP141).
//!
//! It is in the last output of the coinbase that has this form:
//!
//! ```text
//! │ 6a │ 24 │ aa 21 a9 ed │ commitment 32 │ … │
//! commitment = double SHA-256 of (merkle root over the wtxids ‖ reserved value 32)
//! ```
//!
//! The wtxid of the coinbase counts as zeros, because its witness holds the reserved value.

use super::Block;
use crate::hash::{Wtxid, sha256d};
use crate::merkle::merkle_root;

const PREFIX: [u8; 6] = [0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];

impl Block<'_> {
    /// The commitment that the coinbase carries, or `None` when it carries none.
    #[must_use]
    pub fn witness_commitment(&self) -> Option<[u8; 32]> {
        let outputs = self.txs().first()?.outputs();
        outputs
            .filter_map(|output| output.script.strip_prefix(&PREFIX)?.first_chunk().copied())
            .last()
    }

    /// The commitment to the witnesses that the block has, or `None` when the coinbase lacks the
    /// reserved value that goes into it: a witness of exactly one item of 32 bytes.
    #[must_use]
    pub fn compute_witness_commitment(&self) -> Option<[u8; 32]> {
        let mut items = self.txs().first()?.witnesses().next()?.items();
        let reserved: &[u8; 32] = items.next()?.try_into().ok()?;
        if items.next().is_some() {
            return None;
        }
        let mut leaves: Vec<_> = self.wtxids().into_iter().map(Wtxid::to_bytes).collect();
        *leaves.first_mut()? = [0; 32];
        let root = merkle_root(leaves).root;
        Some(sha256d([root.to_bytes(), *reserved].as_flattened()))
    }
}

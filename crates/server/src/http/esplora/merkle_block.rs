//! A proof as a `merkleblock` message (BIP37): the header and a partial merkle tree.
//!
//! ```text
//! │ header 80 │ transactions u32le │ CompactSize n │ n × hash │ CompactSize m │ m × flags │
//! ```
//!
//! The tree is walked from the root, depth first. A node above the proven leaf has the bit 1 and is
//! entered; any other has the bit 0 and its hash stands there, as does that of the leaf, whose bit
//! is 1. Bits fill bytes from the least significant one.

use varve::types::{Header, compact_size, sha256d};

/// The message that proves the leaf at `index`; `None` when there is no such leaf.
pub(super) fn merkle_block(
    header: &[u8; Header::LEN],
    leaves: Vec<[u8; 32]>,
    index: usize,
) -> Option<Vec<u8>> {
    let count = u32::try_from(leaves.len()).ok()?;
    leaves.get(index)?;
    let mut levels = vec![leaves];
    while let Some(next) = levels.last().filter(|level| level.len() > 1).map(|level| above(level)) {
        levels.push(next);
    }
    let mut tree = PartialTree { levels: &levels, index, bits: Vec::new(), hashes: Vec::new() };
    tree.walk(levels.len() - 1, 0);
    let PartialTree { bits, hashes, .. } = tree;
    let mut message = header.to_vec();
    message.extend(count.to_le_bytes());
    compact_size::write(hashes.len() as u64, &mut message);
    message.extend(hashes.as_flattened());
    compact_size::write(bits.len().div_ceil(8) as u64, &mut message);
    for byte in bits.chunks(8) {
        message.push(byte.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
    }
    Some(message)
}

/// The level above one of more than one node. The last node is paired with itself where it is odd.
fn above(level: &[[u8; 32]]) -> Vec<[u8; 32]> {
    let parent = |pair: &[[u8; 32]]| match pair {
        [left, right] => sha256d([*left, *right].as_flattened()),
        [odd, ..] => sha256d([*odd, *odd].as_flattened()),
        [] => [0; 32],
    };
    level.chunks(2).map(parent).collect()
}

struct PartialTree<'a> {
    /// From the leaves up.
    levels: &'a [Vec<[u8; 32]>],
    index: usize,
    bits: Vec<bool>,
    hashes: Vec<[u8; 32]>,
}

impl PartialTree<'_> {
    fn walk(&mut self, height: usize, at: usize) {
        let Some(hash) = self.levels.get(height).and_then(|level| level.get(at)).copied() else {
            return;
        };
        let is_above = self.index >> height == at;
        self.bits.push(is_above);
        if height == 0 || !is_above {
            self.hashes.push(hash);
            return;
        }
        self.walk(height - 1, at * 2);
        self.walk(height - 1, at * 2 + 1);
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::consensus::deserialize;
    use bitcoin::hashes::Hash as _;
    use bitcoin::merkle_tree::MerkleBlock;
    use varve::Network;
    use varve::types::merkle::merkle_root;

    use super::*;

    /// Every leaf of trees of every shape up to 40 leaves, read back by rust-bitcoin.
    #[test]
    fn proofs_are_read_by_rust_bitcoin() {
        for count in 1..=40_u8 {
            let leaves: Vec<[u8; 32]> = (0..count).map(|leaf| [leaf; 32]).collect();
            let mut header: [u8; 80] =
                *Network::Regtest.genesis_block().first_chunk().expect("a header");
            header[36..68].copy_from_slice(merkle_root(leaves.clone()).root.as_bytes());
            for index in 0..usize::from(count) {
                let message = merkle_block(&header, leaves.clone(), index).unwrap();
                let read: MerkleBlock = deserialize(&message).unwrap();
                let (mut txids, mut places) = (Vec::new(), Vec::new());
                read.extract_matches(&mut txids, &mut places).unwrap();
                assert_eq!(places, [u32::try_from(index).unwrap()], "of {count}");
                assert_eq!(txids[0].to_byte_array(), leaves[index]);
            }
            assert!(merkle_block(&header, leaves, usize::from(count)).is_none());
        }
    }
}

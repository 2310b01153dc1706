//! A root over leaves that come one by one.
//!
//! 1. Leaves gather in a buffer of [`WIDTH`]. A full buffer is a whole subtree; it is reduced to
//!    its top node, a level at a time through the hash lanes.
//! 2. The tops go on a stack, as bits go into a counter: two nodes of the same level become one
//!    node of the level above. So the stack never holds two nodes of a level, and its size is the
//!    logarithm of the number of leaves.
//! 3. At the end the last buffer is reduced to the same level, and the nodes of the stack are
//!    joined from the lowest up; a node without a partner is paired with itself.

use super::{MerkleTree, merkle_root, reduce};
use crate::hash::{MerkleRoot, sha256d};

/// The levels below the stack.
const LEVELS: u32 = 8;
/// Leaves in the buffer: 8 KiB, and eight calls into the lanes for 255 hashes.
const WIDTH: usize = 1 << LEVELS;

/// Computes a merkle root from leaves that come one by one, in little memory.
#[derive(Clone, Debug, Default)]
pub struct MerkleStream {
    buffer: Vec<[u8; 32]>,
    /// Nodes of strictly falling levels, counted from the tops of buffers.
    stack: Vec<Node>,
    mutated: bool,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    level: u32,
    hash: [u8; 32],
}

impl MerkleStream {
    /// A tree without leaves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next leaf.
    pub fn push(&mut self, leaf: [u8; 32]) {
        self.buffer.push(leaf);
        if self.buffer.len() == WIDTH {
            self.stack_buffer();
        }
    }

    /// The root over all leaves.
    #[must_use]
    pub fn finish(mut self) -> MerkleTree {
        if self.stack.is_empty() {
            return merkle_root(self.buffer);
        }
        if !self.buffer.is_empty() {
            self.stack_buffer();
        }
        while let Some(node) = self.stack.pop() {
            if self.stack.is_empty() {
                let root = MerkleRoot::from_bytes(node.hash);
                return MerkleTree { root, mutated: self.mutated };
            }
            // It has no partner, or `push_node` would have joined them.
            let hash = sha256d([node.hash, node.hash].as_flattened());
            self.push_node(Node { level: node.level + 1, hash });
        }
        merkle_root(Vec::new())
    }

    fn stack_buffer(&mut self) {
        for _ in 0..LEVELS {
            self.mutated |= reduce(&mut self.buffer);
        }
        if let Some(hash) = self.buffer.pop() {
            self.push_node(Node { level: 0, hash });
        }
    }

    fn push_node(&mut self, mut node: Node) {
        while let Some(left) = self.stack.pop_if(|left| left.level == node.level) {
            self.mutated |= left.hash == node.hash;
            let hash = sha256d([left.hash, node.hash].as_flattened());
            node = Node { level: node.level + 1, hash };
        }
        self.stack.push(node);
    }
}

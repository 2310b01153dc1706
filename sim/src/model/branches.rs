//! The tree of blocks that have arrived, and the active branch in it.

use std::collections::HashMap;

use varve_types::BlockHash;

/// A block's time must be above the median of this many blocks before it.
const MEDIAN_SPAN: usize = 11;

/// A branch's last block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainTip {
    /// Its height.
    pub height: u32,
    /// Its hash.
    pub hash: BlockHash,
    /// Blocks between it and the active chain.
    pub branch_length: u32,
}

struct Node {
    height: u32,
    previous: BlockHash,
    time: u32,
    has_child: bool,
}

/// Every block's place.
#[derive(Default)]
pub(crate) struct Branches {
    nodes: HashMap<BlockHash, Node>,
    /// In the order of arrival.
    arrivals: Vec<BlockHash>,
    /// The active branch, by height.
    active: Vec<BlockHash>,
}

impl Branches {
    /// The height of a child of `previous`; `None` when that never arrived. The first block needs
    /// no parent.
    pub(crate) fn next_height(&self, previous: &BlockHash) -> Option<u32> {
        if self.nodes.is_empty() {
            return Some(0);
        }
        self.nodes.get(previous).map(|parent| parent.height + 1)
    }

    pub(crate) fn add(&mut self, hash: BlockHash, previous: BlockHash, time: u32, height: u32) {
        if let Some(parent) = self.nodes.get_mut(&previous) {
            parent.has_child = true;
        }
        self.nodes.insert(hash, Node { height, previous, time, has_child: false });
        self.arrivals.push(hash);
    }

    /// Makes a child of the tip the tip.
    pub(crate) fn connect(&mut self, hash: BlockHash) {
        self.active.push(hash);
    }

    /// Makes the parent of the tip the tip, and returns the old one.
    pub(crate) fn disconnect(&mut self) -> Option<BlockHash> {
        self.active.pop()
    }

    pub(crate) fn height(&self) -> u32 {
        u32::try_from(self.active.len()).map_or(u32::MAX, |count| count.saturating_sub(1))
    }

    pub(crate) fn tip(&self) -> Option<BlockHash> {
        self.active.last().copied()
    }

    pub(crate) fn block_hash(&self, height: u32) -> Option<BlockHash> {
        self.active.get(height as usize).copied()
    }

    /// The blocks from `hash` down to the active branch, which they leave out, and the height at
    /// which they fork off.
    pub(crate) fn off_active(&self, hash: &BlockHash) -> (Vec<BlockHash>, u32) {
        let mut blocks = Vec::new();
        let mut at = *hash;
        while let Some(node) = self.nodes.get(&at) {
            if self.block_hash(node.height) == Some(at) {
                return (blocks, node.height);
            }
            blocks.push(at);
            at = node.previous;
        }
        (blocks, 0)
    }

    /// Every branch's last block, the highest first.
    pub(crate) fn tips(&self) -> Vec<ChainTip> {
        let mut tips: Vec<ChainTip> = Vec::new();
        for hash in &self.arrivals {
            let Some(node) = self.nodes.get(hash).filter(|node| !node.has_child) else { continue };
            let (blocks, _) = self.off_active(hash);
            let branch_length = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
            tips.push(ChainTip { height: node.height, hash: *hash, branch_length });
        }
        tips.sort_by_key(|tip| (std::cmp::Reverse(tip.height), *tip.hash.as_bytes()));
        tips
    }

    /// The median time of a block and the ten before it.
    pub(crate) fn median_time(&self, hash: &BlockHash) -> u32 {
        let mut times = Vec::with_capacity(MEDIAN_SPAN);
        let mut at = *hash;
        while let Some(node) = self.nodes.get(&at)
            && times.len() < MEDIAN_SPAN
        {
            times.push(node.time);
            at = node.previous;
        }
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or(0)
    }
}

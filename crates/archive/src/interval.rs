//! Roots of whole intervals of block hashes.
//!
//! Electrum proves a header by its branch in the merkle tree over all block hashes up to a
//! checkpoint. Each full interval of 2,048 hashes is a whole subtree, whose root depends only on
//! its last block (a block fixes all blocks below it). So a root, once computed, is valid forever
//! and on every branch, and is cached under the row of that last block:
//!
//! ```text
//!                     root
//!            ┌─────────┴─────────┐
//!        interval 0   …    interval n   partial interval
//!       ╱ 2,048 hashes ╲       │          (hashed when asked)
//!                        known by its last block
//! ```
//!
//! The roots are not stored: the first proof of a process computes them, half a second at mainnet's
//! height, and they take 36 bytes of memory for 2,048 blocks.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::link::HeaderLink;

/// Blocks of an interval, 2^11.
pub(crate) const INTERVAL: u32 = 1 << INTERVAL_DEPTH;
/// The height of an interval's subtree.
pub(crate) const INTERVAL_DEPTH: u32 = 11;

/// The roots that were computed, by the last block of their interval.
#[derive(Debug, Default)]
pub(crate) struct IntervalRoots(Mutex<HashMap<HeaderLink, [u8; 32]>>);

impl IntervalRoots {
    pub(crate) fn get(&self, last: HeaderLink) -> Option<[u8; 32]> {
        self.roots().get(&last).copied()
    }

    pub(crate) fn put(&self, last: HeaderLink, root: [u8; 32]) {
        self.roots().insert(last, root);
    }

    fn roots(&self) -> MutexGuard<'_, HashMap<HeaderLink, [u8; 32]>> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

//! The settings of a store, with Teranode's defaults.
//!
//! Times are in blocks, not seconds: a record is removed `retention` blocks after it is no longer
//! needed, however long blocks take.

use varve_types::{Format, Network};

use crate::key::BatchSize;

/// Blocks for which a reassigned output cannot be spent.
pub(crate) const REASSIGN_DELAY: u32 = 1_000;

/// The settings of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Blocks from the moment when a record is no longer needed to its removal. 0: records are
    /// never removed.
    pub retention: u32,
    /// Blocks after which an unmined transaction counts as old, and its parents are preserved.
    pub unmined_retention: u32,
    /// Blocks for which the parents of an old unmined transaction are preserved.
    pub parent_preservation: u32,
    /// Slots in one part of a record.
    pub batch: BatchSize,
    /// Transactions whose extended form is longer than this are kept as blobs.
    pub external_limit: u64,
    /// Whether transactions whose records have several parts are kept as blobs.
    pub externalize_parts: bool,
    /// Whether all transactions are kept as blobs.
    pub externalize_all: bool,
    /// Blocks after which a coinbase can be spent.
    pub coinbase_maturity: u32,
    /// How the blocks of the chain have transactions that are not in extended form.
    pub format: Format,
    /// Unmined transactions whose parents are looked up together at start.
    pub parent_validation_batch: usize,
    /// Whether a transaction whose parents are not in order is left out at start.
    pub remove_invalid_parents: bool,
    /// Due records that the pruner asks for at once.
    pub prune_batch: usize,
    /// Files of blobs that one run of the pruner, and one restart, look at.
    pub clean_batch: usize,
}

impl Settings {
    /// The defaults for a chain.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self { format: network.format(), ..Self::default() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retention: 288,
            unmined_retention: 144,
            parent_preservation: 1_440,
            batch: BatchSize::new(20_000).expect("not zero"),
            external_limit: 1 << 20,
            externalize_parts: true,
            externalize_all: false,
            coinbase_maturity: 100,
            format: Format::Legacy,
            parent_validation_batch: 1_000,
            remove_invalid_parents: false,
            prune_batch: 1_000,
            clean_batch: 4_000,
        }
    }
}

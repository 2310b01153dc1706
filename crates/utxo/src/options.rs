//! How a set is opened.

use std::num::NonZeroUsize;

use varve_types::Network;

use crate::compacter::Compaction;
use crate::manifest::Parameters;
use crate::run_writer::StoreKey;
use crate::undo::UndoConfig;

/// How a set is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The chain whose coins these are. A set of another chain is not opened.
    pub network: Network,
    /// Id and secret for a set that does not exist yet, drawn at random by the caller. One that
    /// exists keeps its own.
    pub key: StoreKey,
    /// How a set that does not exist yet is cut. One that exists keeps its own.
    pub parameters: Parameters,
    /// Shards of the window: more than threads, so that work divides evenly.
    pub shards: usize,
    /// Threads that may work on one step.
    pub workers: NonZeroUsize,
    /// Bytes of memory for the whole set: directories and filters, the undo cache, write buffers,
    /// and the window, which gets what is left and flushes early when that is little.
    pub memory: usize,
    /// Where flushes, merges and checkpoints are done.
    pub compaction: Compaction,
    /// How undo records are kept.
    pub undo: UndoConfig,
}

impl Options {
    /// The defaults for a set of `network`.
    #[must_use]
    pub fn new(network: Network, key: StoreKey) -> Self {
        Self {
            network,
            key,
            parameters: Parameters::default(),
            shards: 16,
            workers: NonZeroUsize::MIN,
            memory: 3 << 29,
            compaction: Compaction::default(),
            undo: UndoConfig::default(),
        }
    }
}

//! How a set is opened.

use std::num::NonZeroUsize;

use varve_runs::{Compaction, StoreKey};
use varve_types::Network;

use crate::budget::MEMORY_MIN;
use crate::error::Error;
use crate::manifest::Parameters;
use crate::undo::UndoConfig;

/// How a set is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The network of the coins. A set of another network is not opened.
    pub network: Network,
    /// Id and secret of a new set, drawn at random by the caller. An existing set keeps its own.
    pub key: StoreKey,
    /// The shape of a new set. An existing set keeps its own.
    pub parameters: Parameters,
    /// Shards of the window: more than threads, so that work divides evenly.
    pub shards: usize,
    /// Threads that may work on one step.
    pub workers: NonZeroUsize,
    /// Bytes of memory for the whole set, page cache aside: directories and filters, undo records,
    /// buffers of files, the blocks in a joiner, and the window, which gets the rest and is flushed
    /// early when that is small. [`Database::memory`](crate::Database::memory) says how it is
    /// split.
    pub memory: usize,
    /// Where flushes, merges and checkpoints run.
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

    /// The minimum that [`Options::with_memory`] accepts.
    pub const MEMORY_MIN: usize = MEMORY_MIN;

    /// The same with a user's budget of `memory` bytes; too little is refused.
    pub fn with_memory(self, memory: usize) -> Result<Self, Error> {
        if memory < MEMORY_MIN {
            return Err(Error::Memory { given: memory, needed: MEMORY_MIN });
        }
        Ok(Self { memory, ..self })
    }
}

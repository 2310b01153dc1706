//! The runs of one version of the set, youngest first.
//!
//! A set of runs is a shared list: cloning it is one count, and a new one with a run added or some
//! runs replaced by their merge leaves the old one as it is for those who read it.
//!
//! **Births decide.** A lookup goes from the youngest run to the oldest and remembers the births
//! that it saw deleted; the first add of another birth is the coin. A delete alone does not end the
//! search: a coin that dies while its pane is being flushed is deleted in a younger run than the
//! same outpoint may be made again in. All entries of an outpoint in a run are in one leaf, so a
//! run is asked for one page.

use std::ops::Range;
use std::sync::Arc;

use varve_io::Storage;

use crate::cursor::Cursor;
use crate::hasher::OutpointHasher;
use crate::merge::Merge;
use crate::run::{Run, RunInfo};
use crate::run_error::RunError;
use crate::run_writer::StoreKey;

/// Runs, youngest first.
#[derive(Clone, Debug)]
pub struct Runs {
    key: StoreKey,
    hasher: OutpointHasher,
    runs: Arc<[Arc<Run>]>,
}

impl Runs {
    /// No runs.
    #[must_use]
    pub fn empty(key: StoreKey) -> Self {
        Self { key, hasher: key.secret.hasher(), runs: Arc::default() }
    }

    /// Opens the runs that a manifest names, youngest first.
    pub fn open(storage: &dyn Storage, key: StoreKey, infos: &[RunInfo]) -> Result<Self, RunError> {
        let runs = infos.iter().map(|info| Run::open(storage, &key, info).map(Arc::new));
        let runs = runs.collect::<Result<_, _>>()?;
        Ok(Self { key, hasher: key.secret.hasher(), runs })
    }

    /// What the runs share.
    #[must_use]
    pub const fn key(&self) -> &StoreKey {
        &self.key
    }

    /// The hash under the store's secret.
    #[must_use]
    pub const fn hasher(&self) -> &OutpointHasher {
        &self.hasher
    }

    /// The runs, youngest first.
    #[must_use]
    pub fn as_slice(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// What the manifest keeps about them.
    #[must_use]
    pub fn infos(&self) -> Vec<RunInfo> {
        self.runs.iter().map(|run| run.info()).collect()
    }

    /// The bytes of memory that directories and filters take.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.runs.iter().map(|run| run.memory()).sum()
    }

    /// These runs and a younger one.
    #[must_use]
    pub fn with_youngest(&self, run: Arc<Run>) -> Self {
        self.with_replaced(0..0, Some(run))
    }

    /// These runs with those of `range` replaced by their merge, or by nothing when all cancelled.
    ///
    /// # Panics
    ///
    /// When there are no such runs.
    #[must_use]
    pub fn with_replaced(&self, range: Range<usize>, merged: Option<Arc<Run>>) -> Self {
        let mut runs = self.runs.to_vec();
        runs.splice(range, merged);
        Self { key: self.key, hasher: self.hasher.clone(), runs: runs.into() }
    }

    /// The coins of all runs in the order of their outpoints, read once, in bounded memory.
    pub fn coins(&self) -> Result<Merge<Cursor>, RunError> {
        let cursors = self.runs.iter().map(Run::cursor);
        Merge::new(cursors.collect::<Result<_, _>>()?, true)
    }
}

#[cfg(test)]
mod tests;

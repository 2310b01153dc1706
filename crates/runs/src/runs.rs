//! The runs of one version of a store, youngest first.
//!
//! The list is shared: cloning it increments a reference count. Adding a run or replacing some by
//! their merge makes a new list and leaves the old one to its readers.

use std::ops::Range;
use std::sync::Arc;

use varve_io::Storage;

use crate::codec::Codec;
use crate::cursor::Cursor;
use crate::footer::{RunInfo, Span};
use crate::merge::Merge;
use crate::run::Run;
use crate::store_key::StoreKey;

/// Runs, youngest first.
#[derive(Debug)]
pub struct Runs<C: Codec> {
    key: StoreKey,
    hasher: C::Hasher,
    runs: Arc<[Arc<Run<C>>]>,
}

impl<C: Codec> Clone for Runs<C> {
    fn clone(&self) -> Self {
        Self { key: self.key, hasher: self.hasher.clone(), runs: Arc::clone(&self.runs) }
    }
}

impl<C: Codec> Runs<C> {
    /// No runs.
    #[must_use]
    pub fn empty(key: StoreKey) -> Self {
        Self { key, hasher: C::hasher(key.secret), runs: Arc::from([]) }
    }

    /// Opens the runs that a manifest names, youngest first.
    pub fn open(storage: &dyn Storage, key: StoreKey, infos: &[RunInfo]) -> Result<Self, C::Error> {
        let runs = infos.iter().map(|info| Run::open(storage, &key, info).map(Arc::new));
        let runs = runs.collect::<Result<_, C::Error>>()?;
        Ok(Self { key, hasher: C::hasher(key.secret), runs })
    }

    /// The id and secret that all files of the store share.
    #[must_use]
    pub const fn key(&self) -> &StoreKey {
        &self.key
    }

    /// The hash under the store's secret.
    pub(crate) const fn hasher(&self) -> &C::Hasher {
        &self.hasher
    }

    /// The runs, youngest first.
    #[must_use]
    pub fn as_slice(&self) -> &[Arc<Run<C>>] {
        &self.runs
    }

    /// What the manifest keeps about them.
    #[must_use]
    pub fn infos(&self) -> Vec<RunInfo> {
        self.runs.iter().map(|run| run.info()).collect()
    }

    /// Bytes of memory of all directories and filters.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.runs.iter().map(|run| run.memory()).sum()
    }

    /// These runs and a younger one.
    #[must_use]
    pub fn with_youngest(&self, run: Arc<Run<C>>) -> Self {
        self.with_replaced(0..0, Some(run))
    }

    /// These runs with those of `range` replaced by their merge, or by nothing if nothing is left.
    ///
    /// # Panics
    ///
    /// When there are no such runs.
    #[must_use]
    pub fn with_replaced(&self, range: Range<usize>, merged: Option<Arc<Run<C>>>) -> Self {
        let mut runs = self.runs.to_vec();
        let span = merged.as_ref().map(|run| run.info().span);
        let replaced: Vec<RunInfo> = runs.splice(range, merged).map(|run| run.info()).collect();
        assert!(
            replaced.is_empty() || span.is_none_or(|span| span == Span::of(&replaced)),
            "a merge holds the steps of its parts"
        );
        let spans = runs.iter().map(|run| run.info().span);
        assert!(
            spans.is_sorted_by(|young, old| young.first > old.last),
            "runs are kept youngest first"
        );
        Self { key: self.key, hasher: self.hasher.clone(), runs: runs.into() }
    }

    /// What is left of the rows of all runs from this key on, in order.
    pub fn rows_from(&self, key: &C::Key) -> Result<Merge<C, Cursor<C>>, C::Error> {
        let cursors = self.runs.iter().map(|run| run.cursor_from(key));
        Merge::new(cursors.collect::<Result<_, _>>()?, true)
    }

    /// What is left of the rows of all runs, in order, read once, in bounded memory.
    pub fn rows(&self) -> Result<Merge<C, Cursor<C>>, C::Error> {
        let cursors = self.runs.iter().map(Run::cursor);
        Merge::new(cursors.collect::<Result<_, _>>()?, true)
    }
}

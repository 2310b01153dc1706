//! Writes a run, from rows in order, in one pass.
//!
//! ```text
//!  page 0       1 …                              …                …                last
//!  ┌────────┬───────────────────────────────┬────────────────┬────────────────┬────────┐
//!  │ header │ leaves, and before a leaf the │ directory      │ filter         │ footer │
//!  │ page   │ pages of what it spilled      │                │                │        │
//!  └────────┴───────────────────────────────┴────────────────┴────────────────┴────────┘
//! ```
//!
//! A row goes to the codec's builder, which hands full leaves to [`Pages`]. Memory: the directory
//! and the filter, which readers need afterwards, one chunk of the filter being built, and 1 MiB of
//! pages to be written.
//!
//! [`RunWriter::finish`] syncs data and name; then a manifest may list the run.

use std::sync::Arc;

use varve_io::{PageFileWriter, Storage};

use crate::codec::{Codec, LeafBuilder as _};
use crate::filter::FilterBuilder;
use crate::footer::{Footer, RunNumber, Span};
use crate::fuse::Width;
use crate::pages::Pages;
use crate::run::Run;
use crate::run_error::RunError;
use crate::store_key::StoreKey;

/// A run that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// The number of the file.
    pub number: RunNumber,
    /// The steps whose changes the rows are.
    pub span: Span,
    /// An estimate of the number of rows.
    pub expected: u64,
    /// The width of the filter's fingerprints; `None` for a run without a filter, which answers by
    /// its directory alone.
    pub filter: Option<Width>,
    /// Keys in a chunk of the filter.
    pub chunk_keys: usize,
}

/// A run being written. If it is dropped before it is finished, it removes its file, so that a full
/// disk does not stay full.
#[derive(Debug)]
pub struct RunWriter<C: Codec> {
    claim: Claim,
    hasher: C::Hasher,
    footer: Footer,
    leaf: C::Builder,
    pages: Pages<C>,
}

/// The name of an unfinished file, which is removed when this is dropped.
#[derive(Debug)]
struct Claim {
    storage: Arc<dyn Storage>,
    name: String,
    finished: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.finished {
            // A file that cannot be removed now is swept when the store is next opened.
            let _ = self.storage.remove(&self.name);
        }
    }
}

impl<C: Codec> RunWriter<C> {
    /// Begins a run.
    pub fn create(
        storage: &Arc<dyn Storage>,
        key: StoreKey,
        new: &NewRun,
    ) -> Result<Self, C::Error> {
        const { assert!(!C::REPEATS || C::IS_PREFIX, "keys that repeat are found by prefix") };
        let NewRun { number, span, expected, filter, chunk_keys } = *new;
        let name = number.file_name();
        let file = PageFileWriter::create(&**storage, &name, C::KIND, key.file_id(number));
        let file = file.map_err(RunError::from)?;
        let path = storage.path().join(&name);
        Ok(Self {
            claim: Claim { storage: Arc::clone(storage), name, finished: false },
            hasher: C::hasher(key.secret),
            footer: Footer::new(key.id, number, span, filter),
            leaf: C::Builder::new(expected),
            pages: Pages::new(file, path, FilterBuilder::new(filter, chunk_keys)),
        })
    }

    /// The number of rows so far.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.footer.adds + self.footer.deletes
    }

    /// Adds a row, which must come after all before it.
    pub fn push(&mut self, row: &C::Row<'_>) -> Result<(), C::Error> {
        if C::is_delete(row) {
            self.footer.deletes += 1;
        } else {
            self.footer.adds += 1;
        }
        let hash = C::hash(&self.hasher, &C::key(row));
        self.leaf.push(row, hash, &mut self.pages)
    }

    /// Writes directory, filter and footer, syncs the file and its name, and opens the run.
    pub fn finish(mut self) -> Result<Run<C>, C::Error> {
        self.leaf.finish(&mut self.pages)?;
        let finished = self.pages.finish(self.footer)?;
        self.claim.storage.sync_dir().map_err(RunError::from)?;
        self.claim.finished = true;
        Ok(Run::assemble(finished))
    }
}

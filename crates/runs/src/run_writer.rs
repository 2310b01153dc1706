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
//! and the filter, which are needed afterwards anyway, one chunk of the filter, and 1 MiB of pages
//! to be written.
//!
//! [`RunWriter::finish`] syncs data and name; then a manifest may name the run.

use std::sync::Arc;

use varve_io::{PageFileWriter, Storage};

use crate::codec::{Codec, LeafBuilder as _};
use crate::filter::FilterBuilder;
use crate::footer::{Footer, RunNumber, Span};
use crate::fuse::Width;
use crate::pages::{Finished, Pages};
use crate::run::Run;
use crate::run_error::RunError;
use crate::store_key::StoreKey;

/// A run that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// The number of the file.
    pub number: RunNumber,
    /// What the owner counts its rows by.
    pub span: Span,
    /// A guess at the number of rows.
    pub expected: u64,
    /// How precise the filter is; `None` for a run that has no filter and answers by its directory
    /// alone.
    pub filter: Option<Width>,
    /// Keys of a chunk of the filter.
    pub chunk_keys: usize,
}

/// A run in the making. Dropped before it is finished, it takes its file away: a disk that is full
/// must not stay full.
#[derive(Debug)]
pub struct RunWriter<C: Codec> {
    claim: Claim,
    hasher: C::Hasher,
    footer: Footer,
    leaf: C::Builder,
    pages: Pages<C>,
}

/// The name of an unfinished file.
#[derive(Debug)]
struct Claim {
    storage: Arc<dyn Storage>,
    name: String,
    finished: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.finished {
            // A file that cannot be removed now is swept away when the store is opened.
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
            footer: Footer::new(key.id, (number, span), filter),
            leaf: C::Builder::new(expected),
            pages: Pages::new((file, path), FilterBuilder::new(filter, chunk_keys)),
        })
    }

    /// The number of rows so far.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.footer.adds + self.footer.deletes
    }

    /// Adds a row behind all before it.
    pub fn push(&mut self, row: &C::Row<'_>) -> Result<(), C::Error> {
        if C::is_delete(row) {
            self.footer.deletes += 1;
        } else {
            self.footer.adds += 1;
        }
        let hash = C::hash(&self.hasher, &C::key(row));
        self.leaf.push(row, hash, &mut self.pages)
    }

    /// Writes the rest, syncs the file and its name, and opens it.
    pub fn finish(mut self) -> Result<Run<C>, C::Error> {
        self.leaf.finish(&mut self.pages)?;
        let Finished { file, footer, directory, filter } = self.pages.finish(self.footer)?;
        self.claim.storage.sync_dir().map_err(RunError::from)?;
        self.claim.finished = true;
        Ok(Run::assemble(file, footer, (directory, filter)))
    }
}

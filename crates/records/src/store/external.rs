//! What changes of a record mean for its blob, and the cleaner of blobs.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use varve_types::{Height, Txid};

use super::{Result, Store, StoreError};
use crate::blob::BlobError;
use crate::engine::Task;
use crate::fields::Fields;
use crate::outcome::Effect;
use crate::record::Record;

/// Files that the cleaner looks at together.
const CLEAN_BATCH: usize = 1_000;

/// What the cleaner did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanReport {
    /// Transactions whose files were looked at.
    pub examined: u64,
    /// Blobs that no record needs, removed.
    pub removed: u64,
    /// Heights beside blobs that were not those of the record, put right.
    pub corrected: u64,
    /// Transactions whose files could not be read or removed: the next round tries again.
    pub failed: u64,
    /// The first of these failures.
    pub error: Option<String>,
}

/// Progress of cleaning in this process.
#[derive(Debug, Default)]
pub(super) struct CleanState {
    /// Something failed since the last round ended.
    failed: bool,
    /// The last failure, until a round ends without one.
    pub(super) trouble: Option<String>,
}

impl CleanReport {
    fn fail(&mut self, error: &BlobError) {
        self.failed += 1;
        self.error.get_or_insert_with(|| error.to_string());
    }
}

impl Store {
    /// Lets a blob follow its record. Heights beside a blob are hints, and a blob without a
    /// record is found by the cleaner; so a failure is counted and not reported.
    pub(super) fn follow(&self, effect: &Effect) {
        let done = match *effect {
            Effect::DeleteAt { txid, height } => self.hint(txid, Some(height)),
            Effect::KeepOn { txid } => self.hint(txid, None),
            Effect::PreserveUntil { txid, height } => {
                self.blobs.set_preserve_until(txid, height).map_err(Into::into)
            }
            Effect::Deleted { txid } => {
                let _held = self.blobs.hold(&[txid]);
                self.remove_unneeded(txid)
            }
        };
        if done.is_err() {
            self.lost_hints.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn hint(&self, txid: Txid, height: Option<Height>) -> Result<()> {
        match self.blobs.set_delete_at(txid, height) {
            Err(BlobError::NotFound { .. }) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Removes the blob of a txid that is held, unless a record needs it.
    pub(super) fn remove_unneeded(&self, txid: Txid) -> Result<()> {
        let record = self.engine.read(&[txid], Fields::HEAD)?.pop().flatten();
        if !record.is_some_and(|record| record.external) {
            self.blobs.remove(txid)?;
            self.cache.forget(txid);
        }
        Ok(())
    }

    /// Looks at the next files of blobs, at most `limit` of them, from where the last call
    /// stopped, wrapping around at the last file. Removes blobs that no record needs, and
    /// puts the heights beside the others right. A blob without a record goes when the height
    /// beside it is reached, or at once when there is none. Files that fail are counted and passed
    /// over. While another process cleans, nothing is done.
    pub fn clean_blobs(&self, height: Height, limit: usize) -> Result<CleanReport> {
        let mut report = CleanReport::default();
        let Some(_alone) = self.alone(Task::CleanBlobs)? else { return Ok(report) };
        let begun = self.blobs.cleaned_to()?;
        let mut after = begun.clone();
        let mut left = limit;
        while left > 0 {
            let asked = left.min(CLEAN_BATCH);
            let page = self.blobs.page(after.as_deref(), asked)?;
            let records = self.engine.read(&page.txids, Fields::HEAD)?;
            for (txid, record) in page.txids.iter().zip(&records) {
                let (count, done) = match record.as_ref().filter(|record| record.external) {
                    Some(record) => (&mut report.corrected, self.correct(record)),
                    None => (&mut report.removed, self.clean(*txid, height)),
                };
                match done {
                    Ok(done) => *count += u64::from(done),
                    Err(StoreError::Blob(error)) => report.fail(&error),
                    Err(error) => return Err(error),
                }
            }
            report.examined += page.txids.len() as u64;
            left -= asked;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        if after != begun {
            self.blobs.set_cleaned_to(after.as_deref())?;
        }
        self.note_cleaning(&report, after.is_none());
        Ok(report)
    }

    /// The same as far as the settings say. That blobs cannot be cleaned now is no failure, because
    /// what the caller did is done: it is in the report and in the health.
    pub(crate) fn clean_some_blobs(&self, height: Height) -> Result<CleanReport> {
        match self.clean_blobs(height, self.settings.clean_batch) {
            Err(StoreError::Blob(error)) => {
                let mut report = CleanReport::default();
                report.fail(&error);
                self.note_cleaning(&report, false);
                Ok(report)
            }
            cleaned => cleaned,
        }
    }

    fn note_cleaning(&self, report: &CleanReport, round_ends: bool) {
        let mut state = self.cleaning();
        state.failed |= report.failed > 0;
        if report.error.is_some() {
            state.trouble.clone_from(&report.error);
        }
        if round_ends && !std::mem::take(&mut state.failed) {
            state.trouble = None;
        }
    }

    pub(super) fn cleaning(&self) -> MutexGuard<'_, CleanState> {
        self.cleaning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks again, at the height beside the blob and at the record, and removes the blob.
    fn clean(&self, txid: Txid, height: Height) -> Result<bool> {
        let _held = self.blobs.hold(&[txid]);
        if self.blobs.delete_at(txid)?.is_some_and(|at| at > height) {
            return Ok(false);
        }
        self.remove_unneeded(txid)?;
        Ok(!self.blobs.contains(txid)?)
    }

    fn correct(&self, record: &Record) -> Result<bool> {
        let stale = self.blobs.delete_at(record.txid)? != record.delete_at;
        if stale {
            self.hint(record.txid, record.delete_at)?;
        }
        Ok(stale)
    }
}

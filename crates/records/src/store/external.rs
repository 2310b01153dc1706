//! What changes of a record mean for its blob, and the cleaner of blobs.

use std::sync::atomic::Ordering;

use varve_types::{Height, Txid};

use super::{Result, Store, StoreError};
use crate::blob::BlobError;
use crate::fields::Fields;
use crate::outcome::Effect;
use crate::record::Record;

/// Files that the cleaner looks at together.
const CLEAN_BATCH: usize = 1_000;

/// What the cleaner did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanReport {
    /// Transactions whose files were looked at.
    pub examined: u64,
    /// Blobs that no record needs, removed.
    pub removed: u64,
    /// Heights beside blobs that were not those of the record, put right.
    pub corrected: u64,
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

    /// Looks at the next files of blobs, at most `limit` of them, going on where the last call
    /// stopped and beginning again behind the last file. Removes blobs that no record needs, and
    /// puts the heights beside the others right. A blob without a record goes at the height beside
    /// it, or at once when there is none.
    pub fn clean_blobs(&self, limit: usize) -> Result<CleanReport> {
        let mut report = CleanReport::default();
        let height = self.block_state().height;
        let begun = self.blobs.cleaned_to()?;
        let mut after = begun.clone();
        let mut left = limit;
        while left > 0 {
            let asked = left.min(CLEAN_BATCH);
            let page = self.blobs.page(after.as_deref(), asked)?;
            let records = self.engine.read(&page.txids, Fields::HEAD)?;
            for (txid, record) in page.txids.iter().zip(&records) {
                match record.as_ref().filter(|record| record.external) {
                    Some(record) => report.corrected += u64::from(self.correct(record)?),
                    None => report.removed += u64::from(self.clean(*txid, height)?),
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
        Ok(report)
    }

    /// The same as far as the settings say. Blobs that cannot be cleaned now are cleaned later:
    /// that is counted and not reported, because what the caller did is done.
    pub(crate) fn clean_some_blobs(&self) -> Result<CleanReport> {
        match self.clean_blobs(self.settings.clean_batch) {
            Err(StoreError::Blob(_)) => {
                self.lost_hints.fetch_add(1, Ordering::Relaxed);
                Ok(CleanReport::default())
            }
            cleaned => cleaned,
        }
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

//! The state of a storage after a failure that leaves the disk unknown.
//!
//! One [`Poison`] is shared by everything opened from one storage. The first cause stays: later
//! failures are its consequences. The only way back is to reopen the store, which reads what is
//! really there.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};

/// Shared, set at most once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Poison(Arc<OnceLock<Arc<str>>>);

impl Poison {
    /// Refuses when poisoned. Every change to the storage asks this first.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(cause) => Err(Error::Poisoned { cause: Arc::clone(cause) }),
        }
    }

    /// Passes the result of a sync through; a failure poisons, whatever it was.
    pub(crate) fn after_sync(&self, result: Result<()>) -> Result<()> {
        result.inspect_err(|error| self.set(error))
    }

    /// Passes the result of a write through; a failure poisons unless the disk was only full.
    pub(crate) fn after_write(&self, result: Result<()>) -> Result<()> {
        result.inspect_err(|error| {
            if !error.is_disk_full() {
                self.set(error);
            }
        })
    }

    fn set(&self, error: &Error) {
        // A second failure finds the first cause in place, which is the one to keep.
        let _ = self.0.set(error.to_string().into());
    }
}

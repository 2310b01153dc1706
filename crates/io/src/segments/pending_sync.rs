//! A sync that one thread begins and another finishes, while the log grows.

use std::sync::Arc;

use crate::error::Result;
use crate::storage::{File, Storage};

/// A sync that was begun.
#[derive(Debug)]
#[must_use = "nothing is durable before it is finished"]
pub struct PendingSync {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) tail: Option<Arc<dyn File>>,
}

impl PendingSync {
    /// Syncs the file that was the last one when the sync began, and the directory. Earlier files
    /// were synced when they were sealed.
    pub fn finish(self) -> Result<()> {
        if let Some(tail) = self.tail {
            tail.sync()?;
        }
        self.storage.sync_dir()
    }
}

//! A folder at rest: opened for questions at a cost that does not grow with the chain.
//!
//! A node that ended in order leaves its folder *at rest*, and most questions are answered from
//! there without the writers ([`Reading`]). The unspent set is opened when it is first asked for.
//!
//! When the node is to be synced after all, the writers open beside this and the folder stays
//! locked in between. Snapshots that were taken before keep answering for their moment: history and
//! blocks are append-only files, and of the set they get the writer's first version, which stands
//! at the same tip. The lock around `set` makes that true: nobody opens the set from its files
//! while or after the writers do.

use std::sync::{Arc, Mutex, PoisonError};

use varve_node::{Organizer, Reading};
use varve_utxo::Version;

use crate::error::Error;

pub(crate) struct AtRest {
    pub(crate) reading: Reading,
    set: Mutex<Option<Arc<Version>>>,
}

impl AtRest {
    pub(crate) const fn new(reading: Reading) -> Self {
        Self { reading, set: Mutex::new(None) }
    }

    /// The unspent set, opened once.
    pub(crate) fn set(&self) -> Result<Arc<Version>, Error> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = &*set {
            return Ok(Arc::clone(version));
        }
        let version = self.reading.set()?;
        assert_eq!(version.tip(), Some(self.reading.tip()), "a set at rest stands at the tip");
        Ok(Arc::clone(set.insert(version)))
    }

    /// Opens the writers.
    pub(crate) fn open_writers(&self) -> Result<Organizer, Error> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let writers = self.reading.open_writers()?.ok_or(Error::Busy)?;
        let first = writers.snapshot();
        assert_eq!(first.tip, self.reading.tip(), "a folder at rest opens where it was left");
        set.get_or_insert_with(|| Arc::clone(&first.utxo));
        Ok(writers)
    }
}

//! Locks on txids, held while a blob and its record change together.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use varve_types::Txid;

/// The txids that are locked.
#[derive(Debug, Default)]
pub(super) struct Holds {
    held: Mutex<BTreeSet<Txid>>,
    released: Condvar,
}

/// Some txids, held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    holds: &'a Holds,
    txids: Vec<Txid>,
}

impl Holds {
    /// Takes all the txids in one step, so two callers that want the same ones in another order
    /// cannot deadlock. No caller takes more while it holds some.
    pub(super) fn take(&self, txids: &[Txid]) -> Held<'_> {
        let mut held = self.lock();
        while txids.iter().any(|txid| held.contains(txid)) {
            held = self.released.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.extend(txids);
        Held { holds: self, txids: txids.to_vec() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Txid>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.holds.lock();
        for txid in &self.txids {
            held.remove(txid);
        }
        drop(held);
        self.holds.released.notify_all();
    }
}

//! A folder at rest: opened for questions at a cost that does not grow with the chain.
//!
//! A node that ended in order leaves its folder *at rest*, and most questions are answered from
//! there without the writers ([`Reading`]): tables are opened when a question first touches them,
//! and the unspent set when it is first asked for. That is sound only while nobody writes.
//!
//! When the node is to be synced after all, it *wakes*: the writers open in the same process, and
//! the folder stays locked in between. Snapshots that were taken at rest turn to the writers' first
//! snapshot, which is the same moment, and keep it. Questions share a lock and waking takes it
//! alone, so no question reads a file that a writer changes.
//!
//! ```text
//!  question ──read──┐                          ┌──► the files at rest      before
//!                   ├─ woken: RwLock<Option<…>>┤
//!  wake ─────write──┘                          └──► the first live snapshot   after
//! ```

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use varve_node::{ArchiveView, NodeReader, NodeSnapshot, Organizer, Reading};
use varve_utxo::Version;

use crate::error::Error;

pub(crate) struct AtRest {
    /// What it keeps in memory (tip, branches, refusals) stays true; its files must be read
    /// within [`ask`](Self::ask).
    pub(crate) reading: Reading,
    view: ArchiveView,
    set: Mutex<Option<Arc<Version>>>,
    woken: RwLock<Option<Woken>>,
}

/// The same moment, as the writers have it.
pub(crate) struct Woken {
    pub(crate) reader: NodeReader,
    pub(crate) snapshot: Arc<NodeSnapshot>,
    view: ArchiveView,
}

/// Where an answer comes from.
pub(crate) enum State<'a> {
    Asleep(&'a AtRest),
    Woken(&'a Woken),
}

impl State<'_> {
    pub(crate) const fn view(&self) -> &ArchiveView {
        match self {
            Self::Asleep(at_rest) => &at_rest.view,
            Self::Woken(woken) => &woken.view,
        }
    }
}

impl AtRest {
    pub(crate) fn new(reading: Reading) -> Self {
        let (view, set) = (reading.view(), Mutex::new(None));
        Self { reading, view, set, woken: RwLock::new(None) }
    }

    /// Answers a question. Must not be called within another one: a writer may be waiting between
    /// the two.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(State<'_>) -> T) -> T {
        let woken = self.woken.read().unwrap_or_else(PoisonError::into_inner);
        question(woken.as_ref().map_or(State::Asleep(self), State::Woken))
    }

    /// The unspent set, opened once.
    pub(crate) fn set(&self) -> Result<Arc<Version>, Error> {
        self.ask(|state| match state {
            State::Woken(woken) => Ok(Arc::clone(&woken.snapshot.utxo)),
            State::Asleep(at_rest) => {
                let mut set = at_rest.set.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(version) = &*set {
                    return Ok(Arc::clone(version));
                }
                let version = at_rest.reading.set()?;
                let tip = Some(at_rest.reading.tip());
                assert_eq!(version.tip(), tip, "a set at rest stands at the tip");
                Ok(Arc::clone(set.insert(version)))
            }
        })
    }

    /// Opens the writers.
    pub(crate) fn wake(&self) -> Result<Organizer, Error> {
        let mut woken = self.woken.write().unwrap_or_else(PoisonError::into_inner);
        let writers = self.reading.open_writers()?.ok_or(Error::Busy)?;
        let (reader, snapshot) = (writers.reader(), writers.snapshot());
        assert_eq!(snapshot.tip, self.reading.tip(), "a folder at rest opens where it was left");
        let view = snapshot.view();
        *woken = Some(Woken { reader, snapshot, view });
        // Answers that hold it keep it; the memory of the index is not taken twice for others.
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(writers)
    }
}

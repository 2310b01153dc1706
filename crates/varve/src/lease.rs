//! Leases: how long a snapshot of a running node may be held.
//!
//! A snapshot keeps what it was taken of: sorted files that were merged since, coins that left the
//! window, rows of the mempool, bytes of blocks. A reader that never lets go would hold more and
//! more. So each live snapshot is noted here with its age, and loses what it holds when it is older
//! than the lease: its questions are answered [`Error::SnapshotExpired`] from then on. One that is
//! answering a question at that moment ends in order.
//!
//! The book is looked at whenever a snapshot is taken and whenever something is published, so
//! nothing old grows while nobody looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use varve_node::{ArchiveView, NodeReader, NodeSnapshot, Pin};

use crate::error::Error;

/// How long a snapshot may be held, unless the builder says otherwise.
pub(crate) const LEASE: Duration = Duration::from_secs(600);

/// The live snapshots of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSnapshots {
    /// How many there are. Clones of one count once.
    pub count: usize,
    /// The age of the oldest; zero when there is none.
    pub oldest: Duration,
}

/// All leases of a node.
#[derive(Debug)]
pub(crate) struct Leases {
    limit: Duration,
    book: Arc<Mutex<Book>>,
}

#[derive(Debug, Default)]
struct Book {
    next: u64,
    /// In the order in which they were taken.
    live: BTreeMap<u64, (Instant, Weak<Shelf>)>,
}

/// Where a snapshot keeps what it may lose.
#[derive(Debug, Default)]
struct Shelf(RwLock<Option<Arc<Held>>>);

impl Shelf {
    fn take(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// One moment of a running node.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) snapshot: Arc<NodeSnapshot>,
    pub(crate) view: ArchiveView,
    _pin: Pin,
}

/// The lease of one snapshot.
#[derive(Debug)]
pub(crate) struct Lease {
    shelf: Arc<Shelf>,
    number: u64,
    taken: Instant,
    limit: Duration,
    book: Arc<Mutex<Book>>,
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Leases {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, book: Arc::default() }
    }

    /// Takes a snapshot.
    pub(crate) fn take(&self, reader: &NodeReader) -> Lease {
        self.sweep();
        // The pin first: what the snapshot can reach is held before it is taken.
        let pin = reader.pin();
        let snapshot = reader.snapshot();
        let held = Held { view: snapshot.view(), snapshot, _pin: pin };
        let shelf = Arc::new(Shelf(RwLock::new(Some(Arc::new(held)))));
        let taken = Instant::now();
        let mut book = lock(&self.book);
        let number = book.next;
        book.next += 1;
        book.live.insert(number, (taken, Arc::downgrade(&shelf)));
        let (limit, book) = (self.limit, Arc::clone(&self.book));
        Lease { shelf, number, taken, limit, book }
    }

    /// Takes what they hold from snapshots that are too old.
    pub(crate) fn sweep(&self) {
        let mut expired = Vec::new();
        {
            let mut book = lock(&self.book);
            while let Some(entry) = book.live.first_entry()
                && entry.get().0.elapsed() > self.limit
            {
                expired.extend(entry.remove().1.upgrade());
            }
        }
        // What they held may be the last reference: it is dropped without the lock.
        expired.iter().for_each(|shelf| shelf.take());
    }

    /// How many there are, and the age of the oldest.
    pub(crate) fn live(&self) -> LiveSnapshots {
        self.sweep();
        let book = lock(&self.book);
        let oldest = book.live.first_key_value().map(|(_, (taken, _))| taken.elapsed());
        LiveSnapshots { count: book.live.len(), oldest: oldest.unwrap_or_default() }
    }
}

impl Lease {
    /// What the snapshot holds, for one question.
    pub(crate) fn held(&self) -> Result<Arc<Held>, Error> {
        if self.taken.elapsed() > self.limit {
            self.shelf.take();
        }
        let held = self.shelf.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        held.ok_or(Error::SnapshotExpired { lease: self.limit })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        lock(&self.book).live.remove(&self.number);
    }
}

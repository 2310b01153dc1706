//! A storage without maps, in which the reads or the writes of one thread can be held up.
//!
//! Without a map every look at a file that is not in memory is a read, so nothing cold hides behind
//! a page fault. Threads named [`GATED`] stop at a read or a write that the test chooses; all
//! others continue. Reads that a gated thread makes while it holds up others are counted.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use varve_io::faulty::FaultyStorage;
use varve_io::{Access, Caching, Error, File, FileOffset, LockGuard, Map, Result, Storage};

use crate::embedded::EmbeddedEngine;

/// The name of threads that can be held up.
pub(super) const GATED: &str = "gated";

/// What a thread is held up at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Call {
    #[default]
    Read,
    Write,
}

/// Calls that may pass.
#[derive(Debug, Default)]
struct Calls {
    /// All others pass.
    call: Call,
    left: usize,
    /// Somebody waits for more.
    waiting: bool,
    /// The gated thread has come to its end.
    finished: bool,
}

/// The gate.
#[derive(Debug, Default)]
pub(super) struct Gate {
    calls: Mutex<Calls>,
    changed: Condvar,
    /// The engine that is watched.
    engine: OnceLock<Weak<EmbeddedEngine>>,
    /// Reads of gated threads while somebody executed.
    reads_under_lock: AtomicUsize,
}

impl Gate {
    /// Counts the reads of gated threads under the lock of this engine.
    pub(super) fn watch(&self, engine: &Arc<EmbeddedEngine>) {
        self.engine.set(Arc::downgrade(engine)).unwrap();
    }

    /// The reads of gated threads while somebody executed: they, when nobody else is there.
    pub(super) fn reads_under_lock(&self) -> usize {
        self.reads_under_lock.load(Ordering::SeqCst)
    }

    /// Lets everything pass.
    pub(super) fn open(&self) {
        self.calls.lock().unwrap().left = usize::MAX;
        self.changed.notify_all();
    }

    /// Does something in a gated thread up to its call number `left`, then `meanwhile` while it is
    /// stopped there, then the rest. False when it did not come to that call.
    pub(super) fn stop_at(
        &self,
        (call, left): (Call, usize),
        act: impl FnOnce() + Send,
        meanwhile: impl FnOnce(),
    ) -> bool {
        *self.calls.lock().unwrap() = Calls { call, left, waiting: false, finished: false };
        thread::scope(|scope| {
            let gated = thread::Builder::new().name(GATED.to_owned());
            let handle = gated.spawn_scoped(scope, || {
                act();
                self.calls.lock().unwrap().finished = true;
                self.changed.notify_all();
            });
            let calls = self.calls.lock().unwrap();
            let until = |calls: &mut Calls| !calls.waiting && !calls.finished;
            let (calls, late) =
                self.changed.wait_timeout_while(calls, Duration::from_secs(60), until).unwrap();
            assert!(!late.timed_out(), "the gated thread does something");
            let stopped = calls.waiting;
            drop(calls);
            if stopped {
                meanwhile();
            }
            self.open();
            handle.unwrap().join().unwrap();
            stopped
        })
    }

    fn pass(&self, call: Call) {
        if thread::current().name() != Some(GATED) {
            return;
        }
        let engine = self.engine.get().and_then(Weak::upgrade);
        if call == Call::Read && engine.is_some_and(|engine| engine.commit.is_executing()) {
            self.reads_under_lock.fetch_add(1, Ordering::SeqCst);
        }
        let mut calls = self.calls.lock().unwrap();
        while calls.call == call && calls.left == 0 {
            calls.waiting = true;
            self.changed.notify_all();
            calls = self.changed.wait(calls).unwrap();
        }
        if calls.call == call {
            calls.left = calls.left.saturating_sub(1);
        }
    }
}

/// A directory behind the gate.
#[derive(Debug)]
pub(super) struct GatedStorage {
    inner: FaultyStorage,
    gate: Arc<Gate>,
}

impl GatedStorage {
    pub(super) fn new(gate: &Arc<Gate>) -> Self {
        Self { inner: FaultyStorage::new(1), gate: Arc::clone(gate) }
    }

    /// The same directory with maps and without the gate.
    pub(super) fn reopen(&self) -> FaultyStorage {
        self.inner.reopen()
    }
}

impl Storage for GatedStorage {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn open(&self, name: &str, access: Access, caching: Caching) -> Result<Arc<dyn File>> {
        let file = self.inner.open(name, access, caching)?;
        Ok(Arc::new(GatedFile { file, gate: Arc::clone(&self.gate) }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn list(&self) -> Result<Vec<String>> {
        self.inner.list()
    }

    fn list_others(&self) -> Result<Vec<String>> {
        self.inner.list_others()
    }

    fn sync_dir(&self) -> Result<()> {
        self.inner.sync_dir()
    }

    fn directory(&self, name: &str) -> Result<Arc<dyn Storage>> {
        self.inner.directory(name)
    }

    fn lock(&self) -> Result<LockGuard> {
        self.inner.lock()
    }
}

#[derive(Debug)]
struct GatedFile {
    file: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl File for GatedFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn size(&self) -> Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: FileOffset, bytes: &mut [u8]) -> Result<()> {
        self.gate.pass(Call::Read);
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: FileOffset, bytes: &[u8]) -> Result<()> {
        self.gate.pass(Call::Write);
        self.file.write_at(offset, bytes)
    }

    fn truncate(&self, len: FileOffset) -> Result<()> {
        self.file.truncate(len)
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    fn map(&self, _: FileOffset, len: u64) -> Result<Map> {
        Err(Error::TooLarge { path: self.path().to_path_buf(), len, limit: 0 })
    }

    fn descriptor(&self, _: bool) -> Option<BorrowedFd<'_>> {
        None
    }
}

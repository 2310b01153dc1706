//! A storage without maps, in which the reads of one thread can be held up.
//!
//! Without a map every look at a file that is not in memory is a read, so nothing cold hides behind
//! a page fault. Threads named [`GATED`] stop at a read that the test chooses; all others go on.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use varve_io::faulty::FaultyStorage;
use varve_io::{Access, Caching, Error, File, FileOffset, LockGuard, Map, Result, Storage};

/// The name of threads whose reads can be held up.
pub(super) const GATED: &str = "gated";

/// Reads that may pass.
#[derive(Debug, Default)]
struct Reads {
    left: usize,
    /// Somebody waits for more.
    waiting: bool,
    /// The gated thread has come to its end.
    finished: bool,
}

/// The gate.
#[derive(Debug, Default)]
pub(super) struct Gate {
    reads: Mutex<Reads>,
    changed: Condvar,
}

impl Gate {
    /// Lets so many reads pass from here on.
    pub(super) fn arm(&self, left: usize) {
        *self.reads.lock().unwrap() = Reads { left, waiting: false, finished: false };
    }

    /// Lets everything pass.
    pub(super) fn open(&self) {
        self.reads.lock().unwrap().left = usize::MAX;
        self.changed.notify_all();
    }

    /// Does something in a gated thread up to its read number `left`, then `meanwhile` while it is
    /// stopped there, then the rest. False when it did not come to that read.
    pub(super) fn stop_at(
        &self,
        left: usize,
        act: impl FnOnce() + Send,
        meanwhile: impl FnOnce(),
    ) -> bool {
        self.arm(left);
        thread::scope(|scope| {
            let gated = thread::Builder::new().name(GATED.to_owned());
            let handle = gated.spawn_scoped(scope, || {
                act();
                self.reads.lock().unwrap().finished = true;
                self.changed.notify_all();
            });
            let reads = self.reads.lock().unwrap();
            let until = |reads: &mut Reads| !reads.waiting && !reads.finished;
            let (reads, late) =
                self.changed.wait_timeout_while(reads, Duration::from_secs(60), until).unwrap();
            assert!(!late.timed_out(), "the gated thread does something");
            let stopped = reads.waiting;
            drop(reads);
            if stopped {
                meanwhile();
            }
            self.open();
            handle.unwrap().join().unwrap();
            stopped
        })
    }

    fn pass(&self) {
        if thread::current().name() != Some(GATED) {
            return;
        }
        let mut reads = self.reads.lock().unwrap();
        while reads.left == 0 {
            reads.waiting = true;
            self.changed.notify_all();
            reads = self.changed.wait(reads).unwrap();
        }
        reads.left = reads.left.saturating_sub(1);
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
        self.gate.pass();
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: FileOffset, bytes: &[u8]) -> Result<()> {
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

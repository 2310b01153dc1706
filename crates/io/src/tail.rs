//! Memory that one writer fills and many readers read, without a lock.
//!
//! ```text
//!  0                 published          capacity
//!  ┌─────────────────┬──────────────────┐
//!  │ readers         │ the writer       │
//!  └─────────────────┴──────────────────┘
//! ```
//!
//! The memory never moves and never shrinks. The writer copies bytes after `published`, where no
//! reader looks, and then stores the new `published` with release ordering. A reader loads
//! `published` with acquire ordering and reads below it, where nothing is written again. The
//! acquire load that sees a value sees all bytes written before the release store of that value, so
//! there is no data race and no half-written row. There is one writer because [`TailWriter`] is not
//! `Clone` and appends by `&mut self`.

#![expect(unsafe_code, reason = "shares memory between a writer and readers")]

use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory, as readers see it.
pub(crate) struct Tail {
    start: *mut u8,
    capacity: usize,
    published: AtomicUsize,
}

// SAFETY: all access goes through the protocol of the module: disjoint parts, handed over by a
// release store and an acquire load.
unsafe impl Send for Tail {}
// SAFETY: as above.
unsafe impl Sync for Tail {}

impl Tail {
    /// The bytes published so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        let len = self.published.load(Ordering::Acquire);
        // SAFETY: `len` never exceeds the capacity, the memory was zeroed when allocated and lives
        // as long as `self`, and bytes below a published length are never written again.
        unsafe { std::slice::from_raw_parts(self.start, len) }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let memory = ptr::slice_from_raw_parts_mut(self.start, self.capacity);
        // SAFETY: `start` and `capacity` are those of the box that was turned into a pointer in
        // `TailWriter::new`, and the last owner is here.
        drop(unsafe { Box::from_raw(memory) });
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("len", &self.bytes().len()).finish_non_exhaustive()
    }
}

/// The single writer of a tail.
#[derive(Debug)]
pub(crate) struct TailWriter {
    tail: Arc<Tail>,
    len: usize,
}

impl TailWriter {
    /// Memory for `capacity` bytes. The system gives pages out as they are touched.
    pub(crate) fn new(capacity: usize) -> Self {
        let memory = Box::into_raw(vec![0_u8; capacity].into_boxed_slice());
        let tail = Tail { start: memory.cast(), capacity, published: AtomicUsize::new(0) };
        Self { tail: Arc::new(tail), len: 0 }
    }

    pub(crate) fn reader(&self) -> Arc<Tail> {
        Arc::clone(&self.tail)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes left to fill.
    pub(crate) fn room(&self) -> usize {
        self.tail.capacity - self.len
    }

    /// Copies `bytes` after the end and publishes them.
    ///
    /// # Panics
    ///
    /// When there is no room; callers check [`TailWriter::room`] first.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room(), "the caller makes room before it appends");
        // SAFETY: the target lies inside the memory (asserted) and after `published`, where no
        // reader looks; `&mut self` of the only writer excludes other writers; the source is a
        // reader's or someone else's memory and cannot overlap unpublished bytes.
        unsafe {
            let target = self.tail.start.add(self.len);
            ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
        }
        self.len += bytes.len();
        self.tail.published.store(self.len, Ordering::Release);
    }

    /// All of the memory: what was appended, followed by zeroes.
    pub(crate) fn whole(&self) -> &[u8] {
        // SAFETY: the memory is initialised and only this writer ever changes it, by `&mut self`.
        unsafe { std::slice::from_raw_parts(self.tail.start, self.tail.capacity) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers hammer the published part while the writer grows it: every byte below the published
    /// length has its final value at first sight, and lengths never go back. Rows are long, so
    /// that a length published before its bytes would be seen. (Miri finds the race itself, with
    /// rows of any length.)
    #[test]
    fn readers_never_see_an_unwritten_byte() {
        const ROW: usize = if cfg!(miri) { 30 } else { 200_000 };
        const ROUNDS: usize = if cfg!(miri) { 1 } else { 100 };
        for _ in 0..ROUNDS {
            let mut writer = TailWriter::new(10 * ROW);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    let tail = writer.reader();
                    scope.spawn(move || {
                        let mut seen = 0;
                        while seen < 10 * ROW {
                            let bytes = tail.bytes();
                            assert_ne!(bytes.last(), Some(&0), "published before it was written");
                            assert!(bytes.len() >= seen, "the length went back");
                            assert!(bytes[seen..].iter().all(|&byte| byte == 7));
                            seen = bytes.len();
                        }
                    });
                }
                while writer.room() > 0 {
                    writer.append(&[7; ROW]);
                }
            });
        }
    }

    #[test]
    fn readers_keep_the_memory_when_the_writer_is_gone() {
        let mut writer = TailWriter::new(100);
        writer.append(b"abc");
        let tail = writer.reader();
        drop(writer);
        assert_eq!(tail.bytes(), b"abc");
    }
}

//! The ring between a reader and the kernel.
//!
//! A read in flight lives in a *slot*, which owns the buffer and a reference to the file until the
//! kernel has answered; the answer carries the slot's index. An answer is
//!
//! - a negative number: an error. Interrupted and try-again go back in; a direct read that the
//!   filesystem refuses goes back in through the page cache; the rest fail the request;
//! - zero: the end of the file, an error here;
//! - fewer bytes than asked: the rest goes back in, by the page cache when the place where it
//!   stopped is not aligned;
//! - the rest of the buffer: done, and only then does the buffer leave the slot.
//!
//! Memory safety rests on one rule: **a buffer whose slot is occupied is neither freed nor looked
//! at.** Dropping the ring waits until every slot is answered. If the kernel cannot even be asked,
//! the buffers are leaked: that loses memory, but the kernel never writes into memory that was
//! given to someone else.

#![expect(unsafe_code, reason = "hands buffers to the kernel")]

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::mem;
use std::os::fd::AsRawFd as _;

use io_uring::{IoUring, Probe, opcode, types};

use crate::buffer::is_aligned;
use crate::disk::is_refusal;
use crate::error::Error;
use crate::reader::{Completion, ReadRequest};

/// The most one entry reads; the kernel stops at 2 GiB - 4 KiB by itself.
const READ_MAX: usize = 1 << 30;

/// A full ring is submitted and reaped in this many batches: three quarters of the reads stay in
/// flight while the next batch is prepared, and one system call serves many reads.
const BATCHES: usize = 4;

pub(crate) struct Ring {
    ring: IoUring,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Answers taken off the ring and not yet worked through; kept for its memory.
    answers: Vec<(u64, i32)>,
}

struct Slot {
    request: ReadRequest,
    filled: usize,
    /// The filesystem refused to go past its cache for this read.
    cached: bool,
}

impl Ring {
    /// A ring with `depth` slots, or `None` where the kernel or a sandbox does not allow one.
    pub(crate) fn new(depth: u16) -> Option<Self> {
        let entries = u32::from(depth);
        // Where the kernel supports it: completions wait until the thread enters the kernel instead
        // of interrupting it, which would cost a good part of a read.
        let ring = IoUring::builder().setup_coop_taskrun().build(entries);
        let ring = ring.or_else(|_| IoUring::new(entries)).ok()?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).ok()?;
        if !probe.is_supported(opcode::Read::CODE) {
            return None;
        }
        let depth = usize::from(depth);
        let mut slots = Vec::new();
        slots.resize_with(depth, || None);
        Some(Self { ring, slots, free: (0..depth).rev().collect(), answers: Vec::new() })
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many more reads can be in flight.
    pub(crate) fn room(&self) -> usize {
        self.free.len()
    }

    /// How many reads are worth a system call.
    pub(crate) fn batch(&self) -> usize {
        (self.slots.len() / BATCHES).max(1)
    }

    /// Puts a read with a non-empty buffer into the queue. There must be room.
    pub(crate) fn push(&mut self, request: ReadRequest) {
        let index = self.free.pop().expect("the caller asked for room");
        self.enqueue(index, Slot { request, filled: 0, cached: false });
    }

    /// Queues what is left of the slot's read, and occupies the slot.
    fn enqueue(&mut self, index: usize, mut slot: Slot) {
        let request = &mut slot.request;
        let offset = request.offset.plus(slot.filled as u64).get();
        let (start, len) = request.buffer.raw_from(slot.filled);
        let len = len.min(READ_MAX);
        let aligned = !slot.cached && is_aligned(offset, start, len);
        let descriptor =
            request.file.descriptor(aligned).expect("files without one are not queued");
        let length = u32::try_from(len).expect("READ_MAX fits");
        let entry = opcode::Read::new(types::Fd(descriptor.as_raw_fd()), start, length)
            .offset(offset)
            .build()
            .user_data(index as u64);
        // SAFETY: the entry points at `len` bytes of the buffer and at the file's descriptor. Both
        // are owned by the slot stored below, which is emptied only after the kernel's answer for
        // this index was taken off the ring, or leaked with the buffer.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue has at least as many places as there are slots");
        let place = self.slots.get_mut(index).expect("indexes come from the free list");
        *place = Some(slot);
    }

    /// Hands the queue to the kernel without waiting.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        if self.ring.submission().is_empty() {
            return Ok(());
        }
        self.enter(0)
    }

    /// Hands the queue to the kernel and waits for a batch of answers, or for all there will be.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        self.enter(self.in_flight().min(self.batch()))
    }

    fn enter(&mut self, want: usize) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(want) {
                Ok(_) => return Ok(()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The kernel is out of memory for more requests, or wants answers taken
                    // first. The queue keeps its entries; they go with the next call.
                    Some(libc::EAGAIN | libc::EBUSY) => return Ok(()),
                    _ => return Err(error),
                },
            }
        }
    }

    /// Takes the kernel's answers: finished reads go to `done`, unfinished ones back in.
    pub(crate) fn reap(&mut self, done: &mut VecDeque<Completion>) {
        let mut answers = mem::take(&mut self.answers);
        answers.extend(self.ring.completion().map(|entry| (entry.user_data(), entry.result())));
        for (index, result) in answers.drain(..) {
            let index = usize::try_from(index).expect("indexes fit");
            let slot = self.slots.get_mut(index).and_then(Option::take);
            let slot = slot.expect("the kernel answers each entry once");
            match judge(slot, result) {
                Verdict::Again(slot) => self.enqueue(index, slot),
                Verdict::Done(completion) => {
                    self.free.push(index);
                    done.push_back(completion);
                }
            }
        }
        self.answers = answers;
    }

    /// Fails every read in flight with `error`, leaking their buffers: the kernel may still write.
    pub(crate) fn abandon(mut self, error: &io::Error, done: &mut VecDeque<Completion>) {
        for Slot { request, .. } in self.slots.iter_mut().filter_map(Option::take) {
            let ReadRequest { tag, file, buffer, .. } = request;
            mem::forget(buffer);
            let source = io::Error::new(error.kind(), error.to_string());
            done.push_back(Completion {
                tag,
                result: Err(Error::from_io("read", file.path(), source)),
            });
        }
        self.free = (0..self.slots.len()).collect();
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.slots.iter().any(Option::is_some) {
            if self.enter(1).is_err() {
                // SAFETY argument of the module: leak rather than free.
                mem::take(&mut self.slots).into_iter().for_each(mem::forget);
                return;
            }
            for entry in self.ring.completion() {
                let index = usize::try_from(entry.user_data()).expect("indexes fit");
                if let Some(slot) = self.slots.get_mut(index).and_then(Option::take) {
                    drop(slot);
                    self.free.push(index);
                }
            }
        }
    }
}

enum Verdict {
    Done(Completion),
    Again(Slot),
}

/// What an answer means for its read.
fn judge(mut slot: Slot, result: i32) -> Verdict {
    let Ok(count) = usize::try_from(result) else {
        let error = io::Error::from_raw_os_error(-result);
        if matches!(-result, libc::EINTR | libc::EAGAIN) {
            return Verdict::Again(slot);
        }
        if is_refusal(&error) && !slot.cached {
            slot.cached = true;
            return Verdict::Again(slot);
        }
        let ReadRequest { tag, file, .. } = slot.request;
        let result = Err(Error::from_io("read", file.path(), error));
        return Verdict::Done(Completion { tag, result });
    };
    slot.filled += count;
    let len = slot.request.buffer.len();
    if count != 0 && slot.filled < len {
        return Verdict::Again(slot);
    }
    let ReadRequest { tag, file, offset, buffer } = slot.request;
    let result = if slot.filled == len {
        Ok(buffer)
    } else {
        Err(Error::UnexpectedEnd {
            path: file.path().to_path_buf(),
            len: offset.plus(slot.filled as u64),
            wanted: offset.plus(len as u64),
        })
    };
    Verdict::Done(Completion { tag, result })
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::AlignedBuffer;
    use crate::faulty::FaultyStorage;
    use crate::offset::FileOffset;
    use crate::storage::{Access, Caching, Storage as _};

    /// A read of 100 bytes at 1000, with `filled` of them done.
    fn slot(filled: usize) -> Slot {
        let storage = FaultyStorage::new(1);
        let file = storage.open("f", Access::Create, Caching::Buffered).unwrap();
        let buffer = AlignedBuffer::zeroed(100);
        let request = ReadRequest { tag: 7, file, offset: FileOffset::new(1000), buffer };
        Slot { request, filled, cached: false }
    }

    fn done(slot: Slot, result: i32) -> crate::Result<AlignedBuffer> {
        match judge(slot, result) {
            Verdict::Done(Completion { tag: 7, result }) => result,
            Verdict::Done(_) => panic!("another tag"),
            Verdict::Again(_) => panic!("{result} is final"),
        }
    }

    fn again(slot: Slot, result: i32) -> Slot {
        match judge(slot, result) {
            Verdict::Again(slot) => slot,
            Verdict::Done(completion) => panic!("{result} is not final: {completion:?}"),
        }
    }

    #[test]
    fn a_buffer_comes_back_only_when_it_is_full() {
        assert_eq!(done(slot(0), 100).unwrap().len(), 100);
        assert_eq!(done(slot(60), 40).unwrap().len(), 100);
        let short = again(slot(0), 30);
        assert_eq!(short.filled, 30);
        assert!(done(again(short, 69), 1).is_ok());
    }

    #[test]
    fn the_end_of_the_file_says_where_it_is() {
        let Err(Error::UnexpectedEnd { len, wanted, .. }) = done(slot(30), 0) else {
            panic!("the file has ended")
        };
        assert_eq!((len.get(), wanted.get()), (1030, 1100));
    }

    #[test]
    fn passing_troubles_are_tried_again_and_others_are_errors() {
        for trouble in [libc::EINTR, libc::EAGAIN] {
            assert_eq!(again(slot(30), -trouble).filled, 30);
        }
        let cached = again(slot(30), -libc::EINVAL);
        assert!(cached.cached, "refused past the cache, so through it");
        assert!(done(cached, -libc::EINVAL).is_err(), "refused there too");
        let failed = done(slot(0), -libc::EIO).unwrap_err();
        assert!(matches!(failed, Error::Io { action: "read", .. }), "{failed}");
    }

    #[test]
    fn a_ring_that_is_given_up_fails_its_reads_and_leaks_their_buffers() {
        let Some(mut ring) = Ring::new(4) else { return };
        ring.slots[2] = Some(slot(0));
        ring.free.retain(|index| *index != 2);
        let mut failed = VecDeque::new();
        ring.abandon(&io::Error::from_raw_os_error(libc::EBADF), &mut failed);
        let completion = failed.pop_front().unwrap();
        assert!(completion.tag == 7 && completion.result.is_err() && failed.is_empty());
    }
}

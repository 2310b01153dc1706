//! One file of the log, and the three ways to its bytes.
//!
//! Frames are written past the system's cache, which is several times as fast as through it when
//! every group is synced. So the store keeps the youngest frames in memory itself, as they were
//! written, and reading them needs no system call. A file that is full is mapped
//! when the group it ends with is durable; its frames stay in memory until younger ones need the
//! room.
//! In between, and when memory was given back early because a group is bigger than a file, bytes
//! are read from the file.
//!
//! ```text
//!  0            64        4096
//!  ┌────────────┬─────────┬─────────┬─────────┬─ ─
//!  │ header, as │ zeroes  │ frame   │ frame   │
//!  │ in io      │         │         │         │
//!  └────────────┴─────────┴─────────┴─────────┴─ ─
//! ```

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use varve_io::{
    Access, AlignedBuffer, BLOCK, Caching, Error, File, FileOffset, FormatError, GlobalOffset, Map,
    Result, SegmentHeader, Storage,
};

use crate::embedded::entry::{self, ENTRY_HEAD_LEN};

/// The bytes of a file before its first frame.
pub(super) const FRAMES_AT: u64 = BLOCK as u64;

/// What is written at once: the buffer is no longer than that. Most frames are shorter.
const LONGEST_WRITE: usize = 8 << 20;
const _: () = assert!(LONGEST_WRITE.is_multiple_of(BLOCK));

/// Frames in memory, and where they begin behind the file's header.
type Piece = (u64, Arc<Vec<u8>>);

/// One file of the log.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) start: GlobalOffset,
    pub(super) file: Arc<dyn File>,
    /// The bytes of whole frames.
    len: AtomicU64,
    pieces: RwLock<Vec<Piece>>,
    /// All frames, when the file is full.
    map: Option<Map>,
}

impl Segment {
    pub(super) fn new(number: u64, start: GlobalOffset, file: Arc<dyn File>, len: u64) -> Self {
        let (len, pieces) = (AtomicU64::new(len), RwLock::default());
        Self { number, start, file, len, pieces, map: None }
    }

    pub(super) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    pub(super) fn end(&self) -> GlobalOffset {
        self.start.plus(self.len())
    }

    /// Where position `at` lies in the file.
    pub(super) fn place(&self, at: GlobalOffset) -> FileOffset {
        place(at.since(self.start).unwrap_or(0))
    }

    /// The end of the frames in the file.
    pub(super) fn file_end(&self) -> FileOffset {
        place(self.len())
    }

    /// Writes a frame behind the others, through a buffer that a disk can read from directly.
    pub(super) fn append(&self, frame: Vec<u8>, buffer: &mut AlignedBuffer) -> Result<()> {
        let len = self.len();
        assert!(frame.len().is_multiple_of(BLOCK), "frames are whole blocks");
        assert!(len.is_multiple_of(FRAMES_AT), "a frame begins at a block");
        let wanted = frame.len().min(LONGEST_WRITE);
        if buffer.len() < wanted {
            *buffer = AlignedBuffer::zeroed((wanted + wanted / 4).next_multiple_of(BLOCK));
        }
        let mut at = len;
        for piece in frame.chunks(LONGEST_WRITE) {
            let aligned = buffer.get_mut(..piece.len()).unwrap_or_default();
            aligned.copy_from_slice(piece);
            self.file.write_at(place(at), aligned)?;
            at += piece.len() as u64;
        }
        let grown = len + frame.len() as u64;
        self.pieces_mut().push((len, Arc::new(frame)));
        self.len.store(grown, Ordering::Release);
        Ok(())
    }

    /// Keeps verified frames that the file holds in memory: the tail, when it is opened.
    pub(super) fn keep(&self, start: u64, frames: Vec<u8>) {
        self.pieces_mut().push((start, Arc::new(frames)));
    }

    /// Drops the frames from `len` on.
    pub(super) fn cut(&self, len: u64) {
        let mut pieces = self.pieces_mut();
        pieces.retain(|(start, _)| *start < len);
        self.len.store(len, Ordering::Release);
    }

    /// Frees the memory of the frames: they are read from the file.
    pub(super) fn forget(&self) {
        *self.pieces_mut() = Vec::new();
    }

    /// Whether all frames are in memory.
    pub(super) fn is_in_memory(&self) -> bool {
        self.pieces().first().is_some_and(|(start, _)| *start == 0)
    }

    /// The bytes of frames in memory.
    pub(super) fn in_memory_len(&self) -> u64 {
        self.pieces().iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// The same file when it is full and will not change any more: mapped, and open for reading
    /// only, so that a long log does not hold many descriptors.
    pub(super) fn sealed(&self, storage: &dyn Storage) -> Result<Self> {
        let name = super::file_name(self.number);
        let file = storage.open(&name, Access::Read, Caching::Buffered)?;
        let map = file.map(place(0), self.len())?;
        map.expect_random_access();
        let sealed = Self::new(self.number, self.start, file, self.len());
        sealed.pieces_mut().clone_from(&self.pieces());
        Ok(Self { map: Some(map), ..sealed })
    }

    /// The map of a full file.
    pub(super) const fn map(&self) -> Option<&Map> {
        self.map.as_ref()
    }

    /// The bytes of the entry at `at`, as long as it says it is. Nothing is verified.
    pub(super) fn entry(&self, at: GlobalOffset) -> Result<EntryBytes> {
        let start = at.since(self.start).unwrap_or(0);
        let available = self.len().saturating_sub(start);
        let cut =
            || self.damage(at, FormatError::Damaged { at: 0, what: "the entry is cut short" });
        if let Some(bytes) = self.in_memory(start) {
            let head = bytes.first_chunk::<ENTRY_HEAD_LEN>().ok_or_else(cut)?;
            let length = entry::stated_length(head);
            return bytes.cut(length).ok_or_else(cut);
        }
        let mut head = [0; ENTRY_HEAD_LEN];
        if available < head.len() as u64 {
            return Err(cut());
        }
        self.file.read_at(place(start), &mut head)?;
        let length = entry::stated_length(&head);
        if length as u64 > available {
            return Err(cut());
        }
        self.read(start, length)
    }

    /// Faults in every page of the entry at `at`. False when neither memory
    /// nor a map has the entry.
    pub(super) fn touch(&self, at: GlobalOffset) -> bool {
        let start = at.since(self.start).unwrap_or(0);
        if self.pieces().first().is_some_and(|(first, _)| *first <= start) {
            return true;
        }
        let Some(bytes) = self.in_map(start) else { return false };
        let length = bytes.first_chunk::<ENTRY_HEAD_LEN>().map_or(0, entry::stated_length);
        let end = length.min(bytes.len()).max(1);
        for place in (0..end).step_by(BLOCK).chain([end - 1]) {
            std::hint::black_box(bytes.get(place).copied());
        }
        true
    }

    /// All bytes from `at` on.
    pub(super) fn rest(&self, at: GlobalOffset) -> Result<EntryBytes> {
        let start = at.since(self.start).unwrap_or(0);
        let left = self.len().saturating_sub(start);
        match self.in_map(start) {
            Some(bytes) => Ok(bytes),
            None => self.read(start, usize::try_from(left).unwrap_or(usize::MAX)),
        }
    }

    /// Damage that a decoder saw in the bytes at `at`.
    pub(super) fn damage(&self, at: GlobalOffset, error: FormatError) -> Error {
        error.in_file(self.file.path(), self.place(at))
    }

    fn read(&self, start: u64, length: usize) -> Result<EntryBytes> {
        let mut bytes = vec![0; length];
        self.file.read_at(place(start), &mut bytes)?;
        Ok(EntryBytes { range: 0..length, source: Source::Owned(bytes) })
    }

    /// The bytes from `start` on, as far as one piece of memory has them.
    fn in_memory(&self, start: u64) -> Option<EntryBytes> {
        let pieces = self.pieces();
        let behind = pieces.partition_point(|(first, _)| *first <= start);
        let Some((first, bytes)) = behind.checked_sub(1).and_then(|index| pieces.get(index)) else {
            return self.in_map(start);
        };
        let range = usize::try_from(start - first).ok()?..bytes.len();
        Some(EntryBytes { source: Source::Piece(Arc::clone(bytes)), range })
    }

    fn in_map(&self, start: u64) -> Option<EntryBytes> {
        let map = self.map.as_ref()?;
        let range = usize::try_from(start).ok()?..map.len();
        Some(EntryBytes { source: Source::Mapped(map.clone()), range })
    }

    fn pieces(&self) -> RwLockReadGuard<'_, Vec<Piece>> {
        self.pieces.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn pieces_mut(&self) -> RwLockWriteGuard<'_, Vec<Piece>> {
        self.pieces.write().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn place(len: u64) -> FileOffset {
    FileOffset::new(FRAMES_AT).plus(len)
}

/// The first block of a file.
pub(super) fn first_block(header: &SegmentHeader) -> AlignedBuffer {
    let mut block = AlignedBuffer::zeroed(BLOCK);
    for (place, byte) in block.iter_mut().zip(header.encode()) {
        *place = byte;
    }
    block
}

/// Bytes of the log, borrowed from memory or a map by reference count, or owned.
#[derive(Debug)]
pub(in crate::embedded) struct EntryBytes {
    source: Source,
    range: Range<usize>,
}

#[derive(Debug)]
enum Source {
    Mapped(Map),
    Piece(Arc<Vec<u8>>),
    Owned(Vec<u8>),
}

impl EntryBytes {
    /// Bytes that were read and verified.
    pub(super) fn shared(bytes: Arc<Vec<u8>>) -> Self {
        Self { range: 0..bytes.len(), source: Source::Piece(bytes) }
    }

    /// Whether they were kept in memory since they were written or verified.
    pub(super) const fn is_own(&self) -> bool {
        matches!(self.source, Source::Piece(_))
    }

    /// The bytes as a vector: without a copy when they were just read.
    pub(super) fn into_vec(self) -> Vec<u8> {
        match self.source {
            Source::Owned(bytes) if bytes.len() == self.range.len() => bytes,
            _ => self.to_vec(),
        }
    }

    /// The first `len` bytes; `None` when there are fewer.
    fn cut(mut self, len: usize) -> Option<Self> {
        if len > self.range.len() {
            return None;
        }
        self.range.end = self.range.start + len;
        Some(self)
    }
}

impl Deref for EntryBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes: &[u8] = match &self.source {
            Source::Mapped(map) => map,
            Source::Piece(bytes) => bytes,
            Source::Owned(bytes) => bytes,
        };
        bytes.get(self.range.clone()).unwrap_or_default()
    }
}

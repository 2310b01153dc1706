//! Reading a log of plain bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::MappedLogConfig;
use super::sealed::Sealed;
use crate::error::{Error, Result};
use crate::map::Map;
use crate::offset::GlobalOffset;
use crate::tail::Tail;

/// What readers share: replaced whole when a segment is sealed.
#[derive(Debug)]
pub(super) struct State {
    sealed: Vec<Arc<Sealed>>,
    /// The last segment: what is mapped of it, and behind that what is in memory.
    front: Option<Map>,
    tail: Arc<Tail>,
}

impl State {
    pub(super) fn new(sealed: Vec<Arc<Sealed>>, tail: Arc<Tail>) -> Self {
        Self { sealed, front: None, tail }
    }

    /// The state when the written part of the last segment is mapped.
    pub(super) fn with_front(&self, front: Option<Map>, tail: Arc<Tail>) -> Self {
        Self { sealed: self.sealed.clone(), front, tail }
    }

    /// How many bytes of the last segment are mapped.
    fn front_len(&self) -> usize {
        self.front.as_ref().map_or(0, |front| front.len())
    }

    /// Bytes of the last segment, which were appended in one piece.
    fn last(&self, start: usize, end: usize) -> Option<&[u8]> {
        let front = self.front_len();
        match (&self.front, start.checked_sub(front)) {
            (Some(map), None) => map.get(start..end),
            (_, Some(start)) => self.tail.bytes().get(start..end - front),
            (None, None) => None,
        }
    }

    /// The state after the old tail became `sealed`.
    pub(super) fn with_sealed(&self, sealed: Arc<Sealed>, tail: Arc<Tail>) -> Self {
        let mut all = self.sealed.clone();
        all.push(sealed);
        Self { sealed: all, front: None, tail }
    }
}

/// Reads a log of plain bytes, beside its writer and other readers.
#[derive(Debug, Clone)]
pub struct LogReader {
    state: Arc<ArcSwap<State>>,
    config: Arc<MappedLogConfig>,
    path: Arc<PathBuf>,
}

impl LogReader {
    pub(super) fn new(
        state: Arc<ArcSwap<State>>,
        config: MappedLogConfig,
        directory: &Path,
    ) -> Self {
        let path = Arc::new(directory.join(&config.prefix));
        Self { state, config: Arc::new(config), path }
    }

    /// The log as it is now. It stays as it is while the snapshot is held.
    #[must_use]
    pub fn snapshot(&self) -> LogSnapshot {
        let state = self.state.load_full();
        let sealed = (state.sealed.len() as u64).saturating_mul(self.config.capacity());
        let last = state.front_len() + state.tail.bytes().len();
        let end = GlobalOffset::new(sealed).plus(last as u64);
        LogSnapshot { state, config: Arc::clone(&self.config), path: Arc::clone(&self.path), end }
    }
}

/// A log at one moment. Slices borrow from it and cannot outlive it:
///
/// ```compile_fail
/// # fn f(reader: &varve_io::LogReader) -> varve_io::Result<()> {
/// let row = reader.snapshot().get(varve_io::GlobalOffset::ZERO, 8)?;
/// println!("{row:?}"); // the snapshot is gone
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LogSnapshot {
    state: Arc<State>,
    config: Arc<MappedLogConfig>,
    path: Arc<PathBuf>,
    end: GlobalOffset,
}

impl LogSnapshot {
    /// The position behind the last byte of this moment.
    #[must_use]
    pub const fn end(&self) -> GlobalOffset {
        self.end
    }

    /// The `len` bytes at `at`, which must have been appended in one piece.
    pub fn get(&self, at: GlobalOffset, len: usize) -> Result<&[u8]> {
        let capacity = self.config.capacity();
        let segment = usize::try_from(at.get() / capacity).ok();
        let start = usize::try_from(at.get() % capacity).ok();
        let (Some(segment), Some(start)) = (segment, start) else {
            return Err(self.out_of_range(at));
        };
        let Some(end) = start.checked_add(len).filter(|_| at.plus(len as u64) <= self.end) else {
            return Err(self.out_of_range(at));
        };
        let found = if let Some(sealed) = self.state.sealed.get(segment) {
            sealed.get(&self.config, start..end)?
        } else {
            // The tail holds the segment after the sealed ones; the end was checked above.
            self.state.last(start, end)
        };
        found.ok_or_else(|| self.out_of_range(at))
    }

    /// Compares every byte of the sealed segments with its checksum. The last segment was compared
    /// when the log was opened.
    pub fn verify(&self) -> Result<()> {
        let capacity = usize::try_from(self.config.capacity()).expect("a u32 is an address");
        for sealed in &self.state.sealed {
            sealed.get(&self.config, 0..capacity)?;
        }
        Ok(())
    }

    fn out_of_range(&self, at: GlobalOffset) -> Error {
        let start = GlobalOffset::ZERO;
        let path = self
            .state
            .sealed
            .last()
            .map_or_else(|| self.path.to_path_buf(), |sealed| sealed.path().to_path_buf());
        Error::OutOfRange { path, at, start, end: self.end }
    }
}

//! Reading a log of plain bytes.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::at_rest::AtRest;
use super::sealed::Sealed;
use super::{LogCheckpoint, MappedLogConfig};
use crate::error::{Error, Result};
use crate::map::Map;
use crate::offset::GlobalOffset;
use crate::storage::Storage;
use crate::tail::Tail;

/// What readers share: replaced whole when a segment is sealed.
#[derive(Debug)]
pub(super) enum State {
    /// There is a writer.
    Live { sealed: Vec<Arc<Sealed>>, last: Last },
    /// There is none.
    AtRest(AtRest),
}

/// The segment that is written to: its mapped part, followed by the part in memory.
#[derive(Debug)]
pub(super) struct Last {
    pub(super) front: Option<Map>,
    pub(super) tail: Arc<Tail>,
}

impl Last {
    fn front_len(&self) -> usize {
        self.front.as_ref().map_or(0, |front| front.len())
    }

    /// The bytes of `range`, which were appended in one piece.
    fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        let front = self.front_len();
        match (&self.front, range.start.checked_sub(front)) {
            (Some(map), None) => map.get(range),
            (_, Some(start)) => self.tail.bytes().get(start..range.end - front),
            (None, None) => None,
        }
    }
}

impl State {
    pub(super) fn new(sealed: Vec<Arc<Sealed>>, last: Last) -> Self {
        Self::Live { sealed, last }
    }

    fn end(&self, config: &MappedLogConfig) -> GlobalOffset {
        match self {
            Self::Live { sealed, last } => {
                let sealed = (sealed.len() as u64).saturating_mul(config.capacity());
                let last = last.front_len() + last.tail.bytes().len();
                GlobalOffset::new(sealed).plus(last as u64)
            }
            Self::AtRest(files) => files.checkpoint().end,
        }
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

    /// The log as it was at `checkpoint`, when there is no writer. Files are opened when they are
    /// first read, so what is missing or damaged is an error then.
    #[must_use]
    pub fn at_rest(
        storage: Arc<dyn Storage>,
        config: MappedLogConfig,
        checkpoint: LogCheckpoint,
    ) -> Self {
        let files = AtRest::new(Arc::clone(&storage), &config, checkpoint);
        let state = Arc::new(ArcSwap::from_pointee(State::AtRest(files)));
        Self::new(state, config, storage.path())
    }

    /// The log as it is now. It stays as it is while the snapshot is held.
    #[must_use]
    pub fn snapshot(&self) -> LogSnapshot {
        let state = self.state.load_full();
        let end = state.end(&self.config);
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
    /// The position after the last byte of this snapshot.
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
        let found = match self.state.as_ref() {
            State::Live { sealed, last } => match sealed.get(segment) {
                Some(sealed) => sealed.get(&self.config, start..end)?,
                // The last segment follows the sealed ones; the end was checked above.
                None => last.get(start..end),
            },
            State::AtRest(files) => files.get(&self.config, segment, start..end)?,
        };
        found.ok_or_else(|| self.out_of_range(at))
    }

    /// Compares every byte of the sealed segments with its checksum. The last segment was compared
    /// when the log was opened for writing.
    pub fn verify(&self) -> Result<()> {
        let capacity = usize::try_from(self.config.capacity()).expect("a u32 is an address");
        let sealed = self.end.get() / self.config.capacity();
        for number in 0..sealed {
            self.get(GlobalOffset::new(number * self.config.capacity()), capacity)?;
        }
        Ok(())
    }

    fn out_of_range(&self, at: GlobalOffset) -> Error {
        let last = match self.state.as_ref() {
            State::Live { sealed, .. } => sealed.last().map(|sealed| sealed.path()),
            State::AtRest(_) => None,
        };
        let path = last.unwrap_or(&self.path).to_path_buf();
        Error::OutOfRange { path, at, start: GlobalOffset::ZERO, end: self.end }
    }
}

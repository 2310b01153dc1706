//! Plain bytes in a growing log, lent to readers as slices, without a lock.
//!
//! For rows that are appended once, never change, and are read at random: no frames, no copies.
//!
//! ```text
//!  position   0                  capacity            2·capacity        end
//!             ├──────────────────┼───────────────────┼─────────────────┤
//!             sealed file: map   sealed file: map    front: map │ tail: memory, then its file
//!
//!  file       0        64                    64+capacity
//!             ┌────────┬─────────────────────┬──────────────────────────────┬──────────┐
//!             │ segment│ bytes               │ crc of each 4 KiB of bytes   │ crc of   │
//!             │ header │ (`segment`, plain)  │ u32 × ⌈capacity / 4096⌉      │ them u32 │
//!             └────────┴─────────────────────┴──────────────────────────────┴──────────┘
//!                                            └ only in a sealed file ────────────────────┘
//! ```
//!
//! 1. **Append** copies into the tail's memory and publishes; readers see it at once (`tail`). A
//!    piece that does not fit into the rest of a segment goes to the next one and zeroes fill the
//!    rest: a piece is never split. (Rows of one width stay evenly spaced when the capacity is a
//!    multiple of it.)
//! 2. **Sync** writes what is new to the tail's file in one write, syncs, and returns a
//!    [`LogCheckpoint`]: the end, and a checksum of the tail up to there. The caller keeps it where
//!    it keeps its own state. A full disk loses nothing: the bytes are still in memory. The tail
//!    has at most [`CHUNK`] bytes of memory. When they are used up they are written too, and all
//!    that is written becomes the *front*: a map of the file, which takes no memory of the process.
//!    It is durable with the next sync, and never changes.
//! 3. **Sealing**, when a segment is full: checksums are added, the file is synced, mapped, and
//!    replaces the memory in the readers' list. Readers hold a reference, so the memory outlives
//!    its replacement.
//! 4. **Open** takes the checkpoint back, reads the tail and compares its checksum, and cuts off
//!    whatever came later: it was never acknowledged. Sealed files are verified block by block on
//!    first touch.
//! 5. **At rest**, when nobody writes, [`LogReader::at_rest`] opens nothing until it is read
//!    (`at_rest`).
//!
//! Block crc = CRC32C(store id 16 ‖ segment number u64 ‖ block index u64 ‖ the block's bytes).
//! Table crc = CRC32C(store id 16 ‖ segment number u64 ‖ the block crcs).
//! Tail crc = CRC32C(store id 16 ‖ segment number u64 ‖ the tail's bytes up to the end).

mod at_rest;
mod config;
mod read;
mod sealed;

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;

pub use config::{LogCheckpoint, MappedLogConfig};
pub use read::{LogReader, LogSnapshot};

use crate::checksum::Checksum;
use crate::error::{Error, FormatError, Result};
use crate::map::Map;
use crate::offset::{FileOffset, GlobalOffset};
use crate::origin::{is_far, remove_unnamed};
use crate::segment::{self, SEGMENT_HEADER_LEN, SegmentHeader};
use crate::storage::{Access, Caching, File, Storage};
use crate::tail::TailWriter;
use read::{Last, State};
use sealed::{Sealed, seal_table};

/// The size of a tail's memory, unless a piece is longer. (Small in tests, so that they reach the
/// maps.)
const CHUNK: usize = if cfg!(test) { 16 } else { 256 << 10 };

/// The writer of a log of plain bytes.
///
/// ```
/// use std::sync::Arc;
/// use varve_io::{Disk, Kind, LogCheckpoint, MappedLog, MappedLogConfig, StoreId};
///
/// # fn main() -> varve_io::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// let storage = Arc::new(Disk::open(dir.path())?);
/// let config = MappedLogConfig {
///     prefix: "rows".to_owned(),
///     kind: Kind(*b"EXAMPLE\0"),
///     store: StoreId([7; 16]),
///     capacity: 1 << 20,
/// };
/// let mut log = MappedLog::open(storage.clone(), config.clone(), LogCheckpoint::NEW)?;
/// let reader = log.reader(); // clone it into other threads
/// let row = log.append(b"a row")?;
/// assert_eq!(reader.snapshot().get(row, 5)?, b"a row"); // no copy, no lock
/// let checkpoint = log.sync()?; // keep this with your own state
/// log.append(b"never acknowledged")?;
/// drop((log, reader));
///
/// let log = MappedLog::open(storage, config, checkpoint)?;
/// assert_eq!(log.end(), checkpoint.end);
/// assert_eq!(log.reader().snapshot().get(row, 5)?, b"a row");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MappedLog {
    storage: Arc<dyn Storage>,
    config: MappedLogConfig,
    state: Arc<ArcSwap<State>>,
    sealed: Vec<Arc<Sealed>>,
    tail: TailWriter,
    /// The bytes of the last segment before the tail, which are mapped.
    front: usize,
    /// The number of the last segment: all before it are sealed.
    number: u64,
    /// Its file, once there is something in it.
    file: Option<Arc<dyn File>>,
    /// How much of the tail the file holds.
    written: usize,
    /// The checksum of the last segment so far.
    crc: Checksum,
    /// A file was created since the directory was last synced.
    names_changed: bool,
}

impl MappedLog {
    /// Opens the log as it was at `checkpoint`; what came later is cut off.
    ///
    /// # Panics
    ///
    /// When the capacity is zero.
    pub fn open(
        storage: Arc<dyn Storage>,
        config: MappedLogConfig,
        checkpoint: LogCheckpoint,
    ) -> Result<Self> {
        assert!(config.capacity > 0, "a segment holds at least one byte");
        let number = checkpoint.end.get() / config.capacity();
        let rest = checkpoint.end.get() % config.capacity();
        let sealed = (0..number).map(|number| Sealed::open(storage.as_ref(), &config, number));
        let sealed = sealed.map(|sealed| sealed.map(Arc::new)).collect::<Result<Vec<_>>>()?;
        let tail = TailWriter::new(config.size().min(CHUNK));
        let mut crc = config.salt(number);
        let mut file = None;
        if rest > 0 {
            let found =
                storage.open(&config.file_name(number), Access::Write, Caching::Buffered)?;
            let bytes = read_tail(found.as_ref(), &config, number, rest)?;
            crc = crc.with(&bytes);
            if crc.get() != checkpoint.tail_crc {
                return Err(tail_differs(found.path()));
            }
            file = Some((found, bytes));
        }
        remove_after(storage.as_ref(), &config, number, file.is_some())?;
        let last = Last { front: None, tail: tail.reader() };
        let state = Arc::new(ArcSwap::from_pointee(State::new(sealed.clone(), last)));
        let (front, written, names_changed) = (0, 0, false);
        let mut log = Self {
            storage,
            config,
            state,
            sealed,
            tail,
            front,
            number,
            file: None,
            written,
            crc,
            names_changed,
        };
        if let Some((file, bytes)) = file {
            cut(file.as_ref(), FileOffset::new(segment::HEADER_BYTES + rest))?;
            log.file = Some(file);
            if bytes.len() <= log.tail.room() {
                log.tail.append(&bytes);
                log.written = bytes.len();
            } else {
                log.map_front(bytes.len(), 0)?;
            }
        }
        Ok(log)
    }

    /// Serves the first `len` bytes of the last segment, which its file holds, from a map, and
    /// starts a new tail after them with room for a piece of `next` bytes.
    fn map_front(&mut self, len: usize, next: usize) -> Result<()> {
        let file = self.file.as_ref().filter(|_| len > 0);
        let map = file.map(|file| file.map(FileOffset::new(segment::HEADER_BYTES), len as u64));
        let map = map.transpose()?;
        self.tail = TailWriter::new((self.config.size() - len).min(CHUNK.max(next)));
        (self.front, self.written) = (len, 0);
        self.show(map);
        Ok(())
    }

    /// Publishes the sealed segments and the last one, of which `front` is mapped.
    fn show(&self, front: Option<Map>) {
        let last = Last { front, tail: self.tail.reader() };
        self.state.store(Arc::new(State::new(self.sealed.clone(), last)));
    }

    /// How far the last segment is filled.
    fn filled(&self) -> usize {
        self.front + self.tail.len()
    }

    /// The position after the last byte.
    #[must_use]
    pub fn end(&self) -> GlobalOffset {
        self.config.header(self.number).start.plus(self.filled() as u64)
    }

    /// A reader of this log, to be cloned and sent where it is needed.
    #[must_use]
    pub fn reader(&self) -> LogReader {
        LogReader::new(Arc::clone(&self.state), self.config.clone(), self.storage.path())
    }

    /// Appends `bytes` in one piece and returns their position. Readers see them at once; they
    /// survive a crash after [`MappedLog::sync`]. Fails, changing nothing, when a full segment had
    /// to be sealed first and could not be.
    pub fn append(&mut self, bytes: &[u8]) -> Result<GlobalOffset> {
        let (len, limit) = (bytes.len() as u64, self.config.capacity());
        if len > limit {
            let path = self.storage.path().join(&self.config.prefix);
            return Err(Error::TooLarge { path, len, limit });
        }
        if bytes.len() > self.config.size() - self.filled() {
            self.seal()?;
        }
        if bytes.len() > self.tail.room() {
            self.write_tail(self.tail.len())?;
            self.map_front(self.filled(), bytes.len())?;
        }
        let at = self.end();
        self.tail.append(bytes);
        self.crc = self.crc.with(bytes);
        Ok(at)
    }

    /// Makes everything appended so far durable and returns the checkpoint to open it with.
    pub fn sync(&mut self) -> Result<LogCheckpoint> {
        if self.filled() == self.config.size() {
            self.seal()?;
        }
        self.write_tail(self.tail.len())?;
        if let Some(file) = &self.file {
            file.sync()?;
        }
        if self.names_changed {
            self.storage.sync_dir()?;
            self.names_changed = false;
        }
        Ok(LogCheckpoint { end: self.end(), tail_crc: self.crc.get() })
    }

    /// Brings the tail's file to `len` bytes. May be repeated after a failure.
    fn write_tail(&mut self, len: usize) -> Result<()> {
        if len == self.written {
            return Ok(());
        }
        let file = if let Some(file) = &self.file {
            Arc::clone(file)
        } else {
            let name = self.config.file_name(self.number);
            self.names_changed = true;
            let file = self.storage.open(&name, Access::Replace, Caching::Buffered)?;
            file.write_at(FileOffset::ZERO, &self.config.header(self.number).encode())?;
            Arc::clone(self.file.insert(file))
        };
        let fresh = self.tail.whole().get(self.written..len).unwrap_or_default();
        let at = FileOffset::new(segment::HEADER_BYTES).plus((self.front + self.written) as u64);
        file.write_at(at, fresh)?;
        self.written = len;
        Ok(())
    }

    /// Turns the tail into a sealed file and begins a new tail.
    fn seal(&mut self) -> Result<()> {
        let (len, whole) = (self.tail.len(), self.tail.len() + self.tail.room());
        self.write_tail(whole)?;
        self.fill_up(self.front + whole)?;
        // If the rest fails, a shorter piece may still go where the zeroes are.
        self.written = len;
        let file = self.file.as_ref().expect("a segment is sealed when it holds something");
        let table = self.table(file.as_ref())?;
        let at = FileOffset::new(segment::HEADER_BYTES).plus(self.config.capacity());
        file.write_at(at, &table)?;
        file.sync()?;
        let sealed = Sealed::of_file(file, &self.config, self.number)?;
        self.tail = TailWriter::new(self.config.size().min(CHUNK));
        self.number += 1;
        self.file = None;
        (self.front, self.written) = (0, 0);
        self.crc = self.config.salt(self.number);
        self.sealed.push(Arc::new(sealed));
        self.show(None);
        Ok(())
    }

    /// Puts zeroes into the file from `at` to the end of the segment.
    fn fill_up(&self, mut at: usize) -> Result<()> {
        const ZEROES: [u8; 4096] = [0; 4096];
        let file = self.file.as_ref().expect("a segment is sealed when it holds something");
        while let Some(left) = self.config.size().checked_sub(at).filter(|left| *left > 0) {
            let zeroes = ZEROES.get(..left).unwrap_or(&ZEROES);
            file.write_at(FileOffset::new(segment::HEADER_BYTES).plus(at as u64), zeroes)?;
            at += zeroes.len();
        }
        Ok(())
    }

    /// The checksums of the last segment, whose bytes are all in its file. The front is no longer
    /// in memory, so what is read is compared with the checksum of what was appended.
    fn table(&self, file: &dyn File) -> Result<Vec<u8>> {
        if self.tail.whole().len() == self.config.size() {
            return Ok(seal_table(&self.config, self.number, self.tail.whole()));
        }
        let map = file.map(FileOffset::new(segment::HEADER_BYTES), self.config.capacity())?;
        let appended = map.get(..self.filled()).unwrap_or_default();
        if self.config.salt(self.number).with(appended).get() != self.crc.get() {
            let what = "the unsealed segment differs from what was appended";
            let error = FormatError::damaged(SEGMENT_HEADER_LEN, what);
            return Err(error.in_file(file.path(), FileOffset::ZERO));
        }
        Ok(seal_table(&self.config, self.number, &map))
    }
}

/// The first `len` bytes of the unsealed segment `number`.
fn read_tail(file: &dyn File, config: &MappedLogConfig, number: u64, len: u64) -> Result<Vec<u8>> {
    check_header(file, config, number)?;
    let mut bytes = vec![0; usize::try_from(len).expect("below the capacity, a u32")];
    file.read_at(FileOffset::new(segment::HEADER_BYTES), &mut bytes)?;
    Ok(bytes)
}

fn tail_differs(path: &Path) -> Error {
    let what = "the unsealed segment differs from its checkpoint";
    FormatError::damaged(SEGMENT_HEADER_LEN, what).in_file(path, FileOffset::ZERO)
}

fn check_header(file: &dyn File, config: &MappedLogConfig, number: u64) -> Result<()> {
    let mut bytes = [0; SEGMENT_HEADER_LEN];
    file.read_at(FileOffset::ZERO, &mut bytes)?;
    let checked = SegmentHeader::decode(&bytes);
    let checked = checked.and_then(|header| header.check_is(&config.header(number)));
    checked.map_err(|error| error.in_file(file.path(), FileOffset::ZERO))
}

/// Removes the files after segment `number`, and `number` itself unless it is `kept`.
fn remove_after(
    storage: &dyn Storage,
    config: &MappedLogConfig,
    number: u64,
    kept: bool,
) -> Result<()> {
    let first = if kept { number + 1 } else { number };
    let numbers = segment::numbers(&config.prefix, &storage.list()?);
    let junk: Vec<u64> = numbers.into_iter().filter(|number| *number >= first).collect();
    for number in &junk {
        let name = config.file_name(*number);
        remove_unnamed(storage, &name, (config.store, 0), is_far(*number, first))?;
    }
    if junk.is_empty() { Ok(()) } else { storage.sync_dir() }
}

/// Cuts a file that is longer than `len`, durably.
fn cut(file: &dyn File, len: FileOffset) -> Result<()> {
    if file.size()? > len.get() {
        file.truncate(len)?;
        file.sync()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

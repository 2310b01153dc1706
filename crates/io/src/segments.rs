//! A log of frames in a series of files.
//!
//! ```text
//!  position   0                        s1                       s2          end
//!             ├── frame ── frame ──┤   ├── frame ─────────┤     ├── frame ──┤
//!  files      PREFIX-000000000000      PREFIX-000000000001      PREFIX-000000000002
//!             sealed, mapped           sealed, mapped           tail, growing
//! ```
//!
//! A position ([`GlobalOffset`]) counts the bytes of all frames since the log began, headers of
//! frames included and headers of files not. It names a frame for ever: pruning takes files away
//! from the front and leaves the positions of the rest alone.
//!
//! 1. **Append** adds a batch of payloads at the end, in one write per file touched (long payloads
//!    by themselves and past the page cache: `bulk`). When a frame would make the file longer than
//!    the segment size, the file is synced and sealed and a new one begun, so a frame is never
//!    split, and one that is bigger than a segment gets its own file.
//! 2. **Sync** makes everything appended so far durable: the tail's data, then, if a file is new,
//!    the directory. Only then may the caller acknowledge, and note the position as *durable* in
//!    its own checkpoint or commit log.
//! 3. **Open** takes that durable position back. All below it must be there: a missing byte is
//!    damage, and a frame that does not verify is an error when it is read. What lies beyond was
//!    never acknowledged: it is scanned, kept as far as it verifies, and cut at the first frame
//!    that does not. The cut is synced before anything is appended, so old bytes cannot reappear
//!    after new ones.
//! 4. **Truncate** goes back to an earlier position; **prune** removes whole files from the front.
//!
//! A failed append leaves the log as it was: the tail is cut back, durably, before the next append.
//! So after a full disk it is enough to free some space and append again.
//!
//! One writer owns [`Segments`]; any number of [`SegmentsReader`]s read beside it and never wait
//! for it.

mod batch;
mod bulk;
mod pending_sync;
mod read;
mod recover;
mod series;
mod verified;

use std::sync::Arc;

pub use pending_sync::PendingSync;
pub use read::{Frame, Frames, SegmentsReader};

use crate::checksum::{Kind, StoreId};
use crate::error::{Error, Result};
use crate::frame::FrameHeader;
use crate::offset::{FileOffset, GlobalOffset};
use crate::segment::{self, Layout, SegmentHeader};
use crate::storage::{Access, Caching, Storage};
use batch::Batch;
use bulk::{Bulk, LONG};
use series::{Segment, Series};

/// Frames are gathered up to this much before they are written.
const GATHER: usize = 1 << 20;

/// What a log is called and how it is cut into files.
#[derive(Debug, Clone)]
pub struct SegmentsConfig {
    /// The first part of every file's name.
    pub prefix: String,
    /// What the log holds; checked when it is opened.
    pub kind: Kind,
    /// The store it belongs to; checked in every frame.
    pub store: StoreId,
    /// The maximum length of a file; only a single longer frame may exceed it.
    pub segment_size: u64,
}

impl SegmentsConfig {
    fn header(&self, number: u64, start: GlobalOffset) -> SegmentHeader {
        let Self { kind, store, .. } = *self;
        SegmentHeader { layout: Layout::Frames, kind, store, number, start }
    }
}

/// How many frames at the end a crash may have torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsynced {
    /// All after the durable position.
    Any,
    /// Only the last one.
    One,
}

/// The writer of a log of frames.
///
/// ```
/// use std::sync::Arc;
/// use varve_io::{Disk, GlobalOffset, Kind, Segments, SegmentsConfig, StoreId};
///
/// # fn main() -> varve_io::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// let storage = Arc::new(Disk::open(dir.path())?);
/// let config = SegmentsConfig {
///     prefix: "log".to_owned(),
///     kind: Kind(*b"EXAMPLE\0"),
///     store: StoreId([7; 16]),
///     segment_size: 1 << 20,
/// };
/// let mut log = Segments::open(storage.clone(), config.clone(), GlobalOffset::ZERO)?;
/// let places = log.append(&[b"one", b"two"])?;
/// let durable = log.sync()?; // note this in a checkpoint
/// log.append(&[b"three"])?; // not synced, not acknowledged
/// drop(log);
///
/// let log = Segments::open(storage, config, durable)?;
/// assert_eq!(&log.reader().frame(places[1])?[..], b"two");
/// let all: Vec<_> = log.reader().frames(GlobalOffset::ZERO).collect::<Result<_, _>>()?;
/// assert_eq!(all.len(), 3, "only the process ended, so the third is there as well");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Segments {
    storage: Arc<dyn Storage>,
    config: SegmentsConfig,
    series: Arc<Series>,
    /// A file was created since the directory was last synced.
    names_changed: bool,
    /// A failed append or truncation may have left bytes past the end.
    torn: bool,
    /// Files begun by a failed append, or to be removed by a truncation.
    strays: Vec<u64>,
    gather: Vec<u8>,
    bulk: Bulk,
}

impl Segments {
    /// Opens the log, creating it with the first append when there is none. `durable` is the last
    /// position the caller knows to be synced, zero for a new log.
    pub fn open(
        storage: Arc<dyn Storage>,
        config: SegmentsConfig,
        durable: GlobalOffset,
    ) -> Result<Self> {
        Self::open_after(storage, config, durable, Unsynced::Any)
    }

    /// Opens a log whose owner syncs every append before the next. Then a crash tears at most the
    /// last frame: one that does not verify but is followed by another was acknowledged and is
    /// damaged, which is an error.
    pub fn open_synced_each(
        storage: Arc<dyn Storage>,
        config: SegmentsConfig,
        durable: GlobalOffset,
    ) -> Result<Self> {
        Self::open_after(storage, config, durable, Unsynced::One)
    }

    fn open_after(
        storage: Arc<dyn Storage>,
        config: SegmentsConfig,
        durable: GlobalOffset,
        unsynced: Unsynced,
    ) -> Result<Self> {
        let segments = recover::recover(storage.as_ref(), &config, durable, unsynced)?;
        let series = Series::new(storage.path().join(&config.prefix), config.store, segments);
        Ok(Self {
            storage,
            config,
            series: Arc::new(series),
            names_changed: false,
            torn: false,
            strays: Vec::new(),
            gather: Vec::new(),
            bulk: Bulk::default(),
        })
    }

    /// The first position that is still held.
    #[must_use]
    pub fn start(&self) -> GlobalOffset {
        self.series.start()
    }

    /// The position after the last frame.
    #[must_use]
    pub fn end(&self) -> GlobalOffset {
        self.series.end()
    }

    /// A reader of this log, to be cloned and sent where it is needed.
    #[must_use]
    pub fn reader(&self) -> SegmentsReader {
        SegmentsReader::new(Arc::clone(&self.series))
    }

    /// Appends `payloads`, all or none, and returns the position of each. Readers see them at once;
    /// they survive a crash after [`Segments::sync`].
    pub fn append(&mut self, payloads: &[&[u8]]) -> Result<Vec<GlobalOffset>> {
        self.mend()?;
        self.torn = true;
        self.gather.clear();
        let mut batch = Batch::new(self.series.tail());
        for payload in payloads {
            self.write_frame(&mut batch, payload)?;
        }
        self.flush(&mut batch)?;
        batch.publish(&self.series);
        self.strays.clear();
        self.torn = false;
        Ok(batch.places)
    }

    /// Makes everything appended so far durable and returns the end: the caller's new durable
    /// position.
    pub fn sync(&mut self) -> Result<GlobalOffset> {
        self.mend()?;
        if let Some(tail) = self.series.tail() {
            tail.file.sync()?;
        }
        self.sync_names()?;
        Ok(self.end())
    }

    /// Begins a sync that another thread can finish while this one appends. Returns the end, which
    /// is the caller's new durable position once the sync is finished.
    pub fn begin_sync(&mut self) -> Result<(GlobalOffset, PendingSync)> {
        self.mend()?;
        let tail = self.series.tail().map(|tail| Arc::clone(&tail.file));
        Ok((self.end(), PendingSync { storage: Arc::clone(&self.storage), tail }))
    }

    /// Goes back to `to`, the position of a frame or the end. Everything from there on is gone,
    /// durably, when this returns. The caller must have lowered its own durable position before.
    ///
    /// Fails with [`Error::Mapped`](crate::Error::Mapped) when readers hold slices of the file
    /// that must be cut. The log then ends at `to` already, but nothing can be appended until they
    /// are dropped.
    pub fn truncate(&mut self, to: GlobalOffset) -> Result<()> {
        self.mend()?;
        if to < self.start() || to > self.end() {
            return Err(self.series.out_of_range(to));
        }
        while let Some(tail) = self.series.tail().filter(|tail| tail.start > to) {
            self.strays.push(tail.number);
            self.series.pop();
        }
        if let Some(tail) = self.series.tail().filter(|tail| tail.end() > to) {
            // Readers may hold the old segment with its map, so the shorter one is a new object.
            let len = to.since(tail.start).expect("later segments were taken away above");
            self.series.replace_tail(tail.with_len(len));
        }
        assert_eq!(self.end(), to, "the log ends where it was cut");
        self.torn = true;
        self.mend()
    }

    /// Removes the files that lie wholly before `before`, oldest first, and returns the new start.
    /// The last file always stays. Readers that hold slices of a removed file keep them.
    pub fn prune(&mut self, before: GlobalOffset) -> Result<GlobalOffset> {
        let start = self.start();
        if self.series.first_if_ends_by(before).is_some() {
            // What stays must be durable before anything is removed, or a crash could leave
            // nothing.
            self.sync()?;
        }
        while let Some(first) = self.series.first_if_ends_by(before) {
            self.storage.remove(&segment::file_name(&self.config.prefix, first.number))?;
            self.series.shift();
            // One by one, so that no crash leaves a hole in the series.
            self.storage.sync_dir()?;
        }
        assert!(self.start() <= before.max(start), "nothing from the limit on is removed");
        Ok(self.start())
    }

    /// Durably removes what a failed append or truncation left past the end, before anything is
    /// written there: first later files, then bytes of the tail, in the same order as recovery.
    fn mend(&mut self) -> Result<()> {
        if !self.torn {
            return Ok(());
        }
        self.bulk.close();
        for number in &self.strays {
            let name = segment::file_name(&self.config.prefix, *number);
            match self.storage.remove(&name) {
                Ok(()) | Err(Error::NotFound { .. }) => self.names_changed = true,
                Err(error) => return Err(error),
            }
        }
        self.sync_names()?;
        self.strays.clear();
        if let Some(tail) = self.series.tail() {
            tail.file.truncate(tail.file_end())?;
            tail.file.sync()?;
        }
        self.torn = false;
        Ok(())
    }

    fn sync_names(&mut self) -> Result<()> {
        if self.names_changed {
            self.storage.sync_dir()?;
            self.names_changed = false;
        }
        Ok(())
    }

    /// Adds one frame to the batch, in the current segment or a new one.
    fn write_frame(&mut self, batch: &mut Batch, payload: &[u8]) -> Result<()> {
        let header = FrameHeader::of(payload);
        if !batch.fits(header.frame_len(), self.config.segment_size) {
            self.begin_segment(batch)?;
        }
        self.gather.extend_from_slice(&header.encode(self.config.store, batch.end));
        batch.places.push(batch.end);
        batch.end = batch.end.plus(header.frame_len());
        if payload.len() < LONG {
            self.gather.extend_from_slice(payload);
            return if self.gather.len() < GATHER { Ok(()) } else { self.flush(batch) };
        }
        self.flush(batch)?;
        self.write_long(batch, payload)
    }

    fn write_long(&mut self, batch: &mut Batch, payload: &[u8]) -> Result<()> {
        let Some(segment) = &batch.segment else { return Ok(()) };
        let name = segment::file_name(&self.config.prefix, segment.number);
        let open = || self.storage.open(&name, Access::Write, Caching::Direct);
        self.bulk.write(open, segment, batch.written, payload)?;
        batch.written = batch.written.plus(payload.len() as u64);
        Ok(())
    }

    /// Writes what was gathered.
    fn flush(&mut self, batch: &mut Batch) -> Result<()> {
        batch.write(&self.gather)?;
        self.gather.clear();
        Ok(())
    }

    /// Seals the current segment, if there is one, and continues in a new file.
    fn begin_segment(&mut self, batch: &mut Batch) -> Result<()> {
        let number = match &batch.segment {
            None => 0,
            Some(full) => {
                let full = Arc::clone(full);
                self.flush(batch)?;
                assert!(batch.is_written(), "a segment is sealed with all its frames");
                // Sealed segments are durable, bytes and name: recovery looks for torn frames in
                // the last file only, and a series that does not begin with file 0 was pruned, not
                // torn.
                full.file.sync()?;
                self.sync_names()?;
                full.number + 1
            }
        };
        self.bulk.close();
        self.strays.push(number);
        self.names_changed = true;
        let name = segment::file_name(&self.config.prefix, number);
        let file = self.storage.open(&name, Access::Replace, Caching::Buffered)?;
        let header = self.config.header(number, batch.end);
        file.write_at(FileOffset::ZERO, &header.encode())?;
        batch.begin(Arc::new(Segment::new(number, batch.end, file, 0)));
        Ok(())
    }
}

#[cfg(test)]
mod tests;

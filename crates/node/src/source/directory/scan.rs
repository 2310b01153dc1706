//! Walks over block files and finds the headers in them.
//!
//! Only the head of each record is read, 88 bytes, and the next record is where the size says:
//!
//! ```text
//! │ magic 4 │ size 4 │ header 80 │ … the rest of the block is skipped … │ magic │ size │ header │
//! ```
//!
//! A node writes into preallocated zeros, so the last record may be half written and still fit. It
//! counts only when its block decodes and has the merkle root of its header; a record that another
//! record follows, or the end of an older file, was written whole before that.
//!
//! What does not begin with the magic, or goes beyond the end of the file, is no record: zeros at
//! the end of the file, but also what a crash of the node or another program has left in its
//! middle. There the walk looks for the next record, byte by byte, so that what is lost is not
//! more than what is damaged.
//!
//! A file can grow: the walk remembers where it stopped and resumes there. A file can also be
//! written over: a node that was killed forgets the blocks since its last flush and writes the next
//! ones in their place. So a file that was changed is also walked over from its beginning, but not
//! for every block that is appended: [`Walk::set_out`] says when.

use std::fs::{self, File, Metadata};
use std::io;
use std::num::NonZeroU32;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use varve_sha256::Message;
use varve_types::blk::XorKey;
use varve_types::{Block, BlockHash, Header, Network};

use crate::source::linker::Found;
use crate::source::{HeaderBytes, SourceError};

/// How many headers are hashed side by side, and given at once.
const BATCH: usize = 2000;
/// How much is read at once where records are looked for.
const CHUNK: usize = 1 << 20;
/// How many records, or pages without any, a poll may look at again.
const CHEAP: u64 = 256;
const PAGE: u64 = 4096;
/// The bytes before the block.
const FRAME: usize = 8;
const FRAME_LEN: u64 = FRAME as u64;

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    /// The place of the file in the list of files.
    pub(super) file: u32,
    /// The length of the block.
    pub(super) size: NonZeroU32,
    /// The offset of its first byte.
    pub(super) offset: u64,
}

/// One for each block stays in memory, or none: that takes no more.
const _: () = assert!(size_of::<Option<Location>>() == 16);

/// The walk over one file.
pub(super) struct Walk {
    pub(super) path: Arc<Path>,
    number: u32,
    /// Where the next record begins.
    next: u64,
    /// The last record found, while it is not known to be whole.
    last: Option<(HeaderBytes, Location)>,
    /// Bytes between records that are no record.
    skipped: u64,
    /// Bytes behind the last record, up to the last that is not zero.
    trailing: u64,
    /// The file as it was when the walk last set out.
    stamp: Option<Stamp>,
    /// The walk is at the end of the file, or has not set out.
    rests: bool,
    /// Where there is no record, one is looked for.
    searches: bool,
    /// Records found since the beginning of the file.
    records: u64,
    /// Set when the file was changed and only its end has been looked at; then how often the walk
    /// has set out since.
    spared: Option<u64>,
}

/// A record at the end of a file that is left out.
pub(super) struct Unread {
    pub(super) offset: u64,
    pub(super) header: Option<HeaderBytes>,
}

/// What changes with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Stamp {
    fn new(metadata: &Metadata) -> Self {
        let (modified, length) = (metadata.modified().ok(), metadata.len());
        Self { modified, length, inode: metadata.ino() }
    }
}

/// What the records are.
#[derive(Clone, Copy)]
pub(super) struct Framing {
    pub(super) network: Network,
    pub(super) key: XorKey,
}

impl Walk {
    /// Begins at the first byte of a file, the `number`th of the list.
    pub(super) const fn new(path: Arc<Path>, number: u32) -> Self {
        Self {
            path,
            number,
            next: 0,
            last: None,
            skipped: 0,
            trailing: 0,
            stamp: None,
            rests: true,
            searches: true,
            records: 0,
            spared: None,
        }
    }

    /// Whether there is something to look at again.
    pub(super) fn is_due(&self) -> Result<bool, SourceError> {
        match fs::metadata(&self.path) {
            Ok(metadata) => Ok(self.spared.is_some() || self.stamp != Some(Stamp::new(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(&self.path)(error)),
        }
    }

    /// Walks over at most a batch of records and puts them into `found`. `false`: the end.
    pub(super) fn step(
        &mut self,
        framing: Framing,
        newest: bool,
        found: &mut Vec<Found<Location>>,
    ) -> Result<bool, SourceError> {
        let Some(file) = self.open()? else { return Ok(false) };
        let stamp = Stamp::new(&file.metadata().map_err(failed(&self.path))?);
        let length = stamp.length;
        if self.rests {
            self.set_out(&file, stamp)?;
        }
        if let Some((_, location)) = self.last.take() {
            // It may have been half written when it was read: look at it again.
            self.next = location.offset - FRAME_LEN;
        }
        let mut batch = Vec::new();
        let mut more = true;
        while more && batch.len() < BATCH {
            match self.head(&file, framing, self.next, length)? {
                Some((header, location)) => {
                    // The one before it has been written whole.
                    batch.extend(self.last.replace((header, location)));
                    self.next = location.offset + u64::from(location.size.get());
                }
                None => {
                    batch.extend(match newest || self.next < length {
                        true => self.settle(&file, framing)?,
                        false => self.last.take(),
                    });
                    more = self.searches && self.skip(&file, framing, length)?;
                }
            }
        }
        self.rests = !more;
        self.records += batch.len() as u64;
        hash(&batch, found);
        Ok(more)
    }

    /// Decides where the walk begins, and how far it looks for records.
    ///
    /// Appended records begin at `next`. Overwritten ones may be anywhere, so a file that has
    /// changed is also walked over from its beginning: at once when that is cheap, else once enough
    /// polls have passed that its cost per poll is low.
    fn set_out(&mut self, file: &File, stamp: Stamp) -> Result<(), SourceError> {
        let before = self.stamp.replace(stamp);
        let replaced = before.is_none_or(|b| b.inode != stamp.inode || b.length > stamp.length);
        if before != Some(stamp) && self.spared.is_none() {
            self.spared = Some(0);
        }
        let spared = self.spared.map(|polls| polls + 1);
        self.spared = spared;
        let pages = stamp.length.saturating_sub(self.next) / PAGE;
        let is_cheap = |polls: u64| polls.saturating_mul(CHEAP) >= self.records + pages;
        if replaced || spared.is_some_and(is_cheap) {
            (self.next, self.last, self.records) = (0, None, 0);
            (self.skipped, self.trailing) = (0, 0);
            (self.spared, self.searches) = (None, true);
            return Ok(());
        }
        // Where a file ends in zeros, nothing has been written.
        let mut begin = [0; 4];
        read_some(file, self.next, &mut begin).map_err(failed(&self.path))?;
        self.searches = begin != [0; 4];
        Ok(())
    }

    /// The last record, when it is cut off, or damaged and still known by its header: one above a
    /// block of which `is_known` is true.
    pub(super) fn unread(
        &self,
        framing: Framing,
        is_known: impl Fn(&BlockHash) -> bool,
    ) -> Result<Option<Unread>, SourceError> {
        if let Some((header, location)) = self.last {
            return Ok(Some(Unread { offset: location.offset - FRAME_LEN, header: Some(header) }));
        }
        let Some(file) = self.open()? else { return Ok(None) };
        let mut head = [0; FRAME + Header::LEN];
        let read = read_some(&file, self.next, &mut head).map_err(failed(&self.path))?;
        framing.key.apply(self.next, &mut head);
        let is_whole = read == head.len();
        let magic = head.get(..read.min(4)).unwrap_or_default();
        let is_record = read > 0 && framing.network.disk_magic().starts_with(magic);
        let header = head.last_chunk().copied().filter(|_| is_whole);
        let follows = |header: &HeaderBytes| is_known(&Header::new(header).previous());
        let is_unread = is_record || header.as_ref().is_some_and(follows);
        Ok(is_unread.then_some(Unread { offset: self.next, header }))
    }

    /// How many bytes are no record: between records, and behind the last unless what is there is
    /// reported as unread. The zeros that a node preallocates are not counted.
    pub(super) const fn skipped(&self, is_unread: bool) -> u64 {
        self.skipped + if is_unread { 0 } else { self.trailing }
    }

    /// Whether no record has been found.
    pub(super) const fn is_empty(&self) -> bool {
        self.next == 0
    }

    /// Why a file without any record has none.
    pub(super) fn why_empty(&self, framing: Framing) -> Result<SourceError, SourceError> {
        let path = self.path.to_path_buf();
        let mut begin = [0; 4];
        let read = match self.open()? {
            Some(file) => read_some(&file, 0, &mut begin).map_err(failed(&self.path))?,
            None => 0,
        };
        if read == 0 || begin == [0; 4] {
            return Ok(SourceError::Empty { path });
        }
        framing.key.apply(0, &mut begin);
        let found = Network::ALL.into_iter().filter(|network| network.disk_magic() == begin);
        Ok(SourceError::WrongNetwork { path, network: framing.network, found: found.collect() })
    }

    /// Files are open only while they are walked over: a chain has thousands of them. A node that
    /// prunes removes some.
    fn open(&self) -> Result<Option<File>, SourceError> {
        match File::open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&self.path)(error)),
        }
    }

    /// Goes from `next`, where there is no record, to the next one, which may lie within the
    /// length of a last one that is not whole. `false`: there is none.
    fn skip(&mut self, file: &File, framing: Framing, length: u64) -> Result<bool, SourceError> {
        let from = self.last.map_or(self.next, |(_, location)| location.offset - FRAME_LEN);
        let magic = framing.network.disk_magic();
        let mut chunk = vec![0; CHUNK];
        let mut at = from;
        self.trailing = 0;
        loop {
            let read = read_some(file, at, &mut chunk).map_err(failed(&self.path))?;
            let bytes = chunk.get_mut(..read).unwrap_or_default();
            if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
                self.trailing = at - from + last as u64 + 1;
            }
            framing.key.apply(at, bytes);
            let begins = bytes.windows(magic.len()).zip(at..).filter(|(begin, _)| *begin == magic);
            for (_, begin) in begins.filter(|(_, begin)| *begin > from) {
                if self.head(file, framing, begin, length)?.is_some() {
                    self.skipped += begin - from;
                    self.trailing = 0;
                    (self.next, self.last) = (begin, None);
                    return Ok(true);
                }
            }
            if read < CHUNK {
                return Ok(false);
            }
            // A magic may lie across the end of the chunk.
            at += (CHUNK - magic.len() + 1) as u64;
        }
    }

    /// The record that begins at `begin`, when its head is there and its size fits.
    fn head(
        &self,
        file: &File,
        framing: Framing,
        begin: u64,
        length: u64,
    ) -> Result<Option<(HeaderBytes, Location)>, SourceError> {
        let mut head = [0; FRAME + Header::LEN];
        let read = read_some(file, begin, &mut head).map_err(failed(&self.path))?;
        if read < head.len() {
            return Ok(None);
        }
        framing.key.apply(begin, &mut head);
        let ([m0, m1, m2, m3, s0, s1, s2, s3], header) =
            head.split_first_chunk().expect("longer than a frame");
        let size = u32::from_le_bytes([*s0, *s1, *s2, *s3]);
        let offset = begin + FRAME_LEN;
        let fits = offset + u64::from(size) <= length && u64::from(size) >= Header::LEN as u64;
        let Some(size) = NonZeroU32::new(size).filter(|_| fits) else { return Ok(None) };
        if [*m0, *m1, *m2, *m3] != framing.network.disk_magic() {
            return Ok(None);
        }
        let header = *header.first_chunk().expect("80 bytes behind the frame");
        Ok(Some((header, Location { file: self.number, size, offset })))
    }

    /// The last record, if it is whole. If not, it stays, to be looked at again.
    fn settle(
        &mut self,
        file: &File,
        framing: Framing,
    ) -> Result<Option<(HeaderBytes, Location)>, SourceError> {
        let Some((_, location)) = self.last else { return Ok(None) };
        let bytes = read_block(file, location, framing.key).map_err(failed(&self.path))?;
        let Some(header) = bytes.first_chunk().copied() else { return Ok(None) };
        let whole = Block::parse(&bytes, framing.network.format())
            .is_ok_and(|block| block.merkle_tree().root == block.header().merkle_root());
        if whole {
            self.last = None;
        }
        Ok(whole.then_some((header, location)))
    }
}

/// Reads a block.
pub(super) fn read_block(file: &File, at: Location, key: XorKey) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; at.size.get() as usize];
    file.read_exact_at(&mut bytes, at.offset)?;
    key.apply(at.offset, &mut bytes);
    Ok(bytes)
}

/// The error of a file that cannot be read.
pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> SourceError + use<> {
    let path = path.to_owned();
    |source| SourceError::Io { path, source }
}

fn hash(batch: &[(HeaderBytes, Location)], found: &mut Vec<Found<Location>>) {
    let mut hashes = Vec::with_capacity(batch.len());
    let messages = batch.iter().map(|(header, _)| Message::from(header.as_slice()));
    varve_sha256::double_many(messages, &mut hashes);
    found.extend(batch.iter().zip(hashes).map(|((header, location), hash)| Found {
        hash: BlockHash::from_bytes(hash),
        header: *header,
        with: *location,
    }));
}

/// Reads as much as the file has.
fn read_some(file: &File, offset: u64, mut bytes: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while !bytes.is_empty() {
        match file.read_at(bytes, offset + read as u64) {
            Ok(0) => break,
            Ok(count) => {
                read += count;
                bytes = bytes.get_mut(count..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

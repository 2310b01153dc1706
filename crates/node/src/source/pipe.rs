//! Blocks from a pipe, in the framing of block files: `cat blk*.dat | varve sync --from -`.
//!
//! A pipe cannot be read twice, so every block is given unasked, right behind its header. A block
//! that comes before its parent waits here, within a limit of bytes.
//!
//! One thread reads records into a channel of a few blocks; while the receiver is busy the pipe
//! fills and its writer waits. What lies between records is skipped: zeros, with which files are
//! preallocated, and with a [`Warning`] what else a crash has left in them; but not more than
//! `GAP_LIMIT`, for a device of zeros has no end.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Duration;

use varve_types::{BlockHash, Header, Network};

use super::pushed::PushedBlocks;
use super::queue::{Inbox, Outbox, Weigh, queue};
use super::{Event, Giver, Source, SourceError, Warning};

/// Blocks read ahead.
const AHEAD: usize = 4;
/// How much a record grows by before its bytes are there: a size is not believed.
const STEP: u64 = 1 << 20;
/// How many bytes may come without a record: twice the zeros of an empty block file.
const GAP_LIMIT: u64 = 256 << 20;
/// How many bytes of blocks may wait for their parents, however much memory there is.
pub const WAITING_LIMIT: u64 = 1 << 30;

/// A source over a pipe.
pub struct Pipe {
    records: Inbox<Record>,
    blocks: PushedBlocks,
    ended: bool,
}

/// What the reading thread says.
enum Record {
    Block(Vec<u8>),
    /// The end.
    End {
        /// Where a record begins that is not all there.
        incomplete: Option<u64>,
        /// How many bytes were no record.
        skipped: u64,
    },
    Failed(SourceError),
}

impl Weigh for Record {
    fn weight(&self) -> u64 {
        match self {
            Self::Block(bytes) => bytes.len() as u64,
            Self::End { .. } | Self::Failed(_) => 0,
        }
    }
}

impl Pipe {
    /// Reads records of this network. `limit` bytes of blocks may wait for their parents, or fewer
    /// when the receiver bounds them: [`WAITING_LIMIT`] unless there is a reason.
    pub fn new(input: impl Read + Send + 'static, network: Network, limit: u64) -> Self {
        let (sender, records) = queue(AHEAD);
        thread::spawn(move || read_all(input, network, &sender));
        Self { records, blocks: PushedBlocks::new(network, limit), ended: false }
    }

    fn take(&mut self, record: Record) -> Result<(), SourceError> {
        match record {
            Record::Block(bytes) => self.blocks.push(bytes)?,
            Record::Failed(error) => {
                self.ended = true;
                return Err(error);
            }
            Record::End { incomplete, skipped: bytes } => {
                self.ended = true;
                if bytes > 0 {
                    let path = PathBuf::from("-");
                    self.blocks.events.push_back(Event::Warning(Warning::Skipped { path, bytes }));
                }
                if let Some(offset) = incomplete {
                    let (path, header) = (PathBuf::from("-"), None);
                    let warning = Warning::Incomplete { path, offset, header };
                    self.blocks.events.push_back(Event::Warning(warning));
                }
                self.blocks.end();
            }
        }
        Ok(())
    }
}

impl Source for Pipe {
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError> {
        self.blocks.seek(locator);
        Ok(())
    }

    fn root(&mut self, hash: BlockHash) {
        self.blocks.root(hash);
    }

    /// Blocks come by themselves. When the pipe has ended, none will.
    fn want(&mut self, giver: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
        self.blocks.want(giver, hashes);
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError> {
        loop {
            if let Some(event) = self.blocks.pop() {
                return Ok(event);
            }
            match self.records.recv_timeout(timeout) {
                Ok(record) => self.take(record)?,
                Err(RecvTimeoutError::Timeout) => return Ok(Event::Idle),
                Err(RecvTimeoutError::Disconnected) => {
                    assert!(self.ended, "the thread that reads the pipe has panicked");
                    thread::sleep(timeout);
                    return Ok(Event::Idle);
                }
            }
        }
    }

    fn bound(&mut self, queued: u64, unordered: u64) {
        self.records.bound(queued);
        self.blocks.bound(unordered);
    }

    fn memory(&self) -> u64 {
        self.blocks.memory()
    }

    /// There is nobody else to ask: the receiver knows what is invalid.
    fn blame(&mut self, _giver: Giver, _reason: &str) {}
}

/// Reads to the end, or until the receiver is gone.
fn read_all(input: impl Read, network: Network, records: &Outbox<Record>) {
    let input = io::BufReader::with_capacity(1 << 18, input);
    let mut reader = Reader { input, offset: 0, last_end: 0, records: 0, skipped: 0 };
    loop {
        let record = match reader.record(network.disk_magic()) {
            Ok(Some(block)) => Record::Block(block),
            Ok(None) => Record::End { incomplete: None, skipped: reader.skipped },
            Err(ReadError::Incomplete { begin }) => {
                Record::End { incomplete: Some(begin), skipped: reader.skipped }
            }
            Err(ReadError::NotARecord { begin }) => {
                let found = Network::ALL.into_iter().filter(|other| other.disk_magic() == begin);
                let (path, found) = (PathBuf::from("-"), found.collect());
                Record::Failed(SourceError::WrongNetwork { path, network, found })
            }
            Err(ReadError::Endless { bytes }) => {
                Record::Failed(SourceError::NoRecord { network, bytes })
            }
            Err(ReadError::Io(source)) => {
                Record::Failed(SourceError::Io { path: PathBuf::from("-"), source })
            }
        };
        let last = !matches!(record, Record::Block(_));
        if records.send(record).is_err() || last {
            return;
        }
    }
}

struct Reader<R> {
    input: R,
    offset: u64,
    /// Where the last record ended.
    last_end: u64,
    /// How many records there were.
    records: u64,
    /// How many bytes between them were neither records nor zeros.
    skipped: u64,
}

enum ReadError {
    Incomplete {
        begin: u64,
    },
    /// The first bytes that are not zeros are no magic.
    NotARecord {
        begin: [u8; 4],
    },
    /// No record began within [`GAP_LIMIT`].
    Endless {
        bytes: u64,
    },
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: BufRead> Reader<R> {
    /// The next block, or `None` at the end.
    fn record(&mut self, magic: [u8; 4]) -> Result<Option<Vec<u8>>, ReadError> {
        let (begin, size) = loop {
            let Some(begin) = self.find(magic)? else { return Ok(None) };
            let mut size = [0; 4];
            if self.read(&mut size)? < size.len() {
                return Err(ReadError::Incomplete { begin });
            }
            let size = u64::from(u32::from_le_bytes(size));
            if size >= Header::LEN as u64 {
                break (begin, size);
            }
            self.skipped += self.offset - begin;
            self.check_gap()?;
        };
        let mut block = Vec::new();
        while (block.len() as u64) < size {
            let step = (size - block.len() as u64).min(STEP);
            let got = self.input.by_ref().take(step).read_to_end(&mut block)? as u64;
            self.offset += got;
            if got < step {
                return Err(ReadError::Incomplete { begin });
            }
        }
        (self.records, self.last_end) = (self.records + 1, self.offset);
        Ok(Some(block))
    }

    /// Refuses more than [`GAP_LIMIT`] bytes without a record.
    fn check_gap(&self) -> Result<(), ReadError> {
        let bytes = self.offset - self.last_end;
        if bytes > GAP_LIMIT { Err(ReadError::Endless { bytes }) } else { Ok(()) }
    }

    /// Goes behind the next magic. Gives where that begins, or `None` at the end.
    fn find(&mut self, magic: [u8; 4]) -> Result<Option<u64>, ReadError> {
        let mut seen = [0; 4];
        let mut count = self.read(&mut seen)?;
        while count == seen.len() {
            if seen == magic {
                return Ok(Some(self.offset - seen.len() as u64));
            }
            if seen == [0; 4] {
                self.skip_zeros(self.last_end + GAP_LIMIT)?;
            }
            self.check_gap()?;
            let [first, a, b, c] = seen;
            if first != 0 && self.records == 0 {
                return Err(ReadError::NotARecord { begin: seen });
            }
            self.skipped += u64::from(first != 0);
            let mut next = [0];
            count = 3 + self.read(&mut next)?;
            let [d] = next;
            seen = [a, b, c, d];
        }
        let rest = seen.iter().take(count).skip_while(|byte| **byte == 0);
        let rest: Vec<u8> = rest.copied().collect();
        if !rest.is_empty() && magic.starts_with(&rest) {
            return Err(ReadError::Incomplete { begin: self.offset - rest.len() as u64 });
        }
        self.skipped += rest.len() as u64;
        Ok(None)
    }

    /// Goes to the next byte that is not zero, or to `end`.
    fn skip_zeros(&mut self, end: u64) -> io::Result<()> {
        loop {
            let bytes = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
            let (chunks, _) = bytes.as_chunks::<256>();
            let whole = chunks.iter().take_while(|chunk| **chunk == [0; 256]).count() * 256;
            let rest = bytes.get(whole..).unwrap_or_default();
            let zeros = whole + rest.iter().take_while(|byte| **byte == 0).count();
            let is_over = bytes.is_empty() || zeros < bytes.len();
            self.input.consume(zeros);
            self.offset += zeros as u64;
            if is_over || self.offset > end {
                return Ok(());
            }
        }
    }

    /// Fills `bytes`, unless the pipe ends first.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats the head of a record that is too short for a block.
    struct ShortRecords([u8; 8]);

    impl Read for ShortRecords {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let (heads, _) = bytes.as_chunks_mut();
            heads.fill(self.0);
            Ok(heads.len() * self.0.len())
        }
    }

    #[test]
    fn records_without_blocks_do_not_go_on_for_ever() {
        let magic = Network::Regtest.disk_magic();
        let [a, b, c, d] = magic;
        let input = ShortRecords([a, b, c, d, 79, 0, 0, 0]).take(2 * GAP_LIMIT);
        let input = io::BufReader::with_capacity(1 << 18, input);
        let mut reader = Reader { input, offset: 0, last_end: 0, records: 0, skipped: 0 };
        let Err(ReadError::Endless { bytes }) = reader.record(magic) else {
            panic!("it was read to its end, byte {}", reader.offset);
        };
        assert!((GAP_LIMIT..GAP_LIMIT + 100).contains(&bytes), "{bytes}");
    }
}

//! A snapshot that is being read: its fields, and how far it was read.
//!
//! No length in the file decides how much memory is allocated: long fields grow as their bytes
//! arrive.

use std::io::{self, BufRead as _, BufReader, Read};

use varve_types::{DecodeError, Reader, compact_size, varint};

use super::SnapshotError;

/// Bytes read at once.
const BUFFER: usize = 1 << 20;

/// The input and the number of bytes taken from it.
#[derive(Debug)]
pub(super) struct Input<R> {
    inner: BufReader<R>,
    at: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner: BufReader::with_capacity(BUFFER, inner), at: 0 }
    }

    /// The number of bytes taken so far.
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// What was just read is wrong.
    pub(super) const fn damaged(&self, what: &'static str) -> SnapshotError {
        SnapshotError::Damaged { at: self.at, what }
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], SnapshotError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    /// A count of at most `limit`.
    pub(super) fn compact_size(
        &mut self,
        limit: u64,
        what: &'static str,
    ) -> Result<u64, SnapshotError> {
        let mut bytes = [0; compact_size::MAX_LEN];
        let (first, rest) = bytes.split_at_mut(1);
        self.fill(first, what)?;
        let more = match first {
            [0xfd] => 2,
            [0xfe] => 4,
            [0xff] => 8,
            _ => 0,
        };
        self.fill(rest.get_mut(..more).unwrap_or_default(), what)?;
        let decoded = compact_size::read(&mut Reader::new(&bytes), limit, what);
        decoded.map_err(|_| self.damaged("a count is too large, or longer than it need be"))
    }

    /// Appends the bytes of a packed coin with a script of at most `script_max` bytes. They are not
    /// validated yet, except for their length.
    pub(super) fn packed_coin(
        &mut self,
        script_max: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), SnapshotError> {
        self.varint(out, "height and coinbase")?;
        self.varint(out, "a compressed amount")?;
        let length = match self.varint(out, "the kind of a script")? {
            0 | 1 => 20,
            2..=5 => 32,
            length => length - 6,
        };
        if length > script_max {
            return Err(self.damaged("a script is longer than any that can be spent"));
        }
        let script = self.inner.by_ref().take(length).read_to_end(out);
        let taken = script.map_err(SnapshotError::Read)? as u64;
        if taken < length {
            return Err(SnapshotError::Truncated { at: self.at, what: "a script" });
        }
        self.at += taken;
        Ok(())
    }

    /// Appends the bytes of a VARINT and returns its value.
    fn varint(&mut self, out: &mut Vec<u8>, what: &'static str) -> Result<u64, SnapshotError> {
        let start = out.len();
        for _ in 0..varint::MAX_LEN {
            let [byte] = self.array(what)?;
            out.push(byte);
            if byte & 0x80 == 0 {
                break;
            }
        }
        let number = varint::read(&mut Reader::at(out, start), what);
        number.map_err(|_: DecodeError| self.damaged("a number is too large"))
    }

    /// Nothing may be left.
    pub(super) fn end(&mut self) -> Result<(), SnapshotError> {
        let rest = self.inner.fill_buf().map_err(SnapshotError::Read)?;
        let what = "more bytes follow the last coin";
        if rest.is_empty() { Ok(()) } else { Err(self.damaged(what)) }
    }

    fn fill(&mut self, bytes: &mut [u8], what: &'static str) -> Result<(), SnapshotError> {
        match self.inner.read_exact(bytes) {
            Ok(()) => {
                self.at += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(SnapshotError::Truncated { at: self.at, what })
            }
            Err(error) => Err(SnapshotError::Read(error)),
        }
    }
}

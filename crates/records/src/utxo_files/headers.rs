//! The headers beside a set.

use std::io::{self, Read, Write};

use varve_types::{BlockHash, Header, Height};

use super::wrappers::Input;
use super::{UtxoFileError, check_type};
use crate::file_type::FileType;

/// The length of an entry.
pub const HEADER_ENTRY_LEN: usize = 32 + 4 + 8 + Header::LEN;

const _: () = assert!(HEADER_ENTRY_LEN == 124);

/// One header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderEntry {
    /// The hash of the block.
    pub hash: BlockHash,
    /// Its height.
    pub height: Height,
    /// The number of its transactions.
    pub txs: u64,
    /// The header.
    pub header: [u8; Header::LEN],
}

impl HeaderEntry {
    /// Appends the entry.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(self.hash.as_bytes())?;
        out.write_all(&self.height.to_u32().to_le_bytes())?;
        out.write_all(&self.txs.to_le_bytes())?;
        out.write_all(&self.header)
    }
}

/// Begins a file of headers; the entries follow.
pub fn write_headers_head(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&FileType::UtxoHeaders.magic())
}

/// Reads headers.
#[derive(Debug)]
pub struct HeadersReader<R>(Input<R>);

impl<R: Read> HeadersReader<R> {
    /// Reads the beginning of the file.
    pub fn new(input: R) -> Result<Self, UtxoFileError> {
        let mut input = Input::new(input);
        check_type(FileType::UtxoHeaders, &mut input)?;
        Ok(Self(input))
    }

    /// The next entry; `None` at the end of the file.
    pub fn next_entry(&mut self) -> Result<Option<HeaderEntry>, UtxoFileError> {
        let Some(hash) = self.0.array_or_end("an entry")? else { return Ok(None) };
        Ok(Some(HeaderEntry {
            hash: BlockHash::from_bytes(hash),
            height: Height::new(u32::from_le_bytes(self.0.array("a height")?)),
            txs: u64::from_le_bytes(self.0.array("a transaction count")?),
            header: self.0.array("a header")?,
        }))
    }
}

//! The files that carry unspent outputs from one node to another.
//!
//! ```text
//! additions   │ magic 8 │ block hash 32 │ height u32le │ wrapper │ wrapper │ …  to the end
//! deletions   │ magic 8 │ block hash 32 │ height u32le │ outpoint 36 │ …        to the end
//! set         │ magic 8 │ block hash 32 │ height u32le │ previous block hash 32 │
//!             │ wrapper │ wrapper │ … │ transactions u64le │ outputs u64le │
//! headers     │ magic 8 │ { hash 32 │ height u32le │ transactions u64le │ header 80 } …
//! ```
//!
//! A wrapper is some outputs of one transaction, see [`utxo_wrapper`](crate::utxo_wrapper). In
//! additions a transaction of no outputs has a wrapper too; in a set it has none.
//!
//! Files are read and written as streams: memory is one wrapper. A set ends with 16 bytes that are
//! no wrapper, so its reader is told the length of the file, stops before them, and compares
//! their counts with what it has read. A file that ends anywhere else is an error.
//!
//! [`consolidate`] makes the set of a later block out of an earlier set and the files between.

pub mod consolidate;
mod headers;
mod set;
#[cfg(test)]
mod tests;
mod wrappers;

pub use headers::{HEADER_ENTRY_LEN, HeaderEntry, HeadersReader, write_headers_head};
pub use set::{FOOTER_LEN, SetReader, SetWriter};

use std::io::{self, Read, Write};

use varve_types::{BlockHash, Height, Outpoint};

use crate::file_type::{FileType, MAGIC_LEN};
use crate::utxo_wrapper::UtxoWrapper;
use wrappers::{Input, WrapperBuf};

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum UtxoFileError {
    /// The stream failed.
    #[error("the file cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// The first bytes are those of another kind of file, or of none.
    #[error("expected a {} file, found {found:?}", .expected.extension())]
    WrongType {
        /// The kind that was expected.
        expected: FileType,
        /// The kind that was found.
        found: Option<FileType>,
    },
    /// The file ends within an entry.
    #[error("at byte {offset}: expected {what}, but the file ends; get the file again")]
    Truncated {
        /// Where the entry begins.
        offset: u64,
        /// What was expected.
        what: &'static str,
    },
    /// The counts at the end of a set are not those of its content.
    #[error(
        "the footer says {footer:?} transactions and outputs, the file has {found:?}; \
         get the file again"
    )]
    WrongCounts {
        /// What the footer says.
        footer: (u64, u64),
        /// What was read.
        found: (u64, u64),
    },
}

/// The block that additions and deletions belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHead {
    /// The block.
    pub block: BlockHash,
    /// Its height.
    pub height: Height,
}

impl FileHead {
    fn write(&self, kind: FileType, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&kind.magic())?;
        out.write_all(self.block.as_bytes())?;
        out.write_all(&self.height.to_u32().to_le_bytes())
    }

    fn read(kind: FileType, input: &mut Input<impl Read>) -> Result<Self, UtxoFileError> {
        check_type(kind, input)?;
        let block = BlockHash::from_bytes(input.array("a block hash")?);
        let height = Height::new(u32::from_le_bytes(input.array("a height")?));
        Ok(Self { block, height })
    }
}

fn check_type(expected: FileType, input: &mut Input<impl Read>) -> Result<(), UtxoFileError> {
    let magic: [u8; MAGIC_LEN] = input.array("a magic")?;
    let found = FileType::from_magic(&magic);
    if found != Some(expected) {
        return Err(UtxoFileError::WrongType { expected, found });
    }
    Ok(())
}

/// Writes the outputs that a block creates.
#[derive(Debug)]
pub struct AdditionsWriter<W>(W);

impl<W: Write> AdditionsWriter<W> {
    /// Begins the file of a block.
    pub fn new(mut out: W, head: &FileHead) -> io::Result<Self> {
        head.write(FileType::UtxoAdditions, &mut out)?;
        Ok(Self(out))
    }

    /// Appends the bytes of a wrapper.
    pub fn push(&mut self, wrapper: &[u8]) -> io::Result<()> {
        self.0.write_all(wrapper)
    }

    /// Gives the stream back.
    pub fn into_inner(self) -> W {
        self.0
    }
}

/// Reads the outputs that a block creates.
#[derive(Debug)]
pub struct AdditionsReader<R> {
    input: Input<R>,
    head: FileHead,
    buffer: WrapperBuf,
}

impl<R: Read> AdditionsReader<R> {
    /// Reads the beginning of the file.
    pub fn new(input: R) -> Result<Self, UtxoFileError> {
        let mut input = Input::new(input);
        let head = FileHead::read(FileType::UtxoAdditions, &mut input)?;
        Ok(Self { input, head, buffer: WrapperBuf::default() })
    }

    /// The block of the file.
    #[must_use]
    pub const fn head(&self) -> &FileHead {
        &self.head
    }

    /// The next wrapper; `None` at the end of the file.
    pub fn next_wrapper(&mut self) -> Result<Option<UtxoWrapper<'_>>, UtxoFileError> {
        if !self.buffer.fill(&mut self.input)? {
            return Ok(None);
        }
        Ok(Some(self.buffer.wrapper()))
    }
}

/// Writes the outputs that a block spends. The input of a coinbase is none of them.
#[derive(Debug)]
pub struct DeletionsWriter<W>(W);

impl<W: Write> DeletionsWriter<W> {
    /// Begins the file of a block.
    pub fn new(mut out: W, head: &FileHead) -> io::Result<Self> {
        head.write(FileType::UtxoDeletions, &mut out)?;
        Ok(Self(out))
    }

    /// Appends an output. That of a coinbase's input is left out.
    pub fn push(&mut self, outpoint: &Outpoint) -> io::Result<()> {
        if outpoint.is_null() {
            return Ok(());
        }
        self.0.write_all(&outpoint.to_bytes())
    }

    /// Gives the stream back.
    pub fn into_inner(self) -> W {
        self.0
    }
}

/// Reads the outputs that a block spends.
#[derive(Debug)]
pub struct DeletionsReader<R> {
    input: Input<R>,
    head: FileHead,
}

impl<R: Read> DeletionsReader<R> {
    /// Reads the beginning of the file.
    pub fn new(input: R) -> Result<Self, UtxoFileError> {
        let mut input = Input::new(input);
        let head = FileHead::read(FileType::UtxoDeletions, &mut input)?;
        Ok(Self { input, head })
    }

    /// The block of the file.
    #[must_use]
    pub const fn head(&self) -> &FileHead {
        &self.head
    }

    /// The next outpoint; `None` at the end of the file.
    pub fn next_outpoint(&mut self) -> Result<Option<Outpoint>, UtxoFileError> {
        let bytes = self.input.array_or_end::<{ Outpoint::LEN }>("an outpoint")?;
        Ok(bytes.map(|bytes| Outpoint::from_bytes(&bytes)))
    }
}

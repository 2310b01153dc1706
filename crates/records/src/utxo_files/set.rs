//! A set of unspent outputs at one block.

use std::io::{self, Read, Write};

use varve_types::BlockHash;

use super::wrappers::{Input, WrapperBuf};
use super::{FileHead, UtxoFileError};
use crate::file_type::FileType;
use crate::utxo_wrapper::UtxoWrapper;

/// The length of the counts at the end.
pub const FOOTER_LEN: u64 = 8 + 8;

/// Writes a set.
#[derive(Debug)]
pub struct SetWriter<W> {
    out: W,
    txs: u64,
    outputs: u64,
}

impl<W: Write> SetWriter<W> {
    /// Begins the set at a block.
    pub fn new(mut out: W, head: &FileHead, previous: &BlockHash) -> io::Result<Self> {
        head.write(FileType::UtxoSet, &mut out)?;
        out.write_all(previous.as_bytes())?;
        Ok(Self { out, txs: 0, outputs: 0 })
    }

    /// Appends the bytes of a wrapper, unless it has no outputs.
    pub fn push(&mut self, wrapper: &[u8]) -> Result<(), UtxoFileError> {
        let parsed = UtxoWrapper::parse(wrapper);
        let parsed = parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let outputs = parsed.outputs().len() as u64;
        if outputs > 0 {
            self.out.write_all(wrapper)?;
            self.txs += 1;
            self.outputs += outputs;
        }
        Ok(())
    }

    /// Writes the counts and gives the stream back.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&self.txs.to_le_bytes())?;
        self.out.write_all(&self.outputs.to_le_bytes())?;
        Ok(self.out)
    }
}

/// Reads a set.
#[derive(Debug)]
pub struct SetReader<R> {
    input: Input<R>,
    head: FileHead,
    previous: BlockHash,
    /// Where the counts begin.
    end: u64,
    /// Transactions and outputs so far.
    found: (u64, u64),
    buffer: WrapperBuf,
}

impl<R: Read> SetReader<R> {
    /// Reads the beginning of a set in a file of this length.
    pub fn new(input: R, file_len: u64) -> Result<Self, UtxoFileError> {
        let mut input = Input::new(input);
        let head = FileHead::read(FileType::UtxoSet, &mut input)?;
        let previous = BlockHash::from_bytes(input.array("a previous block hash")?);
        let offset = input.offset();
        let end = file_len.checked_sub(FOOTER_LEN).filter(|end| *end >= offset);
        let end = end.ok_or(UtxoFileError::Truncated { offset, what: "a footer" })?;
        let buffer = WrapperBuf::default();
        Ok(Self { input, head, previous, end, found: (0, 0), buffer })
    }

    /// The block of the set.
    #[must_use]
    pub const fn head(&self) -> &FileHead {
        &self.head
    }

    /// The block before it.
    #[must_use]
    pub const fn previous(&self) -> &BlockHash {
        &self.previous
    }

    /// The next wrapper; `None` at the end, after the counts have been compared.
    pub fn next_wrapper(&mut self) -> Result<Option<UtxoWrapper<'_>>, UtxoFileError> {
        let offset = self.input.offset();
        if offset == self.end {
            return self.check_footer().map(|()| None);
        }
        let what = "a wrapper before the footer";
        if offset > self.end || !self.buffer.fill(&mut self.input)? {
            return Err(UtxoFileError::Truncated { offset, what });
        }
        if self.input.offset() > self.end {
            return Err(UtxoFileError::Truncated { offset, what });
        }
        let wrapper = self.buffer.wrapper();
        self.found.0 += 1;
        self.found.1 += wrapper.outputs().len() as u64;
        Ok(Some(wrapper))
    }

    /// Compares the counts. Asked again, the file has ended before them.
    fn check_footer(&mut self) -> Result<(), UtxoFileError> {
        let txs = u64::from_le_bytes(self.input.array("a footer")?);
        let outputs = u64::from_le_bytes(self.input.array("a footer")?);
        let footer = (txs, outputs);
        if footer != self.found {
            return Err(UtxoFileError::WrongCounts { footer, found: self.found });
        }
        Ok(())
    }
}

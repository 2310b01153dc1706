//! Blocks that come in pieces and need not fit in memory.
//!
//! The caller pushes the bytes of one block, in chunks of any size, and gets its header and its
//! transactions through a closure as soon as they are whole:
//!
//! ```text
//! chunk ─► │ header │ tx │ tx │ tx │ tx …cut │        whole transactions: views into the chunk
//!                                     └► buffer ◄── the next chunk's beginning
//! ```
//!
//! 1. While the buffer is empty, transactions are parsed in the chunk itself. What is left of it,
//!    an incomplete transaction, goes into the buffer.
//! 2. While it is not, the chunk is appended to it in steps, and the parse goes on where it
//!    stopped (see `tx/scan.rs`). When the transaction is whole, the rest of the step is given
//!    up, and the parse is back in the chunk.
//! 3. Transactions that are whole at the same time are hashed side by side, and their txids go
//!    into a [`MerkleStream`].
//!
//! So memory is one incomplete transaction, one step and a few hashes, whatever the chunks. One
//! transaction may still be as large as its sender likes; [`BlockStream::tx_limit`] bounds that.
//! The same bytes give the same items and the same error in every chunking, and those of
//! [`Block::parse`](crate::Block::parse), with one difference: that function knows the length of
//! the block, and refuses a count of transactions that cannot fit before it reads any.

#[cfg(test)]
mod tests;

use crate::block::MIN_TX;
use crate::compact_size;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::format::Format;
use crate::hash::Txid;
use crate::header::Header;
use crate::merkle::{MerkleStream, MerkleTree};
use crate::reader::Reader;
use crate::tx::scan::Scan;
use crate::tx::{Tx, txids_of};

/// How much of a chunk is appended to an incomplete transaction at once.
const STEP: usize = 64 * 1024;
/// How many transactions are hashed side by side.
const BATCH: usize = 256;

/// A part of a block that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// The header: the first item.
    Header(Header<'a>),
    /// A transaction.
    Tx {
        /// The offset of its first byte in the block.
        offset: u64,
        /// The transaction.
        tx: Tx<'a>,
        /// Its hash.
        txid: Txid,
    },
}

/// What is known of a block when all of it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The header.
    pub header: [u8; Header::LEN],
    /// The number of transactions.
    pub tx_count: u64,
    /// The length of the block in bytes.
    pub length: u64,
    /// The merkle tree over the txids. Its root must be that of the header.
    pub merkle: MerkleTree,
}

/// Decodes one block from chunks.
///
/// ```
/// use varve_types::stream::{BlockStream, Item};
/// use varve_types::{Format, Header, Network};
///
/// let block = Network::Mainnet.genesis_block();
/// let mut stream = BlockStream::new(Format::Segwit);
/// let mut txids = Vec::new();
/// for chunk in block.chunks(100) {
///     stream.push(chunk, |item| {
///         if let Item::Tx { txid, .. } = item {
///             txids.push(txid);
///         }
///     })?;
/// }
/// let summary = stream.finish()?;
/// assert_eq!(txids.len(), 1);
/// assert_eq!(summary.merkle.root, Header::new(&summary.header).merkle_root());
/// # Ok::<(), varve_types::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockStream {
    format: Format,
    tx_limit: u64,
    phase: Phase,
    /// The offset in the block of the next item.
    offset: u64,
    /// The beginning of the next item, when it is incomplete.
    buffer: Vec<u8>,
    /// How far that item has been checked.
    scan: Scan,
    header: [u8; Header::LEN],
    tx_count: u64,
    merkle: MerkleStream,
    failed: Option<DecodeError>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Header,
    Count,
    Txs { left: u64 },
}

impl BlockStream {
    /// Waits for the first byte of a block.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            format,
            tx_limit: u64::MAX,
            phase: Phase::Header,
            offset: 0,
            buffer: Vec::new(),
            scan: Scan::new(format),
            header: [0; Header::LEN],
            tx_count: 0,
            merkle: MerkleStream::new(),
            failed: None,
        }
    }

    /// Refuses transactions of more than `bytes`.
    #[must_use]
    pub fn tx_limit(self, bytes: u64) -> Self {
        Self { tx_limit: bytes, ..self }
    }

    /// Takes the next bytes of the block and gives every item that they complete to `sink`.
    ///
    /// After an error the stream is of no more use: every later call gives the same error.
    pub fn push(
        &mut self,
        chunk: &[u8],
        mut sink: impl FnMut(Item<'_>),
    ) -> Result<(), DecodeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.take(chunk, &mut sink);
        self.failed = result.err();
        result
    }

    /// The end of the block.
    pub fn finish(mut self) -> Result<Summary, DecodeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match self.phase {
            Phase::Txs { left: 0 } => Ok(Summary {
                header: self.header,
                tx_count: self.tx_count,
                length: self.offset,
                merkle: self.merkle.finish(),
            }),
            Phase::Txs { left } => Err(self.missing(left)),
            Phase::Count => Err(self.end_within("transactions")),
            Phase::Header => Err(self.end_within("a block header")),
        }
    }

    /// The error of a block that ends before its last `left` transactions: what
    /// [`Block::parse`](crate::Block::parse) would have said.
    fn missing(&mut self, left: u64) -> DecodeError {
        let what = "transactions";
        let count = self.tx_count + left;
        let first = Header::LEN + compact_size::len(count);
        let length = self.offset + self.buffer.len() as u64 - first as u64;
        if count > length / MIN_TX {
            return DecodeErrorKind::CountTooLarge { what, count }.at(Header::LEN);
        }
        let cut = self.scan.run(&self.buffer).err();
        cut.map_or(self.end_within(what), |error| error.shifted(self.offset))
    }

    /// The block ends within the item that is being read.
    fn end_within(&self, what: &'static str) -> DecodeError {
        DecodeError { offset: self.offset, kind: DecodeErrorKind::UnexpectedEnd { what } }
    }

    fn take(
        &mut self,
        mut chunk: &[u8],
        sink: &mut impl FnMut(Item<'_>),
    ) -> Result<(), DecodeError> {
        while !self.buffer.is_empty() && !chunk.is_empty() {
            let mut buffer = std::mem::take(&mut self.buffer);
            let before = buffer.len();
            let (step, rest) = chunk.split_at(chunk.len().min(STEP));
            buffer.extend_from_slice(step);
            match self.items(&buffer, sink)?.checked_sub(before) {
                // The item is whole, and it ended within the step: go on behind it.
                Some(used) => chunk = chunk.get(used..).unwrap_or_default(),
                None => {
                    self.buffer = buffer;
                    chunk = rest;
                }
            }
        }
        if self.buffer.is_empty() {
            let used = self.items(chunk, sink)?;
            self.buffer.extend_from_slice(chunk.get(used..).unwrap_or_default());
        }
        Ok(())
    }

    /// Gives the items that are whole at the front of `bytes` to `sink`. Returns their length.
    fn items(
        &mut self,
        bytes: &[u8],
        sink: &mut impl FnMut(Item<'_>),
    ) -> Result<usize, DecodeError> {
        let mut rest = bytes;
        loop {
            let used = match self.phase {
                Phase::Header => self.read_header(rest, sink),
                Phase::Count => self.read_count(rest),
                Phase::Txs { left: 0 } => Reader::new(rest).end().map(|()| None),
                Phase::Txs { left } => self.read_txs(rest, left, sink),
            };
            let Some(used) = used.map_err(|error| error.shifted(self.offset))? else {
                return Ok(bytes.len() - rest.len());
            };
            self.offset += used as u64;
            rest = rest.get(used..).unwrap_or_default();
        }
    }

    // Each of these reads from the front of `bytes` and returns the length of what it has read,
    // or `None` when that is incomplete.

    fn read_header(
        &mut self,
        bytes: &[u8],
        sink: &mut impl FnMut(Item<'_>),
    ) -> Result<Option<usize>, DecodeError> {
        let Some(header) = bytes.first_chunk() else { return Ok(None) };
        self.header = *header;
        self.phase = Phase::Count;
        sink(Item::Header(Header::new(header)));
        Ok(Some(header.len()))
    }

    fn read_count(&mut self, bytes: &[u8]) -> Result<Option<usize>, DecodeError> {
        let mut reader = Reader::new(bytes);
        match compact_size::read(&mut reader, self.format.size_limit(), "transactions") {
            Ok(left) => self.phase = Phase::Txs { left },
            Err(error) if error.is_incomplete() => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(reader.offset()))
    }

    fn read_txs(
        &mut self,
        bytes: &[u8],
        left: u64,
        sink: &mut impl FnMut(Item<'_>),
    ) -> Result<Option<usize>, DecodeError> {
        let mut batch = Vec::new();
        let mut used = 0;
        let result = loop {
            if batch.len() == BATCH || batch.len() as u64 == left {
                break Ok(());
            }
            let rest = bytes.get(used..).unwrap_or_default();
            match self.scan_tx(rest) {
                Ok(Some(tx)) => {
                    used += tx.bytes().len();
                    batch.push(tx);
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.shifted(used as u64)),
            }
        };
        let mut offset = self.offset;
        for (tx, txid) in batch.iter().zip(txids_of(&batch)) {
            self.merkle.push(txid);
            sink(Item::Tx { offset, tx: *tx, txid: Txid::from_bytes(txid) });
            offset += tx.bytes().len() as u64;
        }
        self.tx_count += batch.len() as u64;
        self.phase = Phase::Txs { left: left - batch.len() as u64 };
        result.map(|()| (used > 0).then_some(used))
    }

    /// The transaction at the front of `bytes`, or `None` when it is incomplete. It is looked for
    /// in the first `tx_limit` bytes only, so that the chunking cannot decide which error it is.
    fn scan_tx<'b>(&mut self, bytes: &'b [u8]) -> Result<Option<Tx<'b>>, DecodeError> {
        let limit = usize::try_from(self.tx_limit).unwrap_or(usize::MAX);
        let within = bytes.get(..limit).unwrap_or(bytes);
        match self.scan.run(within) {
            Ok(layout) => {
                self.scan = Scan::new(self.format);
                Ok(Some(Tx::new(bytes, layout)))
            }
            Err(error) if !error.is_incomplete() => Err(error),
            Err(_) if within.len() == bytes.len() => Ok(None),
            Err(_) => Err(DecodeErrorKind::TransactionTooLarge { limit: self.tx_limit }.at(0)),
        }
    }
}

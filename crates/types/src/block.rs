//! Blocks, as views over their bytes.
//!
//! ```text
//! │ header 80 │ CompactSize n │ n × transaction │
//! ```
//!
//! A block is parsed in one pass, which remembers where its transactions are. Their hashes are
//! computed for the whole block at once, side by side in the lanes of `varve-sha256`.
//!

mod commitment;
#[cfg(test)]
mod tests;

use crate::compact_size;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::format::Format;
use crate::hash::{BlockHash, Txid, Wtxid};
use crate::header::Header;
use crate::merkle::{MerkleTree, merkle_root};
use crate::reader::Reader;
use crate::tx::{Tx, txids_of};

/// The smallest transaction that decodes: version, no inputs, no outputs, lock time.
const MIN_TX: u64 = 4 + 1 + 1 + 4;
/// The smallest with an input and an output.
const MIN_REAL_TX: usize = 4 + 1 + 41 + 1 + 9 + 4;

/// A block in borrowed bytes.
///
/// ```
/// use varve_types::{Block, Format, Network};
///
/// let bytes = Network::Mainnet.genesis_block();
/// let block = Block::parse(&bytes, Format::Segwit)?;
/// assert_eq!(block.hash(), Network::Mainnet.genesis_hash());
/// assert_eq!(block.merkle_tree().root, block.header().merkle_root());
/// let txid = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";
/// assert_eq!(block.txids(), [txid.parse()?]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    bytes: &'a [u8],
    header: Header<'a>,
    txs: Vec<Tx<'a>>,
}

impl<'a> Block<'a> {
    /// Parses a block that fills the bytes. Offsets in errors count from its first byte.
    pub fn parse(bytes: &'a [u8], format: Format) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let header = Header::new(reader.array("a block header")?);
        let start = reader.offset();
        let what = "transactions";
        let count = compact_size::read(&mut reader, format.size_limit(), what)?;
        let left = reader.rest().len();
        if count > left as u64 / MIN_TX {
            return Err(DecodeErrorKind::CountTooLarge { what, count }.at(start));
        }
        let count = usize::try_from(count).expect("not more than the bytes in memory");
        let mut txs = Vec::with_capacity(count.min(left / MIN_REAL_TX));
        for _ in 0..count {
            let offset = reader.offset();
            let tx = Tx::parse_first(reader.rest(), format)
                .map_err(|error| error.shifted(offset as u64))?;
            reader = Reader::at(bytes, offset + tx.bytes().len());
            txs.push(tx);
        }
        reader.end()?;
        Ok(Self { bytes, header, txs })
    }

    /// The serialised block.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> Header<'a> {
        self.header
    }

    /// The hash of the header.
    #[must_use]
    pub fn hash(&self) -> BlockHash {
        self.header.hash()
    }

    /// The transactions.
    #[must_use]
    pub fn txs(&self) -> &[Tx<'a>] {
        &self.txs
    }

    /// The transactions, each with the offset of its first byte in the block.
    pub fn txs_with_offsets(&self) -> impl Iterator<Item = (usize, &Tx<'a>)> {
        let length: usize = self.txs.iter().map(|tx| tx.bytes().len()).sum();
        let first = self.bytes.len() - length;
        self.txs.iter().scan(first, |next, tx| {
            let offset = *next;
            *next += tx.bytes().len();
            Some((offset, tx))
        })
    }

    /// The txids of all transactions, in order.
    #[must_use]
    pub fn txids(&self) -> Vec<Txid> {
        txids_of(&self.txs).into_iter().map(Txid::from_bytes).collect()
    }

    /// The wtxids of all transactions, in order. That of the coinbase is its real hash, although
    /// the witness commitment uses zeros in its place.
    #[must_use]
    pub fn wtxids(&self) -> Vec<Wtxid> {
        if self.txs.iter().any(|tx| tx.format() == Format::Extended) {
            return self.txs.iter().map(Tx::wtxid).collect();
        }
        let mut hashes = Vec::with_capacity(self.txs.len());
        varve_sha256::double_many(self.txs.iter().map(|tx| tx.bytes().into()), &mut hashes);
        hashes.into_iter().map(Wtxid::from_bytes).collect()
    }

    /// The merkle tree over the txids. Its root must be that of the header.
    #[must_use]
    pub fn merkle_tree(&self) -> MerkleTree {
        merkle_root(txids_of(&self.txs))
    }
}

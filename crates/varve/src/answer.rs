//! What a snapshot answers: plain values that own what they hold.

use std::fmt;
use std::str::FromStr;

use varve_archive::{HeaderRow, Output as ArchivedOutput, TxPlace};
use varve_blocks::BlockBytes;
use varve_types::{
    Amount, Block as ParsedBlock, BlockHash, Coin, Format, Header, Height, MerkleRoot, Outpoint,
    Tx, Txid,
};

/// The last block of the confirmed chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tip {
    /// Its height.
    pub height: Height,
    /// Its hash.
    pub hash: BlockHash,
}

impl From<(Height, BlockHash)> for Tip {
    fn from((height, hash): (Height, BlockHash)) -> Self {
        Self { height, hash }
    }
}

impl fmt::Display for Tip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "height {}, block {}", self.height, self.hash)
    }
}

/// How a block is named: by its hash on any branch, or by its height in the confirmed chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockId {
    /// The block with this hash.
    Hash(BlockHash),
    /// The confirmed block at this height.
    Height(Height),
}

impl From<BlockHash> for BlockId {
    fn from(hash: BlockHash) -> Self {
        Self::Hash(hash)
    }
}

impl From<Height> for BlockId {
    fn from(height: Height) -> Self {
        Self::Height(height)
    }
}

/// Text that names no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a height, or a block hash of 64 digits")]
pub struct ParseBlockIdError;

impl FromStr for BlockId {
    type Err = ParseBlockIdError;

    /// A hash of 64 digits, which may all be decimal, or else a height.
    fn from_str(text: &str) -> Result<Self, ParseBlockIdError> {
        let hash = text.parse().map(Self::Hash);
        let height = || text.parse().map(|height| Self::Height(Height::new(height)));
        hash.or_else(|_| height()).map_err(|_| ParseBlockIdError)
    }
}

/// A block header and its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Its hash.
    pub hash: BlockHash,
    /// Its height on its branch.
    pub height: Height,
    /// Whether the confirmed chain has it at that height.
    pub confirmed: bool,
    /// The header below; `None` for genesis.
    pub previous: Option<BlockHash>,
    /// The version, with the bits that miners signal by.
    pub version: i32,
    /// The root of the merkle tree of its transactions.
    pub merkle_root: MerkleRoot,
    /// When it was made, in seconds since 1970, as its miner says.
    pub time: u32,
    /// The median of the times of the eleven blocks that end with this one.
    pub median_time: u32,
    /// The target, in compact form.
    pub bits: u32,
    /// What was varied to meet the target.
    pub nonce: u32,
    /// How many hashes the chain up to here has taken on average: a number, the least significant
    /// byte first.
    pub chain_work: [u8; 32],
}

impl BlockHeader {
    pub(crate) fn new(row: &HeaderRow, previous: Option<BlockHash>, confirmed: bool) -> Self {
        let HeaderRow { hash, height, version, merkle_root, time, bits, nonce, .. } = *row;
        let (median_time, chain_work) = (row.median_time, row.work.to_le_bytes());
        Self {
            hash,
            height,
            confirmed,
            previous,
            version,
            merkle_root,
            time,
            median_time,
            bits,
            nonce,
            chain_work,
        }
    }

    /// The same as [`bytes`](Self::bytes).
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Header::LEN] {
        self.bytes()
    }

    /// The 80 bytes whose hash is the block's.
    #[must_use]
    pub fn bytes(&self) -> [u8; Header::LEN] {
        let previous = self.previous.unwrap_or(BlockHash::ZERO);
        let mut bytes = Vec::with_capacity(Header::LEN);
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(previous.as_bytes());
        bytes.extend(self.merkle_root.as_bytes());
        bytes.extend(self.time.to_le_bytes());
        bytes.extend(self.bits.to_le_bytes());
        bytes.extend(self.nonce.to_le_bytes());
        bytes.try_into().expect("the fields of a header are 80 bytes")
    }
}

/// A stored block.
#[derive(Debug)]
pub struct Block {
    /// Its header.
    pub header: BlockHeader,
    /// Its transactions, in order.
    pub txids: Vec<Txid>,
    pub(crate) bytes: BlockBytes,
    pub(crate) format: Format,
}

impl Block {
    /// Its serialisation.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Its parts, which borrow from its bytes.
    pub fn parse(&self) -> Result<ParsedBlock<'_>, varve_types::DecodeError> {
        ParsedBlock::parse(self.bytes(), self.format)
    }
}

/// A transaction in a stored block.
#[derive(Debug)]
pub struct Transaction {
    /// Its id.
    pub txid: Txid,
    /// The block that holds it: the confirmed one where there is one, else the newest.
    pub block: BlockHeader,
    /// Its place in that block; the coinbase is at 0.
    pub position: u32,
    /// Every block known to hold it, newest first. Where one was pruned, that of `block` alone.
    pub blocks: Vec<BlockHash>,
    pub(crate) bytes: BlockBytes,
    pub(crate) format: Format,
}

impl Transaction {
    /// Its serialisation.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Its parts, which borrow from its bytes.
    pub fn parse(&self) -> Result<Tx<'_>, varve_types::DecodeError> {
        Tx::parse(self.bytes(), self.format)
    }

    /// Whether its block is in the confirmed chain.
    #[must_use]
    pub const fn is_confirmed(&self) -> bool {
        self.block.confirmed
    }
}

/// An output of a stored transaction, spent or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The transaction that made it, and its place there.
    pub outpoint: Outpoint,
    /// The height of the block that holds the transaction.
    pub height: Height,
    /// Whether a coinbase made it.
    pub coinbase: bool,
    /// Whether that block is in the confirmed chain.
    pub confirmed: bool,
    /// What it is worth.
    pub value: Amount,
    /// The script that spending it must satisfy.
    pub script: Vec<u8>,
}

impl Output {
    pub(crate) fn archived(output: ArchivedOutput) -> Self {
        let TxPlace { height, confirmed, .. } = output.tx;
        Self {
            outpoint: output.point(),
            height,
            coinbase: output.tx.is_coinbase(),
            confirmed,
            value: output.value,
            script: output.script,
        }
    }

    pub(crate) fn unspent(outpoint: Outpoint, coin: &Coin<'_>) -> Self {
        let Coin { height, coinbase, value, script } = *coin;
        Self { outpoint, height, coinbase, confirmed: true, value, script: script.to_vec() }
    }
}

/// The input of the confirmed chain that spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spender {
    /// The transaction.
    pub txid: Txid,
    /// The place of the input in it.
    pub vin: u32,
    /// The height of its block.
    pub height: Height,
    /// Its block.
    pub block: BlockHash,
}

/// An input of some block that spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchSpend {
    /// The input and its block.
    pub spender: Spender,
    /// Whether that block is in the confirmed chain.
    pub confirmed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_blocks() {
        assert_eq!("600".parse(), Ok(BlockId::Height(Height::new(600))));
        assert_eq!("0".repeat(64).parse(), Ok(BlockId::Hash(BlockHash::ZERO)));
        for wrong in ["", "-1", "4294967296", "xyz", &"f".repeat(63)] {
            assert_eq!(wrong.parse::<BlockId>(), Err(ParseBlockIdError), "{wrong}");
        }
    }
}

//! The rows of the tables, as values.
//!
//! ```text
//! header ──parent──► header          every header, on every branch
//!   │ 0..1
//!   ▼
//! block ──first, count──► tx         the "txs" association: a block whose bytes have come
//!   ▲                       │
//!   └─ block, position ─────┴── slice ──► bytes of the transaction in the block store
//! ```
//!
//! A transaction row has no txid, and a spend has no row with its point: both are found through
//! short fingerprints of them, and the transaction's bytes decide whether a row is meant.
//!
//! A back end stores them as it likes; `docs/format/archive.md` draws what `mmap` makes of them.
//! What can be read in the block's bytes (scripts, witnesses, values, lock times) is in no row.

use std::ops::Range;

use varve_consensus::Work;
use varve_types::{BlockHash, Header, Height, MerkleRoot, Outpoint, PushdataHash, Txid};

use crate::link::{HeaderLink, TxLink};
use crate::source::BlockNumber;

/// A header, with what is known of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderRow {
    /// The hash of the block.
    pub hash: BlockHash,
    /// The header below; `None` for the genesis block.
    pub parent: Option<HeaderLink>,
    /// How many headers are below.
    pub height: Height,
    /// The median time past: of this header and the ten below it.
    pub median_time: u32,
    /// The version.
    pub version: i32,
    /// The root of the merkle tree over the txids.
    pub merkle_root: MerkleRoot,
    /// The time, in seconds since 1970.
    pub time: u32,
    /// The target, in compact form.
    pub bits: u32,
    /// What the miner varied.
    pub nonce: u32,
    /// The work of the chain up to here.
    pub work: Work,
}

impl HeaderRow {
    /// The 80 bytes of the header, which needs the hash of the block below.
    #[must_use]
    pub fn to_bytes(&self, previous: BlockHash) -> [u8; Header::LEN] {
        let mut bytes = [0; Header::LEN];
        let fields: [&[u8]; 6] = [
            &self.version.to_le_bytes(),
            previous.as_bytes(),
            self.merkle_root.as_bytes(),
            &self.time.to_le_bytes(),
            &self.bits.to_le_bytes(),
            &self.nonce.to_le_bytes(),
        ];
        let mut rest = bytes.as_mut_slice();
        for field in fields {
            let (at, after) = rest.split_at_mut(field.len());
            at.copy_from_slice(field);
            rest = after;
        }
        bytes
    }
}

/// A block whose bytes are stored: which rows are its transactions, and its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// The row of the coinbase; the others follow in block order.
    pub first_tx: TxLink,
    /// How many transactions there are.
    pub tx_count: u32,
    /// The block in the block store.
    pub number: BlockNumber,
    /// Its length in bytes.
    pub size: u32,
    /// Its length without witnesses.
    pub base_size: u32,
    /// How many inputs its transactions have, that of the coinbase included.
    pub inputs: u32,
    /// How many outputs they have.
    pub outputs: u32,
}

impl BlockRow {
    /// The weight of the block (BIP141).
    #[must_use]
    pub fn weight(&self) -> u64 {
        3 * u64::from(self.base_size) + u64::from(self.size)
    }
}

/// One transaction in one block. The same transaction in another block is another row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxRow {
    /// The block.
    pub block: HeaderLink,
    /// The place in the block; the coinbase is at 0.
    pub position: u32,
    /// Where its bytes are.
    pub slice: TxSlice,
}

/// The bytes of a transaction in the block store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxSlice {
    /// The block.
    pub number: BlockNumber,
    /// The offset of the first byte in the block.
    pub start: u32,
    /// The length in bytes.
    pub len: u32,
}

impl TxSlice {
    /// The bytes within the block.
    #[must_use]
    pub const fn range(&self) -> Range<u32> {
        self.start..self.start.saturating_add(self.len)
    }
}

/// A block to be archived. The back end makes the [`BlockRow`] of it and chooses the rows.
#[derive(Clone, Copy, Debug)]
pub struct NewBlock<'a> {
    /// The header, which has a row.
    pub header: HeaderLink,
    /// The block in the block store.
    pub number: BlockNumber,
    /// Its length in bytes.
    pub size: u32,
    /// Its length without witnesses.
    pub base_size: u32,
    /// How many inputs there are.
    pub inputs: u32,
    /// How many outputs there are.
    pub outputs: u32,
    /// The offset of each transaction in the block. It ends where the next one begins, or with the
    /// block.
    pub offsets: &'a [u32],
}

/// What the transactions of a block are found by, with their positions in the block.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockKeys<'a> {
    /// The txid of every transaction, in order.
    pub txids: &'a [Txid],
    /// Every point that is spent, with the position of the transaction that does. The null point of
    /// the coinbase is not among them.
    pub spends: &'a [(Outpoint, u32)],
    /// The hash of every item that is pushed, once a transaction, with its position; empty when
    /// pushdata is not indexed.
    pub pushes: &'a [(PushdataHash, u32)],
}

impl NewBlock<'_> {
    /// The row of the block when its transactions begin at `first_tx`.
    #[must_use]
    pub fn row(&self, first_tx: TxLink) -> BlockRow {
        let tx_count = u32::try_from(self.offsets.len()).expect("offsets are u32 and all differ");
        let Self { number, size, base_size, inputs, outputs, .. } = *self;
        BlockRow { first_tx, tx_count, number, size, base_size, inputs, outputs }
    }

    /// The row of every transaction, in order.
    pub(crate) fn tx_rows(&self) -> impl Iterator<Item = TxRow> {
        let ends = self.offsets.iter().skip(1).copied().chain([self.size]);
        (0..).zip(self.offsets.iter().zip(ends)).map(|(position, (start, end))| {
            let len = end.saturating_sub(*start);
            let slice = TxSlice { number: self.number, start: *start, len };
            TxRow { block: self.header, position, slice }
        })
    }
}

/// What validation has found of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockState {
    /// Nothing is known.
    #[default]
    Unknown = 0,
    /// All that does not depend on the order of blocks holds.
    Valid = 1,
    /// It may be confirmed on its branch.
    Confirmable = 2,
    /// It breaks a rule, or stands on a block that does.
    Unconfirmable = 3,
}

impl BlockState {
    /// The state with this code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Unknown),
            1 => Some(Self::Valid),
            2 => Some(Self::Confirmable),
            3 => Some(Self::Unconfirmable),
            _ => None,
        }
    }

    /// The code of the state on disk.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// What validation has found of a transaction row, and under which rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxState {
    /// The script rules, as the bits of the verifier.
    pub flags: u32,
    /// The height of the block it was checked for.
    pub height: Height,
    /// The median time past below that block.
    pub median_time: u32,
    /// Whether its scripts hold.
    pub connected: bool,
    /// Inputs less outputs, in satoshi.
    pub fee: u64,
    /// What its signature operations cost.
    pub sigops: u32,
}

/// The BIP158 basic filter of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterRow {
    /// The filter header, which chains the filters of a branch (BIP157).
    pub header: [u8; 32],
    /// The serialised filter.
    pub body: Vec<u8>,
}

impl FilterRow {
    /// The hash of the filter.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        varve_types::sha256d(&self.body)
    }
}

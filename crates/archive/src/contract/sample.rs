//! Rows and blocks for the tests of the contract: each made from a number, and unlike all others.

use varve_consensus::Work;
use varve_types::pushdata::PushdataRule;
use varve_types::{BlockHash, Height, MerkleRoot, Network, Outpoint, PushdataHash, Txid};

use crate::backend::{Backend, Indexes, MakeRows as _, Mark, RowsOf};
use crate::link::HeaderLink;
use crate::row::{BlockKeys, BlockRow, HeaderRow, NewBlock};
use crate::source::BlockNumber;

/// The mark of these tests.
#[must_use]
pub fn mark(sequence: u64) -> Mark {
    let indexes = Indexes { pushdata: Some(PushdataRule::Documented), filters: true };
    Mark { network: Network::Regtest, indexes, sequence, base: Some(Height::new(7)) }
}

/// A header row that no other number has.
#[must_use]
pub fn header(number: u32) -> HeaderRow {
    let mut hash = [0xaa; 32];
    hash[..4].copy_from_slice(&number.to_le_bytes());
    let work = Work::of_bits(0x207f_ffff + number % 3);
    HeaderRow {
        hash: BlockHash::from_bytes(hash),
        parent: number.checked_sub(1).map(HeaderLink::new),
        height: Height::new(number),
        median_time: 1000 + number,
        version: i32::from_le_bytes(number.wrapping_mul(0x9e37_79b9).to_le_bytes()),
        merkle_root: MerkleRoot::from_bytes([0xbb; 32]),
        time: 2000 + number,
        bits: 0x207f_ffff,
        nonce: !number,
        work,
    }
}

/// A txid that no other number has.
#[must_use]
pub fn txid(number: u32) -> Txid {
    let mut bytes = [0xcc; 32];
    bytes[28..].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

/// The hash of a pushed item that no other number has.
#[must_use]
pub fn push(number: u32) -> PushdataHash {
    PushdataHash::of(&number.to_le_bytes())
}

/// A block of these tests, with what it is found by.
#[derive(Clone, Debug)]
pub struct TestBlock {
    pub(super) header: HeaderLink,
    pub(super) size: u32,
    pub(super) txids: Vec<Txid>,
    pub(super) offsets: Vec<u32>,
    pub(super) spends: Vec<(Outpoint, u32)>,
    pub(super) pushes: Vec<(PushdataHash, u32)>,
}

impl TestBlock {
    pub(super) fn new_block(&self) -> NewBlock<'_> {
        NewBlock {
            header: self.header,
            number: BlockNumber::new(self.header.to_u32() + 100),
            size: self.size,
            base_size: 4000,
            inputs: 30,
            outputs: 20,
            offsets: &self.offsets,
        }
    }

    pub(super) fn rows<B: Backend>(&self, backend: &B) -> RowsOf<B> {
        let Self { txids, spends, pushes, .. } = self;
        backend.maker().rows(&BlockKeys { txids, spends, pushes })
    }

    /// Appends the block to a store.
    pub fn append<B: Backend>(&self, backend: &mut B) -> crate::backend::Result<BlockRow> {
        let rows = self.rows(backend);
        backend.append_block(&self.new_block(), rows)
    }
}

/// A block of these rows.
#[must_use]
pub fn block(
    header: u32,
    txs: &[(Txid, u32)],
    spends: &[(Outpoint, u32)],
    pushes: &[(PushdataHash, u32)],
) -> TestBlock {
    TestBlock {
        header: HeaderLink::new(header),
        size: 5000 + header,
        txids: txs.iter().map(|(txid, _)| *txid).collect(),
        offsets: txs.iter().map(|(_, offset)| *offset).collect(),
        spends: spends.to_vec(),
        pushes: pushes.to_vec(),
    }
}

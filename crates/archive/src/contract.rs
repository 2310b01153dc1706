//! The contract of [`Backend`], as tests for whoever implements it.
//!
//! A back end wraps the place where it keeps its files in [`Disk`] and calls [`check`] from a
//! test. The cases are small and can be followed on paper; [`random`] then walks at random beside
//! the plain maps of [`MemoryBackend`], with a new opening now and then.

pub mod random;

use varve_consensus::Work;
use varve_types::{BlockHash, Height, MerkleRoot, Network, Outpoint, Txid};

use crate::backend::memory::{MemoryBackend, MemoryDisk};
use crate::backend::{
    Backend, Chain, Indexes, MakeRows as _, Mark, Match, RowsOf, Tables, Unindexed,
};
use crate::link::{Bounds, HeaderLink, TxLink};
use crate::row::{
    BlockKeys, BlockRow, BlockState, FilterRow, HeaderRow, NewBlock, ScriptHash, TxRow, TxSlice,
    TxState,
};
use crate::source::BlockNumber;

/// Where a back end keeps what survives it.
pub trait Disk {
    /// The back end.
    type Backend: Backend;

    /// Opens it as its last checkpoint left it. The one opened before is gone.
    fn open(&self) -> Self::Backend;
}

impl Disk for MemoryDisk {
    type Backend = MemoryBackend;

    fn open(&self) -> MemoryBackend {
        MemoryBackend::open(self.clone())
    }
}

/// Runs every case, each on a new and empty disk.
///
/// # Panics
///
/// When the back end does not keep the contract.
pub fn check<D: Disk>(new: impl Fn() -> D) {
    headers_are_found_by_hash_and_link(&mut new().open());
    a_block_gets_consecutive_rows(&mut new().open());
    places_of_many_transactions(&new());
    every_row_of_a_txid_is_a_candidate(&mut new().open());
    every_spender_is_a_candidate(&mut new().open());
    every_payer_is_a_candidate(&mut new().open());
    chains_are_cut_and_pushed(&new());
    states_are_replaced(&new());
    filters_are_kept(&new());
    a_reader_sees_what_comes_later(&mut new().open());
    opening_gives_the_last_checkpoint(&new());
    a_block_after_reopening_does_not_disturb(&new());
    after_a_rest_nothing_is_asked_for(&new());
    for seed in 0..8 {
        random::walk(&new(), seed);
    }
}

/// The mark of these tests.
#[must_use]
pub fn mark(sequence: u64) -> Mark {
    let indexes = Indexes { scripts: true, filters: true };
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

/// A script hash that no other number has.
#[must_use]
pub fn script(number: u32) -> ScriptHash {
    ScriptHash::of(&number.to_le_bytes())
}

/// A block of these tests, with what it is found by.
#[derive(Clone, Debug)]
pub struct TestBlock {
    header: HeaderLink,
    size: u32,
    txids: Vec<Txid>,
    offsets: Vec<u32>,
    spends: Vec<(Outpoint, u32)>,
    scripts: Vec<(ScriptHash, u32)>,
}

impl TestBlock {
    fn new_block(&self) -> NewBlock<'_> {
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

    fn rows<B: Backend>(&self, backend: &B) -> RowsOf<B> {
        let Self { txids, spends, scripts, .. } = self;
        backend.maker().rows(&BlockKeys { txids, spends, scripts })
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
    scripts: &[(ScriptHash, u32)],
) -> TestBlock {
    TestBlock {
        header: HeaderLink::new(header),
        size: 5000 + header,
        txids: txs.iter().map(|(txid, _)| *txid).collect(),
        offsets: txs.iter().map(|(_, offset)| *offset).collect(),
        spends: spends.to_vec(),
        scripts: scripts.to_vec(),
    }
}

/// Opens a store again, and gives it the rows it asks for, which are those of these blocks. Where a
/// header has several, the last counts.
pub fn open_again<D: Disk>(disk: &D, blocks: &[TestBlock]) -> D::Backend {
    let mut backend = disk.open();
    let mut before = None;
    loop {
        let Unindexed { next, count } = backend.unindexed(2).expect("it can tell");
        assert!(before.is_none_or(|before| count < before), "fewer and fewer");
        before = Some(count);
        let Some(header) = next.first() else { return backend };
        let block = blocks.iter().rev().find(|block| block.header == *header);
        let rows = block.expect("a block that was appended").rows(&backend);
        backend.index_block(rows).expect("it takes rows again");
    }
}

/// Appends `count` headers in a row.
fn append_headers<B: Backend>(backend: &mut B, count: u32) {
    let rows: Vec<_> = (0..count).map(header).collect();
    assert_eq!(backend.append_headers(&rows).expect("it takes headers"), HeaderLink::new(0));
}

fn found(search: impl FnOnce(&mut Vec<Match>) -> crate::backend::Result<()>) -> Vec<(usize, u64)> {
    let mut found = Vec::new();
    search(&mut found).expect("it can be searched");
    found.into_iter().map(|(index, link)| (index, link.to_u64())).collect()
}

/// The candidates that are among the expected rows.
fn kept(rows: Vec<(usize, u64)>, expected: &[(usize, u64)]) -> Vec<(usize, u64)> {
    rows.into_iter().filter(|row| expected.contains(row)).collect()
}

fn headers_are_found_by_hash_and_link<B: Backend>(backend: &mut B) {
    assert_eq!(backend.bounds(), Bounds::default(), "a new store is empty");
    append_headers(backend, 3);
    let next = backend.append_headers(&[header(3), header(4)]).expect("it takes more headers");
    assert_eq!(next, HeaderLink::new(3));
    assert_eq!(backend.bounds(), Bounds { headers: 5, txs: 0 });
    let tables = backend.tables();
    let mut links = Vec::new();
    let hashes = [header(4).hash, header(9).hash, header(0).hash];
    tables.find_headers(&hashes, &mut links).expect("it can be searched");
    assert_eq!(links, [Some(HeaderLink::new(4)), None, Some(HeaderLink::new(0))]);
    let mut rows = Vec::new();
    tables.headers(&[HeaderLink::new(4), HeaderLink::new(1)], &mut rows).expect("they are there");
    assert_eq!(rows, [header(4), header(1)]);
    assert!(tables.headers(&[HeaderLink::new(5)], &mut rows).is_err(), "there is no such row");
}

fn a_block_gets_consecutive_rows<B: Backend>(backend: &mut B) {
    append_headers(backend, 3);
    let first = block(1, &[(txid(1), 81), (txid(2), 300)], &[], &[]).append(backend);
    let first = first.expect("it takes a block");
    let expected = BlockRow {
        first_tx: TxLink::new(0),
        tx_count: 2,
        number: BlockNumber::new(101),
        size: 5001,
        base_size: 4000,
        inputs: 30,
        outputs: 20,
    };
    assert_eq!(first, expected);
    let second = block(0, &[(txid(3), 81)], &[], &[]).append(backend);
    let second = second.expect("blocks come in any order");
    assert_eq!(second.first_tx, TxLink::new(2));
    assert_eq!(backend.bounds(), Bounds { headers: 3, txs: 3 });
    let tables = backend.tables();
    let mut rows = Vec::new();
    let links = [1, 2, 0].map(HeaderLink::new);
    tables.blocks(&links, &mut rows).expect("it can be asked");
    assert_eq!(rows, [Some(first), None, Some(second)]);
    let mut rows = Vec::new();
    tables.txs(&[2, 0, 1].map(TxLink::new), &mut rows).expect("they are there");
    let row = |block: u32, position, (start, end): (u32, u32)| TxRow {
        block: HeaderLink::new(block),
        position,
        slice: TxSlice { number: BlockNumber::new(100 + block), start, len: end - start },
    };
    assert_eq!(rows, [row(0, 0, (81, 5000)), row(1, 0, (81, 300)), row(1, 1, (300, 5001))]);
    assert!(tables.txs(&[TxLink::new(3)], &mut rows).is_err(), "there is no such row");
}

/// Blocks of very many transactions, of lengths from nothing to gigabytes.
fn places_of_many_transactions<D: Disk>(disk: &D) {
    let mut backend = disk.open();
    append_headers(&mut backend, 3);
    let starts = |count: u32, step: u32| (0..count).map(move |n| 81 + n * step + n * n % 19);
    let many: Vec<_> = starts(3_000, 300).map(|start| (txid(1), start)).collect();
    let wide = [(txid(2), 81), (txid(3), 81), (txid(4), 3_000_000_000)];
    let mut blocks = Vec::new();
    for (number, txs, size) in [(2, &many[..], 1_000_000), (0, &wide[..], u32::MAX)] {
        let block = TestBlock { size, ..block(number, txs, &[], &[]) };
        let first = block.append(&mut backend).expect("it takes a block").first_tx;
        let check = |backend: &D::Backend| {
            let expected: Vec<_> = block.new_block().tx_rows().collect();
            let count = u32::try_from(expected.len()).expect("few");
            let links: Vec<_> = (0..count).map(|position| first.plus(position)).collect();
            let mut rows = Vec::new();
            backend.tables().txs(&links, &mut rows).expect("they are there");
            assert_eq!(rows, expected);
        };
        check(&backend);
        backend.checkpoint(&mark(1)).expect("it can be saved");
        drop(backend);
        blocks.push(block.clone());
        backend = open_again(disk, &blocks);
        check(&backend);
    }
}

fn every_row_of_a_txid_is_a_candidate<B: Backend>(backend: &mut B) {
    append_headers(backend, 3);
    for number in 0..3 {
        let txs = [(txid(number), 81), (txid(77), 200)];
        block(number, &txs, &[], &[]).append(backend).expect("it takes a block");
    }
    let tables = backend.tables();
    let keys = [txid(77), txid(50), txid(1)];
    let rows = found(|out| tables.find_txs(&keys, out));
    let expected = [(0, 5), (0, 3), (0, 1), (2, 2)];
    assert_eq!(kept(rows, &expected), expected, "newest first, in the order of keys");
}

fn every_spender_is_a_candidate<B: Backend>(backend: &mut B) {
    append_headers(backend, 3);
    let points = [(1, 0), (1, 1), (2, 0), (1, 0x0100_0000)];
    let [a, b, c, d] = points.map(|(number, vout)| Outpoint::new(txid(number), vout));
    let txs = [(txid(10), 81), (txid(11), 200)];
    block(0, &txs, &[(a, 1), (b, 1), (d, 1)], &[]).append(backend).expect("a block");
    block(1, &txs, &[(a, 0), (c, 1)], &[]).append(backend).expect("another one");
    let tables = backend.tables();
    let rows = found(|out| tables.find_spenders(&[b, a, c, d], out));
    let expected = [(0, 1), (1, 2), (1, 1), (2, 3), (3, 1)];
    assert_eq!(kept(rows, &expected), expected, "all of them, newest first");
}

fn every_payer_is_a_candidate<B: Backend>(backend: &mut B) {
    append_headers(backend, 3);
    let txs = [(txid(10), 81), (txid(11), 200)];
    let scripts = [(script(1), 0), (script(2), 0), (script(1), 1)];
    block(0, &txs, &[], &scripts).append(backend).expect("it takes a block");
    let tables = backend.tables();
    let rows = found(|out| tables.find_payers(&[script(2), script(1)], out));
    let expected = [(0, 0), (1, 1), (1, 0)];
    assert_eq!(kept(rows, &expected), expected);
}

fn chains_are_cut_and_pushed<D: Disk>(disk: &D) {
    let links = |numbers: &[u32]| -> Vec<_> {
        numbers.iter().map(|number| HeaderLink::new(*number)).collect()
    };
    let mut backend = disk.open();
    append_headers(&mut backend, 9);
    backend.set_chain(Chain::Candidate, 0, &links(&[0, 1, 2, 3])).expect("it takes a chain");
    backend.set_chain(Chain::Confirmed, 0, &links(&[0])).expect("it takes a chain");
    backend.set_chain(Chain::Candidate, 2, &links(&[7, 8])).expect("it takes a branch");
    backend.set_chain(Chain::Candidate, 3, &[]).expect("it can be cut");
    let saved = backend.saved().expect("it can tell");
    assert_eq!((saved.candidate, saved.confirmed), (links(&[0, 1, 7]), links(&[0])));
    backend.checkpoint(&mark(1)).expect("it can be saved");
    backend.set_chain(Chain::Candidate, 1, &links(&[4])).expect("it takes a branch");
    drop(backend);
    let saved = disk.open().saved().expect("it can tell");
    assert_eq!((saved.candidate, saved.confirmed), (links(&[0, 1, 7]), links(&[0])));
}

fn states_are_replaced<D: Disk>(disk: &D) {
    let mut backend = disk.open();
    append_headers(&mut backend, 3);
    let (one, two) = (HeaderLink::new(1), HeaderLink::new(2));
    backend
        .set_block_states(&[(one, BlockState::Valid), (two, BlockState::Unconfirmable)])
        .expect("it takes states");
    backend.set_block_states(&[(one, BlockState::Confirmable)]).expect("it takes states");
    let state = |fee| TxState {
        flags: 0x8000_0001,
        height: Height::new(4),
        median_time: 5,
        connected: fee % 2 == 0,
        fee,
        sigops: 6,
    };
    let (first, second) = (TxLink::new(0), TxLink::new(1));
    let txs = [(txid(1), 81), (txid(2), 200)];
    block(0, &txs, &[], &[]).append(&mut backend).expect("it takes a block");
    backend.set_tx_states(&[(first, state(1)), (first, state(u64::MAX - 1))]).expect("it does");
    backend.checkpoint(&mark(1)).expect("it can be saved");
    drop(backend);
    let backend = disk.open();
    let states = backend.saved().expect("it can tell").states;
    let expected = [BlockState::Unknown, BlockState::Confirmable, BlockState::Unconfirmable];
    assert_eq!(states, expected);
    let mut states = Vec::new();
    backend.tables().tx_states(&[second, first], &mut states).expect("it can tell");
    assert_eq!(states, [None, Some(state(u64::MAX - 1))]);
}

fn filters_are_kept<D: Disk>(disk: &D) {
    let mut backend = disk.open();
    append_headers(&mut backend, 4);
    let row = |byte, len| FilterRow { header: [byte; 32], body: vec![byte; len] };
    let (one, three) = (HeaderLink::new(1), HeaderLink::new(3));
    backend.set_filters(&[(three, row(3, 3_000))]).expect("it takes filters");
    backend.set_filters(&[(one, row(1, 1))]).expect("in any order");
    backend.checkpoint(&mark(1)).expect("it can be saved");
    drop(backend);
    let mut rows = Vec::new();
    let links = [0, 1, 3].map(HeaderLink::new);
    disk.open().tables().filters(&links, &mut rows).expect("it can tell");
    assert_eq!(rows, [None, Some(row(1, 1)), Some(row(3, 3_000))]);
}

fn a_reader_sees_what_comes_later<B: Backend>(backend: &mut B) {
    let tables = backend.tables();
    append_headers(backend, 2);
    let point = Outpoint::new(txid(5), 1);
    block(1, &[(txid(1), 81)], &[(point, 0)], &[]).append(backend).expect("a block");
    assert_eq!(found(|out| tables.find_txs(&[txid(1)], out)), [(0, 0)], "the only row");
    assert_eq!(found(|out| tables.find_spenders(&[point], out)), [(0, 0)]);
}

fn opening_gives_the_last_checkpoint<D: Disk>(disk: &D) {
    let mut backend = disk.open();
    append_headers(&mut backend, 2);
    block(0, &[(txid(1), 81)], &[], &[]).append(&mut backend).expect("it takes a block");
    drop(backend);
    let mut backend = disk.open();
    assert_eq!(backend.saved().expect("it can tell"), Default::default(), "nothing was saved");
    append_headers(&mut backend, 2);
    let saved = block(0, &[(txid(1), 81)], &[], &[]);
    saved.append(&mut backend).expect("it takes a block");
    backend.checkpoint(&mark(11)).expect("it can be saved");
    block(1, &[(txid(2), 81)], &[], &[]).append(&mut backend).expect("it takes a block");
    backend.append_headers(&[header(2)]).expect("it takes a header");
    drop(backend);
    let backend = open_again(disk, &[saved]);
    let saved = backend.saved().expect("it can tell");
    assert_eq!(saved.mark, Some(mark(11)));
    assert_eq!(saved.bounds, Bounds { headers: 2, txs: 1 });
    let tables = backend.tables();
    let rows = found(|out| tables.find_txs(&[txid(1), txid(2)], out));
    assert_eq!(kept(rows, &[(0, 0), (1, 1)]), [(0, 0)], "the second is lost");
    let mut blocks = Vec::new();
    tables.blocks(&[1].map(HeaderLink::new), &mut blocks).expect("it can be asked");
    assert_eq!(blocks, [None]);
    let mut links = Vec::new();
    tables.find_headers(&[header(2).hash], &mut links).expect("it can be searched");
    assert_eq!(links, [None]);
}

/// The same rows come again after a crash, as replay brings them.
fn a_block_after_reopening_does_not_disturb<D: Disk>(disk: &D) {
    let spends = [(Outpoint::new(txid(9), 0), 0)];
    let mut backend = disk.open();
    append_headers(&mut backend, 3);
    let saved = block(0, &[(txid(1), 81)], &spends, &[]);
    saved.append(&mut backend).expect("it takes a block");
    backend.checkpoint(&mark(1)).expect("it can be saved");
    let txs = [(txid(1), 81), (txid(2), 90)];
    let lost = block(1, &txs, &spends, &[]);
    lost.append(&mut backend).expect("it takes a block");
    drop(backend);
    let mut backend = open_again(disk, &[saved, lost.clone()]);
    let row = lost.append(&mut backend).expect("it takes the block again");
    let first = row.first_tx.to_u64();
    assert!(first >= 1, "behind what was saved");
    let tables = backend.tables();
    let rows = found(|out| tables.find_txs(&[txid(1), txid(2)], out));
    let expected = [(0, first), (0, 0), (1, first + 1)];
    assert_eq!(kept(rows, &expected), expected);
    let rows = found(|out| tables.find_spenders(&[spends[0].0], out));
    assert_eq!(kept(rows, &[(0, first), (0, 0)]), [(0, first), (0, 0)]);
}

/// A store that was left in order lacks nothing, and a block that comes then is found beside the
/// others.
fn after_a_rest_nothing_is_asked_for<D: Disk>(disk: &D) {
    let spends = [(Outpoint::new(txid(9), 0), 0)];
    let mut backend = disk.open();
    append_headers(&mut backend, 9);
    for number in 0..8 {
        let links: Vec<_> = [HeaderLink::new(number)].into();
        block(number, &[(txid(1), 81)], &spends, &[]).append(&mut backend).expect("a block");
        backend.set_chain(Chain::Confirmed, number, &links).expect("it takes a chain");
        backend.checkpoint(&mark(1)).expect("it can be saved");
    }
    backend.rest(&mark(2)).expect("it can be left");
    drop(backend);
    let mut backend = disk.open();
    assert_eq!(backend.unindexed(9).expect("it can tell"), Unindexed::default());
    block(8, &[(txid(1), 81)], &spends, &[]).append(&mut backend).expect("a block");
    let tables = backend.tables();
    let expected: Vec<_> = (0..9).rev().map(|link| (0, link)).collect();
    assert_eq!(kept(found(|out| tables.find_txs(&[txid(1)], out)), &expected), expected);
    let rows = found(|out| tables.find_spenders(&[spends[0].0], out));
    assert_eq!(kept(rows, &expected), expected);
}

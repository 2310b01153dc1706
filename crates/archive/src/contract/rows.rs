//! Rows are appended and found.

use varve_types::Outpoint;

use super::{
    Disk, TestBlock, append_headers, block, found, header, kept, mark, open_again, push, txid,
};
use crate::backend::{Backend, Tables as _};
use crate::link::{Bounds, HeaderLink, TxLink};
use crate::row::{BlockRow, TxRow, TxSlice};
use crate::source::BlockNumber;

pub(super) fn headers_are_found_by_hash_and_link<B: Backend>(backend: &mut B) {
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

pub(super) fn a_block_gets_consecutive_rows<B: Backend>(backend: &mut B) {
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
pub(super) fn places_of_many_transactions<D: Disk>(disk: &D) {
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

pub(super) fn every_row_of_a_txid_is_a_candidate<B: Backend>(backend: &mut B) {
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

pub(super) fn every_spender_is_a_candidate<B: Backend>(backend: &mut B) {
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

pub(super) fn every_push_is_a_candidate<B: Backend>(backend: &mut B) {
    append_headers(backend, 3);
    let txs = [(txid(10), 81), (txid(11), 200)];
    let pushes = [(push(1), 0), (push(2), 0), (push(1), 1)];
    block(0, &txs, &[], &pushes).append(backend).expect("it takes a block");
    block(1, &txs, &[], &[(push(1), 1)]).append(backend).expect("it takes a block");
    let tables = backend.tables();
    let find = |key, from, limit| {
        let mut found = Vec::new();
        tables.find_pushes(push(key), TxLink::new(from), limit, &mut found).expect("it searches");
        found.into_iter().map(TxLink::to_u64).collect::<Vec<_>>()
    };
    let kept = |found: Vec<u64>, rows: &[u64]| {
        found.into_iter().filter(|row| rows.contains(row)).collect::<Vec<_>>()
    };
    assert_eq!(kept(find(2, 0, 9), &[0]), [0]);
    assert_eq!(kept(find(1, 0, 9), &[0, 1, 3]), [0, 1, 3], "oldest first");
    assert_eq!(kept(find(1, 1, 9), &[0, 1, 3]), [1, 3], "from a row on");
    assert!(find(1, 0, 2).len() <= 2 && find(1, 4, 9).is_empty());
}

pub(super) fn a_reader_sees_what_comes_later<B: Backend>(backend: &mut B) {
    let tables = backend.tables();
    append_headers(backend, 2);
    let point = Outpoint::new(txid(5), 1);
    block(1, &[(txid(1), 81)], &[(point, 0)], &[]).append(backend).expect("a block");
    assert_eq!(found(|out| tables.find_txs(&[txid(1)], out)), [(0, 0)], "the only row");
    assert_eq!(found(|out| tables.find_spenders(&[point], out)), [(0, 0)]);
}

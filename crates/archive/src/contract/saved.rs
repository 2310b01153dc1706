//! What a checkpoint saves, and what opening gives back.

use varve_types::{Height, Outpoint};

use super::{Disk, append_headers, block, found, header, kept, mark, open_again, txid};
use crate::backend::{Backend as _, Chain, Tables as _, Unindexed};
use crate::link::{Bounds, HeaderLink, TxLink};
use crate::row::{BlockState, FilterRow, TxState};

pub(super) fn chains_are_cut_and_pushed<D: Disk>(disk: &D) {
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

pub(super) fn states_are_replaced<D: Disk>(disk: &D) {
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

pub(super) fn filters_are_kept<D: Disk>(disk: &D) {
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

pub(super) fn opening_gives_the_last_checkpoint<D: Disk>(disk: &D) {
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
pub(super) fn a_block_after_reopening_does_not_disturb<D: Disk>(disk: &D) {
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
pub(super) fn after_a_rest_nothing_is_asked_for<D: Disk>(disk: &D) {
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

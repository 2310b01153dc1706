//! The store by example: what each operation does, and what goes wrong.

use varve_io::faulty::{Fault, FaultRule, FaultyStorage, Operation, When};
use varve_io::{FileOffset, Storage as _};

use super::*;
use crate::fixture::{FORMAT, append, block, check_all, check_block, hash, open, options};
use crate::{BlockBytes, TxPosition};

mod model;
mod power_cut;

/// A store of these blocks, of which the first `indexed` are in the index.
fn filled(storage: &Arc<FaultyStorage>, blocks: &[Vec<u8>], indexed: usize) -> BlockStore {
    let mut store = open(storage.clone(), Synced::NEW);
    for (index, bytes) in blocks.iter().enumerate() {
        if index == indexed {
            store.checkpoint().unwrap();
        }
        assert_eq!(append(&mut store, bytes).unwrap().get() as usize, index);
    }
    store
}

fn blocks(count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|seed| block(seed, 1 + seed * 5 % 23)).collect()
}

fn pack_all(store: &mut BlockStore) -> usize {
    let mut packed = 0;
    while let Some(job) = store.pack_job().unwrap() {
        store.finish_pack(job.run().unwrap()).unwrap();
        packed += 1;
    }
    packed
}

#[test]
fn blocks_keep_their_numbers_over_files_and_openings() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(40);
    for indexed in [0, 17, 40] {
        let storage = Arc::new(storage.crash(0, varve_io::faulty::Crash::LoseAll));
        let mut store = filled(&storage, &blocks, indexed);
        assert_eq!(check_all(&store.reader(), &blocks), 40);
        let synced = store.sync().unwrap();
        assert_eq!(synced.count, 40);
        assert!(store.segments.reader().files().len() > 5, "there are several files");
        drop(store);
        let store = open(storage.clone(), synced);
        assert_eq!(check_all(&store.reader(), &blocks), 40);
    }
}

#[test]
fn a_known_block_is_not_added_again() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(3);
    let mut store = filled(&storage, &blocks, 2);
    let end = store.segments.end();
    for (number, bytes) in (0..).zip(&blocks) {
        assert_eq!(append(&mut store, bytes).unwrap(), BlockNumber::new(number));
    }
    assert_eq!((store.count(), store.segments.end()), (3, end));
    let stranger = hash(&block(99, 1));
    assert_eq!(store.reader().number_of(&stranger).unwrap(), None);
}

#[test]
fn a_reader_stays_at_its_moment() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(12);
    let mut store = filled(&storage, &blocks[..5], 3);
    let reader = store.reader();
    for bytes in &blocks[5..] {
        append(&mut store, bytes).unwrap();
    }
    store.checkpoint().unwrap();
    assert_eq!(check_all(&reader, &blocks[..5]), 5);
    assert_eq!(reader.number_of(&hash(&blocks[5])).unwrap(), None);
    assert_eq!(check_all(&reader.latest(), &blocks), 12);
}

/// A store at rest gives every block by number and by hash, and nothing is written. With a block
/// after the index it is not at rest.
#[test]
fn a_store_at_rest_is_read_without_its_writer() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(30);
    filled(&storage, &blocks, 20).checkpoint().unwrap();
    let at_rest = |storage: &Arc<FaultyStorage>| {
        let storage: Arc<dyn Storage> = storage.clone();
        BlockReader::at_rest(&storage, &options()).unwrap()
    };
    let before = storage.operations();
    assert_eq!(check_all(&at_rest(&storage).unwrap(), &blocks), 30);
    assert_eq!(storage.operations(), before);
    let mut store = open(storage.clone(), Synced::NEW);
    append(&mut store, &block(1_000, 9)).unwrap();
    store.sync().unwrap();
    drop(store);
    assert!(at_rest(&storage).is_none());
}

#[test]
fn bytes_are_lent_not_copied() {
    let storage = Arc::new(FaultyStorage::new(1));
    let store = filled(&storage, &blocks(30), 0);
    let reader = store.reader();
    for number in [0, 29].map(BlockNumber::new) {
        let one = reader.raw(number).unwrap();
        let two = reader.raw(number).unwrap();
        assert_eq!(one.as_ptr(), two.as_ptr(), "of a sealed file and of the growing one");
        let tx = reader.tx(number, TxPosition::ZERO).unwrap();
        let start = reader.tx_range(number, TxPosition::ZERO).unwrap().start;
        assert_eq!(tx.as_ptr(), one[usize::try_from(start).unwrap()..].as_ptr());
    }
}

#[test]
fn questions_outside_a_block_are_told_apart() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(2);
    let store = filled(&storage, &blocks, 1);
    let reader = store.reader();
    for (number, bytes) in (0..).zip(&blocks) {
        let (number, length) = (BlockNumber::new(number), bytes.len() as u64);
        let txs = reader.row(number).unwrap().txs;
        let missing = reader.tx(number, TxPosition::new(txs));
        assert!(matches!(missing, Err(Error::NoTransaction { .. })), "{missing:?}");
        let beyond = reader.slice(number, 5..length + 1);
        assert!(matches!(beyond, Err(Error::OutOfBlock { .. })), "{beyond:?}");
        assert!(reader.slice(number, length..length).unwrap().is_empty());
    }
}

#[test]
fn a_cut_takes_blocks_back_from_every_reader() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(30);
    let mut store = filled(&storage, &blocks, 10);
    let before = store.reader();
    assert_eq!(check_all(&before, &blocks), 30);
    assert!(matches!(store.truncate(9), Err(Error::Indexed { to: 9, indexed: 10 })));
    store.truncate(31).unwrap();
    store.truncate(20).unwrap();
    let between = store.reader();
    store.truncate(15).unwrap();
    let other = block(1_000, 9);
    assert_eq!(append(&mut store, &other).unwrap(), BlockNumber::new(15));
    for reader in [&before, &between] {
        for (number, bytes) in (0..15).zip(&blocks) {
            check_block(reader, number, bytes);
        }
        let cut = reader.raw(BlockNumber::new(15));
        assert!(matches!(cut, Err(Error::Unknown { count: 15, .. })), "{cut:?}");
        assert_eq!(reader.number_of(&hash(&blocks[15])).unwrap(), None);
        assert_eq!(reader.number_of(&hash(&other)).unwrap(), None);
    }
    let mut left = blocks[..15].to_vec();
    left.push(other);
    assert_eq!(check_all(&before.latest(), &left), 16);
    let synced = store.sync().unwrap();
    drop((store, before, between));
    assert_eq!(check_all(&open(storage, synced).reader(), &left), 16);
}

#[test]
fn a_cut_waits_for_readers_of_the_file() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut store = filled(&storage, &blocks(2), 0);
    let held = store.reader().raw(BlockNumber::new(1)).unwrap();
    let refused = store.truncate(1);
    assert!(matches!(refused, Err(Error::Storage(IoError::Mapped { .. }))), "{refused:?}");
    assert_eq!(&held[..], &blocks(2)[1][..], "what is held does not change");
    assert!(append(&mut store, &block(50, 1)).is_err());
    drop(held);
    assert_eq!(append(&mut store, &block(50, 1)).unwrap(), BlockNumber::new(1));
    assert_eq!(check_all(&store.reader(), &[block(0, 1), block(50, 1)]), 2);
}

#[test]
fn pruned_bytes_are_known_to_be_pruned() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(40);
    let mut store = filled(&storage, &blocks, 3);
    let early = store.reader();
    let held: BlockBytes = early.raw(BlockNumber::ZERO).unwrap();
    let first = store.prune(Keep { from: BlockNumber::new(20), bytes: 0 }).unwrap();
    assert!((1..=20).contains(&first.get()), "whole files go: {first}");
    assert_eq!(&held[..], &blocks[0][..], "what is held stays");
    for reader in [early, store.reader()] {
        assert_eq!(check_all(&reader, &blocks), 40 - first.get() as usize);
    }
    let both = store.prune(Keep { from: first, bytes: 2_000 }).unwrap();
    assert_eq!(both, first, "what either wants is kept");
    let again = store.prune(Keep { from: BlockNumber::new(u32::MAX), bytes: 2_000 }).unwrap();
    assert!(again > first);
    let kept: usize = blocks[again.get() as usize..].iter().map(Vec::len).sum();
    assert!(kept >= 2_000, "{kept} bytes are kept");
    assert_eq!(store.prune(Keep { from: BlockNumber::ZERO, bytes: 0 }).unwrap(), again);
    let synced = store.sync().unwrap();
    drop(store);
    let store = open(storage, synced);
    assert_eq!(check_all(&store.reader(), &blocks), 40 - again.get() as usize);
}

/// A block that is needed again after its bytes were pruned.
#[test]
fn a_pruned_block_can_be_added_again() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(40);
    let mut store = filled(&storage, &blocks, 3);
    let first = store.prune(Keep { from: BlockNumber::new(20), bytes: 0 }).unwrap();
    assert!(first > BlockNumber::ZERO);
    let again = Block::parse(&blocks[0], FORMAT).unwrap();
    let held = Block::parse(&blocks[39], FORMAT).unwrap();
    for _ in 0..2 {
        assert_eq!(store.append(&again).unwrap(), BlockNumber::new(40));
        assert_eq!(store.append(&held).unwrap(), BlockNumber::new(39));
    }
    let synced = store.checkpoint().unwrap();
    drop(store);
    let reader = open(storage, synced).reader();
    let number = reader.number_of(&again.hash()).unwrap().unwrap();
    assert_eq!((number, reader.count()), (BlockNumber::new(40), 41));
    assert_eq!(&reader.raw(number).unwrap()[..], &blocks[0][..]);
}

#[test]
fn packed_segments_give_the_same_bytes_and_are_pruned_first() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(40);
    let mut store = filled(&storage, &blocks, 12);
    let early = store.reader();
    let held = early.raw(BlockNumber::ZERO).unwrap();
    let files = store.segments.reader().files().len();
    assert_eq!(pack_all(&mut store), files - 1);
    assert_eq!(store.segments.reader().files().len(), 1);
    assert_eq!(&held[..], &blocks[0][..]);
    for reader in [early, store.reader()] {
        assert_eq!(check_all(&reader, &blocks), 40);
    }
    let first = store.prune(Keep { from: BlockNumber::new(20), bytes: 0 }).unwrap();
    assert!((1..=20).contains(&first.get()));
    let packed = |storage: &FaultyStorage| {
        let names = storage.list().unwrap();
        names.iter().filter(|name| name.starts_with(packed::FILE_PREFIX)).count()
    };
    assert_eq!(packed(&storage), store.manifest.packed.len());
    let synced = store.sync().unwrap();
    drop(store);
    let mut store = open(storage.clone(), synced);
    assert_eq!(check_all(&store.reader(), &blocks), 40 - first.get() as usize);
    let last = store.prune(Keep { from: BlockNumber::new(u32::MAX), bytes: 0 }).unwrap();
    assert!(last > first && packed(&storage) == 0);
    assert!(check_all(&store.reader(), &blocks) > 0, "the growing file stays");
}

#[test]
fn a_pack_of_a_segment_that_was_pruned_meanwhile_is_dropped() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(40);
    let mut store = filled(&storage, &blocks, 12);
    let job = store.pack_job().unwrap().unwrap();
    let done = job.run().unwrap();
    let first = store.prune(Keep { from: BlockNumber::new(20), bytes: 0 }).unwrap();
    store.finish_pack(done).unwrap();
    assert!(store.storage.list().unwrap().iter().all(|n| !n.starts_with(packed::FILE_PREFIX)));
    assert_eq!(check_all(&store.reader(), &blocks), 40 - first.get() as usize);
}

/// Regression: two jobs of the same segment wrote one file. When the first was finished, the
/// second's segment seemed to have been pruned, and its file, the only copy of the blocks, was
/// removed.
#[test]
fn a_segment_is_packed_by_one_job_at_a_time() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(40);
    let mut store = filled(&storage, &blocks, 12);
    let jobs = [store.pack_job().unwrap(), store.pack_job().unwrap()];
    let done: Vec<_> = jobs.into_iter().flatten().map(|job| job.run().unwrap()).collect();
    done.into_iter().for_each(|done| store.finish_pack(done).unwrap());
    let synced = store.sync().unwrap();
    drop(store);
    let mut store = open(storage, synced);
    assert_eq!(check_all(&store.reader(), &blocks), 40);
    drop(store.pack_job().unwrap().expect("nobody packs"));
    assert!(store.pack_job().unwrap().is_some(), "the one before was given up");
}

/// Every bit of every file is flipped in turn. Each block then gives its own bytes or an error that
/// names damage; opening may be refused as well. No answer is ever wrong.
#[test]
fn a_flipped_bit_is_an_error_and_never_a_wrong_answer() {
    let storage = Arc::new(FaultyStorage::new(1));
    let blocks = blocks(14);
    let mut store = filled(&storage, &blocks, 9);
    let job = store.pack_job().unwrap();
    store.finish_pack(job.expect("the first file holds three blocks").run().unwrap()).unwrap();
    append(&mut store, &block(500, 2)).unwrap();
    let synced = store.sync().unwrap();
    drop(store);
    let (mut refused, mut damaged) = (0, 0);
    for name in storage.list().unwrap() {
        let size = storage.open(&name, varve_io::Access::Read, varve_io::Caching::Buffered);
        let size = size.unwrap().size().unwrap();
        for at in (0..size).step_by(7) {
            let copy =
                Arc::new(storage.crash(storage.operations(), varve_io::faulty::Crash::KeepAll));
            let bit = u8::try_from(at % 8).unwrap();
            assert!(copy.flip_bit(&name, FileOffset::new(at), bit));
            let store = match BlockStore::open(copy, options(), synced) {
                Ok(store) => store,
                Err(error) => {
                    assert!(is_honest(&error), "{name} {at}: {error}");
                    refused += 1;
                    continue;
                }
            };
            let reader = store.reader();
            for (number, bytes) in (0..).zip(&blocks) {
                let number = BlockNumber::new(number);
                let all = reader.raw(number).and_then(|raw| {
                    let last = TxPosition::new(reader.row(number)?.txs - 1);
                    Ok((raw, reader.tx(number, last)?, reader.number_of(&hash(bytes))?))
                });
                match all {
                    Ok((raw, tx, found)) => {
                        assert!(raw[..] == bytes[..] && bytes.ends_with(&tx), "{name} {at}");
                        assert_eq!(found, Some(number), "{name} {at}");
                    }
                    Err(error) => {
                        assert!(is_honest(&error), "{name} {at}: {error}");
                        damaged += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 10 && damaged > 10, "{refused} openings refused, {damaged} reads");
}

fn is_honest(error: &Error) -> bool {
    let version = matches!(error, Error::Storage(IoError::WrongVersion { .. }));
    version || error.is_damage()
}

#[test]
fn a_full_disk_changes_nothing_and_clears() {
    let storage = Arc::new(FaultyStorage::new(1));
    let all = blocks(60);
    let mut store = filled(&storage, &all[..20], 10);
    let mut failures = 0;
    let mut stored = all[..20].to_vec();
    for room in [0, 50, 400, 1_000, 3_500, 9_000] {
        let used: u64 = storage
            .list()
            .unwrap()
            .iter()
            .map(|name| {
                let file = storage.open(name, varve_io::Access::Read, varve_io::Caching::Buffered);
                file.unwrap().size().unwrap()
            })
            .sum();
        storage.set_capacity(Some(used + room));
        loop {
            let bytes = &all[stored.len()];
            let result = append(&mut store, bytes).and_then(|_| {
                stored.push(bytes.clone());
                store.checkpoint()
            });
            if let Err(error) = result {
                assert!(error.is_disk_full(), "{error}");
                failures += 1;
                break;
            }
        }
        assert_eq!(check_all(&store.reader(), &stored), stored.len());
        storage.set_capacity(None);
        store.checkpoint().unwrap();
    }
    assert_eq!(failures, 6);
    let synced = store.sync().unwrap();
    drop(store);
    assert_eq!(check_all(&open(storage, synced).reader(), &stored), stored.len());
}

#[test]
fn a_failed_sync_stops_writing_and_an_opening_mends() {
    for operation in [Operation::Sync, Operation::SyncDir] {
        let storage = Arc::new(FaultyStorage::new(1));
        let all = blocks(30);
        let mut store = filled(&storage, &all[..10], 5);
        let synced = store.sync().unwrap();
        storage.inject(FaultRule::new(operation, When::Nth(0), Fault::Io));
        append(&mut store, &all[10]).unwrap();
        assert!(store.checkpoint().is_err());
        assert!(append(&mut store, &all[11]).is_err(), "writing has stopped");
        assert_eq!(check_all(&store.reader(), &all[..11]), 11, "reading has not");
        drop(store);
        let mut store = open(Arc::new(storage.reopen()), synced);
        assert_eq!(check_all(&store.reader(), &all[..11]), 11);
        append(&mut store, &all[11]).unwrap();
        store.checkpoint().unwrap();
    }
}

#[test]
fn another_store_or_a_false_note_is_refused() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut store = filled(&storage, &blocks(5), 3);
    let synced = store.checkpoint().unwrap();
    drop(store);
    let other = Options { store: StoreId([9; 16]), ..options() };
    assert!(BlockStore::open(storage.clone(), other, synced).unwrap_err().is_damage());
    let more = Synced { count: synced.count + 1, ..synced };
    let refused = BlockStore::open(storage.clone(), options(), more);
    assert!(matches!(refused, Err(Error::Missing { count: 5, synced: 6 })), "{refused:?}");
    let beyond = Synced { position: synced.position.plus(1), ..synced };
    assert!(BlockStore::open(storage.clone(), options(), beyond).unwrap_err().is_damage());
    assert_eq!(check_all(&open(storage, synced).reader(), &blocks(5)), 5);
}

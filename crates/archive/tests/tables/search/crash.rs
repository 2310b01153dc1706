//! Power cuts at every operation, and disks that fail or are full.

use std::sync::Arc;

use varve_archive::TxLink;
use varve_archive::search::{SearchOptions, SearchReader, SearchTable};
use varve_io::Storage;
use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};

use super::rig::{KEY, Owner, TINY};

/// What the owner knew after each number of operations.
struct Moment {
    operations: usize,
    saved: usize,
    watermark: TxLink,
    end: TxLink,
}

fn moment(storage: &FaultyStorage, owner: &Owner, table: &SearchTable) -> Moment {
    let (operations, saved) = (storage.operations(), owner.saved);
    Moment { operations, saved, watermark: table.watermark().0, end: table.saved_end() }
}

#[test]
fn a_power_cut_at_every_operation_loses_no_row_that_was_settled() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(77, false);
    let mut table = owner.open(storage.clone(), TINY).unwrap();
    let (mut settled, mut moments) = (0, Vec::new());
    moments.push(moment(&storage, &owner, &table));
    for round in 0..40 {
        owner.make_block();
        owner.catch_up(&mut table).unwrap();
        // The owner saves before it promises.
        owner.saved = owner.blocks.len();
        moments.push(moment(&storage, &owner, &table));
        owner.settle(&mut table, &mut settled).unwrap();
        moments.push(moment(&storage, &owner, &table));
        if round % 13 == 12 {
            table.rest().unwrap();
            assert_eq!(table.saved_end(), owner.end());
            moments.push(moment(&storage, &owner, &table));
            drop(table);
            table = owner.open(storage.clone(), TINY).unwrap();
            settled = Owner::settled(&table);
        }
    }
    drop(table);
    for operations in moments[0].operations..=storage.operations() {
        let known = moments.partition_point(|moment| moment.operations <= operations);
        let (known, next) = (&moments[known - 1], moments.get(known));
        let seeds = if operations % 8 == 0 { 2 } else { 0 };
        for way in Crash::ways(seeds) {
            let after: Arc<dyn Storage> = Arc::new(storage.crash(operations, way));
            let mut owner = owner.clone();
            // A promise may have been acted upon before the call returned.
            owner.saved = next.map_or(known.saved, |next| next.saved);
            let mut table = owner.open(after, TINY).unwrap();
            assert!(table.watermark().0 >= known.watermark && table.end() >= known.end);
            owner.catch_up(&mut table).unwrap();
            if operations % 4 == 0 {
                owner.check(&table.reader()).unwrap();
            }
        }
    }
}

/// Lives through `rounds` blocks, trying again what failed for want of space.
fn rounds(owner: &mut Owner, table: &mut SearchTable, rounds: usize) -> Result<(), String> {
    let mut settled = Owner::settled(table);
    for _ in 0..rounds {
        owner.make_block();
        owner.catch_up(table).map_err(|error| error.to_string())?;
        owner.settle(table, &mut settled).map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[test]
fn a_failing_disk_is_reported_and_the_table_opens_again() {
    let operations = [
        Operation::Open,
        Operation::Read,
        Operation::Write,
        Operation::Sync,
        Operation::Rename,
        Operation::SyncDir,
        Operation::Remove,
    ];
    for operation in operations {
        for nth in [0, 1, 2, 3, 5, 8, 13, 21, 34] {
            let storage = Arc::new(FaultyStorage::new(nth as u64));
            let mut owner = Owner::new(nth as u64, false);
            let mut table = owner.open(storage.clone(), TINY).unwrap();
            storage.inject(FaultRule::new(operation, When::Nth(nth), Fault::Io));
            let failed = rounds(&mut owner, &mut table, 60);
            if table.end() == owner.end() {
                owner.check(&table.reader()).unwrap();
            }
            owner.crash();
            drop(table);
            storage.clear_faults();
            let storage = Arc::new(storage.reopen());
            let mut table = owner.open(storage, TINY).unwrap();
            owner.catch_up(&mut table).unwrap();
            rounds(&mut owner, &mut table, 20).unwrap();
            owner.check(&table.reader()).unwrap();
            let is_early = nth < 3 && matches!(operation, Operation::Write | Operation::Sync);
            assert!(failed.is_err() || !is_early, "{operation:?} {nth} went unnoticed");
        }
    }
}

#[test]
fn a_full_disk_keeps_everything_readable_and_goes_on_when_there_is_room() {
    for capacity in [0, 9_000, 30_000, 60_000, 120_000] {
        let storage = Arc::new(FaultyStorage::new(capacity));
        let mut owner = Owner::new(capacity, false);
        let options = SearchOptions { flush_rows: 100, ..TINY };
        let mut table = owner.open(storage.clone(), options).unwrap();
        storage.set_capacity(Some(capacity));
        let (mut settled, mut full) = (0, 0);
        for _ in 0..80 {
            owner.make_block();
            let appended = owner.catch_up(&mut table);
            let settling = appended.and_then(|()| owner.settle(&mut table, &mut settled));
            if let Err(error) = settling {
                assert!(error.is_disk_full(), "{error}");
                full += 1;
                // What did not come in is tried again when there is room.
                storage.set_capacity(None);
                owner.catch_up(&mut table).unwrap();
                owner.check(&table.reader()).unwrap();
                storage.set_capacity(Some(capacity));
            }
        }
        assert!(full > 0, "{capacity}");
        storage.set_capacity(None);
        rounds(&mut owner, &mut table, 10).unwrap();
        table.finish().unwrap();
        owner.check(&table.reader()).unwrap();
    }
}

/// The owner lost blocks that the file of young rows has. Other blocks get their links, and then
/// the power is cut before anything is flushed: the rows of the lost blocks must not come back.
#[test]
fn rows_of_blocks_that_the_owner_lost_do_not_come_back() {
    let mut storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(8, false);
    let lazy = SearchOptions { flush_rows: usize::MAX, flush_links: u64::MAX, ..TINY };
    let mut table = owner.open(storage.clone(), lazy).unwrap();
    (0..30).for_each(|_| owner.make_block());
    owner.catch_up(&mut table).unwrap();
    table.rest().unwrap();
    owner.saved = 20;
    owner.crash();
    for _ in 0..2 {
        drop(table);
        storage = Arc::new(storage.reopen());
        let resting: Arc<dyn Storage> = storage.clone();
        let reader = SearchReader::at_rest(&resting, KEY, owner.end_of(20)).unwrap();
        let mut old = owner.clone();
        old.blocks.truncate(20);
        old.check(&reader).unwrap();
        table = owner.open(storage.clone(), lazy).unwrap();
        assert_eq!(table.end(), owner.end_of(20));
        if owner.blocks.len() == 20 {
            (0..30).for_each(|_| owner.make_block());
        }
        owner.catch_up(&mut table).unwrap();
        owner.saved = owner.blocks.len();
        owner.check(&table.reader()).unwrap();
    }
}

/// After a rest and a flush, rows are in a run and in the file of young rows: they are found once.
#[test]
fn what_was_flushed_after_a_rest_is_found_once() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(8, false);
    let mut table = owner.open(storage.clone(), TINY).unwrap();
    (0..30).for_each(|_| owner.make_block());
    owner.catch_up(&mut table).unwrap();
    owner.saved = owner.blocks.len();
    table.rest().unwrap();
    owner.settle(&mut table, &mut 0).unwrap();
    assert!(table.watermark().0 > TxLink::new(0) && table.watermark().0 < table.saved_end());
    drop(table);
    let resting: Arc<dyn Storage> = Arc::new(storage.reopen());
    let saved = SearchReader::saved(&resting, KEY).unwrap().unwrap();
    assert_eq!(saved.0, owner.end());
    owner.check(&SearchReader::at_rest(&resting, KEY, owner.end()).unwrap()).unwrap();
    let table = owner.open(resting, TINY).unwrap();
    assert_eq!(table.end(), owner.end());
    owner.check(&table.reader()).unwrap();
}

#[test]
fn a_table_that_is_ahead_of_its_owner_is_refused() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(3, false);
    let mut table = owner.open(storage.clone(), TINY).unwrap();
    rounds(&mut owner, &mut table, 40).unwrap();
    let (watermark, _) = table.watermark();
    drop(table);
    let below = TxLink::new(watermark.to_u64() - 1);
    let refused = SearchTable::open(storage.clone(), KEY, TINY, below).unwrap_err();
    assert!(refused.to_string().contains("run `varve repair`"), "{refused}");
    let other = varve_runs::StoreKey { id: varve_io::StoreId([9; 16]), ..KEY };
    let refused = SearchTable::open(storage, other, TINY, owner.end()).unwrap_err();
    assert!(refused.to_string().contains("another store"), "{refused}");
}

//! Power cuts at every operation, disks that fail or are full, and rot.

use std::sync::Arc;

use varve_archive::history::{HistoryTable, Mark};
use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use varve_io::{Access, Caching, FileOffset, Storage};

use super::rig::{Owner, TINY};

/// What the owner knew after each number of operations.
struct Moment {
    operations: usize,
    owner: Owner,
    watermark: Option<Mark>,
}

fn moment(storage: &FaultyStorage, owner: &Owner, table: &HistoryTable) -> Moment {
    let (operations, watermark) = (storage.operations(), table.watermark());
    Moment { operations, owner: owner.clone(), watermark }
}

#[test]
fn a_power_cut_at_every_operation_leaves_a_table_that_catches_up() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(77, false);
    let mut table = owner.open(storage.clone(), TINY).unwrap();
    let mut moments = vec![moment(&storage, &owner, &table)];
    for round in 0..44_usize {
        if round % 11 == 10 {
            // Some in memory, some deeper.
            let kept = owner.chain.len().saturating_sub(3 + round / 3);
            owner.chain.truncate(kept);
        }
        owner.make_block();
        owner.follow(&mut table).unwrap();
        moments.push(moment(&storage, &owner, &table));
        table.settle().unwrap();
        moments.push(moment(&storage, &owner, &table));
        if round % 13 == 12 {
            table.rest().unwrap();
            moments.push(moment(&storage, &owner, &table));
            drop(table);
            table = owner.open(storage.clone(), TINY).unwrap();
        }
    }
    drop(table);
    for operations in moments[0].operations..=storage.operations() {
        let known = moments.partition_point(|moment| moment.operations <= operations);
        let (known, next) =
            (&moments[known - 1], moments.get(known).unwrap_or(&moments[known - 1]));
        let seeds = if operations % 8 == 0 { 2 } else { 0 };
        for way in Crash::ways(seeds) {
            let after: Arc<dyn Storage> = Arc::new(storage.crash(operations, way));
            // What was begun may have been acted upon before the call returned.
            let owner = &next.owner;
            let mut table = owner.open(after, TINY).unwrap();
            let height = |mark: Option<Mark>| mark.map(|mark| mark.height);
            assert!(
                table.watermark() == known.watermark
                    || table.watermark() == next.watermark
                    || height(table.watermark()) >= height(known.watermark)
                    || height(next.watermark) < height(known.watermark)
            );
            owner.follow(&mut table).unwrap();
            if operations % 4 == 0 {
                owner.check(&table.reader().view()).unwrap();
            }
        }
    }
}

/// Lives through `rounds` blocks, with a reorganisation now and then.
fn rounds(owner: &mut Owner, table: &mut HistoryTable, rounds: usize) -> Result<(), String> {
    for round in 0..rounds {
        if round % 15 == 14 {
            owner.chain.truncate(owner.chain.len().saturating_sub(round % 12));
        }
        owner.make_block();
        owner.follow(table).map_err(|error| error.to_string())?;
        table.settle().map_err(|error| error.to_string())?;
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
            let failed = rounds(&mut owner, &mut table, 40);
            if table.tip().map(|tip| tip.hash) == owner.chain.last().copied() {
                owner.check(&table.reader().view()).unwrap();
            }
            drop(table);
            storage.clear_faults();
            let storage = Arc::new(storage.reopen());
            let mut table = owner.open(storage, TINY).unwrap();
            owner.follow(&mut table).unwrap();
            rounds(&mut owner, &mut table, 12).unwrap();
            owner.check(&table.reader().view()).unwrap();
            let is_early = nth < 3 && matches!(operation, Operation::Write | Operation::Sync);
            assert!(failed.is_err() || !is_early, "{operation:?} {nth} went unnoticed");
        }
    }
}

#[test]
fn a_full_disk_keeps_everything_readable_and_goes_on_when_there_is_room() {
    for capacity in [0, 20_000, 60_000] {
        let storage = Arc::new(FaultyStorage::new(capacity));
        let mut owner = Owner::new(capacity, false);
        let mut table = owner.open(storage.clone(), TINY).unwrap();
        storage.set_capacity(Some(capacity));
        let mut full = 0;
        for _ in 0..50 {
            owner.make_block();
            let followed = owner.follow(&mut table);
            if let Err(error) = followed.and_then(|()| table.settle()) {
                assert!(error.is_disk_full(), "{error}");
                full += 1;
                storage.set_capacity(None);
                owner.follow(&mut table).unwrap();
                owner.check(&table.reader().view()).unwrap();
                storage.set_capacity(Some(capacity));
            }
        }
        assert!(full > 0, "{capacity}");
        storage.set_capacity(None);
        rounds(&mut owner, &mut table, 10).unwrap();
        table.finish().unwrap();
        owner.check(&table.reader().view()).unwrap();
    }
}

#[test]
fn no_flipped_bit_changes_an_answer() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(21, false);
    let mut table = owner.open(storage.clone(), TINY).unwrap();
    rounds(&mut owner, &mut table, 25).unwrap();
    table.rest().unwrap();
    drop(table);
    let mut noticed = 0;
    for name in storage.list().unwrap() {
        let file = storage.open(&name, Access::Read, Caching::Buffered).unwrap();
        let len = file.size().unwrap();
        let step = |at: u64| if len < 1_000 || at % 4096 < 32 { 1 } else { 97 };
        let mut at = 0;
        while at < len {
            let storage = Arc::new(storage.reopen());
            assert!(storage.flip_bit(&name, FileOffset::new(at), (at % 8) as u8));
            let checked = owner.open(storage, TINY).and_then(|table| {
                owner.check(&table.reader().view())?;
                table.verify()
            });
            noticed += usize::from(checked.is_err());
            if let Err(error) = checked {
                assert!(error.is_damage() || error.to_string().contains(&name), "{error}");
            }
            at += step(at);
        }
    }
    assert!(noticed > 300, "{noticed}");
}

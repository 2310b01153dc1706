//! Runs: written, opened, read back, damaged.

mod merge;
mod model;

use std::sync::Arc;

use varve_io::faulty::{Fault, FaultRule, FaultyStorage, Operation, When};
use varve_io::{Access as FileAccess, BatchReader, Caching, FileOffset, PAGE_LEN, Storage};
use varve_runs::{Access, PageBuffers, RunInfo, RunNumber, StoreKey};

use super::*;
use crate::coins::Coins;
use crate::entry::Entry;
use crate::fixture::{
    Changes, KEY, Owned, collect, disk, look_up, new_run, outpoint, owned, span, txid, write_run,
};
use crate::query::Query;
use crate::run_writer::RunWriter;

/// Adds with numbers, each born in step number + 1, of which every fifth is a delete.
fn changes(count: u32) -> Changes {
    let change = |number: u32| {
        let coin = (number % 5 != 4).then(|| owned(number));
        ((outpoint(number), number + 1), coin)
    };
    (0..count).map(change).collect()
}

fn large(number: u32, len: usize) -> Owned {
    Owned { script: (0..=255).cycle().step_by(7).take(len).collect(), ..owned(number) }
}

fn added(changes: &Changes) -> Vec<(Outpoint, (u32, Owned))> {
    let adds = changes.iter().filter_map(|((outpoint, birth), coin)| {
        coin.as_ref().map(|coin| (*outpoint, (*birth, coin.clone())))
    });
    adds.collect()
}

/// Everything in the run is found by key and in order, in the run as written and as opened.
fn check(storage: &Arc<dyn Storage>, changes: &Changes) {
    let written = Arc::new(write_run(storage, 1, span(1, 9), changes).unwrap());
    let opened = Arc::new(Run::open(&**storage, &KEY, &written.info()).unwrap());
    opened.verify().unwrap();
    for run in [written, opened] {
        assert_eq!(collect(run.cursor().unwrap()).unwrap(), *changes);
        let mut keys: Vec<Outpoint> = changes.keys().map(|(outpoint, _)| *outpoint).collect();
        keys.extend((0..200).map(|number| outpoint(9_000_000 + number)));
        let runs = Runs::empty(KEY).with_youngest(run);
        let found = look_up(&runs, keys).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), added(changes));
    }
}

#[test]
fn entries_are_found_by_key_and_in_order() {
    for count in [1, 2, 70, 5_000] {
        let (_dir, storage) = disk();
        check(&storage, &changes(count));
    }
}

#[test]
fn an_empty_run_is_a_run() {
    let (_dir, storage) = disk();
    check(&storage, &Changes::new());
}

#[test]
fn defect_12_reopened_runs_answer_the_same() {
    let (_dir, storage) = disk();
    let run = write_run(&storage, 7, span(3, 8), &changes(3_000)).unwrap();
    let info = run.info();
    drop(run);
    let again = Run::open(&*storage, &KEY, &info).unwrap();
    assert_eq!(again.info(), info);
    assert_eq!((info.adds, info.deletes), (2_400, 600));
    assert_eq!(collect(Arc::new(again).cursor().unwrap()).unwrap(), changes(3_000));
}

#[test]
fn coins_larger_than_a_page_or_than_many() {
    let (_dir, storage) = disk();
    let mut changes = changes(500);
    for (number, len) in [(3, 1_990), (5, 2_040), (11, 4_092), (100, 10_000), (333, 5_000_000)] {
        changes.insert((outpoint(number), number + 1), Some(large(number, len)));
    }
    // An outpoint whose old coin is deleted and whose new one is large.
    changes.insert((outpoint(600), 4), None);
    changes.insert((outpoint(600), 5), Some(large(600, 9_000)));
    check(&storage, &changes);
}

#[test]
fn only_large_coins() {
    let (_dir, storage) = disk();
    let coin = |number: u32| ((outpoint(number), 1), Some(large(number, 3_000)));
    check(&storage, &(0..300).map(coin).collect());
}

#[test]
fn twenty_thousand_siblings() {
    let (_dir, storage) = disk();
    let mut changes = changes(1_000);
    let siblings =
        (0..20_000).map(|vout| ((Outpoint::new(txid(77_777), vout), 5), Some(owned(vout))));
    changes.extend(siblings);
    check(&storage, &changes);
}

#[test]
fn hostile_txids_that_share_their_first_bytes() {
    for shared in [8, 28] {
        let (_dir, storage) = disk();
        let key = |number: u32| {
            let mut txid = [0x5a; 32];
            txid[shared..shared + 4].copy_from_slice(&number.to_be_bytes());
            Outpoint::new(varve_types::Txid::from_bytes(txid), 0)
        };
        let alike = (0..3_000).map(|number| ((key(number), 1), Some(owned(number))));
        let mut all = changes(3_000);
        all.extend(alike);
        check(&storage, &all);
    }
}

#[test]
fn entries_out_of_order_are_refused() {
    let (_dir, storage) = disk();
    let coin = owned(1);
    let add = |birth| Entry::add(outpoint(1), Sequence::new(birth), coin.coin());
    let delete = |birth| Entry::delete(outpoint(1), Sequence::new(birth));
    let refused: [&[Entry<'_>]; 2] = [&[add(2), delete(1)], &[add(2), delete(2)]];
    for entries in refused {
        let mut writer = RunWriter::create(&storage, KEY, &new_run(1, span(1, 1), 9)).unwrap();
        let (last, before) = entries.split_last().unwrap();
        before.iter().for_each(|entry| writer.push(entry).unwrap());
        assert!(matches!(writer.push(last), Err(RunError::Order { .. })), "{entries:?}");
    }
    assert_eq!(storage.list().unwrap(), [""; 0], "unfinished files are taken away");
}

/// As many births as a page holds, whatever their size, and then an error instead of a split
/// outpoint.
#[test]
fn an_outpoint_with_many_births_stays_in_one_page() {
    let (_dir, storage) = disk();
    let large = Owned { script: vec![7; 1_900], ..owned(1) };
    let add = |birth| Entry::add(outpoint(1), Sequence::new(birth), large.coin());
    let mut writer = RunWriter::create(&storage, KEY, &new_run(1, span(1, 1), 9)).unwrap();
    writer.push(&Entry::add(outpoint(0), Sequence::new(1), large.coin())).unwrap();
    (0..48).for_each(|birth| writer.push(&add(birth)).unwrap());
    assert!(matches!(writer.push(&add(48)), Err(RunError::Crowd { .. })));
    let run = Arc::new(writer.finish().unwrap());
    let runs = Runs::empty(KEY).with_youngest(run);
    for gone in [0, 20, 47, 48] {
        let mut query = Query::new(&runs, vec![outpoint(1)]);
        query.pass_over(0, &(0..gone).map(Sequence::new).collect::<Vec<_>>());
        let mut coins = Coins::unknown(1);
        query.join(&mut coins, |key| key).unwrap();
        let expected = (gone < 48).then(|| (large.coin(), Sequence::new(gone)));
        assert_eq!(coins.get(0).zip(coins.birth(0)), expected);
    }
}

#[test]
fn more_than_all_money_is_refused() {
    let (_dir, storage) = disk();
    let coin = Owned { value: 2_100_000_000_000_001, ..owned(1) };
    let changes = Changes::from([((outpoint(1), 1), Some(coin))]);
    let error = write_run(&storage, 1, span(1, 1), &changes).unwrap_err();
    assert!(matches!(error, RunError::Amount { .. }), "{error}");
}

#[test]
fn another_run_or_store_or_manifest_is_refused() {
    let (_dir, storage) = disk();
    let info = write_run(&storage, 1, span(1, 9), &changes(100)).unwrap().info();
    let open = |key: StoreKey, info: RunInfo| Run::open(&*storage, &key, &info);
    assert!(open(KEY, info).is_ok());
    assert!(open(KEY, RunInfo { digest: info.digest ^ 1, ..info }).is_err());
    assert!(open(KEY, RunInfo { adds: info.adds + 1, ..info }).is_err());
    assert!(open(KEY, RunInfo { pages: info.pages - 1, ..info }).is_err());
    assert!(open(KEY, RunInfo { pages: 0, ..info }).is_err());
    let other = varve_io::StoreId([0x12; 16]);
    assert!(open(StoreKey { id: other, ..KEY }, info).is_err());
    storage.rename("0000000001.run", "0000000002.run").unwrap();
    assert!(open(KEY, RunInfo { number: RunNumber(2), ..info }).is_err());
}

/// A bit flipped anywhere is an error that names the file, and never another answer.
#[test]
fn every_flipped_bit_is_noticed() {
    let faulty = Arc::new(FaultyStorage::new(1));
    let storage: Arc<dyn Storage> = faulty.clone();
    let mut changes = changes(80);
    changes.insert((outpoint(30), 31), Some(large(30, 2_500)));
    let info = write_run(&storage, 1, span(1, 9), &changes).unwrap().info();
    let name = info.number.file_name();
    let keys: Vec<Outpoint> = changes.keys().map(|(outpoint, _)| *outpoint).collect();
    let read = || -> Result<(), RunError> {
        let run = Arc::new(Run::open(&*storage, &KEY, &info)?);
        run.verify()?;
        let runs = Runs::empty(KEY).with_youngest(Arc::clone(&run));
        let found = look_up(&runs, keys.clone())?;
        assert_eq!(found.into_iter().collect::<Vec<_>>(), added(&changes), "a wrong answer");
        assert_eq!(collect(run.cursor()?)?, changes, "a wrong answer");
        Ok(())
    };
    read().unwrap();
    for byte in 0..info.pages * PAGE_LEN as u64 {
        let bit = (byte % 8) as u8;
        assert!(faulty.flip_bit(&name, FileOffset::new(byte), bit));
        let error = read().unwrap_err();
        let RunError::Storage(varve_io::Error::Corrupt { path, offset, .. }) = &error else {
            panic!("byte {byte}: {error}");
        };
        assert!(path.ends_with(&name), "byte {byte}: {error}");
        assert_eq!(offset.get() / PAGE_LEN as u64, byte / PAGE_LEN as u64, "byte {byte}: {error}");
        assert!(faulty.flip_bit(&name, FileOffset::new(byte), bit));
    }
    read().unwrap();
}

/// Lookups alone, without the scrub, notice a flipped bit in the leaf they read, by either access.
#[test]
fn a_damaged_leaf_is_noticed_by_the_lookup_that_reads_it() {
    for access in [Access::Mapped, Access::Direct] {
        let faulty = Arc::new(FaultyStorage::new(1));
        let storage: Arc<dyn Storage> = faulty.clone();
        let changes = changes(1_000);
        let run = Arc::new(write_run(&storage, 1, span(1, 9), &changes).unwrap());
        run.set_access(access);
        let runs = Runs::empty(KEY).with_youngest(Arc::clone(&run));
        let query = varve_runs::Query::new(&runs, vec![outpoint(17)]);
        let candidate = query.by_key().flatten().next().unwrap();
        let place = query.place(candidate).damage(2_000, "here");
        let RunError::Storage(varve_io::Error::Corrupt { offset, .. }) = place else { panic!() };
        assert!(faulty.flip_bit(&run.info().number.file_name(), offset, 3));
        // The old map was made when the run was opened and has the original byte, so reopen.
        let run = Arc::new(Run::open(&*storage, &KEY, &run.info()).unwrap());
        run.set_access(access);
        let runs = Runs::empty(KEY).with_youngest(run);
        let ask = |number| {
            let mut query = Query::new(&runs, vec![outpoint(number)]);
            query.fetch(&mut BatchReader::new(4), &mut PageBuffers::default())?;
            query.join(&mut Coins::unknown(1), |key| key)
        };
        let error = ask(17).unwrap_err().to_string();
        assert!(error.contains("0000000001.run") && error.contains("checksum"), "{error}");
        let sound = (0..1000).filter(|number| ask(*number).is_ok()).count();
        assert!(sound > 900, "the other leaves answer: {sound}");
    }
}

#[test]
fn defect_07_failed_reads_are_errors_and_short_ones_are_continued() {
    let faulty = Arc::new(FaultyStorage::new(1));
    let storage: Arc<dyn Storage> = faulty.clone();
    let changes = changes(1_000);
    let run = Arc::new(write_run(&storage, 1, span(1, 9), &changes).unwrap());
    run.set_access(Access::Direct);
    let runs = Runs::empty(KEY).with_youngest(Arc::clone(&run));
    let mut reader = BatchReader::new(16);
    let mut ask = || {
        let mut query = Query::new(&runs, (0..1_000).map(outpoint).collect());
        query.fetch(&mut reader, &mut PageBuffers::default())?;
        let mut coins = Coins::unknown(1_000);
        query.join(&mut coins, |key| key)?;
        Ok::<_, RunError>(coins.iter().flatten().count())
    };
    faulty.inject(FaultRule::new(Operation::Read, When::Nth(3), Fault::Io));
    let error = ask().unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("0000000001.run"), "{error}");
    faulty.clear_faults();
    faulty.inject(FaultRule::new(Operation::Read, When::Nth(5), Fault::BitFlip));
    assert!(ask().unwrap_err().to_string().contains("checksum"));
    faulty.clear_faults();
    faulty.inject(FaultRule::new(Operation::Read, When::OneIn(3), Fault::Short));
    assert_eq!(ask().unwrap(), 800);
    assert_eq!(collect(run.cursor().unwrap()).unwrap(), changes);
}

#[test]
fn a_full_disk_leaves_nothing_behind_and_is_no_end() {
    let faulty = Arc::new(FaultyStorage::new(1));
    let storage: Arc<dyn Storage> = faulty.clone();
    let kept = write_run(&storage, 1, span(1, 9), &changes(100)).unwrap().info();
    faulty.set_capacity(Some(120_000));
    let error = write_run(&storage, 2, span(10, 20), &changes(5_000)).unwrap_err();
    let RunError::Storage(error) = error else { panic!("{error}") };
    assert!(error.is_disk_full(), "{error}");
    assert_eq!(storage.list().unwrap(), ["0000000001.run"]);
    assert!(Run::open(&*storage, &KEY, &kept).is_ok());
    faulty.set_capacity(None);
    write_run(&storage, 2, span(10, 20), &changes(5_000)).unwrap();
}

#[test]
fn a_removed_file_is_read_on_by_those_who_have_it() {
    let (_dir, storage) = disk();
    let run = Arc::new(write_run(&storage, 1, span(1, 9), &changes(500)).unwrap());
    storage.remove("0000000001.run").unwrap();
    assert!(storage.open("0000000001.run", FileAccess::Read, Caching::Buffered).is_err());
    let runs = Runs::empty(KEY).with_youngest(Arc::clone(&run));
    assert_eq!(look_up(&runs, (0..500).map(outpoint).collect()).unwrap().len(), 400);
    assert_eq!(collect(run.cursor().unwrap()).unwrap(), changes(500));
}

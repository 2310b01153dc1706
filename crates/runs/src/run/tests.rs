//! Runs of the simplest rows: written, opened, read back, damaged.

use varve_io::PAGE_LEN;
use varve_io::faulty::{Fault, FaultRule, FaultyStorage, Operation, When};

use super::*;
use crate::cursor::Source as _;
use crate::fixture::{
    DELETE, KEY, LEAF_ROWS, Row, Tiny, TinyError, UNCHECKED, collect, disk, look_up, span,
    write_run, writer,
};
use crate::footer::RunNumber;
use crate::fuse::Width;
use crate::runs::Runs;

fn rows(count: u32) -> Vec<Row> {
    let flag = |n: u32| if n % 5 == 4 { DELETE } else { 0 };
    (0..count).map(|n| (u64::from(n / 2) * 77, (n % 2) | flag(n))).collect()
}

fn open(storage: &dyn Storage, info: &RunInfo) -> Result<Arc<Run<Tiny>>, TinyError> {
    Run::open(storage, &KEY, info).map(Arc::new)
}

#[test]
fn rows_are_found_by_key_and_in_order_as_written_and_as_opened() {
    for (count, filter) in
        [(0, None), (1, Some(Width::Two)), (9_000, None), (9_000, Some(Width::Half))]
    {
        let (_dir, storage) = disk();
        let rows = rows(count);
        let written = write_run(&storage, 3, filter, &rows);
        let info = written.info();
        assert_eq!((info.number, info.span), (RunNumber(3), span(3, 3)));
        assert_eq!((info.adds + info.deletes, info.deletes), (count.into(), (count / 5).into()));
        let opened = open(&*storage, &info).unwrap();
        opened.verify().unwrap();
        for run in [written, opened] {
            assert!(collect(run.cursor().unwrap()).unwrap() == rows);
            let mut keys: Vec<u64> = rows.iter().flat_map(|row| [row.0, row.0 + 1]).collect();
            keys.sort_unstable();
            keys.dedup();
            assert!(look_up(&Runs::empty(KEY).with_youngest(run), &keys).unwrap() == rows);
        }
    }
}

#[test]
fn rows_out_of_order_are_refused_by_the_builder_and_by_the_cursor() {
    let (_dir, storage) = disk();
    let mut pushed = writer(&storage, 1, None);
    pushed.push(&(5, 1)).unwrap();
    assert!(matches!(pushed.push(&(5, 1)), Err(TinyError::Order(_))));
    drop(pushed);
    assert_eq!(storage.list().unwrap(), [""; 0], "unfinished files are taken away");

    let sorted: Vec<Row> = (0..1_000).map(|key| (key, UNCHECKED)).collect();
    let changes: [fn(&mut Vec<Row>); 3] =
        [|rows| rows.swap(0, 1), |rows| rows.swap(0, LEAF_ROWS), |rows| rows[1] = rows[0]];
    for change in changes {
        let mut rows = sorted.clone();
        change(&mut rows);
        let run = write_run(&storage, 1, None, &rows);
        let error = run.cursor().and_then(collect).unwrap_err().to_string();
        assert!(error.contains("out of order") && error.contains("0000000001.run"), "{error}");
    }
}

#[test]
fn another_run_or_store_or_manifest_is_refused() {
    let (_dir, storage) = disk();
    let info = write_run(&storage, 1, None, &rows(100)).info();
    assert!(open(&*storage, &info).is_ok());
    let others = [
        RunInfo { digest: info.digest ^ 1, ..info },
        RunInfo { adds: info.adds + 1, ..info },
        RunInfo { span: span(1, 2), ..info },
        RunInfo { pages: info.pages - 1, ..info },
        RunInfo { pages: 0, ..info },
        RunInfo { number: RunNumber(2), ..info },
    ];
    assert!(others.iter().all(|other| open(&*storage, other).is_err()));
    let other = StoreKey { id: varve_io::StoreId([0x12; 16]), ..KEY };
    assert!(Run::<Tiny>::open(&*storage, &other, &info).is_err());
    storage.rename("0000000001.run", "0000000002.run").unwrap();
    assert!(open(&*storage, &RunInfo { number: RunNumber(2), ..info }).is_err());
}

/// A bit flipped anywhere is an error that names the file and the page, and never another answer.
#[test]
fn every_flipped_bit_is_noticed() {
    for filter in [None, Some(Width::One)] {
        let faulty = Arc::new(FaultyStorage::new(1));
        let storage: Arc<dyn Storage> = faulty.clone();
        let rows = rows(700);
        let info = write_run(&storage, 1, filter, &rows).info();
        let name = info.number.file_name();
        let read = || -> Result<Vec<Row>, TinyError> {
            let run = open(&*storage, &info)?;
            run.verify()?;
            collect(run.cursor()?)
        };
        assert_eq!(read().unwrap(), rows);
        for byte in (0..info.pages * PAGE_LEN as u64).step_by(3) {
            let at = varve_io::FileOffset::new(byte);
            let bit = u8::try_from(byte % 8).unwrap();
            assert!(faulty.flip_bit(&name, at, bit));
            let error = read().unwrap_err();
            let TinyError::Run(RunError::Storage(varve_io::Error::Corrupt {
                path, offset, ..
            })) = &error
            else {
                panic!("byte {byte}: {error}");
            };
            assert!(path.ends_with(&name), "byte {byte}: {error}");
            assert_eq!(offset.get() / PAGE_LEN as u64, byte / PAGE_LEN as u64, "{error}");
            assert!(faulty.flip_bit(&name, at, bit));
        }
    }
}

#[test]
fn failed_reads_are_errors_and_a_full_disk_leaves_nothing_behind() {
    let faulty = Arc::new(FaultyStorage::new(1));
    let storage: Arc<dyn Storage> = faulty.clone();
    let run = write_run(&storage, 1, None, &rows(9_000));
    faulty.inject(FaultRule::new(Operation::Read, When::Nth(3), Fault::Io));
    let error = run.cursor().and_then(collect).unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("0000000001.run"), "{error}");
    faulty.clear_faults();
    faulty.set_capacity(Some(200_000));
    let mut second = writer(&storage, 2, None);
    let pushed = rows(900_000).iter().try_for_each(|row| second.push(row));
    let Err(TinyError::Run(RunError::Storage(error))) = pushed else { panic!("{pushed:?}") };
    assert!(error.is_disk_full(), "{error}");
    drop(second);
    assert_eq!(storage.list().unwrap(), ["0000000001.run"]);
}

/// From every key, present or not, also between leaves and after the last row; with keys whose rows
/// fill several leaves.
#[test]
fn a_cursor_from_a_key_stands_at_its_first_row() {
    let (_dir, storage) = disk();
    let single = (0..1_000_u64).map(|n| (n * 10, 0));
    let crowd = (0..).take(3 * LEAF_ROWS).map(|value| (5_005, value));
    let mut rows: Vec<Row> = single.chain(crowd).collect();
    rows.sort_unstable();
    let run = write_run(&storage, 1, None, &rows);
    assert!(run.leaves(&5_005).len() >= 3, "the crowd fills several leaves");
    for key in (0..10_020).step_by(5).chain([u64::MAX]) {
        let expected = rows.iter().position(|row| row.0 >= key).unwrap_or(rows.len());
        let cursor = run.cursor_from(&key).unwrap();
        assert_eq!(cursor.head(), rows.get(expected).copied(), "{key}");
        if key % 1_001 == 0 {
            assert!(collect(cursor).unwrap() == rows[expected..], "{key}");
        }
    }
}

#[test]
fn a_cursor_from_a_key_in_an_empty_run_stands_at_the_end() {
    let (_dir, storage) = disk();
    let run = write_run(&storage, 1, None, &[]);
    assert_eq!(run.cursor_from(&7).unwrap().head(), None);
}

//! Logs of frames: crashes at every operation, damage, pruning, truncation, a full disk.

use super::*;
use crate::disk::Disk;
use crate::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use crate::frame::FRAME_HEADER_LEN;
use crate::segment::SEGMENT_HEADER_LEN;

fn config(segment_size: u64) -> SegmentsConfig {
    let kind = Kind(*b"TESTKIND");
    SegmentsConfig { prefix: "log".to_owned(), kind, store: StoreId([5; 16]), segment_size }
}

fn open(storage: &Arc<FaultyStorage>, durable: GlobalOffset) -> Result<Segments> {
    Segments::open(Arc::<FaultyStorage>::clone(storage), config(200), durable)
}

fn payloads(log: &Segments, from: GlobalOffset) -> Vec<Vec<u8>> {
    log.reader().frames(from).map(|frame| frame.unwrap().to_vec()).collect()
}

/// A log of nine frames of 50 bytes, 66 with their headers: two in a file of 200.
fn nine() -> (Arc<FaultyStorage>, Segments, Vec<GlobalOffset>) {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut log = open(&storage, GlobalOffset::ZERO).unwrap();
    let frames: Vec<[u8; 50]> = (0..9).map(|n| [n; 50]).collect();
    let frames: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
    let places = log.append(&frames).unwrap();
    log.sync().unwrap();
    (storage, log, places)
}

#[test]
fn frames_are_read_back_by_position_in_order_and_from_the_middle() {
    let (storage, log, places) = nine();
    let expected: Vec<GlobalOffset> = (0..9).map(|n| GlobalOffset::new(n * 66)).collect();
    assert_eq!(places, expected, "positions do not count the headers of files");
    assert_eq!(storage.list().unwrap().len(), 5);
    for (n, place) in (0..).zip(&places) {
        assert_eq!(log.reader().frame(*place).unwrap()[..], [n; 50]);
    }
    assert_eq!(payloads(&log, places[6]), [[6; 50], [7; 50], [8; 50]]);
    assert!(payloads(&log, log.end()).is_empty());
    for inside in [1, 65, 67, 594, u64::MAX] {
        assert!(log.reader().frame(GlobalOffset::new(inside)).is_err(), "{inside}");
    }
}

/// Whole blocks of long payloads go past the cache and their ends through it, wherever blocks
/// begin: readers see the same bytes at once, also through maps of the growing file, and after
/// reopening.
#[test]
fn long_payloads_begin_and_end_anywhere_in_a_block() {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Storage> = Arc::new(Disk::open(dir.path()).unwrap());
    let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(1));
    for storage in [disk, faulty] {
        let config = config(3 << 20);
        let mut log =
            Segments::open(Arc::clone(&storage), config.clone(), GlobalOffset::ZERO).unwrap();
        let (block, mut all) = (crate::BLOCK, Vec::new());
        // The second begins at a block's start and the third ends at a block's end.
        let to_start = 2 * LONG - SEGMENT_HEADER_LEN - 2 * FRAME_HEADER_LEN;
        let lengths = [to_start, LONG, 9 * block - FRAME_HEADER_LEN + LONG, 5, LONG - 1, 1];
        let lengths = lengths.into_iter().chain([LONG + 1, (1 << 21) + 77, 4 << 20, 3, LONG]);
        for (number, length) in (1_u8..).zip(lengths) {
            let pattern = (0..=250_u8).cycle().map(|byte| byte ^ number);
            let payload: Vec<u8> = pattern.take(length).collect();
            let place = log.append(&[&payload]).unwrap()[0];
            let len = (FRAME_HEADER_LEN + length) as u64;
            all.push((place, payload, log.reader().bytes(place, len).unwrap()));
            for (place, payload, map) in &all {
                assert!(log.reader().frame(*place).unwrap()[..] == *payload, "{number}");
                assert!(map[FRAME_HEADER_LEN..] == *payload, "{number}: a map has changed");
            }
        }
        assert!(log.reader().files().len() > 2);
        let places: Vec<_> = all.iter().map(|(place, ..)| *place).collect();
        let payloads_before: Vec<Vec<u8>> = all.drain(..).map(|(_, payload, _)| payload).collect();
        let durable = log.sync().unwrap();
        // Back to an earlier file, then forward: names are reused for other files.
        log.truncate(places[5]).unwrap();
        for payload in &payloads_before[5..] {
            log.append(&[payload]).unwrap();
        }
        assert_eq!(log.sync().unwrap(), durable);
        drop(log);
        let log = Segments::open(storage, config, durable).unwrap();
        assert!(payloads(&log, GlobalOffset::ZERO) == payloads_before);
    }
}

#[test]
fn a_frame_of_a_sealed_segment_is_not_copied() {
    let (_storage, log, places) = nine();
    let reader = log.reader();
    let (one, two) = (reader.frame(places[0]).unwrap(), reader.frame(places[0]).unwrap());
    assert_eq!(one.as_ptr(), two.as_ptr());
    let (one, two) = (reader.frame(places[8]).unwrap(), reader.frame(places[8]).unwrap());
    assert_ne!(one.as_ptr(), two.as_ptr(), "the tail is read");
}

#[test]
fn bytes_are_lent_from_every_file_and_from_the_growing_one() {
    let (_storage, mut log, mut places) = nine();
    let reader = log.reader();
    for round in [9, 10] {
        for (n, &place) in (0..).zip(&places) {
            let frame = reader.bytes(place, 66).unwrap();
            assert_eq!(crate::decode_frame(&frame, StoreId([5; 16]), place), Ok(&[n; 50][..]));
            let part = reader.bytes(place.plus(20), 5).unwrap();
            assert_eq!(part.as_ptr(), frame[20..].as_ptr(), "nothing is copied");
        }
        assert!(matches!(reader.bytes(places[0], 200), Err(Error::OutOfRange { .. })));
        assert!(matches!(reader.bytes(log.end(), 1), Err(Error::OutOfRange { .. })));
        assert_eq!(places.len(), round);
        places.extend(log.append(&[&[u8::try_from(round).unwrap(); 50]]).unwrap());
    }
    let held = reader.bytes(places[9], 66).unwrap();
    assert!(matches!(log.truncate(places[9]), Err(Error::Mapped { .. })), "{held:?} is held");
}

#[test]
fn files_and_places_are_told() {
    let (_storage, mut log, places) = nine();
    let reader = log.reader();
    let files = reader.files();
    assert_eq!(files.len(), 5);
    assert_eq!(files[1], places[2]..places[4]);
    assert_eq!(files[4], places[8]..log.end());
    let (path, offset) = reader.place(places[3]).unwrap();
    assert!(path.ends_with("log-000000000001"));
    assert_eq!(offset.get(), 64 + 66);
    assert_eq!(reader.place(log.end()), None);
    log.prune(places[4]).unwrap();
    assert_eq!((reader.files().len(), reader.place(places[3])), (3, None));
}

#[test]
fn a_frame_bigger_than_a_segment_gets_a_file_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Arc::new(Disk::open(dir.path()).unwrap());
    let mut log = Segments::open(storage.clone(), config(4096), GlobalOffset::ZERO).unwrap();
    let giant: Vec<u8> = (0..5_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let places = log.append(&[b"before", &giant, b"after", &[], &giant]).unwrap();
    let durable = log.sync().unwrap();
    let sizes: Vec<u64> = storage
        .list()
        .unwrap()
        .iter()
        .map(|name| storage.open(name, Access::Read, Caching::Buffered).unwrap().size().unwrap())
        .collect();
    assert_eq!(sizes, [86, 5_000_080, 101, 5_000_080]);
    drop(log);
    let log = Segments::open(storage, config(4096), durable).unwrap();
    assert_eq!(log.reader().frame(places[1]).unwrap()[..], giant);
    assert_eq!(log.reader().frame(places[3]).unwrap()[..], []);
    assert_eq!(log.reader().frame(places[4]).unwrap()[..], giant);
}

#[test]
fn reopening_finds_everything_and_goes_on() {
    let (storage, log, _) = nine();
    let durable = log.end();
    drop(log);
    let mut log = open(&storage, durable).unwrap();
    assert_eq!(log.end(), durable);
    log.append(&[b"ten"]).unwrap();
    assert_eq!(payloads(&log, durable), [b"ten"]);
    assert_eq!(payloads(&log, GlobalOffset::ZERO).len(), 10);
}

#[test]
fn truncate_goes_back_over_files_and_new_frames_follow() {
    for keep in 0..=9 {
        let (storage, mut log, places) = nine();
        let to = places.get(keep).copied().unwrap_or(log.end());
        log.truncate(to).unwrap();
        assert_eq!((log.end(), payloads(&log, GlobalOffset::ZERO).len()), (to, keep));
        assert!(log.reader().frame(to).is_err());
        log.append(&[&[0xaa; 50], &[0xbb; 50]]).unwrap();
        let durable = log.sync().unwrap();
        drop(log);
        let log = open(&storage, durable).unwrap();
        let found = payloads(&log, GlobalOffset::ZERO);
        assert_eq!(found.len(), keep + 2);
        assert_eq!(found[keep..], [[0xaa; 50], [0xbb; 50]]);
    }
    let (_storage, mut log, _) = nine();
    assert!(matches!(log.truncate(log.end().plus(1)), Err(Error::OutOfRange { .. })));
}

#[test]
fn truncate_waits_for_readers_of_the_cut_file_and_leaves_others_alone() {
    let (_storage, mut log, places) = nine();
    let held = log.reader().frame(places[3]).unwrap();
    log.truncate(places[6]).unwrap();
    assert!(matches!(log.truncate(places[3]), Err(Error::Mapped { .. })));
    assert_eq!(log.end(), places[3]);
    assert!(matches!(log.append(&[b"x"]), Err(Error::Mapped { .. })));
    assert_eq!(held[..], [3; 50]);
    drop(held);
    log.append(&[b"x"]).unwrap();
    assert_eq!(payloads(&log, places[3]), [b"x"]);
}

#[test]
fn pruning_removes_whole_files_and_keeps_positions() {
    let (storage, mut log, places) = nine();
    let held = log.reader().frame(places[0]).unwrap();
    assert_eq!(log.prune(places[5]).unwrap(), places[4]);
    assert_eq!(held[..], [0; 50], "who holds a slice keeps it");
    let gone = log.reader().frame(places[3]);
    assert!(matches!(gone, Err(Error::OutOfRange { start, .. }) if start == places[4]));
    assert_eq!(log.reader().frame(places[5]).unwrap()[..], [5; 50]);
    let durable = log.end();
    drop((log, held));
    let mut log = open(&storage, durable).unwrap();
    assert_eq!(log.start(), places[4]);
    assert_eq!(payloads(&log, log.start()).len(), 5);
    assert_eq!(log.prune(log.end()).unwrap(), places[8], "the last file stays");
    log.truncate(places[8]).unwrap();
    assert_eq!(log.append(&[b"new"]).unwrap(), [places[8]]);
}

#[test]
fn a_full_disk_loses_nothing_and_space_heals() {
    for capacity in (1100..1400).step_by(7) {
        let (storage, mut log, _) = nine();
        storage.set_capacity(Some(capacity));
        let before = log.end();
        let batch: [&[u8]; 8] = [&[0xcc; 50]; 8];
        assert!(log.append(&batch).unwrap_err().is_disk_full());
        assert_eq!(log.end(), before, "all or none");
        assert_eq!(payloads(&log, GlobalOffset::ZERO).len(), 9);
        storage.set_capacity(None);
        log.append(&batch).unwrap();
        let durable = log.sync().unwrap();
        drop(log);
        assert_eq!(payloads(&open(&storage, durable).unwrap(), before), batch);
    }
}

#[test]
fn a_failed_sync_stops_all_writing_until_the_log_is_opened_anew() {
    let (storage, mut log, places) = nine();
    storage.inject(FaultRule::new(Operation::Sync, When::Nth(0), Fault::Io));
    log.append(&[b"x"]).unwrap();
    assert!(matches!(log.sync(), Err(Error::Io { .. })));
    for _ in 0..2 {
        assert!(matches!(log.sync(), Err(Error::Poisoned { .. })));
        assert!(matches!(log.append(&[b"y"]), Err(Error::Poisoned { .. })));
        assert!(matches!(log.truncate(places[2]), Err(Error::Poisoned { .. })));
    }
    assert!(log.reader().frame(places[1]).is_ok(), "reading goes on");
    let storage = Arc::new(storage.reopen());
    open(&storage, places[8]).unwrap().append(&[b"y"]).unwrap();
}

#[test]
fn what_was_durable_and_is_gone_is_an_error() {
    let (storage, log, places) = nine();
    let durable = log.end();
    drop(log);
    let missing = open(&storage, durable.plus(66));
    assert!(matches!(missing, Err(Error::UnexpectedEnd { .. })), "{missing:?}");
    let kept = storage.list().unwrap().len();
    storage.remove("log-000000000001").unwrap();
    let hole = open(&storage, durable);
    assert!(matches!(hole, Err(Error::UnexpectedEnd { .. })), "{hole:?}");
    assert_eq!(storage.list().unwrap().len(), kept - 1, "an error removes nothing");
    let cut = open(&storage, places[2]).unwrap();
    assert_eq!(payloads(&cut, GlobalOffset::ZERO).len(), 2, "nobody promised more");
    let empty = Arc::new(FaultyStorage::new(1));
    assert!(matches!(open(&empty, durable), Err(Error::NotFound { .. })));
}

#[test]
fn another_stores_files_are_never_taken_for_junk() {
    let (storage, log, _) = nine();
    drop(log);
    let other_store = SegmentsConfig { store: StoreId([6; 16]), ..config(200) };
    let other_kind = SegmentsConfig { kind: Kind(*b"OTHERKND"), ..config(200) };
    for other in [other_store, other_kind] {
        let opened = Segments::open(storage.clone(), other, GlobalOffset::ZERO);
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
    }
    assert_eq!(storage.list().unwrap().len(), 5);
}

#[test]
fn readers_follow_the_writer_without_a_lock() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut log = Segments::open(storage, config(2000), GlobalOffset::ZERO).unwrap();
    let reader = log.reader();
    std::thread::scope(|scope| {
        let follower = scope.spawn(move || {
            let mut at = GlobalOffset::ZERO;
            let mut expected = 0_u32;
            while expected < 500 {
                for frame in reader.frames(at) {
                    let frame = frame.unwrap();
                    assert_eq!(frame[..], expected.to_le_bytes());
                    expected += 1;
                    at = frame.next();
                }
            }
        });
        for n in 0..500_u32 {
            log.append(&[&n.to_le_bytes()]).unwrap();
        }
        follower.join().unwrap();
    });
}

/// Regression: pruning removed the last synced file while the name of its successor was not synced;
/// a crash could leave no file at all, and the log did not open. What stays is now synced first.
#[test]
fn pruning_never_removes_the_last_durable_file() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut log = open(&storage, GlobalOffset::ZERO).unwrap();
    log.append(&[&[1; 50], &[2; 50]]).unwrap();
    let durable = log.sync().unwrap();
    let synced = storage.operations();
    log.append(&[&[3; 50]]).unwrap();
    assert_eq!(log.prune(durable).unwrap(), durable);
    for n in synced..=storage.operations() {
        for crash in Crash::ways(30) {
            let after = Arc::new(storage.crash(n, crash));
            assert!(open(&after, durable).unwrap().end() >= durable, "operation {n}, {crash:?}");
        }
    }
}

/// A file that could not be removed is still part of the log: if it were forgotten, the next
/// pruning would remove its successor, and the log with the hole would no longer open.
#[test]
fn a_file_that_cannot_be_removed_stays_in_the_log() {
    let (storage, mut log, places) = nine();
    storage.inject(FaultRule::new(Operation::Remove, When::Nth(0), Fault::Io));
    assert!(matches!(log.prune(places[5]), Err(Error::Io { action: "remove", .. })));
    assert_eq!((log.start(), payloads(&log, log.start()).len()), (places[0], 9));
    assert_eq!(log.prune(places[5]).unwrap(), places[4]);
    let durable = log.end();
    drop(log);
    assert_eq!(payloads(&open(&storage, durable).unwrap(), places[4]).len(), 5);
}

/// Regression: a file that held only a header whose sync had failed was reused as it was. Later
/// syncs did not write the header again, and a crash lost the file with all its frames.
#[test]
fn an_inherited_header_is_written_again() {
    let storage = Arc::new(FaultyStorage::new(1));
    storage.inject(FaultRule::new(Operation::Write, When::Nth(1), Fault::NoSpace));
    let mut log = open(&storage, GlobalOffset::ZERO).unwrap();
    assert!(log.append(&[b"frame"]).unwrap_err().is_disk_full());
    drop(log);
    storage.inject(FaultRule::new(Operation::Sync, When::Nth(0), Fault::Io));
    let storage = Arc::new(storage.reopen());
    assert!(matches!(open(&storage, GlobalOffset::ZERO), Err(Error::Io { .. })));
    let storage = Arc::new(storage.reopen());
    let mut log = open(&storage, GlobalOffset::ZERO).unwrap();
    log.append(&[b"frame"]).unwrap();
    let durable = log.sync().unwrap();
    let after = Arc::new(storage.crash(storage.operations(), Crash::LoseAll));
    assert_eq!(payloads(&open(&after, durable).unwrap(), GlobalOffset::ZERO), [b"frame"]);
}

/// A pending sync makes durable what was there when it began, even when the writer has moved to
/// another file since.
#[test]
fn a_sync_can_be_finished_while_the_writer_goes_on() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut log = open(&storage, GlobalOffset::ZERO).unwrap();
    log.append(&[b"one", b"two"]).unwrap();
    let (durable, pending) = log.begin_sync().unwrap();
    assert_eq!(durable, log.end());
    let lost = Arc::new(storage.crash(storage.operations(), Crash::LoseAll));
    assert!(open(&lost, durable).is_err(), "it is only begun");
    (0..40).for_each(|_| drop(log.append(&[&[7; 100]]).unwrap()));
    pending.finish().unwrap();
    let left = Arc::new(storage.crash(storage.operations(), Crash::LoseAll));
    let log = open(&left, durable).unwrap();
    assert_eq!(payloads(&log, GlobalOffset::ZERO)[..2], [b"one".to_vec(), b"two".to_vec()]);
}

/// Each frame was synced before the next. A flip in any of them but the last is damage, whichever
/// file it is in, and nothing is removed; every power cut is still only a torn end.
#[test]
fn where_each_frame_is_synced_damage_is_distinguished_from_a_torn_end() {
    let storage = Arc::new(FaultyStorage::new(1));
    let open = |storage: &Arc<FaultyStorage>| {
        let storage: Arc<dyn Storage> = storage.clone();
        Segments::open_synced_each(storage, config(200), GlobalOffset::ZERO)
    };
    let mut log = open(&storage).unwrap();
    let mut synced = vec![(0, 0)];
    for n in 0..5 {
        log.append(&[&[n; 50]]).unwrap();
        log.sync().unwrap();
        synced.push((storage.operations(), usize::from(n) + 1));
    }
    drop(log);
    let names = storage.list().unwrap();
    assert_eq!(names.len(), 3);
    for (number, name) in (0..).zip(&names) {
        // Two frames a file, the fifth alone in the last, after a header of 64 bytes.
        for frame in (0..2).filter(|frame| number * 2 + frame < 5) {
            let copy = Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
            assert!(copy.flip_bit(name, FileOffset::new(64 + frame * 66 + 30), 2));
            match open(&copy) {
                Ok(log) => assert_eq!((number, payloads(&log, GlobalOffset::ZERO).len()), (2, 4)),
                Err(error) => {
                    assert!(number < 2 && error.is_damage(), "{error}");
                    assert!(error.to_string().contains(name.as_str()), "{error}");
                    assert_eq!(copy.list().unwrap(), names, "nothing was removed");
                }
            }
        }
    }
    for n in 0..=storage.operations() {
        let least = synced.iter().rev().find(|(at, _)| *at <= n).unwrap().1;
        for crash in Crash::ways(8) {
            let log = open(&Arc::new(storage.crash(n, crash))).unwrap();
            assert!(payloads(&log, GlobalOffset::ZERO).len() >= least, "{n}, {crash:?}");
        }
    }
}

/// A log at rest is read as it is; one that has anything past its end, or lacks a file, is not at
/// rest.
#[test]
fn a_log_is_at_rest_only_where_it_was_synced() {
    let (storage, log, places) = nine();
    let end = log.end();
    drop(log);
    let before = storage.operations();
    let at_rest = |end| SegmentsReader::at_rest(storage.as_ref(), &config(200), end).unwrap();
    let rest = at_rest(end).unwrap();
    assert_eq!((rest.start(), rest.end()), (GlobalOffset::ZERO, end));
    for (n, place) in (0..).zip(&places) {
        assert_eq!(rest.frame(*place).unwrap()[..], [n; 50]);
    }
    assert!(at_rest(places[8]).is_none(), "a frame past the end");
    assert!(at_rest(end.plus(66)).is_none(), "a frame less");
    assert_eq!(storage.operations(), before, "nothing was changed");
    storage.remove("log-000000000002").unwrap();
    assert!(at_rest(end).is_none(), "a hole");
}

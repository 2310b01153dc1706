//! The test storage itself: what a crash may leave, what a fault does, which mistakes it catches.

use super::*;
use std::collections::BTreeSet;

const AT: FileOffset = FileOffset::ZERO;

fn open(storage: &FaultyStorage, name: &str, access: Access) -> Arc<dyn File> {
    storage.open(name, access, Caching::Buffered).unwrap()
}

fn content(storage: &FaultyStorage, name: &str) -> Option<Vec<u8>> {
    let file = storage.open(name, Access::Read, Caching::Buffered).ok()?;
    let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
    file.read_at(AT, &mut bytes).unwrap();
    Some(bytes)
}

/// What a file may hold after a crash now, over many seeds.
fn outcomes(storage: &FaultyStorage, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    let n = storage.operations();
    let crashed = (0..500).map(|seed| storage.crash(n, Crash::Seed(seed)));
    crashed.map(|storage| content(&storage, name)).collect()
}

/// A storage with a durable file `f` of `old`.
fn with_durable(old: &[u8]) -> (FaultyStorage, Arc<dyn File>) {
    let storage = FaultyStorage::new(1);
    let file = open(&storage, "f", Access::Create);
    file.write_at(AT, old).unwrap();
    file.sync().unwrap();
    storage.sync_dir().unwrap();
    (storage, file)
}

#[test]
fn synced_data_with_a_synced_name_survives_everything() {
    let (storage, _) = with_durable(b"kept");
    assert_eq!(outcomes(&storage, "f"), BTreeSet::from([Some(b"kept".to_vec())]));
    assert_eq!(content(&storage.crash(usize::MAX, Crash::LoseAll), "f").unwrap(), b"kept");
}

#[test]
fn a_write_that_was_not_synced_may_be_kept_lost_or_torn_by_sectors() {
    let (storage, file) = with_durable(&[1; 2048]);
    file.write_at(AT, &[2; 2048]).unwrap();
    let n = storage.operations();
    assert_eq!(content(&storage.crash(n, Crash::LoseAll), "f").unwrap(), [1; 2048]);
    assert_eq!(content(&storage.crash(n, Crash::KeepAll), "f").unwrap(), [2; 2048]);
    assert_eq!(content(&storage.crash(n - 1, Crash::KeepAll), "f").unwrap(), [1; 2048]);
    let outcomes = outcomes(&storage, "f");
    assert_eq!(outcomes.len(), 16, "every subset of four sectors, nothing else");
    for outcome in outcomes {
        let bytes = outcome.unwrap();
        assert_eq!(bytes.len(), 2048);
        assert!(bytes.chunks(512).all(|sector| sector == [1; 512] || sector == [2; 512]));
    }
}

#[test]
fn writes_are_lost_independently_which_is_reordering() {
    let (storage, file) = with_durable(&[0; 1024]);
    file.write_at(AT, &[1; 512]).unwrap();
    file.write_at(FileOffset::new(512), &[2; 512]).unwrap();
    let second_only = [[0; 512], [2; 512]].concat();
    assert!(outcomes(&storage, "f").contains(&Some(second_only)));
}

#[test]
fn a_length_may_be_kept_without_its_bytes_and_lost_with_them() {
    let (storage, file) = with_durable(b"");
    file.write_at(AT, &[7; 600]).unwrap();
    let outcomes: Vec<Vec<u8>> = outcomes(&storage, "f").into_iter().flatten().collect();
    let has = |test: fn(&[u8]) -> bool| outcomes.iter().any(|bytes| test(bytes));
    assert!(has(|bytes| bytes.is_empty()));
    assert!(has(|bytes| bytes == [7; 600]));
    assert!(has(|bytes| bytes == [0; 600]), "zeroes in the hole");
    assert!(has(|bytes| bytes.len() == 600 && !bytes.contains(&7)), "garbage in the hole");
    assert!(has(|bytes| bytes.len() < 600 && bytes.contains(&7)), "cut short");
}

#[test]
fn a_cut_may_come_undone() {
    let (storage, file) = with_durable(&[5; 100]);
    file.truncate(FileOffset::new(10)).unwrap();
    let expected = BTreeSet::from([Some(vec![5; 10]), Some(vec![5; 100])]);
    assert_eq!(outcomes(&storage, "f"), expected);
    file.sync().unwrap();
    assert_eq!(outcomes(&storage, "f"), BTreeSet::from([Some(vec![5; 10])]));
}

#[test]
fn a_name_is_lost_without_a_directory_sync_although_the_data_was_synced() {
    let storage = FaultyStorage::new(1);
    let file = open(&storage, "f", Access::Create);
    file.write_at(AT, b"data").unwrap();
    file.sync().unwrap();
    assert_eq!(outcomes(&storage, "f"), BTreeSet::from([None, Some(b"data".to_vec())]));
    storage.sync_dir().unwrap();
    storage.remove("f").unwrap();
    assert_eq!(outcomes(&storage, "f"), BTreeSet::from([None, Some(b"data".to_vec())]));
    storage.sync_dir().unwrap();
    assert_eq!(outcomes(&storage, "f"), BTreeSet::from([None]));
}

#[test]
fn a_rename_leaves_the_old_file_or_the_new_one() {
    let (storage, _) = with_durable(b"old");
    let new = open(&storage, "f.tmp", Access::Create);
    new.write_at(AT, b"new").unwrap();
    new.sync().unwrap();
    storage.rename("f.tmp", "f").unwrap();
    let expected = BTreeSet::from([Some(b"old".to_vec()), Some(b"new".to_vec())]);
    assert_eq!(outcomes(&storage, "f"), expected);
    storage.sync_dir().unwrap();
    assert_eq!(outcomes(&storage, "f"), BTreeSet::from([Some(b"new".to_vec())]));
}

#[test]
fn directories_share_the_log_and_the_poison() {
    let storage = FaultyStorage::new(1);
    let below = storage.directory("below").unwrap();
    let file = below.open("f", Access::Create, Caching::Buffered).unwrap();
    file.write_at(AT, b"x").unwrap();
    file.sync().unwrap();
    below.sync_dir().unwrap();
    let after = storage.crash(storage.operations(), Crash::LoseAll);
    assert_eq!(after.directory("below").unwrap().list().unwrap(), ["f"]);
    storage.inject(FaultRule::new(Operation::Sync, When::Nth(0), Fault::Io));
    file.sync().unwrap_err();
    assert!(matches!(storage.sync_dir(), Err(Error::Poisoned { .. })));
}

/// The kernel drops dirty pages after a failed sync, so a second sync guarantees nothing.
#[test]
fn after_a_failed_sync_data_is_read_but_not_promised() {
    let (storage, file) = with_durable(b"old");
    file.write_at(AT, b"new").unwrap();
    storage.inject(FaultRule::new(Operation::Sync, When::Nth(0), Fault::Io));
    file.sync().unwrap_err();
    assert_eq!(content(&storage, "f").unwrap(), b"new", "still in the cache");
    assert!(matches!(file.sync(), Err(Error::Poisoned { .. })));
    assert!(matches!(file.write_at(AT, b"x"), Err(Error::Poisoned { .. })));
    let reopened = storage.reopen();
    let file = open(&reopened, "f", Access::Write);
    file.sync().unwrap();
    let after = reopened.crash(reopened.operations(), Crash::LoseAll);
    assert_eq!(content(&after, "f").unwrap(), b"old", "the later sync promised nothing");
}

#[test]
fn a_full_disk_takes_a_part_and_recovers_with_space() {
    let (storage, file) = with_durable(&[1; 100]);
    storage.set_capacity(Some(150));
    let error = file.write_at(FileOffset::new(100), &[2; 100]).unwrap_err();
    assert!(error.is_disk_full());
    assert_eq!(file.size().unwrap(), 150, "a part went out");
    file.write_at(AT, &[3; 100]).unwrap();
    file.truncate(FileOffset::new(100)).unwrap();
    file.write_at(FileOffset::new(100), &[4; 50]).unwrap();
    storage.set_capacity(None);
    file.write_at(FileOffset::new(150), &[5; 1000]).unwrap();
    storage.inject(FaultRule::new(Operation::Write, When::Nth(1), Fault::NoSpace));
    file.write_at(AT, &[6; 1000]).unwrap();
    assert!(file.write_at(AT, &[7; 1000]).unwrap_err().is_disk_full());
    file.sync().unwrap();
}

#[test]
fn reads_may_be_short_interrupted_wrong_or_fail() {
    let (storage, file) = with_durable(&(0..=255).collect::<Vec<u8>>());
    let read = || {
        let mut bytes = [0; 256];
        file.read_at(AT, &mut bytes).map(|()| bytes.to_vec())
    };
    let good = read().unwrap();
    storage.inject(FaultRule::new(Operation::Read, When::OneIn(2), Fault::Short));
    storage.inject(FaultRule::new(Operation::Read, When::OneIn(3), Fault::Interrupted));
    for _ in 0..50 {
        assert_eq!(read().unwrap(), good);
    }
    storage.clear_faults();
    storage.inject(FaultRule::new(Operation::Read, When::Nth(1), Fault::BitFlip));
    assert_eq!(read().unwrap(), good);
    let bits: u32 = read().unwrap().iter().zip(&good).map(|(a, b)| (a ^ b).count_ones()).sum();
    assert_eq!(bits, 1);
    assert_eq!(read().unwrap(), good, "not at rest");
    let mut rule = FaultRule::new(Operation::Read, When::Nth(0), Fault::Io);
    rule.path_contains = "other".to_owned();
    storage.inject(rule.clone());
    assert!(read().is_ok(), "another file's fault");
    rule.path_contains = "/f".to_owned();
    storage.inject(rule);
    assert!(matches!(read(), Err(Error::Io { .. })));
}

#[test]
fn rot_is_there_for_readers_and_after_a_crash() {
    let (storage, _) = with_durable(b"\x00\x00");
    assert!(storage.flip_bit("f", FileOffset::new(1), 3));
    assert!(!storage.flip_bit("f", FileOffset::new(2), 0));
    assert!(!storage.flip_bit("g", AT, 0));
    let below = storage.directory("below").unwrap();
    below.open("g", Access::Create, Caching::Buffered).unwrap().write_at(AT, b"x").unwrap();
    assert!(storage.flip_bit("below/g", AT, 0));
    assert!(!storage.flip_bit("f/g", AT, 0));
    assert_eq!(content(&storage, "f").unwrap(), [0, 8]);
    assert_eq!(content(&storage.crash(usize::MAX, Crash::LoseAll), "f").unwrap(), [0, 8]);
}

#[test]
fn maps_and_locks_work_as_on_a_disk() {
    let (storage, file) = with_durable(b"sealed");
    let map = file.map(AT, 6).unwrap();
    assert!(matches!(file.truncate(AT), Err(Error::Mapped { .. })));
    assert!(matches!(file.write_at(AT, b"x"), Err(Error::Mapped { .. })));
    assert!(file.map(AT, 7).is_err());
    drop(map);
    file.write_at(AT, b"x").unwrap();
    let lock = storage.lock().unwrap();
    assert!(matches!(storage.lock(), Err(Error::Locked { .. })));
    drop(lock);
    storage.lock().unwrap();
}

#[test]
fn the_same_seed_leaves_the_same_bytes() {
    let (storage, file) = with_durable(b"");
    for n in 0..10 {
        file.write_at(FileOffset::new(n * 700), &[n.to_le_bytes()[0]; 900]).unwrap();
    }
    let n = storage.operations();
    for seed in 0..20 {
        let one = content(&storage.crash(n, Crash::Seed(seed)), "f");
        assert_eq!(one, content(&storage.crash(n, Crash::Seed(seed)), "f"));
    }
    assert!(outcomes(&storage, "f").len() > 400, "and seeds differ");
}

/// Matching calls wait at a closed gate, others pass, and all proceed once it is open.
#[test]
fn a_gate_holds_up_what_it_is_closed_for() {
    let storage = Arc::new(FaultyStorage::new(1));
    let file = storage.open("held", Access::Create, Caching::Buffered).unwrap();
    let other = storage.open("other", Access::Create, Caching::Buffered).unwrap();
    let gate = storage.hold(Operation::Sync, "held");
    assert!(!gate.wait_for_caller(std::time::Duration::ZERO), "nobody has called yet");
    let syncing = std::thread::spawn(move || file.sync());
    assert!(gate.wait_for_caller(std::time::Duration::from_secs(60)));
    other.sync().unwrap();
    let done = storage.operations();
    assert!(!syncing.is_finished());
    drop(gate);
    syncing.join().unwrap().unwrap();
    assert_eq!(storage.operations(), done + 1);
}

//! The log alone: what comes back, what a crash leaves, which damage is reported.

use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use varve_io::{FileOffset, Storage};
use varve_types::Txid;

use super::*;
use crate::embedded::entry::{EntryKind, Marks};
use crate::embedded::group::GroupFrame;
use crate::embedded::key::{Key, Part};

const CONFIG: LogConfig =
    LogConfig { store: StoreId([3; 16]), segment_size: 20_000, cache: 30_000 };

fn head(number: u8) -> EntryHead {
    let key = Key { txid: Txid::from_bytes([number; 32]), part: Part::RECORD };
    EntryHead { kind: EntryKind::State, marks: Marks::default(), key, before: None }
}

/// Entries, by their places and numbers.
type Found = Vec<(GlobalOffset, u8)>;

/// Opens and lists the entries of whole groups.
fn reopen(
    storage: &Arc<FaultyStorage>,
    from: GlobalOffset,
    durable: GlobalOffset,
) -> Result<(LogWriter, Arc<Log>, Found)> {
    reopen_with(CONFIG, storage, from, durable)
}

fn reopen_with(
    config: LogConfig,
    storage: &Arc<FaultyStorage>,
    from: GlobalOffset,
    durable: GlobalOffset,
) -> Result<(LogWriter, Arc<Log>, Found)> {
    let (mut whole, mut begun) = (Vec::new(), Vec::new());
    let mut visit = |frame: &GroupFrame<'_>| {
        for entry in frame.entries() {
            let (at, head, _) = entry?;
            begun.push((at, head.key.txid.as_bytes()[0]));
        }
        if !frame.head.more {
            whole.append(&mut begun);
        }
        Ok(())
    };
    let storage = Arc::clone(storage) as Arc<dyn Storage>;
    let (writer, log) = open(storage, config, 0, Replay { from, durable, visit: &mut visit })?;
    Ok((writer, log, whole))
}

fn fresh() -> (Arc<FaultyStorage>, LogWriter, Arc<Log>) {
    let storage = Arc::new(FaultyStorage::new(1));
    let (writer, log, _) = reopen(&storage, GlobalOffset::ZERO, GlobalOffset::ZERO).unwrap();
    (storage, writer, log)
}

fn write(writer: &mut LogWriter, numbers: &[u8]) -> Result<Vec<GlobalOffset>> {
    let mut group = writer.begin()?;
    let mut places = Vec::new();
    for number in numbers {
        let fill = |out: &mut Vec<u8>| out.resize(out.len() + usize::from(*number), *number);
        places.push(group.push(&head(*number), fill)?.0);
    }
    group.finish()?;
    Ok(places)
}

#[test]
fn entries_are_read_back_from_memory_and_from_files() {
    let (storage, mut writer, log) = fresh();
    let mut places = Vec::new();
    for group in 0..20_u8 {
        places.extend(write(&mut writer, &[group, group + 1, 200]).unwrap());
    }
    assert!(log.full_ends().len() > 5, "files are small");
    let check = |log: &Log| {
        for (index, at) in places.iter().enumerate() {
            let entry = log.entry(*at).unwrap();
            let group = u8::try_from(index / 3).unwrap();
            let number = [group, group + 1, 200][index % 3];
            assert_eq!(entry.head, head(number));
            assert_eq!(entry.payload(), vec![number; usize::from(number)]);
        }
    };
    check(&log);
    drop(writer);
    let (_, log, found) = reopen(&storage, GlobalOffset::ZERO, GlobalOffset::ZERO).unwrap();
    check(&log);
    let found: Vec<_> = found.into_iter().map(|(at, _)| at).collect();
    assert_eq!(found, places);
    assert!(log.entry(places[3].plus(1)).is_err(), "no entry begins there");
}

/// After a cut at every operation all groups that were finished are there, and perhaps the one
/// under way, whole.
#[test]
fn a_power_cut_leaves_whole_groups() {
    let (storage, mut writer, _) = fresh();
    let mut promises = vec![(0, 0)];
    let mut total = Vec::new();
    for group in 0..12_u8 {
        // Every fourth group is several frames, over several files.
        let count = if group % 4 == 3 { 120 } else { 1 + group % 4 };
        let numbers: Vec<u8> = (0..count).map(|n| 10 * group + n % 10).collect();
        write(&mut writer, &numbers).unwrap();
        total.extend(numbers);
        promises.push((storage.operations(), total.len()));
    }
    drop(writer);
    for operation in 0..=storage.operations() {
        let seeds = (0..6).map(|seed| Crash::Seed(seed + 100 * operation as u64));
        for crash in [Crash::LoseAll, Crash::KeepAll].into_iter().chain(seeds) {
            let left = Arc::new(storage.crash(operation, crash));
            let (mut writer, _, found) =
                reopen(&left, GlobalOffset::ZERO, GlobalOffset::ZERO).unwrap();
            let found: Vec<u8> = found.into_iter().map(|(_, number)| number).collect();
            assert!(total.starts_with(&found), "after {operation}, {crash:?}");
            assert!(promises.iter().any(|(_, count)| *count == found.len()), "whole groups");
            let promised = promises.iter().rfind(|(by, _)| *by <= operation).unwrap().1;
            assert!(found.len() >= promised, "after {operation}, {crash:?}");
            write(&mut writer, &[250]).unwrap();
            drop(writer);
            let left = Arc::new(left.crash(left.operations(), Crash::LoseAll));
            let (.., again) = reopen(&left, GlobalOffset::ZERO, GlobalOffset::ZERO).unwrap();
            assert_eq!(again.len(), found.len() + 1, "after {operation}, {crash:?}");
        }
    }
}

/// The first frame of a group was lost and the second was not. What a shorter group leaves of the
/// second must not be taken for a part of it: the position, the store and the group's number are
/// those of the lost one.
#[test]
fn what_is_left_of_a_torn_group_does_not_come_back() {
    const ZERO: GlobalOffset = GlobalOffset::ZERO;
    let config = LogConfig { segment_size: 64 << 20, ..CONFIG };
    let storage = Arc::new(FaultyStorage::new(1));
    let (mut writer, ..) = reopen_with(config, &storage, ZERO, ZERO).unwrap();
    write(&mut writer, &[1]).unwrap();
    let places = write(&mut writer, &[250; 14_000]).unwrap();
    drop(writer);
    let apart = places.windows(2).position(|pair| pair[1].since(pair[0]) != Some(64 + 250));
    let first_frame = apart.unwrap() + 1;
    // Its second block, behind the file's header and the group before.
    assert!(storage.flip_bit("log-000000000000", FileOffset::new(3 * 4096), 0));
    let (mut writer, _, found) = reopen_with(config, &storage, ZERO, ZERO).unwrap();
    assert_eq!(found.len(), 1);
    // As long as the lost frame: what was the second one follows it at once.
    write(&mut writer, &vec![250; first_frame]).unwrap();
    drop(writer);
    let (.., found) = reopen_with(config, &storage, ZERO, ZERO).unwrap();
    assert_eq!(found.len(), 1 + first_frame);
}

/// A process that died before its sync, or whose sync failed, may leave whole groups that only the
/// system's cache has. Once they were served they must not go.
#[test]
fn what_was_found_after_a_failed_sync_survives_a_power_cut() {
    let (storage, mut writer, _) = fresh();
    write(&mut writer, &[1]).unwrap();
    storage.inject(FaultRule::new(Operation::Sync, When::Nth(0), Fault::Io));
    write(&mut writer, &[2]).unwrap_err();
    drop(writer);
    let next = Arc::new(storage.reopen());
    let (_, _, found) = reopen(&next, GlobalOffset::ZERO, GlobalOffset::ZERO).unwrap();
    assert_eq!(found.len(), 2);
    let cut = Arc::new(next.crash(next.operations(), Crash::LoseAll));
    let (_, _, again) = reopen(&cut, GlobalOffset::ZERO, GlobalOffset::ZERO).unwrap();
    assert_eq!(again, found);
}

/// Every bit of every file, with a durable position known from outside.
#[test]
fn a_flipped_bit_is_an_error_or_changes_nothing() {
    let (storage, mut writer, _) = fresh();
    let mut places = Vec::new();
    for group in 0..9_u8 {
        places.extend(write(&mut writer, &[group, 40 + group]).unwrap());
    }
    let durable = writer.end();
    drop(writer);
    for name in storage.list().unwrap() {
        let file = storage.open(&name, varve_io::Access::Read, varve_io::Caching::Buffered);
        let size = file.unwrap().size().unwrap();
        for at in (0..size).filter(|at| at % 4096 < 300) {
            let left = Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
            assert!(left.flip_bit(&name, FileOffset::new(at), u8::try_from(at % 8).unwrap()));
            match reopen(&left, GlobalOffset::ZERO, durable) {
                // Behind the header of a file there are bytes without a meaning.
                Ok((.., found)) => assert!(found.len() == places.len() && (64..4096).contains(&at)),
                Err(error) => assert!(error.to_string().contains(&name), "{name} {at}: {error}"),
            }
            // Without that position only the last group may be taken for a torn one.
            if let Ok((.., found)) = reopen(&left, GlobalOffset::ZERO, GlobalOffset::ZERO) {
                let whole = found.len() == places.len() && (64..4096).contains(&at);
                assert!(whole || found.len() + 2 == places.len(), "{name} {at}: {found:?}");
            }
        }
    }
}

#[test]
fn a_group_that_fails_leaves_the_log_as_it_was() {
    let (storage, mut writer, log) = fresh();
    let first = write(&mut writer, &[1, 2]).unwrap();
    let end = writer.end();
    for capacity in [9_000, 12_000, 20_000, 25_000, 40_000] {
        storage.set_capacity(Some(capacity));
        let numbers: Vec<u8> = (0..200).map(|n| n % 100 + 100).collect();
        let error = write(&mut writer, &numbers).unwrap_err();
        assert!(error.is_disk_full(), "{error}");
        storage.set_capacity(None);
        assert_eq!(writer.end(), end);
    }
    let second = write(&mut writer, &[3]).unwrap();
    assert_eq!(second, [end.plus(40)]);
    for at in first.iter().chain(&second) {
        log.entry(*at).unwrap();
    }
    let (.., found) = reopen(&storage, GlobalOffset::ZERO, writer.end()).unwrap();
    assert_eq!(found.len(), 3);
}

#[test]
fn the_front_goes_and_positions_stay() {
    let (storage, mut writer, log) = fresh();
    let places: Vec<_> = (0..40).map(|n| write(&mut writer, &[n]).unwrap()[0]).collect();
    let full = log.full_ends();
    writer.prune(full[3]).unwrap();
    assert_eq!(log.start(), full[3]);
    assert!(log.entry(places[0]).is_err());
    log.entry(places[39]).unwrap();
    let durable = writer.end();
    drop(writer);
    assert!(reopen(&storage, GlobalOffset::ZERO, durable).is_err(), "the front is needed");
    let (_, log, found) = reopen(&storage, full[4], durable).unwrap();
    assert_eq!(log.start(), full[3]);
    assert!(found.iter().all(|(at, _)| *at > full[4]));
    log.entry(places[39]).unwrap();
}

/// The file is gone already: that is no reason to keep all behind it for ever.
#[test]
fn pruning_passes_over_a_file_that_is_gone() {
    let (storage, mut writer, log) = fresh();
    for group in 0..20_u8 {
        write(&mut writer, &[group, 200]).unwrap();
    }
    storage.remove(&file_name(0)).unwrap();
    let second = log.full_ends()[1];
    writer.prune(second).unwrap();
    assert_eq!(log.start(), second);
    assert!(!storage.list().unwrap().contains(&file_name(1)));
}

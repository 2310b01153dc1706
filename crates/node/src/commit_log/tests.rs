//! Commits, what is archived, flipped bits and power cuts.

use std::collections::BTreeSet;

use varve_blocks::{BlockNumber, Synced};
use varve_io::faulty::{Crash, FaultyStorage};

use varve_types::Height;

use super::commit::FIXED_LEN;
use super::*;
use crate::checked::{Checked, CheckedSpan};

fn commit(sequence: u64) -> Commit {
    let byte = u8::try_from(sequence).unwrap();
    let height = u32::from(byte);
    Commit {
        sequence: CommitSequence(sequence),
        tip: (Height::new(height), BlockHash::from_bytes([byte; 32])),
        number: BlockNumber::new(height + 1),
        fork: Height::new(height.saturating_sub(1)),
        synced: Synced { count: height + 2, position: GlobalOffset::new(sequence * 1000) },
        marks: vec![(mark(sequence), Some(Arc::from("bad-txns-ümlaut")))],
        checked: vec![span(height, height, Checked::Scripts)],
    }
}

fn mark(sequence: u64) -> BlockHash {
    BlockHash::from_bytes([u8::try_from(sequence).unwrap() ^ 0xff; 32])
}

fn span(first: u32, last: u32, checked: Checked) -> CheckedSpan {
    CheckedSpan { first: Height::new(first), last: Height::new(last), checked }
}

/// The last word on a block holds, and what was checked above a fork is void.
#[test]
fn marks_are_taken_back_and_spans_go_with_their_branch() {
    let storage = Arc::new(FaultyStorage::new(1));
    let store = StoreId([1; 16]);
    let (mut log, _) = CommitLog::open(storage.clone(), store).unwrap();
    (1..=6).for_each(|sequence| log.append(&commit(sequence)).unwrap());
    let mut back = commit(7);
    back.fork = Height::new(3);
    back.marks = vec![(mark(2), None), (mark(4), None), (mark(4), Some(Arc::from("again")))];
    back.checked = vec![span(5, 6, Checked::Assumed)];
    log.append(&back).unwrap();
    drop(log);
    let (_, history) = CommitLog::open(storage, store).unwrap();
    let marked: Vec<_> = [1, 2, 3, 4, 5, 6].map(|at| history.marks.get(&mark(at))).into();
    assert!(marked[1].is_none() && marked[3].is_some_and(|reason| &**reason == "again"));
    assert_eq!(marked.iter().flatten().count(), 5);
    let found: Vec<_> = (1..=7).map(|height| history.checked.at(Height::new(height))).collect();
    use Checked::{Assumed, Scripts, Spends};
    assert_eq!(found, [Scripts, Scripts, Scripts, Spends, Assumed, Assumed, Spends]);
}

#[test]
fn a_commit_survives_its_bytes_and_every_cut_is_seen() {
    let bytes = commit(7).encode();
    assert_eq!(Commit::decode(&bytes), Ok(commit(7)));
    assert_eq!(bytes.len(), FIXED_LEN + 34 + "bad-txns-ümlaut".len() + 9);
    for end in 0..bytes.len() {
        assert!(Commit::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
    assert!(Commit::decode(&[bytes, vec![0]].concat()).is_err());
}

#[test]
fn what_is_archived_survives_its_bytes_and_every_cut_is_seen() {
    let except = [0, 5, u32::MAX - 1].map(BlockNumber::new).into();
    let archived = Archived { below: 6, except };
    let bytes = archived.encode();
    assert_eq!(Archived::decode(&bytes), Some((archived.clone(), &[][..])));
    for end in 0..bytes.len() {
        assert_eq!(Archived::decode(&bytes[..end]), None, "cut at {end}");
    }
    let longer = [bytes.as_slice(), &[1, 2]].concat();
    assert_eq!(Archived::decode(&longer), Some((archived, &[1, 2][..])));
    assert!(Checkpoint::decode(&[&[0; 8], longer.as_slice()].concat()).is_none());
}

#[test]
fn long_reasons_are_cut_between_letters() {
    let reason: String = "ü".repeat(300);
    let mut long = commit(1);
    long.marks = vec![(BlockHash::ZERO, Some(Arc::from(reason.as_str())))];
    let found = Commit::decode(&long.encode()).unwrap();
    assert_eq!(found.marks[0].1.as_deref(), Some(&reason[..512]));
}

/// Every bit of every frame, with and without a checkpoint: all commits are there, or it is an
/// error that names the file. Only the last one may be lost, and only without a checkpoint.
/// Salvaging gives the commits before the damage.
#[test]
fn a_flipped_bit_loses_no_acknowledged_commit() {
    let store = StoreId([1; 16]);
    for with_checkpoint in [false, true] {
        let storage = Arc::new(FaultyStorage::new(1));
        let (mut log, _) = CommitLog::open(storage.clone(), store).unwrap();
        (1..=4).for_each(|sequence| log.append(&commit(sequence)).unwrap());
        if with_checkpoint {
            log.checkpoint(&Archived { below: 3, except: BTreeSet::new() }).unwrap();
        }
        drop(log);
        let name = "commits-000000000000";
        let file = storage.open(name, varve_io::Access::Read, varve_io::Caching::Buffered);
        let (mut refused, size) = (0, file.unwrap().size().unwrap());
        for at in 0..size {
            let copy = || {
                let copy = storage.crash(storage.operations(), Crash::KeepAll);
                assert!(copy.flip_bit(name, FileOffset::new(at), 3));
                Arc::new(copy)
            };
            match CommitLog::open(copy(), store) {
                Ok((_, history)) => {
                    let found = history.last.unwrap().sequence.0;
                    assert!(found >= if with_checkpoint { 4 } else { 3 }, "byte {at}");
                }
                Err(error) => {
                    assert!(error.to_string().contains(name), "byte {at}: {error}");
                    refused += 1;
                }
            }
            match CommitLog::salvage(copy(), store) {
                Ok((_, history)) => {
                    assert!(history.last.is_none_or(|last| last.sequence.0 < 5))
                }
                Err(error) => assert!(at < 64, "byte {at}: {error}"),
            }
        }
        assert!(refused * 2 > size, "{refused} of {size}");
    }
}

#[test]
fn every_power_cut_leaves_what_was_acknowledged() {
    let storage = Arc::new(FaultyStorage::new(1));
    let store = StoreId([1; 16]);
    let (mut log, history) = CommitLog::open(storage.clone(), store).unwrap();
    assert_eq!(history.last, None);
    let except = [2, 7].map(BlockNumber::new).into();
    let archived = Archived { below: 9, except };
    assert!(archived.has(BlockNumber::new(8)) && !archived.has(BlockNumber::new(9)));
    assert!(!archived.has(BlockNumber::new(7)));
    let mut acknowledged = vec![(0, 0)];
    for sequence in 1..=5 {
        log.append(&commit(sequence)).unwrap();
        acknowledged.push((storage.operations(), sequence));
        if sequence == 3 {
            log.checkpoint(&archived).unwrap();
        }
    }
    for n in 0..=storage.operations() {
        let least = acknowledged.iter().rev().find(|(at, _)| *at <= n).unwrap().1;
        for crash in Crash::ways(10) {
            let (_, history) = CommitLog::open(Arc::new(storage.crash(n, crash)), store).unwrap();
            let found = history.last.map_or(0, |commit| commit.sequence.0);
            assert!(found >= least, "{found} < {least} after {n}, {crash:?}");
            assert_eq!(history.marks.len() as u64, found);
            assert!([&archived, &Archived::default()].contains(&&history.archived));
            assert!(found < 5 || history.archived == archived);
        }
    }
}

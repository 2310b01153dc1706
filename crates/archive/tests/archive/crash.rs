//! Power cuts at every write, and a disk that fills up.

use std::sync::Arc;

use varve_archive::contract::random::Dice;
use varve_archive::{
    ArchiveConfig, ArchiveError, BlockNumber, Chain, HeaderLink, Indexes, MmapTables, Snapshot,
    View,
};
use varve_io::Storage;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_types::pushdata::PushdataRule;
use varve_types::{Block, Network};

use crate::back_ends::{MmapDisk, SMALL};
use crate::random::block_on;
use crate::rig::{ALL, Rig, check};

/// A chain with branches, saved after every fifth block. Returns the operations that each saved
/// state had taken, with its number of blocks.
fn work(storage: &Arc<FaultyStorage>) -> (Rig<MmapDisk>, Vec<(usize, u64)>) {
    let disk = MmapDisk(Arc::clone(storage) as Arc<dyn Storage>);
    let mut rig = Rig::new(Network::Regtest, disk);
    let mut saved = vec![(0, 0)];
    let mut dice = Dice(5);
    rig.add(&Network::Regtest.genesis_block());
    for number in 0..22 {
        let last = u32::try_from(rig.model.blocks.len()).unwrap();
        let parent = (last - 1 - dice.roll(last.min(3))) as usize;
        let bytes = block_on(&rig.model, parent, &mut dice, number);
        let hash = Block::parse(&bytes, Network::Regtest.format()).unwrap().hash();
        if !rig.model.knows(&hash) {
            rig.add(&bytes);
        }
        if number % 5 == 4 {
            let blocks = rig.model.blocks.len() as u64;
            rig.archive().checkpoint(blocks).unwrap();
            saved.push((storage.operations(), blocks));
        }
    }
    (rig, saved)
}

/// The archive as a reader opens it, if it is at rest.
fn at_rest(storage: &Arc<FaultyStorage>) -> Option<(Snapshot<MmapTables>, u64)> {
    let config = ArchiveConfig { network: Network::Regtest, indexes: ALL };
    let storage: Arc<dyn Storage> = storage.clone();
    // A crash may leave a head without its file, which the writer makes.
    Snapshot::at_rest(&storage, SMALL, config).ok().flatten()
}

/// Archives again what the checkpoint does not have, and compares everything.
fn replay(rig: &mut Rig<MmapDisk>) {
    let from = usize::try_from(rig.archive().sequence()).unwrap();
    for index in from..rig.model.blocks.len() {
        let bytes = rig.model.blocks[index].bytes.clone();
        rig.store(&bytes, BlockNumber::new(u32::try_from(index).unwrap()));
    }
    rig.follow();
    rig.check();
}

#[test]
fn a_power_cut_at_every_operation_leaves_a_checkpoint() {
    let storage = Arc::new(FaultyStorage::new(1));
    let (rig, saved) = work(&storage);
    let operations = storage.operations();
    assert!(operations > 100);
    for operation in 0..=operations {
        let known = saved.iter().filter(|(at, _)| *at <= operation).max().unwrap().1;
        for crash in Crash::ways(2) {
            let left = Arc::new(storage.crash(operation, crash));
            let rest = at_rest(&left);
            let disk = MmapDisk(left as Arc<dyn Storage>);
            let (model, blocks) = (rig.model.clone(), rig.blocks.clone());
            let mut after = Rig { disk, archive: None, blocks, model };
            after.reopen();
            let found = after.archive().sequence();
            assert!(saved.iter().any(|(_, blocks)| *blocks == found), "{operation} {crash:?}");
            assert!(found >= known, "after {operation}, {crash:?}: {found}, {known} was saved");
            if let Some((snapshot, sequence)) = rest {
                let top = |now: &Snapshot<_>| now.top(Chain::Confirmed);
                let now = (found, after.archive().now().bounds(), top(after.archive().now()));
                assert_eq!((sequence, snapshot.bounds(), top(&snapshot)), now);
            }
            replay(&mut after);
        }
    }
}

/// After its writer has rested the archive is read as it was left, by files that nobody changes.
/// With rows that no saved head knows it is not at rest.
#[test]
fn an_archive_at_rest_gives_the_same_answers() {
    let storage = Arc::new(FaultyStorage::new(1));
    let (mut rig, _) = work(&storage);
    rig.make_filters();
    rig.archive().checkpoint(7).unwrap();
    assert!(at_rest(&storage).is_none(), "rows are not linked, or not saved");
    rig.archive().rest(8).unwrap();
    let now = rig.archive().snapshot();
    drop(rig.archive.take());
    let before = storage.operations();
    let (snapshot, sequence) = at_rest(&storage).unwrap();
    assert_eq!((sequence, snapshot.bounds()), (8, now.bounds()));
    check(&View::new(snapshot.clone(), &rig.blocks), &rig.model);
    for row in 0..now.bounds().headers {
        let link = HeaderLink::new(row);
        assert_eq!(snapshot.block_state(link), now.block_state(link));
        assert_eq!(snapshot.filter(link).unwrap(), now.filter(link).unwrap());
    }
    assert_eq!(storage.operations(), before, "nothing is changed");
    let storage: Arc<dyn Storage> = storage;
    for pushdata in [None, Some(PushdataRule::Conduit)] {
        let indexes = Indexes { pushdata, filters: true };
        let config = ArchiveConfig { network: Network::Regtest, indexes };
        let other = Snapshot::at_rest(&storage, SMALL, config).unwrap();
        assert!(other.is_none(), "a table to drop, or to make by another rule");
    }
}

#[test]
fn a_full_disk_loses_nothing_and_clears() {
    let storage = Arc::new(FaultyStorage::new(1));
    let (mut rig, _) = work(&storage);
    let mut dice = Dice(9);
    let mut refused = 0;
    for number in 100..140 {
        storage.set_capacity(Some(if number % 4 == 0 { 0 } else { u64::MAX }));
        let last = rig.model.blocks.len() - 1;
        let bytes = block_on(&rig.model, last, &mut dice, number);
        rig.add(&bytes);
        let blocks = rig.model.blocks.len() as u64;
        if let Err(error) = rig.archive().checkpoint(blocks) {
            let ArchiveError::Backend(error) = error else { panic!("{error}") };
            assert!(error.is_full(), "{error}");
            refused += 1;
            rig.check();
            storage.set_capacity(None);
            rig.archive().checkpoint(blocks).unwrap();
        }
    }
    assert!(refused > 3);
    rig.check();
    rig.reopen();
    replay(&mut rig);
}

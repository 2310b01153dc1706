//! Search tables beside the others: one that is lost, added, dropped or damaged, and what a crash
//! would lose.

use std::sync::Arc;

use varve_archive::contract::Disk;
use varve_archive::contract::random::Dice;
use varve_archive::search::SearchOptions;
use varve_archive::{
    Archive, ArchiveConfig, ArchiveError, BlockNumber, Indexes, MmapBackend, MmapConfig,
    SEARCH_TABLES, View,
};
use varve_io::faulty::FaultyStorage;
use varve_io::{FileOffset, Storage};
use varve_types::pushdata::PushdataRule;
use varve_types::{Block, Network};

use crate::back_ends::{MmapDisk, SMALL};
use crate::random::block_on;
use crate::rig::{Rig, THREADS, check};

/// Blocks with branches, enough that most are settled.
fn chain(blocks: u32) -> (Arc<FaultyStorage>, Rig<MmapDisk>) {
    let storage = Arc::new(FaultyStorage::new(1));
    let disk = MmapDisk(Arc::clone(&storage) as Arc<dyn Storage>);
    let mut rig = Rig::new(Network::Regtest, disk);
    fill(&mut rig, blocks);
    (storage, rig)
}

fn fill<D: Disk>(rig: &mut Rig<D>, blocks: u32) {
    let mut dice = Dice(8);
    rig.add(&Network::Regtest.genesis_block());
    for number in 0..blocks {
        let last = u32::try_from(rig.model.blocks.len()).unwrap();
        let parent = (last - 1 - dice.roll(last.min(2))) as usize;
        let bytes = block_on(&rig.model, parent, &mut dice, number);
        let hash = Block::parse(&bytes, Network::Regtest.format()).unwrap().hash();
        if !rig.model.knows(&hash) {
            rig.add(&bytes);
        }
        if number % 7 == 6 {
            rig.archive().checkpoint(u64::from(number)).unwrap();
        }
    }
}

fn remove_all(storage: &Arc<FaultyStorage>, folder: &str) -> usize {
    let folder = storage.directory(folder).unwrap();
    let files = folder.list().unwrap();
    files.iter().for_each(|file| folder.remove(file).unwrap());
    files.len()
}

/// Each table by itself is made again from the blocks while the others stay as they are.
#[test]
fn a_table_that_is_lost_is_made_again() {
    let (storage, mut rig) = chain(60);
    rig.archive().rest(1).unwrap();
    for name in SEARCH_TABLES {
        drop(rig.archive.take());
        assert!(remove_all(&storage, name) > 1, "{name} has runs");
        let config = ArchiveConfig { network: Network::Regtest, indexes: crate::rig::ALL };
        let storage: Arc<dyn Storage> = storage.clone();
        let mut archive =
            Archive::open(MmapBackend::open(storage, SMALL).unwrap(), config).unwrap();
        let mut reported = Vec::new();
        archive
            .catch_up(&rig.blocks, THREADS, &mut |done, all| reported.push((done, all)))
            .unwrap();
        let all = rig.model.blocks.len() as u64;
        assert_eq!(
            (reported.first(), reported.last()),
            (Some(&(1, all)), Some(&(all, all))),
            "{name}"
        );
        rig.archive = Some(archive);
        rig.check();
        rig.archive().rest(2).unwrap();
    }
}

#[test]
fn pushdata_is_dropped_and_added_later_and_by_another_rule() {
    let (storage, mut rig) = chain(40);
    rig.archive().rest(1).unwrap();
    drop(rig.archive.take());
    let none = Indexes { pushdata: None, filters: true };
    let conduit = Indexes { pushdata: Some(PushdataRule::Conduit), filters: true };
    let shared: Arc<dyn Storage> = storage.clone();
    let open = |indexes| {
        let config = ArchiveConfig { network: Network::Regtest, indexes };
        let files = MmapConfig { indexes, ..SMALL };
        Archive::open(MmapBackend::open(Arc::clone(&shared), files).unwrap(), config).unwrap()
    };
    let mut archive = open(none);
    archive.catch_up(&rig.blocks, THREADS, &mut |_, _| panic!("the others lack nothing")).unwrap();
    assert!(storage.directory("pushdata").unwrap().list().unwrap().is_empty());
    check(&View::new(archive.snapshot(), &rig.blocks), &rig.model);
    archive.rest(2).unwrap();
    drop(archive);
    rig.reopen();
    rig.check();
    rig.archive().rest(3).unwrap();
    drop(rig.archive.take());
    // The rule is part of the table: under another one its rows are made again, also when a crash
    // comes before that is saved.
    for saved in [false, true] {
        let mut archive = open(conduit);
        let mut made = 0;
        archive.catch_up(&rig.blocks, THREADS, &mut |done, _| made = done).unwrap();
        assert_eq!(made, rig.model.blocks.len() as u64);
        check(&View::new(archive.snapshot(), &rig.blocks), &rig.model);
        if saved {
            archive.rest(4).unwrap();
        }
    }
    let archive = open(conduit);
    check(&View::new(archive.snapshot(), &rig.blocks), &rig.model);
    drop(archive);
    rig.reopen();
    rig.check();
}

/// Blocks whose rows are in memory alone are needed until the archive rests; a crash reads them.
#[test]
fn blocks_are_needed_until_their_rows_are_saved() {
    let (_, mut rig) = chain(60);
    let last = u32::try_from(rig.model.blocks.len() - 1).unwrap();
    let needed = rig.archive().needed_from().unwrap().unwrap();
    assert!(needed > BlockNumber::ZERO, "old rows are in runs");
    assert!(needed < BlockNumber::new(last - 3), "young ones are not");
    for number in 0..needed.get() {
        rig.blocks.prune(BlockNumber::new(number));
    }
    rig.reopen();
    let pruned = rig.blocks.clone();
    rig.blocks.prune(needed);
    drop(rig.archive.take());
    let config = ArchiveConfig { network: Network::Regtest, indexes: crate::rig::ALL };
    let mut archive =
        Archive::open(varve_archive::contract::Disk::open(&rig.disk), config).unwrap();
    let lost = archive.catch_up(&rig.blocks, THREADS, &mut |_, _| {}).unwrap_err();
    assert!(matches!(lost, ArchiveError::Pruned { .. }), "{lost}");
    drop(archive);
    rig.blocks = pruned;
    rig.reopen();
    rig.archive().rest(9).unwrap();
    assert_eq!(rig.archive().needed_from().unwrap(), None);
    rig.blocks.prune(needed);
    rig.reopen();
    assert_eq!(rig.archive().needed_from().unwrap(), None, "nothing was read again");
}

/// Every eighth byte of every run, one at a time: an error of verification, not a wrong answer.
#[test]
fn a_flipped_bit_is_found() {
    let (storage, mut rig) = chain(30);
    rig.archive().rest(1).unwrap();
    drop(rig.archive.take());
    for name in SEARCH_TABLES {
        let folder = storage.directory(name).unwrap();
        for file in folder.list().unwrap() {
            let size = folder.open(&file, varve_io::Access::Read, varve_io::Caching::Buffered);
            let size = size.unwrap().size().unwrap();
            for at in (0..size).step_by(997) {
                let path = format!("{name}/{file}");
                assert!(storage.flip_bit(&path, FileOffset::new(at), 3), "{path} {at}");
                let shared: Arc<dyn Storage> = storage.clone();
                let found = MmapBackend::open(shared, SMALL)
                    .and_then(|backend| varve_archive::Backend::verify(&backend));
                assert!(found.is_err(), "{path} at {at}");
                assert!(storage.flip_bit(&path, FileOffset::new(at), 3));
            }
        }
    }
    rig.reopen();
    rig.check();
}

/// Merges too rarely to keep runs few.
struct Wide(Arc<FaultyStorage>);

impl Disk for Wide {
    type Backend = MmapBackend;

    fn open(&self) -> MmapBackend {
        let search = SearchOptions { fan_in: 64, ..SMALL.search };
        MmapBackend::open(self.0.clone(), MmapConfig { search, ..SMALL }).unwrap()
    }
}

/// When a sync has caught up, the runs of the confirmed chain are merged into one; those of stale
/// branches stay until there are as many as the fan-in.
#[test]
fn tidying_merges_the_runs_of_each_table() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut rig = Rig::new(Network::Regtest, Wide(storage.clone()));
    fill(&mut rig, 120);
    let runs = |name: &str| {
        let files = storage.directory(name).unwrap().list().unwrap();
        files.iter().filter(|file| file.ends_with(".run")).count()
    };
    rig.archive().rest(1).unwrap();
    let before: usize = SEARCH_TABLES.into_iter().map(runs).sum();
    rig.reopen();
    while rig.archive().tidy().unwrap() {}
    rig.check();
    rig.archive().rest(2).unwrap();
    let after: usize = SEARCH_TABLES.into_iter().map(runs).sum();
    assert!(after + 30 < before, "{before} runs, then {after}");
    rig.reopen();
    rig.check();
}

//! Replay after a crash takes spent coins from the undo records that survived it.

use std::sync::Arc;

use varve_consensus::BlockAt;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Access, Caching, FileOffset, Storage as _};
use varve_types::{Block, Height, Network};
use varve_utxo::{Database, Error, Options};

use crate::twin::{Chance, KEY, Twin, oracle_state, state};

const PAGE: u64 = 4096;
const BASE: usize = 30;
const BLOCKS: usize = 8;

/// A set imported as one run, and blocks above it that spend coins of the run.
fn twin() -> Twin {
    let mut twin = Twin::imported(4, Options::new(Network::Regtest, KEY), BASE);
    let mut chance = Chance(4);
    (0..BLOCKS).for_each(|_| twin.append_draft(&mut chance).unwrap());
    twin
}

/// What a crash leaves of the set, with a flipped bit in every leaf of its run.
fn without_leaves(twin: &Twin, crash: Crash) -> Arc<FaultyStorage> {
    let left = twin.storage.crash(twin.storage.operations(), crash);
    let names = left.list().unwrap();
    let runs: Vec<&String> = names.iter().filter(|name| name.ends_with(".run")).collect();
    let [run] = runs[..] else { panic!("one run: {names:?}") };
    let file = left.open(run, Access::Read, Caching::Buffered).unwrap();
    // A page each in front for the header, and behind for directory, filter and footer.
    let pages = file.size().unwrap() / PAGE;
    for page in 1..pages - 3 {
        assert!(left.flip_bit(run, FileOffset::new(page * PAGE + 2), 1));
    }
    Arc::new(left)
}

fn replay(twin: &Twin, storage: Arc<FaultyStorage>) -> Result<Database, Error> {
    let mut database = Database::open(storage, twin.options)?;
    assert_eq!(database.tip().unwrap().0.to_u32() as usize, BASE, "nothing but the import");
    for (height, (bytes, _)) in (0..).zip(&twin.chain).skip(BASE + 1) {
        let block = Block::parse(bytes, Network::Regtest.format()).unwrap();
        database.append(&BlockAt::new(Height::new(height), &block))?;
    }
    Ok(database)
}

#[test]
fn what_survived_is_not_looked_up() {
    let twin = twin();
    // No leaf can be read, and the blocks are connected all the same.
    let database = replay(&twin, without_leaves(&twin, Crash::KeepAll)).unwrap();
    assert_eq!(database.tip(), twin.database.as_ref().unwrap().tip());
    // Without the records the coins are looked up in the run.
    let error = replay(&twin, without_leaves(&twin, Crash::LoseAll)).unwrap_err();
    assert!(error.to_string().contains(".run"), "{error}");
}

/// Whatever survived, the replay leads to the same coins, and so does the way back.
#[test]
fn every_crash_replays_to_the_same_coins() {
    let twin = twin();
    for operation in 0..=twin.storage.operations() {
        for crash in [Crash::KeepAll, Crash::LoseAll, Crash::Seed(operation as u64)] {
            let left = Arc::new(twin.storage.crash(operation, crash));
            let database = Database::open(left.clone(), twin.options).unwrap();
            let imported = database.tip().is_some();
            drop(database);
            if imported {
                let mut database = replay(&twin, left).unwrap();
                assert_eq!(state(&database.snapshot()), oracle_state(&twin.oracle));
                let base = Height::new(u32::try_from(BASE).unwrap());
                database.rewind_to(base).unwrap();
                let expected = twin.history.values().nth(1).unwrap();
                assert_eq!(state(&database.snapshot()), **expected);
            }
        }
    }
}

/// The owner takes another way than before the crash: what survived is of no use, and does no harm.
#[test]
fn another_way_after_the_crash() {
    for seed in 0..12 {
        let mut twin = twin();
        let left = twin.storage.crash(twin.storage.operations(), Crash::KeepAll);
        let mut chance = Chance(seed);
        // The same first blocks, then others.
        for _ in 0..chance.below(BLOCKS) {
            twin.rewind().unwrap();
        }
        (0..3).for_each(|_| twin.append_draft(&mut chance).unwrap());
        twin.history.retain(|sequence, _| sequence.to_u32() as usize <= BASE + 1);
        twin.reopen(Some(left));
        (0..4).for_each(|_| twin.rewind_with_archive().unwrap());
        twin.check();
    }
}

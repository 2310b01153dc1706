//! A flipped bit is an error that names the file and the place, and nothing is served from it.

use std::sync::Arc;

use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Access, Caching, FileOffset, Storage as _};
use varve_testdata::Random;
use varve_types::Height;
use varve_utxo::{Database, Error, Options, UndoConfig};

use crate::twin::{State, Twin, small, state};

/// Many segments for few blocks.
const UNDO: UndoConfig = UndoConfig { blocks: 4_096, segment_size: 1 << 12, cache: 0 };

/// A set of runs, a window file and a manifest, and its coins.
fn grown() -> (FaultyStorage, State) {
    let mut twin = Twin::new(3, small());
    let mut chance = Random::new(3);
    for _ in 0..40 {
        twin.append_draft(&mut chance).unwrap();
    }
    twin.database().flush().unwrap();
    let coins = state(&twin.database().snapshot());
    (twin.storage.reopen(), coins)
}

/// Opens the set and reads all coins.
fn read_all(storage: &Arc<FaultyStorage>) -> Result<State, Error> {
    let database = Database::open(storage.clone(), small())?;
    let mut coins = State::new();
    let version = database.snapshot();
    let mut walk = version.coins()?;
    while let Some((outpoint, coin)) = walk.next_coin()? {
        coins.insert(outpoint, coin.into());
    }
    let keys: Vec<_> = coins.keys().copied().collect();
    let found = version.get(&keys)?;
    assert!(found.iter().all(|coin| coin.is_some()));
    Ok(coins)
}

/// The message names the file, and a byte of the page or record that the flipped one is in.
fn names_place(message: &str, name: &str, (at, within): (u64, u64)) {
    assert!(message.contains(name), "{name} at {at}: {message}");
    let byte = message.split_once(" at byte ").map(|(_, rest)| rest);
    let digits = byte.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let named: Option<u64> = digits.and_then(|digits| digits.parse().ok());
    let is_near = |named: u64| named <= at + within && at <= named + within;
    assert!(named.is_some_and(is_near), "{name} at {at}: {message}");
}

/// Undo records are read when blocks are disconnected: everything disconnected before the damage is
/// right, and nothing is disconnected after it.
#[test]
fn a_flipped_bit_in_the_undo_log_names_the_place() {
    let mut twin = Twin::new(3, Options { undo: UNDO, ..small() });
    let mut chance = Random::new(3);
    (0..40).for_each(|_| twin.append_draft(&mut chance).unwrap());
    twin.database().flush().unwrap();
    twin.database = None;
    let sound = twin.storage.reopen();
    let names: Vec<String> =
        sound.list().unwrap().into_iter().filter(|name| name.starts_with("undo")).collect();
    assert!(names.len() > 2, "{names:?}");
    let mut errors = 0;
    for name in &names {
        let size = sound.open(name, Access::Read, Caching::Buffered).unwrap().size().unwrap();
        for at in (0..size).step_by(usize::try_from(size / 11 + 1).unwrap()) {
            let damaged = Arc::new(sound.crash(sound.operations(), Crash::KeepAll));
            assert!(damaged.flip_bit(name, FileOffset::new(at), 5));
            let rewound = || -> Result<(), Error> {
                let mut database = Database::open(damaged.clone(), twin.options)?;
                while database.tip().is_some_and(|(height, _)| height > Height::GENESIS) {
                    database.rewind()?;
                    let (height, _) = database.tip().unwrap();
                    let steps = twin.history.values().nth(height.to_u32() as usize + 1);
                    assert_eq!(state(&database.snapshot()), **steps.unwrap(), "{name} at {at}");
                }
                Ok(())
            };
            if let Err(error) = rewound() {
                errors += 1;
                // The largest record has a few scripts of 3,000 bytes.
                names_place(&error.to_string(), name, (at, 1 << 14));
            }
        }
    }
    assert!(errors > 20, "{errors}");
}

/// With a source of spent coins, a damaged record is treated as missing: the block is disconnected
/// with the source, and so are those below it. No wrong coin is served.
#[test]
fn a_damaged_undo_record_is_replaced_by_the_source() {
    let mut twin = Twin::new(3, Options { undo: UNDO, ..small() });
    let mut chance = Random::new(3);
    (0..40).for_each(|_| twin.append_draft(&mut chance).unwrap());
    twin.database().flush().unwrap();
    twin.database = None;
    let sound = twin.storage.reopen();
    let names = sound.list().unwrap();
    let (mut errors, mut tries) = (0, 0);
    for name in names.iter().filter(|name| name.starts_with("undo")) {
        let size = sound.open(name, Access::Read, Caching::Buffered).unwrap().size().unwrap();
        for at in (100..size).step_by(usize::try_from(size / 5 + 1).unwrap()) {
            let damaged = sound.crash(sound.operations(), Crash::KeepAll);
            assert!(damaged.flip_bit(name, FileOffset::new(at), 5));
            let damaged = Arc::new(damaged);
            tries += 1;
            {
                let mut alone = Database::open(damaged.clone(), twin.options).unwrap();
                errors += usize::from(alone.rewind_to(Height::GENESIS).is_err());
            }
            let mut database = Database::open(damaged, twin.options).unwrap();
            while database.tip().is_some_and(|(height, _)| height > Height::GENESIS) {
                database.rewind_with(&twin.archive).unwrap();
                let (height, _) = database.tip().unwrap();
                let steps = twin.history.values().nth(height.to_u32() as usize + 1);
                assert_eq!(state(&database.snapshot()), **steps.unwrap(), "{name} at {at}");
            }
        }
    }
    assert!(errors > tries / 2, "without a source {errors} of {tries} are errors");
}

#[test]
fn a_flipped_bit_names_the_file() {
    let (sound, coins) = grown();
    let names = sound.list().unwrap();
    let is_kind = |kind: &str| names.iter().any(|name| name.ends_with(kind));
    assert!(is_kind(".run") && is_kind(".window") && is_kind("manifest"), "{names:?}");
    let mut errors = 0;
    for name in names.iter().filter(|name| !name.starts_with("undo") && *name != "lock") {
        let file = sound.open(name, Access::Read, Caching::Buffered).unwrap();
        let size = file.size().unwrap();
        for at in (0..size).step_by(usize::try_from(size / 23 + 1).unwrap()) {
            let damaged = Arc::new(sound.crash(sound.operations(), Crash::KeepAll));
            assert!(damaged.flip_bit(name, FileOffset::new(at), 3));
            match read_all(&damaged) {
                Ok(found) => assert_eq!(found, coins, "{name} at {at}: not read, so not wrong"),
                Err(error) => {
                    errors += 1;
                    names_place(&error.to_string(), name, (at, 4_096));
                }
            }
        }
    }
    assert!(errors > 60, "{errors}");
}

#[test]
fn a_lost_manifest_is_not_an_empty_set() {
    let (storage, _) = grown();
    storage.remove("manifest").unwrap();
    let storage = Arc::new(storage);
    let error = Database::open(storage.clone(), small()).unwrap_err();
    assert!(matches!(error, Error::NoManifest { .. }), "{error}");
    assert!(storage.list().unwrap().iter().any(|name| name.ends_with(".run")), "nothing is swept");
}

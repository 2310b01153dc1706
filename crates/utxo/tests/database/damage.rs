//! A flipped bit is an error that names the file, and nothing is served from it.

use std::sync::Arc;

use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Access, Caching, FileOffset, Storage as _};
use varve_utxo::{Database, Error};

use crate::twin::{Chance, State, Twin, small, state};

/// A set of runs, a window file and a manifest, and its coins.
fn grown() -> (FaultyStorage, State) {
    let mut twin = Twin::new(3, small());
    let mut chance = Chance(3);
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
                    assert!(error.to_string().contains(name), "{name} at {at}: {error}");
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

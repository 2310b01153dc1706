//! Importing a snapshot into a set that was made durable while it was empty.

use std::sync::Arc;

use varve_io::faulty::{Crash, FaultyStorage};
use varve_testdata::Random;
use varve_types::Height;
use varve_utxo::{Database, Error, Options};

use crate::twin::{State, Twin, small, state, threaded};

/// A snapshot file, the height of its base block and its coins.
fn exported() -> (Vec<u8>, Height, State) {
    let mut twin = Twin::new(5, small());
    let mut chance = Random::new(5);
    (0..20).for_each(|_| twin.append_draft(&mut chance).unwrap());
    let (network, version) = (twin.options.network, twin.database().snapshot());
    let mut file = Vec::new();
    version.export(network, &mut file, &mut |_, _| {}).unwrap();
    (file, version.tip().unwrap().0, state(&version))
}

type Before = fn(&mut Database) -> Result<(), Error>;

/// What an owner may have done to an empty set.
const BEFORE: [Before; 3] = [
    |set| set.flush().map(drop),
    Database::begin_flush,
    |set| {
        set.flush()?;
        set.begin_flush()?;
        // A second one waits until the first is done.
        set.begin_flush()
    },
];

/// The imported coins are there at once, after closing, and after a power cut at every operation
/// since the import returned.
fn import_after(options: Options, before: Before) {
    let (file, height, coins) = exported();
    let storage = Arc::new(FaultyStorage::new(1));
    let mut database = Database::open(storage.clone(), options).unwrap();
    before(&mut database).unwrap();
    let tip = database.import(&file[..], height, &mut |_, _| {}).unwrap();
    let imported = storage.operations();
    assert_eq!(state(&database.snapshot()), coins);
    assert_eq!(database.checkpoint().tip, Some(tip));
    // A checkpoint that was asked for before the import is of the imported set, if it is made.
    database.begin_flush().unwrap();
    database.flush().unwrap();
    assert_eq!(database.tip(), Some(tip));
    drop(database);
    for operation in imported..=storage.operations() {
        for crash in [Crash::LoseAll, Crash::KeepAll, Crash::Seed(operation as u64)] {
            let left = Arc::new(storage.crash(operation, crash));
            let database = Database::open(left, options)
                .unwrap_or_else(|error| panic!("after {operation}, {crash:?}: {error}"));
            assert_eq!(database.tip(), Some(tip), "after {operation}, {crash:?}");
            assert_eq!(state(&database.snapshot()), coins);
        }
    }
}

#[test]
fn an_import_after_a_flush_is_whole_and_durable() {
    for before in BEFORE {
        import_after(small(), before);
    }
}

#[test]
fn an_import_beside_a_checkpoint_under_way_is_whole_and_durable() {
    for _ in 0..20 {
        for before in BEFORE {
            import_after(threaded(), before);
        }
    }
}

//! The window saved and loaded, and files that must be refused.

use std::sync::Arc;
use varve_testdata::Random;

use varve_io::FileOffset;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_types::Outpoint;

use super::*;
use crate::window::tests::model::{Model, outpoint};
use crate::window::{Lookup, WindowVersion};

const ID: FileId = FileId([5; 16]);
const ONE: NonZeroUsize = NonZeroUsize::MIN;

fn hasher() -> OutpointHasher {
    OutpointHasher::new(&[7; 16])
}

/// A window of several panes with spent coins, deletes and coins that came back.
fn model() -> Model {
    let config = WindowConfig { shards: 4, pane_steps: 5 };
    let mut model = Model::new(config);
    let mut random = Random::new(1);
    for block in 0..14 {
        let mut spent: Vec<Outpoint> = model.set.keys().copied().collect();
        spent.retain(|_| random.one_in(5));
        let created: Vec<Outpoint> = (block * 300..block * 300 + 300).map(outpoint).collect();
        model.connect(&spent, &created).unwrap();
        if block == 7 {
            model.flush = model.window.begin_flush();
            model.flush_ready = model.flush.is_some();
        }
        if block == 11 {
            (0..2).for_each(|_| model.disconnect());
        }
    }
    model
}

fn sorted(version: &WindowVersion) -> Vec<Entry<'_>> {
    let mut entries: Vec<_> = version.entries().collect();
    entries.sort_unstable_by_key(|entry| (entry.key(), entry.coin.is_some()));
    entries
}

#[test]
fn a_loaded_window_goes_on_like_the_saved_one() {
    let mut model = model();
    assert!(model.window.version().entries().any(|entry| entry.coin.is_none()), "with deletes");
    let before = model.moment();
    let storage = FaultyStorage::new(0);
    let saved = model.window.save(&storage, "window", ID).unwrap();
    for shards in [4, 1, 16] {
        let config = WindowConfig { shards, pane_steps: 5 };
        let loaded = Window::load(&storage, &saved, config, hasher(), ONE).unwrap();
        assert_eq!(sorted(loaded.version()), sorted(&before.window));
        for (mine, theirs) in loaded.panes().zip(model.window.panes()) {
            let plain =
                |info: crate::pane::PaneInfo| (info.first, info.last, info.height, info.steps);
            assert_eq!((plain(mine), mine.living), (plain(theirs), theirs.living));
        }
    }
    let config = WindowConfig { shards: 4, pane_steps: 5 };
    model.window = Window::load(&storage, &saved, config, hasher(), ONE).unwrap();
    model.moment().check((0..4300).step_by(3).map(outpoint));
    (0..9).for_each(|_| model.disconnect());
    let spent: Vec<Outpoint> = model.set.keys().copied().step_by(2).collect();
    model.flush = model.window.begin_flush();
    model.flush_ready = true;
    model.connect(&spent, &[]).unwrap();
    model.moment().check((0..4300).step_by(3).map(outpoint));
}

/// Regression: all batches of a loaded pane belong to the same step. A table that grew between two
/// of them kept only entries from before that step, and the coins of the earlier batches were not
/// found.
#[test]
fn coins_are_found_whichever_batch_of_a_pane_they_were_loaded_with() {
    let model = model();
    let storage = FaultyStorage::new(0);
    let saved = model.window.save(&storage, "window", ID).unwrap();
    let keys: Vec<Outpoint> = (0..4300).map(outpoint).collect();
    let births = |window: &Window| -> Vec<Option<Sequence>> {
        let mut found = Vec::new();
        window.version().lookup(&keys, &mut found);
        let birth = |found| match found {
            Lookup::Found(coin) => Some(coin.birth),
            Lookup::Deleted(_) | Lookup::Unknown => None,
        };
        found.into_iter().map(birth).collect()
    };
    let expected = births(&model.window);
    assert!(expected.iter().flatten().count() > 1000);
    for shards in [1, 2, 16] {
        let config = WindowConfig { shards, pane_steps: 5 };
        let loaded = Window::load(&storage, &saved, config, hasher(), ONE).unwrap();
        let oldest = loaded.panes().next().unwrap();
        assert!(oldest.memory > 2 * BATCH, "there is more than one batch in a pane");
        assert_eq!(births(&loaded), expected, "{shards} shards");
    }
}

#[test]
fn an_empty_window_is_saved_as_well() {
    let storage = FaultyStorage::new(0);
    let window = Window::new(WindowConfig::default(), hasher(), Sequence::new(9));
    let saved = window.save(&storage, "window", ID).unwrap();
    let config = WindowConfig::default();
    let loaded = Window::load(&storage, &saved, config, hasher(), ONE).unwrap();
    assert_eq!(loaded.version().sequence(), Sequence::new(9));
    assert_eq!(loaded.version().entries().count(), 0);
    assert_eq!(loaded.panes().count(), 1);
}

/// A flipped bit, wherever it is, is an error that names the file, never a wrong window.
#[test]
fn damage_is_an_error_that_names_the_file() {
    let model = model();
    let storage = FaultyStorage::new(0);
    let saved = model.window.save(&storage, "window", ID).unwrap();
    let load = |storage: &FaultyStorage, saved: &WindowFile| {
        Window::load(storage, saved, WindowConfig::default(), hasher(), ONE).map(|_| ())
    };
    let mut random = Random::new(2);
    for _ in 0..100 {
        let at = FileOffset::new(random.bits() % (saved.pages * 4096));
        let bit = u8::try_from(random.index(8)).unwrap();
        assert!(storage.flip_bit("window", at, bit));
        let error = load(&storage, &saved).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("window"), "{error}");
        assert!(storage.flip_bit("window", at, bit));
    }
    load(&storage, &saved).unwrap();
    let other = WindowFile { id: FileId([6; 16]), ..saved.clone() };
    assert!(load(&storage, &other).is_err(), "another file");
    let longer = WindowFile { pages: saved.pages + 1, ..saved.clone() };
    assert!(load(&storage, &longer).is_err());
    let missing = WindowFile { name: "elsewhere".to_owned(), ..saved };
    assert!(load(&storage, &missing).is_err());
}

/// Pages with valid checksums and invalid content are refused too, without a panic.
#[test]
fn senseless_streams_are_refused() {
    let write = |stream: &[u8]| {
        let storage = FaultyStorage::new(0);
        let mut writer = PageFileWriter::create(&storage, "window", KIND, ID).unwrap();
        writer.push(stream).unwrap();
        let pages = writer.finish().unwrap().pages();
        let saved = WindowFile { name: "window".to_owned(), id: ID, pages };
        Window::load(&storage, &saved, WindowConfig::default(), hasher(), ONE).map(|_| ())
    };
    let numbers = |numbers: &[u32]| -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    };
    let pane = |entries: u32| [5, 1, 1, 5, 0, 5, entries, 0];
    assert!(write(&numbers(&pane(0))).is_ok());
    assert!(write(&numbers(&[5, u32::MAX])).is_err(), "panes without end");
    assert!(write(&numbers(&pane(7))).is_err(), "a chunk of nothing");
    assert!(write(&[numbers(&pane(7)), numbers(&[u32::MAX, 7])].concat()).is_err(), "too long");
    assert!(write(&[numbers(&pane(7)), numbers(&[50, u32::MAX])].concat()).is_err(), "too many");
    assert!(write(&[numbers(&pane(1)), numbers(&[37, 2]), add()].concat()).is_err());
    let twice = [numbers(&pane(2)), numbers(&[74, 2]), add(), add()].concat();
    assert!(write(&twice).is_err(), "the same coin twice");
    assert!(write(&[numbers(&pane(1)), numbers(&[37, 1]), add()].concat()).is_ok());
}

/// The shortest add: vout 0, height 0, birth 0, nothing for anyone.
fn add() -> Vec<u8> {
    [&[0; 32][..], &[1, 0, 0, 0, 6]].concat()
}

/// What was synced is there after a crash; a file that was not finished does not verify.
#[test]
fn a_crash_leaves_all_or_an_error() {
    let model = model();
    let storage = FaultyStorage::new(0);
    let saved = model.window.save(&storage, "window", ID).unwrap();
    storage.sync_dir().unwrap();
    let expected = sorted(model.window.version());
    for n in 0..=storage.operations() {
        for seed in 0..4 {
            let after = Arc::new(storage.crash(n, Crash::Seed(seed)));
            let config = WindowConfig::default();
            let loaded = Window::load(after.as_ref(), &saved, config, hasher(), ONE);
            match loaded {
                Ok(window) => assert_eq!(sorted(window.version()), expected),
                Err(_) => assert!(n < storage.operations(), "it was synced"),
            }
        }
    }
}

//! Round trips, damage, and the sweep.

use proptest::prelude::*;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Access, Caching, Envelope, FileOffset, replace};
use varve_runs::MANIFEST_FILE;

use super::*;
use crate::fixture::{KEY, span};

fn info(number: u64, first: u32, last: u32) -> RunInfo {
    let number = RunNumber(number);
    RunInfo { number, span: span(first, last), adds: 9, deletes: 2, pages: 5, digest: 0xabcd }
}

fn manifest() -> Manifest {
    let mut manifest = Manifest::new(KEY, Network::Signet, Parameters::default());
    manifest.checkpoint = Checkpoint {
        sequence: Sequence::new(600),
        tip: Some((Height::new(590), BlockHash::from_bytes([7; 32]))),
    };
    manifest.runs = vec![info(4, 513, 600), info(3, 257, 512), info(1, 1, 256)];
    manifest.window = Some(SavedWindow { number: RunNumber(5), pages: 3 });
    // Durable up to 9, the tip's record at 4, a mark at height 64.
    manifest.undo = UndoCheckpoint::decode(&mut Reader::new(&[9, 5, 1, 64, 4])).unwrap();
    manifest.next_run = RunNumber(6);
    manifest
}

#[test]
fn round_trips_through_the_disk() {
    let storage = FaultyStorage::new(1);
    assert_eq!(Manifest::load(&storage, Network::Signet).unwrap(), None);
    let empty = Manifest::new(KEY, Network::Signet, Parameters::default());
    for manifest in [empty, manifest()] {
        manifest.store(&storage).unwrap();
        let found = Manifest::load(&storage, Network::Signet).unwrap();
        assert_eq!(found, Some(manifest));
    }
}

#[test]
fn another_network_or_version_is_refused_with_a_sentence() {
    let storage = FaultyStorage::new(1);
    manifest().store(&storage).unwrap();
    let error = Manifest::load(&storage, Network::Mainnet).unwrap_err().to_string();
    assert!(error.contains("signet, not of mainnet; open another directory"), "{error}");

    let payload = manifest().encode();
    let older = Envelope { version: 1, payload: payload.as_slice() };
    replace(&storage, MANIFEST_FILE, FORMAT.0, &older).unwrap();
    let error = Manifest::load(&storage, Network::Signet).unwrap_err().to_string();
    assert!(error.contains("format version 1, this program reads 2"), "{error}");

    let foreign = Envelope { version: 2, payload: payload.as_slice() };
    replace(&storage, MANIFEST_FILE, Kind(*b"ANOTHER\0"), &foreign).unwrap();
    let error = Manifest::load(&storage, Network::Signet).unwrap_err().to_string();
    assert!(error.contains("another kind of data"), "{error}");
}

#[test]
fn every_flipped_bit_is_an_error_that_names_the_file() {
    let storage = FaultyStorage::new(1);
    manifest().store(&storage).unwrap();
    let file = storage.open(MANIFEST_FILE, Access::Read, Caching::Buffered).unwrap();
    for byte in 0..file.size().unwrap() {
        for bit in [0, 7] {
            assert!(storage.flip_bit(MANIFEST_FILE, FileOffset::new(byte), bit));
            let error = Manifest::load(&storage, Network::Signet).unwrap_err().to_string();
            assert!(error.contains(MANIFEST_FILE), "byte {byte}: {error}");
            assert!(storage.flip_bit(MANIFEST_FILE, FileOffset::new(byte), bit));
        }
    }
    assert!(Manifest::load(&storage, Network::Signet).is_ok());
}

#[test]
fn runs_out_of_order_are_damage() {
    let swapped = |change: fn(&mut Manifest)| {
        let mut manifest = manifest();
        change(&mut manifest);
        Manifest::decode(&manifest.encode())
    };
    assert!(swapped(|_| {}).is_ok());
    assert!(swapped(|manifest| manifest.runs.swap(0, 1)).is_err());
    assert!(swapped(|manifest| manifest.runs[1].span.first = Sequence::new(256)).is_err());
    assert!(swapped(|manifest| manifest.next_run = RunNumber(5)).is_err());
}

#[test]
fn the_sweep_takes_what_no_one_names_and_nothing_else() {
    let storage = FaultyStorage::new(1);
    let windows = ["0000000005.window", "0000000006.window", "0000000009.window"];
    let runs = [1, 2, 4, 7, 8].map(|number| RunNumber(number).file_name());
    for name in runs.iter().map(String::as_str).chain(windows).chain(["undo.00001", "manifest"]) {
        storage.open(name, Access::Create, Caching::Buffered).unwrap();
    }
    storage.sync_dir().unwrap();
    let kept = Kept { numbers: vec![RunNumber(7)], from: RunNumber(8) };
    assert_eq!(manifest().sweep(&storage, &kept).unwrap(), 2);
    assert_eq!(manifest().sweep(&storage, &kept).unwrap(), 0);
    let named = ["0000000001.run", "0000000004.run", "0000000005.window"];
    let others = ["0000000007.run", "0000000008.run", "0000000009.window"];
    let left = [&named[..], &others, &["manifest", "undo.00001"]].concat();
    assert_eq!(storage.list().unwrap(), left);
    let crashed = storage.crash(storage.operations(), Crash::LoseAll);
    assert_eq!(crashed.list().unwrap(), left, "what is swept does not come back");
    assert_eq!(manifest().sweep(&storage, &Kept::NOTHING).unwrap(), 3);
    assert_eq!(storage.list().unwrap(), [&named[..], &["manifest", "undo.00001"]].concat());
}

proptest! {
    #[test]
    fn hostile_payloads_never_panic(
        garbage in prop::collection::vec(any::<u8>(), 0..300),
        at in 0_usize..250,
    ) {
        let _ = Manifest::decode(&garbage);
        let mut payload = manifest().encode();
        for (place, byte) in payload.iter_mut().skip(at).zip(&garbage) {
            *place = *byte;
        }
        let _ = Manifest::decode(&payload);
    }
}

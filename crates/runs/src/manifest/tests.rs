//! Round trips, damage, and the sweep.

use proptest::prelude::*;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Access, Caching};

use super::*;
use crate::fixture::{KEY, span};

const FORMAT: (Kind, u32) = (Kind(*b"TINYMAN\0"), 3);

fn info(number: u64, first: u32, last: u32) -> RunInfo {
    let number = RunNumber(number);
    RunInfo { number, span: span(first, last), adds: 9, deletes: 2, pages: 5, digest: 0xabcd }
}

fn manifest() -> Manifest {
    let runs = vec![info(4, 513, 600), info(3, 257, 512), info(1, 1, 256)];
    Manifest { key: KEY, next: RunNumber(6), runs, owner: b"heights and the like".to_vec() }
}

fn load_from(storage: &FaultyStorage) -> Result<Option<Manifest>, RunError> {
    Manifest::load(storage, FORMAT, Ok)
}

#[test]
fn round_trips_through_the_disk() {
    let storage = FaultyStorage::new(1);
    assert_eq!(load_from(&storage).unwrap(), None);
    let empty = Manifest { key: KEY, next: RunNumber(1), runs: Vec::new(), owner: Vec::new() };
    for manifest in [empty, manifest()] {
        manifest.store(&storage, FORMAT).unwrap();
        assert_eq!(load_from(&storage).unwrap(), Some(manifest));
    }
}

#[test]
fn another_version_or_kind_and_what_the_owner_refuses_name_the_file() {
    let storage = FaultyStorage::new(1);
    manifest().store(&storage, FORMAT).unwrap();
    let refuse = |_| Err::<(), _>(FormatError::Damaged { at: 7, what: "the owner dislikes it" });
    let error = Manifest::load(&storage, FORMAT, refuse).unwrap_err().to_string();
    assert!(error.contains("the owner dislikes it") && error.contains(MANIFEST_FILE), "{error}");
    manifest().store(&storage, (FORMAT.0, 2)).unwrap();
    let error = load_from(&storage).unwrap_err().to_string();
    assert!(error.contains("format version 2, this program reads 3"), "{error}");
    manifest().store(&storage, (Kind(*b"ANOTHER\0"), 3)).unwrap();
    let error = load_from(&storage).unwrap_err().to_string();
    assert!(error.contains("another kind of data"), "{error}");
}

#[test]
fn every_flipped_bit_is_an_error_that_names_the_file() {
    let storage = FaultyStorage::new(1);
    manifest().store(&storage, FORMAT).unwrap();
    let file = storage.open(MANIFEST_FILE, Access::Read, Caching::Buffered).unwrap();
    for byte in 0..file.size().unwrap() {
        assert!(storage.flip_bit(MANIFEST_FILE, FileOffset::new(byte), (byte % 8) as u8));
        let error = load_from(&storage).unwrap_err().to_string();
        assert!(error.contains(MANIFEST_FILE), "byte {byte}: {error}");
        assert!(storage.flip_bit(MANIFEST_FILE, FileOffset::new(byte), (byte % 8) as u8));
    }
    assert!(load_from(&storage).is_ok());
}

#[test]
fn runs_out_of_order_are_damage() {
    let changed = |change: fn(&mut Manifest)| {
        let mut manifest = manifest();
        change(&mut manifest);
        Manifest::decode(&manifest.encode())
    };
    assert!(changed(|_| {}).is_ok());
    assert!(changed(|manifest| manifest.runs.swap(0, 1)).is_err());
    assert!(changed(|manifest| manifest.runs[1].span.first = Sequence::new(256)).is_err());
    assert!(changed(|manifest| manifest.next = RunNumber(4)).is_err());
}

#[test]
fn the_sweep_takes_what_no_one_names_and_nothing_else() {
    let storage = FaultyStorage::new(1);
    let runs = [1, 2, 4, 7, 8].map(|number| RunNumber(number).file_name());
    let own = [5, 6, 9].map(|number| RunNumber(number).name("own"));
    let others = ["0000000002.other", "2.run", "manifest"].map(str::to_owned);
    for name in runs.iter().chain(&own).chain(&others) {
        storage.open(name, Access::Create, Caching::Buffered).unwrap();
    }
    storage.sync_dir().unwrap();
    let kept = Kept { numbers: vec![RunNumber(5), RunNumber(7)], from: RunNumber(8) };
    assert_eq!(manifest().sweep(&storage, &kept, &["own"]).unwrap(), 2);
    assert_eq!(manifest().sweep(&storage, &kept, &["own"]).unwrap(), 0);
    let left = [
        "0000000001.run",
        "0000000002.other",
        "0000000004.run",
        "0000000005.own",
        "0000000007.run",
        "0000000008.run",
        "0000000009.own",
        "2.run",
        "manifest",
    ];
    assert_eq!(storage.list().unwrap(), left);
    let crashed = storage.crash(storage.operations(), Crash::LoseAll);
    assert_eq!(crashed.list().unwrap(), left, "what is swept does not come back");
    assert_eq!(manifest().sweep(&storage, &Kept::NOTHING, &[]).unwrap(), 2);
    assert!(storage.list().unwrap().contains(&"0000000009.own".to_owned()), "not the owner's now");
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

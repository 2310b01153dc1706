//! A bit is flipped in every byte of every kind of file, one at a time. A reader gets an error that
//! names the file, or the right bytes when the flipped one does not matter, and never wrong ones.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;

use varve_io::faulty::FaultyStorage;
use varve_io::{
    Access, Caching, Envelope, Error, FileId, FileOffset, GlobalOffset, Kind, LogCheckpoint,
    MappedLog, MappedLogConfig, PageFile, PageFileWriter, PageNumber, Result, Segments,
    SegmentsConfig, Storage, StoreId, load, replace,
};

const KIND: Kind = Kind(*b"TESTKIND");
const STORE: StoreId = StoreId([5; 16]);

/// Reads everything back.
type Read<'a> = dyn Fn(Arc<FaultyStorage>) -> Result<Vec<Vec<u8>>> + 'a;

/// Flips a bit in every byte of every file and asks `read`. Returns how many flips were errors.
fn flip_everywhere(storage: &FaultyStorage, read: &Read<'_>) -> (usize, usize) {
    let good = read(Arc::new(storage.reopen())).unwrap();
    let (mut noticed, mut harmless) = (0, 0);
    for name in storage.list().unwrap() {
        let size = storage.open(&name, Access::Read, Caching::Buffered).unwrap().size().unwrap();
        for at in 0..size {
            let bit = (at % 8) as u8;
            assert!(storage.flip_bit(&name, FileOffset::new(at), bit));
            match read(Arc::new(storage.reopen())) {
                Ok(found) => {
                    assert_eq!(found, good, "wrong bytes served: {name} byte {at}");
                    harmless += 1;
                }
                Err(error) => {
                    check_names(&error, &name, at);
                    noticed += 1;
                }
            }
            assert!(storage.flip_bit(&name, FileOffset::new(at), bit));
        }
    }
    (noticed, harmless)
}

fn check_names(error: &Error, name: &str, at: u64) {
    match error {
        Error::Corrupt { path, offset, .. } => {
            assert!(path.ends_with(name), "{error} instead of {name} at {at}");
            let distance = offset.get().abs_diff(at);
            assert!(distance < 4096, "{error}: the flipped byte is {at}");
        }
        Error::WrongVersion { path, .. } => assert!(path.ends_with(name), "{error}"),
        other => panic!("{name} at {at}: {other:?}"),
    }
}

fn segments_config() -> SegmentsConfig {
    SegmentsConfig { prefix: "log".to_owned(), kind: KIND, store: STORE, segment_size: 300 }
}

fn segments_storage() -> (Arc<FaultyStorage>, GlobalOffset) {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut log = Segments::open(storage.clone(), segments_config(), GlobalOffset::ZERO).unwrap();
    for n in 0..6 {
        log.append(&[&[n; 70]]).unwrap();
    }
    let durable = log.sync().unwrap();
    (storage, durable)
}

fn read_segments(storage: Arc<FaultyStorage>, durable: GlobalOffset) -> Result<Vec<Vec<u8>>> {
    let log = Segments::open(storage, segments_config(), durable)?;
    log.reader().frames(log.start()).map(|frame| Ok(frame?.to_vec())).collect()
}

#[test]
fn every_byte_of_a_durable_segment_counts() {
    let (storage, durable) = segments_storage();
    let (noticed, harmless) = flip_everywhere(&storage, &|s| read_segments(s, durable));
    assert_eq!((noticed, harmless), (6 * 86 + 3 * 64, 0));
}

#[test]
fn rot_in_what_nobody_promised_cuts_the_tail_and_serves_nothing_wrong() {
    let (storage, durable) = segments_storage();
    let good = read_segments(storage.clone(), durable).unwrap();
    let promised = GlobalOffset::new(4 * 86);
    let name = "log-000000000002";
    let size = storage.open(name, Access::Read, Caching::Buffered).unwrap().size().unwrap();
    for at in 0..size {
        let (storage, _) = segments_storage();
        assert!(storage.flip_bit(name, FileOffset::new(at), 1));
        let found = read_segments(storage, promised).unwrap();
        assert!(found.len() >= 4 && found.len() < 6, "byte {at}: {} frames", found.len());
        assert_eq!(found, good[..found.len()]);
    }
}

#[test]
fn every_byte_of_a_page_file_counts() {
    let storage = FaultyStorage::new(1);
    let id = FileId([8; 16]);
    let mut writer = PageFileWriter::create(&storage, "pages", KIND, id).unwrap();
    for n in 1..4 {
        writer.push(&[n; 3000]).unwrap();
    }
    writer.finish().unwrap();
    let (noticed, harmless) = flip_everywhere(&storage, &|storage| {
        let file = PageFile::open(storage.as_ref(), "pages", (KIND, id), 4)?;
        (0..4).map(|n| file.resident(PageNumber(n)).map(<[u8]>::to_vec)).collect()
    });
    assert_eq!((noticed, harmless), (4 * 4096, 0));
}

#[test]
fn every_byte_of_an_envelope_counts() {
    let storage = FaultyStorage::new(1);
    replace(&storage, "manifest", KIND, &Envelope { version: 1, payload: &[7; 100] }).unwrap();
    let (noticed, harmless) = flip_everywhere(&storage, &|storage| {
        Ok(load(storage.as_ref(), "manifest", KIND)?.into_iter().map(|e| e.payload).collect())
    });
    assert_eq!((noticed, harmless), (140, 0));
}

#[test]
fn every_byte_of_a_mapped_log_counts() {
    let storage = Arc::new(FaultyStorage::new(1));
    let config =
        || MappedLogConfig { prefix: "rows".to_owned(), kind: KIND, store: STORE, capacity: 6000 };
    let mut log = MappedLog::open(storage.clone(), config(), LogCheckpoint::NEW).unwrap();
    let places: Vec<_> = (0..5).map(|n| log.append(&[n; 3000]).unwrap()).collect();
    let checkpoint = log.sync().unwrap();
    drop(log);
    let (noticed, harmless) = flip_everywhere(&storage, &|storage| {
        let log = MappedLog::open(storage, config(), checkpoint)?;
        let snapshot = log.reader().snapshot();
        places.iter().map(|at| snapshot.get(*at, 3000).map(<[u8]>::to_vec)).collect()
    });
    let sealed = 64 + 6000 + 3 * 4;
    assert_eq!((noticed, harmless), (2 * sealed + 64 + 3000, 0));
}

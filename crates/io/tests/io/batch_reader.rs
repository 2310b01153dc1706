//! One suite over both ways of reading, and a differential test between them.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use varve_io::faulty::{Fault, FaultRule, FaultyStorage, Operation, When};
use varve_io::{
    Access, AlignedBuffer, BatchReader, Caching, Disk, Error, File, FileOffset, Method,
    ReadRequest, Storage,
};

const METHODS: [Method; 2] = [Method::Ring, Method::Pread];
/// Not a multiple of anything, so that direct reads meet an unaligned end.
const LEN: usize = 300_001;

fn pattern(file: usize) -> Vec<u8> {
    (0..LEN).map(|n| u8::try_from((n * 7 + n / 256 * 13 + file * 101) % 256).unwrap()).collect()
}

/// Three files, on a disk directly, on a disk through the cache, and in memory.
fn files() -> (tempfile::TempDir, Vec<Arc<dyn File>>) {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path()).unwrap();
    let memory = FaultyStorage::new(1);
    let places: [(&dyn Storage, Caching); 3] =
        [(&disk, Caching::Direct), (&disk, Caching::Buffered), (&memory, Caching::Buffered)];
    let files = (0..).zip(places).map(|(n, (storage, caching))| {
        let file = storage.open(&format!("f{n}"), Access::Create, caching).unwrap();
        file.write_at(FileOffset::ZERO, &pattern(n)).unwrap();
        file.sync().unwrap();
        file
    });
    let files = files.collect();
    (dir, files)
}

fn request(file: &Arc<dyn File>, offset: u64, len: usize) -> ReadRequest {
    let buffer = AlignedBuffer::zeroed(len);
    ReadRequest { tag: 0, file: Arc::clone(file), offset: FileOffset::new(offset), buffer }
}

#[test]
fn the_kernel_here_has_a_ring() {
    // The other tests would pass without one, by comparing `pread` with itself.
    let allowed = fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    if allowed.is_ok_and(|value| value.trim() == "0") {
        assert_eq!(BatchReader::new(8).method(), Method::Ring);
    }
    assert_eq!(BatchReader::with_method(Method::Pread, 8).method(), Method::Pread);
}

#[test]
fn a_batch_over_many_files_comes_back_whole_whatever_the_depth() {
    let (_dir, files) = files();
    for (method, depth) in METHODS.into_iter().flat_map(|m| [(m, 1), (m, 7), (m, 256)]) {
        let mut reader = BatchReader::with_method(method, depth);
        let places = (0..400_usize).map(|n| (n % 3, n * 700, 1 + n % 4 * 4096));
        let places: Vec<_> = places.filter(|(_, at, len)| at + len <= LEN).collect();
        let requests =
            places.iter().map(|(file, at, len)| request(&files[*file], *at as u64, *len));
        let results = reader.read_all(requests.collect());
        assert_eq!(results.len(), places.len());
        for ((file, at, len), result) in places.into_iter().zip(results) {
            assert_eq!(result.unwrap()[..], pattern(file)[at..at + len], "{method:?} {depth}");
        }
        assert_eq!(reader.pending(), 0);
    }
}

#[test]
fn aligned_pages_of_a_direct_file_are_right() {
    let (_dir, files) = files();
    for method in METHODS {
        let mut reader = BatchReader::with_method(method, 16);
        let requests = (0..70).map(|page| request(&files[0], page * 4096, 4096)).collect();
        for (page, result) in reader.read_all(requests).into_iter().enumerate() {
            assert_eq!(result.unwrap()[..], pattern(0)[page * 4096..(page + 1) * 4096]);
        }
    }
}

#[test]
fn the_end_of_a_file_fails_that_read_alone_and_names_it() {
    let (_dir, files) = files();
    for (method, file) in METHODS.into_iter().flat_map(|m| files.iter().map(move |f| (m, f))) {
        let mut reader = BatchReader::with_method(method, 8);
        let aligned = 73 * 4096;
        let requests = vec![
            request(file, 0, 4096),
            request(file, aligned, 4096),
            request(file, LEN as u64 - 10, 11),
            request(file, 1 << 40, 1),
            request(file, 0, 0),
            request(file, 4096, 4096),
        ];
        let results = reader.read_all(requests);
        let ok: Vec<bool> = results.iter().map(Result::is_ok).collect();
        assert_eq!(ok, [true, false, false, false, true, true], "{method:?}");
        let Err(Error::UnexpectedEnd { path, len, wanted }) = &results[1] else {
            panic!("{:?}", results[1])
        };
        assert_eq!(path, file.path());
        assert_eq!((len.get(), wanted.get()), (LEN as u64, aligned + 4096), "{method:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_of_that_read() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    let disk = Disk::open(dir.path()).unwrap();
    let folder = disk.open("folder", Access::Read, Caching::Buffered).unwrap();
    for method in METHODS {
        let mut reader = BatchReader::with_method(method, 8);
        let result = reader.read_all(vec![request(&folder, 0, 100)]).remove(0);
        assert!(matches!(result, Err(Error::Io { action: "read", .. })), "{method:?} {result:?}");
    }
    let memory = FaultyStorage::new(1);
    let file = memory.open("f", Access::Create, Caching::Buffered).unwrap();
    file.write_at(FileOffset::ZERO, &[1; 100]).unwrap();
    memory.inject(FaultRule::new(Operation::Read, When::Nth(1), Fault::Io));
    let requests = (0..3).map(|_| request(&file, 0, 100)).collect();
    let results = BatchReader::new(8).read_all(requests);
    let ok: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, false, true]);
}

#[test]
fn dropping_a_reader_with_reads_under_way_is_harmless() {
    let (_dir, files) = files();
    for round in 0..50 {
        let mut reader = BatchReader::new(64);
        reader.submit((0..200).map(|n| request(&files[n % 2], n as u64 * 1000, 4096)));
        for _ in 0..round % 5 {
            reader.next().unwrap().result.unwrap();
        }
    }
    for file in files {
        file.truncate(FileOffset::ZERO).unwrap();
    }
}

#[test]
fn completions_are_taken_as_they_come_and_more_can_be_submitted() {
    let (_dir, files) = files();
    for method in METHODS {
        let mut reader = BatchReader::with_method(method, 4);
        assert!(reader.next().is_none() && reader.try_next().is_none());
        let (mut submitted, mut finished) = (0, 0);
        while finished < 300 {
            if submitted < 300 {
                let mut next = request(&files[submitted % 3], submitted as u64 * 900, 800);
                next.tag = submitted as u64;
                reader.submit([next]);
                submitted += 1;
            }
            let done = if submitted % 2 == 0 { reader.try_next() } else { reader.next() };
            if let Some(done) = done {
                let n = usize::try_from(done.tag).unwrap();
                assert_eq!(done.result.unwrap()[..], pattern(n % 3)[n * 900..n * 900 + 800]);
                finished += 1;
            }
        }
        assert_eq!(reader.pending(), 0);
    }
}

#[test]
fn every_thread_has_its_own_reader() {
    let (_dir, files) = files();
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let files = &files;
            scope.spawn(move || {
                let mut reader = BatchReader::new(32);
                for round in 0..20_usize {
                    let at = thread * 1000 + round * 97;
                    let results = reader
                        .read_all((0..3).map(|n| request(&files[n], at as u64, 5000)).collect());
                    for (file, result) in results.into_iter().enumerate() {
                        assert_eq!(result.unwrap()[..], pattern(file)[at..at + 5000]);
                    }
                }
            });
        }
    });
}

/// A file, an offset and a length; every other read is aligned to pages.
fn one_read() -> impl Strategy<Value = (usize, u64, usize)> {
    let parts = (0_usize..3, 0_u64..310_000, 0_usize..20_000, any::<bool>());
    parts.prop_map(|(file, at, len, aligned)| {
        if aligned { (file, at / 4096 * 4096, len / 4096 * 4096) } else { (file, at, len) }
    })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn ring_and_pread_agree(
        reads in prop::collection::vec(one_read(), 1..120),
        depth in 1_u16..70,
    ) {
        let (_dir, files) = files();
        let run = |method| {
            let requests =
                reads.iter().map(|(file, at, len)| request(&files[*file], *at, *len));
            let results = BatchReader::with_method(method, depth).read_all(requests.collect());
            let plain = results.into_iter().map(|result| match result {
                Ok(buffer) => Ok(buffer.to_vec()),
                Err(error) => Err(error.to_string()),
            });
            plain.collect::<Vec<_>>()
        };
        prop_assert_eq!(run(Method::Ring), run(Method::Pread));
    }
}

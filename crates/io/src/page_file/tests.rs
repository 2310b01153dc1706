//! Page files: writing, reading, damage in every byte, crashes.

use super::*;
use crate::disk::Disk;
use crate::faulty::{Fault, FaultRule, FaultyStorage, Operation, When};
use crate::reader::{BatchReader, Method};

const KIND: Kind = Kind(*b"TESTKIND");
const ID: FileId = FileId([8; 16]);

/// 700 pages are more than two gathered writes.
fn write(storage: &dyn Storage, pages: u32) -> Result<PageFile> {
    let mut writer = PageFileWriter::create(storage, "pages", KIND, ID)?;
    for n in 1..=pages {
        let number = writer.push(&n.to_le_bytes().repeat(7))?;
        assert_eq!(number, PageNumber(u64::from(n)));
    }
    let file = writer.finish()?;
    storage.sync_dir()?;
    Ok(file)
}

#[test]
fn pages_come_back_by_map_and_by_batch_on_both_storages() {
    let dir = tempfile::tempdir().unwrap();
    let storages: [Box<dyn Storage>; 2] =
        [Box::new(FaultyStorage::new(1)), Box::new(Disk::open(dir.path()).unwrap())];
    for storage in storages {
        write(storage.as_ref(), 700).unwrap();
        let file = PageFile::open(storage.as_ref(), "pages", (KIND, ID), 701).unwrap();
        let expected = |n: u64| u32::try_from(n).unwrap().to_le_bytes().repeat(7);
        for method in [Method::Ring, Method::Pread] {
            let mut reader = BatchReader::with_method(method, 32);
            let request = |n| file.request(PageNumber(n), n, AlignedBuffer::zeroed(PAGE_LEN));
            reader.submit((1..=700).map(|n| request(n).unwrap()));
            let mut count = 0;
            while let Some(done) = reader.next() {
                let page = done.result.unwrap();
                let payload = file.verify(PageNumber(done.tag), &page).unwrap();
                assert_eq!(payload[..28], expected(done.tag));
                assert!(payload[28..].iter().all(|&byte| byte == 0));
                count += 1;
            }
            assert_eq!(count, 700);
        }
        for n in (1..=700).chain(1..=700) {
            let payload = file.resident(PageNumber(n)).unwrap();
            assert_eq!((payload.len(), &payload[..28]), (PAGE_PAYLOAD_LEN, &expected(n)[..]));
        }
        assert!(file.resident(PageNumber(701)).is_err());
        assert!(file.resident(PageNumber(u64::MAX)).is_err());
        assert!(file.request(PageNumber(701), 0, AlignedBuffer::zeroed(PAGE_LEN)).is_err());
    }
}

#[test]
fn a_file_that_is_not_the_one_asked_for_is_refused() {
    let storage = FaultyStorage::new(1);
    write(&storage, 3).unwrap();
    let open = |kind, id, pages| PageFile::open(&storage, "pages", (kind, id), pages);
    open(KIND, ID, 4).unwrap();
    assert!(matches!(open(KIND, ID, 5), Err(Error::UnexpectedEnd { .. })));
    assert!(matches!(open(KIND, ID, 3), Err(Error::Corrupt { .. })));
    assert!(matches!(open(Kind(*b"OTHERKND"), ID, 4), Err(Error::Corrupt { .. })));
    assert!(matches!(open(KIND, FileId([9; 16]), 4), Err(Error::Corrupt { .. })));
}

#[test]
fn a_payload_that_does_not_fit_and_a_full_disk_are_errors() {
    let storage = FaultyStorage::new(1);
    let mut writer = PageFileWriter::create(&storage, "pages", KIND, ID).unwrap();
    writer.push(&[1; PAGE_PAYLOAD_LEN]).unwrap();
    assert!(matches!(writer.push(&[1; PAGE_PAYLOAD_LEN + 1]), Err(Error::TooLarge { .. })));
    storage.inject(FaultRule::new(Operation::Write, When::Nth(0), Fault::NoSpace));
    assert!(writer.finish().unwrap_err().is_disk_full());
    write(&storage, 3).unwrap();
}

#[test]
fn a_bit_flipped_on_its_way_from_the_disk_is_noticed() {
    let storage = FaultyStorage::new(3);
    let file = write(&storage, 3).unwrap();
    storage.inject(FaultRule::new(Operation::Read, When::Nth(0), Fault::BitFlip));
    let mut reader = BatchReader::new(4);
    let request = || file.request(PageNumber(2), 0, AlignedBuffer::zeroed(PAGE_LEN)).unwrap();
    let page = reader.read_all(vec![request()]).remove(0).unwrap();
    let Err(Error::Corrupt { offset, .. }) = file.verify(PageNumber(2), &page) else {
        panic!("a wrong bit passed")
    };
    assert_eq!(offset, PageNumber(2).offset());
    let page = reader.read_all(vec![request()]).remove(0).unwrap();
    file.verify(PageNumber(2), &page).unwrap();
}

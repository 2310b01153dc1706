//! The real storage: short transfers, poison, direct access, maps, on a temporary directory.

use super::*;
use crate::buffer::{AlignedBuffer, BLOCK};

fn disk() -> (tempfile::TempDir, Disk) {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path()).unwrap();
    (dir, disk)
}

fn create(disk: &Disk, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk.open(name, Access::Create, Caching::Buffered).unwrap();
    file.write_at(FileOffset::ZERO, bytes).unwrap();
    file
}

fn content(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
    file.read_at(FileOffset::ZERO, &mut bytes).unwrap();
    bytes
}

#[test]
fn files_are_opened_as_asked() {
    let (_dir, disk) = disk();
    let open = |name, access| disk.open(name, access, Caching::Buffered);
    assert!(matches!(open("a", Access::Read), Err(Error::NotFound { .. })));
    assert!(matches!(open("a", Access::Write), Err(Error::NotFound { .. })));
    create(&disk, "a", b"alpha");
    assert!(matches!(open("a", Access::Create), Err(Error::AlreadyExists { .. })));
    assert_eq!(content(open("a", Access::Write).unwrap().as_ref()), b"alpha");
    let read_only = open("a", Access::Read).unwrap();
    assert!(read_only.write_at(FileOffset::ZERO, b"x").is_err());
    assert!(read_only.truncate(FileOffset::ZERO).is_err());
    assert_eq!(content(open("a", Access::Replace).unwrap().as_ref()), b"");
    assert!(read_only.write_at(FileOffset::ZERO, b"x").is_err(), "but nothing is poisoned");
    disk.sync_dir().unwrap();
}

#[test]
fn names_are_listed_moved_and_removed_and_cannot_leave_the_directory() {
    let (dir, disk) = disk();
    for name in ["b", "c", "a"] {
        create(&disk, name, name.as_bytes());
    }
    let below = disk.directory("below").unwrap();
    below.open("x", Access::Create, Caching::Buffered).unwrap();
    assert_eq!(disk.list().unwrap(), ["a", "b", "c"]);
    disk.rename("a", "c").unwrap();
    disk.remove("b").unwrap();
    assert_eq!(disk.list().unwrap(), ["c"]);
    let file = disk.open("c", Access::Read, Caching::Buffered).unwrap();
    assert_eq!(content(file.as_ref()), b"a");
    assert_eq!(below.list().unwrap(), ["x"]);
    assert!(matches!(disk.remove("b"), Err(Error::NotFound { .. })));
    for bad in ["", ".", "..", "a/b", "../c", "a\0b"] {
        let opened = disk.open(bad, Access::Replace, Caching::Buffered);
        assert!(matches!(opened, Err(Error::BadName { .. })), "{bad:?}");
    }
    let deep = dir.path().join("one/two/three");
    Disk::open(&deep).unwrap();
    assert!(deep.is_dir());
}

#[test]
fn reading_past_the_end_names_the_file_and_the_offset() {
    let (_dir, disk) = disk();
    let file = create(&disk, "short", b"12345");
    let error = file.read_at(FileOffset::new(3), &mut [0; 4]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("short") && text.contains("byte 5") && text.contains('7'), "{text}");
}

#[test]
fn mapped_bytes_cannot_be_changed_through_any_opening() {
    let (_dir, disk) = disk();
    let file = create(&disk, "f", &[1; 10_000]);
    let other = disk.open("f", Access::Write, Caching::Buffered).unwrap();
    let map = file.map(FileOffset::new(100), 5000).unwrap();
    map.expect_random_access();
    assert_eq!(map.len(), 5000);
    for file in [&file, &other] {
        let at = |offset| file.write_at(FileOffset::new(offset), &[2; 10]);
        assert!(matches!(at(95), Err(Error::Mapped { .. })));
        assert!(matches!(at(5099), Err(Error::Mapped { .. })));
        at(90).unwrap();
        at(5100).unwrap();
        let cut = file.truncate(FileOffset::new(5099));
        assert!(matches!(cut, Err(Error::Mapped { .. })), "{cut:?}");
        file.truncate(FileOffset::new(9000)).unwrap();
    }
    let replaced = disk.open("f", Access::Replace, Caching::Buffered);
    assert!(matches!(replaced, Err(Error::Mapped { .. })));
    let part = map.slice(10..20).unwrap();
    assert!(map.slice(10..5001).is_none());
    drop((map, file));
    assert!(other.truncate(FileOffset::ZERO).is_err(), "a part holds all of it");
    disk.remove("f").unwrap();
    assert_eq!(&part[..], [1; 10], "removing the name leaves the map alone");
    drop(part);
    other.truncate(FileOffset::ZERO).unwrap();
    other.write_at(FileOffset::ZERO, b"free again").unwrap();
}

#[test]
fn a_map_never_reaches_past_the_end() {
    let (_dir, disk) = disk();
    let file = create(&disk, "f", &[1; 4096]);
    let past = file.map(FileOffset::new(4000), 97);
    assert!(matches!(past, Err(Error::UnexpectedEnd { .. })), "{past:?}");
    assert!(file.map(FileOffset::new(1), u64::MAX).is_err());
    assert!(file.map(FileOffset::new(4096), 0).unwrap().is_empty());
    file.truncate(FileOffset::ZERO).unwrap();
}

#[test]
fn direct_and_plain_transfers_see_the_same_bytes() {
    let (_dir, disk) = disk();
    direct_matches_plain(&disk);
    // A filesystem in memory, which may refuse `O_DIRECT`.
    if let Ok(dir) = tempfile::tempdir_in("/dev/shm") {
        direct_matches_plain(&Disk::open(dir.path()).unwrap());
    }
}

fn direct_matches_plain(disk: &Disk) {
    let file = disk.open("f", Access::Create, Caching::Direct).unwrap();
    let mut bulk = AlignedBuffer::zeroed(64 * BLOCK);
    (0_u32..).zip(bulk.chunks_mut(4)).for_each(|(i, word)| word.copy_from_slice(&i.to_le_bytes()));
    file.write_at(FileOffset::ZERO, &bulk).unwrap();
    file.write_at(FileOffset::new(bulk.len() as u64), b"unaligned end").unwrap();
    file.sync().unwrap();
    let whole = content(disk.open("f", Access::Read, Caching::Buffered).unwrap().as_ref());
    assert_eq!(&whole[..bulk.len()], &bulk[..]);
    assert_eq!(&whole[bulk.len()..], b"unaligned end");
    let file = disk.open("f", Access::Read, Caching::Direct).unwrap();
    for (offset, len) in [(0, BLOCK), (BLOCK, 2 * BLOCK), (5, 100), (4090, 4096), (262_000, 157)] {
        let mut bytes = AlignedBuffer::zeroed(len);
        file.read_at(FileOffset::new(offset as u64), &mut bytes).unwrap();
        assert_eq!(&bytes[..], &whole[offset..offset + len], "{len} at {offset}");
    }
    let mut past = AlignedBuffer::zeroed(2 * BLOCK);
    let read = file.read_at(FileOffset::new((64 * BLOCK) as u64), &mut past);
    assert!(matches!(read, Err(Error::UnexpectedEnd { .. })), "{read:?}");
}

/// `/dev/full` is a device that is always full and cannot be synced.
#[test]
fn a_full_disk_is_not_poison_and_a_failed_sync_is() {
    let disk = Disk::open(Path::new("/dev")).unwrap();
    let full = disk.open("full", Access::Write, Caching::Buffered).unwrap();
    for _ in 0..2 {
        assert!(full.write_at(FileOffset::ZERO, b"x").unwrap_err().is_disk_full());
    }
    let failed = full.sync().unwrap_err();
    assert!(matches!(failed, Error::Io { action: "sync", .. }), "{failed}");
    let refusals = [
        full.sync(),
        full.write_at(FileOffset::ZERO, b"x"),
        full.truncate(FileOffset::ZERO),
        disk.sync_dir(),
        disk.rename("varve-none", "varve-other"),
        disk.remove("varve-none"),
        disk.open("null", Access::Write, Caching::Buffered).map(drop),
    ];
    for refusal in refusals {
        let Err(Error::Poisoned { cause }) = refusal else { panic!("{refusal:?}") };
        assert!(cause.contains("/dev/full"), "names the first cause: {cause}");
    }
    disk.open("null", Access::Read, Caching::Buffered).unwrap();
    let again = Disk::open(Path::new("/dev")).unwrap();
    assert!(again.open("null", Access::Write, Caching::Buffered).is_ok(), "opened again");
}

/// When the last map of a removed file was dropped, the file's inode was free before its hold was.
/// A new file could get the inode and inherit the hold, and writing to it was refused.
#[test]
fn a_new_file_does_not_inherit_the_hold_of_a_removed_one() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path()).unwrap();
    let rounds = 2_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..rounds {
                let file = disk.open("old", Access::Replace, Caching::Buffered).unwrap();
                file.write_at(FileOffset::ZERO, &[1; BLOCK]).unwrap();
                let map = file.map(FileOffset::ZERO, BLOCK as u64).unwrap();
                disk.remove("old").unwrap();
                drop(file);
                drop(map);
            }
        });
        for _ in 0..rounds {
            let file = disk.open("new", Access::Replace, Caching::Buffered).unwrap();
            file.write_at(FileOffset::ZERO, &[2; BLOCK]).unwrap();
            disk.remove("new").unwrap();
        }
    });
}

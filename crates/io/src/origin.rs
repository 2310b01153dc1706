//! Whether a file was written by a store, judged by its first bytes.
//!
//! A store that removes files selects them by name. But a user may have a file with such a name. So
//! before removing a file that no manifest lists, the store examines its first bytes:
//!
//! | the first bytes | written by the store |
//! |---|---|
//! | none, or zeroes | yes: a crash kept the file and lost its bytes |
//! | the beginning of `VARVE`, and no more | yes: the header is torn |
//! | `VARVE…`, and not the store's id at the id's place | no: another store's |
//! | `VARVE…` | yes |
//! | anything else | no |
//!
//! A damaged file of the store must still be removed, so some bytes may be wrong: one of the magic,
//! a quarter of the id.
//!
//! A crash may leave anything in a file that was begun and not synced. Files are numbered, so such
//! a file has a number below the next one or fewer than [`REACH`] above it, because fewer than that
//! are begun between two checkpoints. When a store is opened it removes these whatever they
//! contain.

use crate::checksum::StoreId;
use crate::error::{Error, Result};
use crate::offset::FileOffset;
use crate::storage::{Access, Caching, Storage};

/// What the magic of every kind of file begins with.
const MAGIC: &[u8] = b"VARVE";
/// Where segment files and page files have their ids.
const ID_AT: usize = 24;
const HEAD_LEN: usize = ID_AT + size_of::<StoreId>();

/// More files than a store begins before a manifest lists them.
const REACH: u64 = 64;

/// Whether a file may have been written by the store with this id. The id of a page file begins
/// with this many bytes of the store's.
pub fn is_written_by(
    storage: &dyn Storage,
    name: &str,
    store: StoreId,
    in_page_ids: usize,
) -> Result<bool> {
    let file = storage.open(name, Access::Read, Caching::Buffered)?;
    let size = usize::try_from(file.size()?).unwrap_or(usize::MAX);
    let mut head = vec![0; size.min(HEAD_LEN)];
    file.read_at(FileOffset::ZERO, &mut head)?;
    Ok(is_head_of(&head, store, in_page_ids))
}

/// Removes a file that no manifest names, if it may have been written by the store: by its first
/// bytes, or because its number is not `far` from the next one.
pub fn remove_unnamed(
    storage: &dyn Storage,
    name: &str,
    (store, in_page_ids): (StoreId, usize),
    far: bool,
) -> Result<()> {
    if far && !is_written_by(storage, name, store, in_page_ids)? {
        return Err(Error::Foreign { path: storage.path().join(name) });
    }
    storage.remove(name)
}

/// Whether this number is so far past `next` that no crash of the store can have left the file.
#[must_use]
pub const fn is_far(number: u64, next: u64) -> bool {
    number >= next.saturating_add(REACH)
}

fn is_head_of(head: &[u8], store: StoreId, in_page_ids: usize) -> bool {
    if head.iter().all(|byte| *byte == 0) {
        return true;
    }
    if head.len() < MAGIC.len() {
        return MAGIC.starts_with(head);
    }
    let id = match head.get(MAGIC.len()..MAGIC.len() + 3) {
        Some(b"SEG") => store.0.as_slice(),
        Some(b"PAG") => store.0.get(..in_page_ids).unwrap_or_default(),
        _ => &[],
    };
    let found = head.get(ID_AT..).unwrap_or_default();
    wrong(head, MAGIC) <= 1 && wrong(found, id) <= id.len() / 4
}

/// How many of the bytes present differ from the expected ones.
fn wrong(found: &[u8], expected: &[u8]) -> usize {
    found.iter().zip(expected).filter(|(found, expected)| found != expected).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::Kind;
    use crate::faulty::FaultyStorage;
    use crate::offset::GlobalOffset;
    use crate::page::FileId;
    use crate::page_file::PageFileWriter;
    use crate::segment::{Layout, SegmentHeader};

    const STORE: StoreId = StoreId([7; 16]);
    const OTHER: StoreId = StoreId([8; 16]);

    #[test]
    fn heads_of_segments_torn_damaged_and_foreign() {
        let kind = Kind(*b"EXAMPLE\0");
        let header = SegmentHeader {
            layout: Layout::Frames,
            kind,
            store: STORE,
            number: 3,
            start: GlobalOffset::ZERO,
        };
        let bytes = header.encode();
        for len in 0..bytes.len() {
            assert!(is_head_of(&bytes[..len.min(HEAD_LEN)], STORE, 0), "{len} bytes");
        }
        for at in 0..HEAD_LEN {
            let mut damaged = bytes[..HEAD_LEN].to_vec();
            damaged[at] ^= 4;
            assert!(is_head_of(&damaged, STORE, 0), "byte {at}");
        }
        assert!(!is_head_of(&bytes[..HEAD_LEN], OTHER, 0));
        assert!(is_head_of(&[0; HEAD_LEN], STORE, 0));
        for document in ["V", "dear", "VARY", "a letter that is longer than a header would be"] {
            let ours = is_head_of(document.as_bytes(), STORE, 0);
            assert_eq!(ours, document == "V", "{document}");
        }
    }

    #[test]
    fn ids_of_page_files() {
        let storage = FaultyStorage::new(1);
        let id = FileId([STORE.0[0], STORE.0[1], 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        let file = PageFileWriter::create(&storage, "runs", Kind(*b"EXAMPLE\0"), id).unwrap();
        file.finish().unwrap();
        assert!(is_written_by(&storage, "runs", STORE, 2).unwrap());
        assert!(!is_written_by(&storage, "runs", OTHER, 2).unwrap());
        assert!(is_written_by(&storage, "runs", OTHER, 0).unwrap());
        let refused = remove_unnamed(&storage, "runs", (OTHER, 2), true).unwrap_err();
        assert!(refused.to_string().contains("move it"), "{refused}");
        remove_unnamed(&storage, "runs", (STORE, 2), true).unwrap();
        assert!(storage.list().unwrap().is_empty());
        assert!(!is_far(6, 7) && !is_far(7, 7) && !is_far(70, 7) && is_far(71, 7));
    }
}

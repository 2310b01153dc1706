//! Which files in the folder of a store are the store's.
//!
//! A data directory lies among a user's other files, and a user may have put some into it. Whatever
//! removes files goes by this table: a file that no row names was not written by Varve, and stays.
//! So does one that has such a name and does not begin as the store's files do, unless a crash may
//! have left it: its number is below that of another file, or not far above. Names without a
//! number, as that of the manifest, are the store's.

use std::collections::BTreeMap;

use varve_io::{LOCK_FILE, Storage, StoreId, is_envelope, is_far, is_segment, is_written_by};

use crate::error::Error;
use crate::{commit_log, stats};

/// One store of the data directory.
#[derive(Debug)]
pub(crate) struct StoreFiles {
    /// Its folder.
    pub(crate) folder: &'static str,
    /// The file that says which others count. It is removed first: a crash in between leaves files
    /// that count for nothing.
    pub(crate) manifest: &'static str,
    /// Whether the store writes files of this name.
    is_own: fn(&str) -> bool,
    /// With how many bytes of the store's id those of its page files begin.
    in_page_ids: usize,
    /// Folders inside its own that are the store's too.
    pub(crate) inside: &'static [StoreFiles],
}

/// The confirmed chain.
const COMMIT: StoreFiles = StoreFiles {
    folder: "commit",
    manifest: commit_log::CHECKPOINT,
    is_own: |name| {
        is_envelope(commit_log::CHECKPOINT, name) || is_segment(commit_log::PREFIX, name)
    },
    in_page_ids: 0,
    inside: &[],
};

/// The raw blocks.
const BLOCKS: StoreFiles = StoreFiles {
    folder: "blocks",
    manifest: "manifest",
    is_own: varve_blocks::BlockStore::is_store_file,
    in_page_ids: 0,
    inside: &[],
};

/// The unspent set.
pub(crate) const UTXO: StoreFiles = StoreFiles {
    folder: "utxo",
    manifest: varve_utxo::Database::MANIFEST_FILE,
    is_own: varve_utxo::Database::is_store_file,
    in_page_ids: varve_utxo::Database::IN_FILE_ID,
    inside: &[],
};

/// The history.
pub(crate) const ARCHIVE: StoreFiles = StoreFiles {
    folder: "archive",
    manifest: "archive",
    is_own: varve_archive::is_store_file,
    in_page_ids: 0,
    inside: &[search("tx"), search("spend"), search("pushdata")],
};

/// A folder of runs with a manifest.
const fn search(folder: &'static str) -> StoreFiles {
    StoreFiles {
        folder,
        manifest: varve_utxo::Database::MANIFEST_FILE,
        is_own: varve_archive::is_search_file,
        in_page_ids: varve_utxo::Database::IN_FILE_ID,
        inside: &[],
    }
}

/// The script history.
pub(crate) const SCRIPT: StoreFiles = search("script-history");

/// The set's figures by height.
pub(crate) const STATS: StoreFiles = StoreFiles {
    folder: "stats",
    manifest: stats::CHECKPOINT,
    is_own: |name| is_envelope(stats::CHECKPOINT, name) || is_segment(stats::PREFIX, name),
    in_page_ids: 0,
    inside: &[],
};

/// Every store of a node.
pub(crate) const STORES: [&StoreFiles; 6] = [&COMMIT, &BLOCKS, &UTXO, &ARCHIVE, &SCRIPT, &STATS];

impl StoreFiles {
    /// Whether the store writes files of this name.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        (self.is_own)(name)
    }

    /// The files of the store's folder that the store with this id did not write.
    pub(crate) fn foreign(
        &self,
        storage: &dyn Storage,
        store: StoreId,
    ) -> Result<Vec<String>, Error> {
        let mut doubtful = Vec::new();
        // By series: the number behind the highest that is surely the store's.
        let mut next: BTreeMap<String, u64> = BTreeMap::new();
        for name in storage.list()? {
            if name == LOCK_FILE || is_envelope(self.manifest, &name) {
                continue;
            }
            if !(self.is_own)(&name) || !is_written_by(storage, &name, store, self.in_page_ids)? {
                doubtful.push(name);
            } else if let Some((series, number)) = numbered(&name) {
                let next = next.entry(series.to_owned()).or_default();
                *next = (*next).max(number.saturating_add(1));
            }
        }
        let may_be_torn = |name: &str| {
            let next = |series| next.get(series).copied().unwrap_or_default();
            numbered(name).is_none_or(|(series, number)| !is_far(number, next(series)))
        };
        doubtful.retain(|name| !((self.is_own)(name) && may_be_torn(name)));
        Ok(doubtful)
    }
}

/// The series of a numbered file and its number: `undo-000000000007`, `0000000007.run`. Runs and
/// window files are counted together.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let (series, number) = match name.split_once('.') {
        Some((number, _)) if number.bytes().all(|byte| byte.is_ascii_digit()) => ("", number),
        _ => name.rsplit_once('-')?,
    };
    Some((series, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use varve_io::faulty::FaultyStorage;
    use varve_io::{Access, Caching, FileOffset};

    use super::*;

    #[test]
    fn the_archive_has_the_folders_of_its_search_tables() {
        let folders: Vec<_> = ARCHIVE.inside.iter().map(|store| store.folder).collect();
        assert_eq!(folders, varve_archive::SEARCH_TABLES);
    }

    #[test]
    fn files_are_told_by_name_number_and_first_bytes() {
        let storage = Arc::new(FaultyStorage::new(1));
        let store = StoreId([7; 16]);
        let write = |name: &str, bytes: &[u8]| {
            let file = storage.open(name, Access::Replace, Caching::Buffered).unwrap();
            file.write_at(FileOffset::ZERO, bytes).unwrap();
        };
        let run = [b"VARVEPAG\x01\0\0\0\0\0\0\0UTXORUN\0".as_slice(), &[7; 16]].concat();
        write("0000000500.run", &run);
        write("manifest", b"a manifest that is damaged");
        // A crash may leave these, with anything in them.
        for name in ["0000000501.window", "0000000499.run", "undo-000000000000", "lock"] {
            write(name, b"whatever there was on the disk");
        }
        // And these not, whatever they are called.
        for name in ["0000000565.run", "undo-000000000064", "thesis.txt"] {
            write(name, b"years of work");
        }
        let expected = ["0000000565.run", "thesis.txt", "undo-000000000064"];
        assert_eq!(UTXO.foreign(storage.as_ref(), store).unwrap(), expected);
        // A copy of another store's run.
        let other = StoreId([8; 16]);
        assert!(UTXO.foreign(storage.as_ref(), other).unwrap().contains(&"0000000500.run".into()));
    }
}

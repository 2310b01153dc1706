//! Which files in the folder of a store are the store's.
//!
//! A data directory lies among a user's other files, and a user may have put some into it. Whatever
//! removes files goes by this table: a file that no row names was not written by Varve, and stays.
//! So does one that has such a name and does not begin as the store's files do; only the manifest,
//! and what it is replaced by, go by the name alone.

use varve_io::{LOCK_FILE, Storage, StoreId, is_envelope, is_segment, is_written_by};

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
}

/// The confirmed chain.
const COMMIT: StoreFiles = StoreFiles {
    folder: "commit",
    manifest: commit_log::CHECKPOINT,
    is_own: |name| {
        is_envelope(commit_log::CHECKPOINT, name) || is_segment(commit_log::PREFIX, name)
    },
    in_page_ids: 0,
};

/// The raw blocks.
const BLOCKS: StoreFiles = StoreFiles {
    folder: "blocks",
    manifest: "manifest",
    is_own: varve_blocks::BlockStore::is_store_file,
    in_page_ids: 0,
};

/// The unspent set.
pub(crate) const UTXO: StoreFiles = StoreFiles {
    folder: "utxo",
    manifest: varve_utxo::MANIFEST_FILE,
    is_own: varve_utxo::is_store_file,
    in_page_ids: varve_utxo::IN_FILE_ID,
};

/// The history.
pub(crate) const ARCHIVE: StoreFiles = StoreFiles {
    folder: "archive",
    manifest: "archive",
    is_own: varve_archive::is_store_file,
    in_page_ids: 0,
};

/// The set's figures by height.
pub(crate) const STATS: StoreFiles = StoreFiles {
    folder: "stats",
    manifest: stats::CHECKPOINT,
    is_own: |name| is_envelope(stats::CHECKPOINT, name) || is_segment(stats::PREFIX, name),
    in_page_ids: 0,
};

/// Every store of a node.
pub(crate) const STORES: [&StoreFiles; 5] = [&COMMIT, &BLOCKS, &UTXO, &ARCHIVE, &STATS];

impl StoreFiles {
    /// Whether the store with this id has written the file `name` of its folder.
    pub(crate) fn has_written(
        &self,
        storage: &dyn Storage,
        name: &str,
        store: StoreId,
    ) -> Result<bool, Error> {
        if name == LOCK_FILE || is_envelope(self.manifest, name) {
            return Ok(true);
        }
        Ok((self.is_own)(name) && is_written_by(storage, name, store, self.in_page_ids)?)
    }
}

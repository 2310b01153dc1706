//! Which files in the folder of a store are the store's.
//!
//! A data directory lies among a user's other files, and a user may have put some into it. Whatever
//! removes files goes by this table: a file that no row names was not written by Varve, and stays.

use varve_io::{LOCK_FILE, is_envelope, is_segment};

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
}

/// The confirmed chain.
const COMMIT: StoreFiles = StoreFiles {
    folder: "commit",
    manifest: commit_log::CHECKPOINT,
    is_own: |name| {
        is_envelope(commit_log::CHECKPOINT, name) || is_segment(commit_log::PREFIX, name)
    },
};

/// The raw blocks.
const BLOCKS: StoreFiles = StoreFiles {
    folder: "blocks",
    manifest: "manifest",
    is_own: varve_blocks::BlockStore::is_store_file,
};

/// The unspent set.
pub(crate) const UTXO: StoreFiles = StoreFiles {
    folder: "utxo",
    manifest: varve_utxo::MANIFEST_FILE,
    is_own: varve_utxo::is_store_file,
};

/// The history.
pub(crate) const ARCHIVE: StoreFiles =
    StoreFiles { folder: "archive", manifest: "archive", is_own: varve_archive::is_store_file };

/// The set's figures by height.
pub(crate) const STATS: StoreFiles = StoreFiles {
    folder: "stats",
    manifest: stats::CHECKPOINT,
    is_own: |name| is_envelope(stats::CHECKPOINT, name) || is_segment(stats::PREFIX, name),
};

/// Every store of a node.
pub(crate) const STORES: [&StoreFiles; 5] = [&COMMIT, &BLOCKS, &UTXO, &ARCHIVE, &STATS];

impl StoreFiles {
    /// Whether the store writes files of this name.
    pub(crate) fn owns(&self, name: &str) -> bool {
        name == LOCK_FILE || (self.is_own)(name)
    }
}

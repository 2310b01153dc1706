//! Snapshots: the heads of a checkpoint in another directory, and the way back to them.
//!
//! Bodies only grow, so the bodies of an old checkpoint are the beginnings of today's. A snapshot
//! is therefore a copy of the heads and of the manifest, a few bytes a row. Restoring copies them
//! back, and opening the tables cuts the bodies to the marks of that manifest.
//!
//! ```text
//!  snapshot    NAME.head, and NAME.redo-EPOCH when it is not applied yet, of every table
//!              the manifest, last: without it the directory is no snapshot
//!
//!  restore     1. `MANIFEST.restoring` is written: from here on the store does not open
//!              2. the heads are copied over those of the store, redo files are removed
//!              3. the manifest is replaced
//!              4. `MANIFEST.restoring` is removed
//! ```
//!
//! A restore that was cut short is done again from the beginning; step 1 finds itself done. The
//! snapshot must be older than the store it goes back into, and of the same store.

use varve_io::{Access, Caching, Envelope, FileOffset, Storage, replace};

use super::cells::{head_name, redo_epoch, redo_name};
use super::error::{Error, Result};
use super::manifest::{Manifest, ManifestFile, VERSION, marker};

/// Files are copied in pieces of this many bytes.
const PIECE: u64 = 1 << 20;

impl Manifest {
    /// Copies the heads of this checkpoint, and the manifest, to the directory `target`. The owner
    /// holds the tables still meanwhile: this is the last checkpoint, and no other is made.
    pub fn snapshot(&self, file: ManifestFile<'_>, target: &dyn Storage) -> Result<()> {
        let ManifestFile { storage, name, kind } = file;
        let files = storage.list()?;
        for file in self.head_files().filter(|file| files.contains(file)) {
            copy(storage, target, &file)?;
        }
        target.sync_dir()?;
        self.write(ManifestFile { storage: target, name, kind })
    }

    /// Brings a store back to a snapshot that was made of it. The tables must not be open; open
    /// them afterwards with the manifest returned here.
    pub fn restore(file: ManifestFile<'_>, snapshot: &dyn Storage) -> Result<Self> {
        let ManifestFile { storage, name, kind } = file;
        let bad = |what| Error::BadMark { table: name.to_owned(), what };
        let Some(found) = Self::load(snapshot, name, kind)? else {
            return Err(bad("the snapshot has no manifest"));
        };
        match Self::load_unmarked(storage, name, kind)? {
            Some(present) if present.store != found.store => {
                return Err(bad("the snapshot is of another store"));
            }
            Some(present) if present.epoch < found.epoch => {
                return Err(bad("the snapshot is younger than the store"));
            }
            _ => {}
        }
        replace(storage, &marker(name), kind, &Envelope { version: VERSION, payload: b"" })?;
        let (present, copied) = (storage.list()?, snapshot.list()?);
        for (table, _) in found.tables() {
            for file in present.iter().filter(|file| redo_epoch(table, file).is_some()) {
                storage.remove(file)?;
            }
        }
        for file in found.head_files().filter(|file| copied.contains(file)) {
            copy(snapshot, storage, &file)?;
        }
        storage.sync_dir()?;
        found.write(file)?;
        storage.remove(&marker(name))?;
        storage.sync_dir()?;
        Ok(found)
    }

    /// The files that hold the cells of this checkpoint, those that need not exist among them.
    fn head_files(&self) -> impl Iterator<Item = String> {
        self.tables()
            .iter()
            .flat_map(|(table, mark)| [head_name(table), redo_name(table, mark.cells.epoch)])
    }
}

/// Copies a file, durably except for its name.
fn copy(from: &dyn Storage, to: &dyn Storage, name: &str) -> Result<()> {
    let source = from.open(name, Access::Read, Caching::Buffered)?;
    let target = to.open(name, Access::Replace, Caching::Buffered)?;
    let size = source.size()?;
    let mut at = 0;
    while at < size {
        let len = PIECE.min(size - at);
        let mut piece = vec![0; usize::try_from(len).expect("a piece is small")];
        source.read_at(FileOffset::new(at), &mut piece)?;
        target.write_at(FileOffset::new(at), &piece)?;
        at += len;
    }
    Ok(target.sync()?)
}

//! The manifest: the one file that says which checkpoint counts.
//!
//! An envelope (`docs/format/io.md`) of the owner's kind, payload version 2, replaced atomically:
//!
//! ```text
//!  0          16        32        40         44            44+n
//!  ┌──────────┬─────────┬─────────┬──────────┬─────────────┬────────┬──────────────────────────
//!  │ store id │ secret  │ epoch   │ n u32    │ the owner's │ tables │ each: length u8, name,
//!  │ 16       │ 16      │ u64     │          │ n bytes     │ u32    │ mark (60 bytes, `mark`)
//!  └──────────┴─────────┴─────────┴──────────┴─────────────┴────────┴──────────────────────────
//! ```
//!
//! The owner's bytes are what must change together with the tables: a tip, a commit sequence.

use varve_io::{Envelope, Kind, Storage, StoreId, is_envelope, load, replace};

use super::cells::redo_epoch;
use super::error::{Error, Result};
use super::mark::Mark;
use super::table::{Epoch, Heads, Table};
use crate::side_by_side::side_by_side;

pub(super) const VERSION: u32 = 2;

/// The name of the file that says that a restore has begun.
pub(super) fn marker(manifest: &str) -> String {
    format!("{manifest}.restoring")
}

/// Whether a file of this name is the manifest `manifest`, or says that it is being restored.
#[must_use]
pub fn is_manifest_file(manifest: &str, name: &str) -> bool {
    is_envelope(manifest, name) || is_envelope(&marker(manifest), name)
}

/// Where a manifest is kept: a file of a directory, and the kind that its owner gave it.
#[derive(Clone, Copy, Debug)]
pub struct ManifestFile<'a> {
    /// The directory, which also holds the tables.
    pub storage: &'a dyn Storage,
    /// The file's name.
    pub name: &'a str,
    /// The kind in the file's envelope.
    pub kind: Kind,
}

/// A checkpoint of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The store, drawn at random when it was made.
    pub store: StoreId,
    /// The key of all hashes of the store, drawn at random when it was made.
    pub secret: [u8; 16],
    /// Which checkpoint of the store this is.
    pub epoch: Epoch,
    /// What the owner keeps with it.
    pub owner: Vec<u8>,
    /// The tables by name.
    tables: Vec<(String, Mark)>,
}

impl Manifest {
    /// The manifest of a new store, before its first checkpoint.
    #[must_use]
    pub const fn new(store: StoreId, secret: [u8; 16]) -> Self {
        Self { store, secret, epoch: Epoch(0), owner: Vec::new(), tables: Vec::new() }
    }

    /// The mark to open a table with: a new one when the checkpoint does not know the table.
    #[must_use]
    pub fn mark(&self, table: &str) -> Mark {
        let known = self.tables.iter().find(|(name, _)| name == table);
        known.map_or(Mark::NEW, |(_, mark)| *mark)
    }

    /// Drops a table: the next opening creates it empty.
    pub(crate) fn forget(&mut self, table: &str) {
        self.tables.retain(|(name, _)| name != table);
    }

    /// Reads the manifest `name`; `None` when there is none. Fails while a restore has begun and
    /// not ended.
    ///
    /// A process may have been killed before the file's name was durable. Opening the tables builds
    /// on the manifest, so the directory is synced first.
    pub fn load(storage: &dyn Storage, name: &str, kind: Kind) -> Result<Option<Self>> {
        storage.sync_dir()?;
        if storage.list()?.contains(&marker(name)) {
            let what = "a restore was cut short; restore again";
            return Err(Error::BadMark { table: name.to_owned(), what });
        }
        Self::load_unmarked(storage, name, kind)
    }

    /// Reads the manifest `name` of a store that nobody writes to, and changes nothing. `None` when
    /// there is none, and when its last checkpoint or a restore was not finished.
    pub(crate) fn load_at_rest(
        storage: &dyn Storage,
        name: &str,
        kind: Kind,
    ) -> Result<Option<Self>> {
        let files = storage.list()?;
        let manifest = Self::load_unmarked(storage, name, kind)?;
        Ok(manifest.filter(|manifest| {
            let is_of = |file: &str, table: &str| redo_epoch(table, file).is_some();
            let is_redo = |file: &str| manifest.tables.iter().any(|(name, _)| is_of(file, name));
            !files.iter().any(|file| *file == marker(name) || is_redo(file))
        }))
    }

    pub(super) fn load_unmarked(
        storage: &dyn Storage,
        name: &str,
        kind: Kind,
    ) -> Result<Option<Self>> {
        let Some(found) = load(storage, name, kind)? else { return Ok(None) };
        if found.version != VERSION {
            let (path, supported) = (storage.path().join(name), VERSION);
            return Err(Error::OtherVersion { path, found: found.version, supported });
        }
        let decoded = decode(&found.payload);
        let what = "its fields do not fill it";
        decoded.map(Some).ok_or_else(|| Error::BadMark { table: name.to_owned(), what })
    }

    /// Makes a checkpoint of `tables`, in the steps that `table` describes, and becomes it. An
    /// error leaves this and the store unchanged, unless it came after the new manifest was
    /// written: then the next checkpoint or the next opening completes it. Other tables keep their
    /// marks.
    pub fn checkpoint(
        &mut self,
        file: ManifestFile<'_>,
        tables: &mut [&mut dyn Table],
        heads: Heads,
        owner: &[u8],
    ) -> Result<()> {
        let epoch = Epoch(self.epoch.0 + 1);
        let prepare = |table: &mut &mut dyn Table| table.prepare(epoch, heads);
        let marks = tables.iter_mut().map(prepare).collect::<Result<_>>()?;
        self.name_prepared(file, tables, marks, owner)?;
        // All of them, whatever happens to one: each must learn that its mark counts.
        let confirmed = tables.iter_mut().map(|table| table.confirm());
        confirmed.fold(Ok(()), Result::and)
    }

    /// The same with a thread for each table: most of a checkpoint is waiting for the disk.
    pub(crate) fn checkpoint_side_by_side(
        &mut self,
        file: ManifestFile<'_>,
        tables: &mut [&mut dyn Table],
        heads: Heads,
        owner: &[u8],
    ) -> Result<()> {
        let epoch = Epoch(self.epoch.0 + 1);
        let threads = tables.len();
        let marks = side_by_side(tables.iter_mut(), threads, |table| table.prepare(epoch, heads));
        self.name_prepared(file, tables, marks.into_iter().collect::<Result<_>>()?, owner)?;
        let confirmed = side_by_side(tables.iter_mut(), threads, |table| table.confirm());
        confirmed.into_iter().fold(Ok(()), Result::and)
    }

    /// Replaces the manifest once all tables are prepared.
    fn name_prepared(
        &mut self,
        file: ManifestFile<'_>,
        tables: &[&mut dyn Table],
        marks: Vec<Mark>,
        owner: &[u8],
    ) -> Result<()> {
        let epoch = Epoch(self.epoch.0 + 1);
        let mut next = Self { epoch, owner: owner.to_vec(), ..self.clone() };
        for (table, mark) in tables.iter().zip(marks) {
            next.tables.retain(|(name, _)| name != table.name());
            next.tables.push((table.name().to_owned(), mark));
        }
        next.write(file)?;
        *self = next;
        Ok(())
    }

    /// The tables of the checkpoint.
    #[cfg(feature = "test-suite")]
    pub(super) fn tables(&self) -> &[(String, Mark)] {
        &self.tables
    }

    /// Replaces the manifest on disk by this one.
    pub(crate) fn write(&self, file: ManifestFile<'_>) -> Result<()> {
        let ManifestFile { storage, name, kind } = file;
        let envelope = Envelope { version: VERSION, payload: &*self.encode() };
        Ok(replace(storage, name, kind, &envelope)?)
    }

    fn encode(&self) -> Vec<u8> {
        let count = |len| u32::try_from(len).expect("a manifest is small").to_le_bytes();
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.store.0);
        bytes.extend_from_slice(&self.secret);
        bytes.extend_from_slice(&self.epoch.0.to_le_bytes());
        bytes.extend_from_slice(&count(self.owner.len()));
        bytes.extend_from_slice(&self.owner);
        bytes.extend_from_slice(&count(self.tables.len()));
        for (name, mark) in &self.tables {
            bytes.push(u8::try_from(name.len()).expect("names of tables are short"));
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&mark.encode());
        }
        bytes
    }
}

/// Reads a payload, which must be used up.
fn decode(mut bytes: &[u8]) -> Option<Manifest> {
    let store = StoreId(*take(&mut bytes)?);
    let secret = *take(&mut bytes)?;
    let epoch = Epoch(u64::from_le_bytes(*take(&mut bytes)?));
    let owner = usize::try_from(u32::from_le_bytes(*take(&mut bytes)?)).ok()?;
    let owner = bytes.split_off(..owner)?.to_vec();
    let count = u32::from_le_bytes(*take(&mut bytes)?);
    let mut tables = Vec::new();
    for _ in 0..count {
        let [len] = *take(&mut bytes)?;
        let name = bytes.split_off(..usize::from(len))?;
        let name = String::from_utf8(name.to_vec()).ok()?;
        tables.push((name, Mark::decode(take(&mut bytes)?)));
    }
    bytes.is_empty().then_some(Manifest { store, secret, epoch, owner, tables })
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(taken)
}

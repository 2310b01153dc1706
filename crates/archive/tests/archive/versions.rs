//! Folders of another format version are refused, with what to do.

use std::sync::Arc;

use varve_archive::{ArchiveConfig, Indexes, MmapBackend, MmapTables, SEARCH_TABLES, Snapshot};
use varve_io::faulty::FaultyStorage;
use varve_io::{Envelope, Kind, Storage, load, replace};
use varve_types::Network;

use crate::back_ends::{MmapDisk, SMALL};
use crate::rig::{ALL, Rig};

const ARCHIVE: Kind = Kind(*b"ARCHIVE\0");
const SEARCH: Kind = Kind(*b"SEARCHMN");

/// An archive of one block, at rest.
fn resting() -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(FaultyStorage::new(1));
    let mut rig = Rig::new(Network::Regtest, MmapDisk(Arc::clone(&storage)));
    rig.add(&Network::Regtest.genesis_block());
    rig.archive().rest(1).unwrap();
    storage
}

/// Moves the version of a manifest by `step`, as another release would have written it.
fn change_version(storage: &dyn Storage, name: &str, kind: Kind, step: i32) -> u32 {
    let Envelope { version, payload } = load(storage, name, kind).unwrap().unwrap();
    let other = version.checked_add_signed(step).unwrap();
    let envelope = Envelope { version: other, payload: payload.as_slice() };
    replace(storage, name, kind, &envelope).unwrap();
    other
}

/// Neither a writer nor a reader opens the folder, and both say what helps.
fn assert_refused(storage: &Arc<dyn Storage>, found: u32) {
    let writer = MmapBackend::open(Arc::clone(storage), SMALL).err().unwrap();
    let config = ArchiveConfig { network: Network::Regtest, indexes: ALL };
    let reader = Snapshot::<MmapTables>::at_rest(storage, SMALL, config).err().unwrap();
    for error in [writer, reader] {
        let error = error.to_string();
        assert!(error.contains(&format!("has format {found}, this program reads")), "{error}");
        assert!(error.contains("run `varve repair`, or sync into a new folder"), "{error}");
    }
}

#[test]
fn an_archive_of_another_version_is_refused() {
    for step in [-1, 1] {
        let storage = resting();
        let found = change_version(storage.as_ref(), "archive", ARCHIVE, step);
        assert_refused(&storage, found);
    }
}

#[test]
fn a_search_table_of_another_version_is_refused() {
    for (name, step) in SEARCH_TABLES.iter().flat_map(|name| [(name, -1), (name, 1)]) {
        let storage = resting();
        let folder = storage.directory(name).unwrap();
        let found = change_version(folder.as_ref(), "manifest", SEARCH, step);
        assert_refused(&storage, found);
    }
}

/// The table of pushdata is not opened, only removed, when nobody wants it.
#[test]
fn a_table_that_is_dropped_may_have_any_version() {
    let storage = resting();
    let folder = storage.directory("pushdata").unwrap();
    change_version(folder.as_ref(), "manifest", SEARCH, 1);
    let indexes = Indexes { pushdata: None, ..ALL };
    MmapBackend::open(storage, varve_archive::MmapConfig { indexes, ..SMALL }).unwrap();
}

//! How many bytes each optional index takes on disk.

use varve_archive::{ArchiveError, table_bytes};
use varve_io::{Access, Caching};

use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::settings::Index;
use crate::store_files::{SCRIPT, STATS, StoreFiles};

/// The bytes of an index's files.
pub(crate) fn index_bytes(directory: &DataDirectory, index: Index) -> Result<u64, Error> {
    match index {
        Index::Filter => of_tables(directory, &["filter", "filter_at"]),
        Index::Pushdata => of_tables(directory, &["pushdata"]),
        Index::Script => of_store(directory, &SCRIPT),
        Index::Stats => of_store(directory, &STATS),
    }
}

fn of_tables(directory: &DataDirectory, tables: &[&str]) -> Result<u64, Error> {
    let storage = directory.store("archive")?;
    let bytes = |table: &&str| table_bytes(storage.as_ref(), table).map_err(ArchiveError::from);
    tables.iter().map(bytes).try_fold(0, |sum, bytes| Ok(sum + bytes?))
}

fn of_store(directory: &DataDirectory, store: &StoreFiles) -> Result<u64, Error> {
    let storage = directory.store(store.folder)?;
    let mut bytes = 0;
    for name in storage.list()?.iter().filter(|name| store.is_own(name)) {
        bytes += match storage.open(name, Access::Read, Caching::Buffered).and_then(|f| f.size()) {
            Ok(size) => size,
            // A merge removed it after it was listed.
            Err(varve_io::Error::NotFound { .. }) => 0,
            Err(error) => return Err(error.into()),
        };
    }
    Ok(bytes)
}

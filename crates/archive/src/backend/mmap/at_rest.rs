//! An archive at rest, opened read-only.
//!
//! Opening changes nothing and reads the manifests, the first page of each head, and three arrays:
//! 24 bytes a header on disk, 9 in memory. Bodies and heads are read where a query touches them.
//! The first lookup in a search table opens it, which reads its directory, a byte for a hundred
//! rows, and the filters of its small runs. So opening costs nearly the same for thousands of rows
//! and for billions.

use std::sync::Arc;

use varve_io::{Access, Caching, Storage};

use super::blocks::BlocksReader;
use super::files::SEARCH_TABLES;
use super::filters::FiltersReader;
use super::row;
use super::searches::SearchesReader;
use super::{KIND, MANIFEST, MmapConfig, MmapTables, is_search_file, is_store_file};
use crate::archive::ArchiveConfig;
use crate::backend::{BackendError, Result};
use crate::cow::CowVec;
use crate::link::Bounds;
use crate::primitive::{Array, Error, Keyed, Manifest, RecordReader, is_table_file};
use crate::snapshot::Snapshot;

impl Snapshot<MmapTables> {
    /// Opens the archive in this directory as its last checkpoint left it, with the commit sequence
    /// of that. `None` when there is none, and when a writer would have work to do on
    /// opening: rows to relink, a table to add or drop, a checkpoint to finish.
    pub fn at_rest(
        storage: &Arc<dyn Storage>,
        files: MmapConfig,
        config: ArchiveConfig,
    ) -> Result<Option<(Self, u64)>> {
        let Some(manifest) = Manifest::load_at_rest(storage.as_ref(), MANIFEST, KIND)? else {
            return Ok(None);
        };
        let ArchiveConfig { network, indexes } = config;
        let mark = row::decode_mark(&manifest.owner)?;
        let mark = mark.filter(|mark| mark.network == network && mark.indexes == indexes);
        let files = MmapConfig { store: manifest.store, secret: manifest.secret, ..files };
        let tables = tables(storage, &files, &manifest)?;
        let Some((mark, tables)) = mark.zip(tables) else { return Ok(None) };
        let headers = u32::try_from(tables.header.rows()).map_err(BackendError::dangling)?;
        let heights = |name: &str| read_array(storage, &files, &manifest, name, row::header_link);
        let snapshot = Self {
            network,
            indexes,
            base: mark.base,
            bounds: Bounds { headers, txs: tables.blocks.txs()? },
            candidate: heights("candidate")?,
            confirmed: heights("confirmed")?,
            states: read_array(storage, &files, &manifest, "block_state", row::decode_state)?,
            intervals: Arc::default(),
            tables,
        };
        Ok(Some((snapshot, mark.sequence)))
    }
}

/// The bytes of all tables of the archive in this directory.
pub fn stored_bytes(storage: &dyn Storage) -> Result<u64> {
    let of_tables = bytes_of(storage, |name| is_store_file(name) && name != MANIFEST)?;
    SEARCH_TABLES.iter().try_fold(of_tables, |bytes, name| Ok(bytes + table_bytes(storage, name)?))
}

/// The bytes of one table of the archive in this directory.
pub fn table_bytes(storage: &dyn Storage, table: &str) -> Result<u64> {
    if !SEARCH_TABLES.contains(&table) {
        return bytes_of(storage, |name| is_table_file(table, name));
    }
    if !storage.list_others().map_err(Error::from)?.iter().any(|folder| folder == table) {
        return Ok(0);
    }
    bytes_of(storage.directory(table).map_err(Error::from)?.as_ref(), is_search_file)
}

/// The total size of a folder's matching files. A merge may remove a file after it was listed; such
/// a file counts as empty.
fn bytes_of(storage: &dyn Storage, is_meant: impl Fn(&str) -> bool) -> Result<u64> {
    let mut bytes = 0;
    for name in storage.list().map_err(Error::from)?.iter().filter(|name| is_meant(name)) {
        let file = storage.open(name, Access::Read, Caching::Buffered);
        bytes += match file.and_then(|file| file.size()) {
            Ok(size) => size,
            Err(varve_io::Error::NotFound { .. }) => 0,
            Err(error) => return Err(Error::from(error).into()),
        };
    }
    Ok(bytes)
}

/// The readers of all tables; `None` when one of them has rows to link or lacks some.
fn tables(
    storage: &Arc<dyn Storage>,
    config: &MmapConfig,
    manifest: &Manifest,
) -> Result<Option<MmapTables>> {
    let hasher = Keyed::new(manifest.secret);
    macro_rules! map {
        ($name:literal) => {{
            let (table, mark) = (config.table($name, 1), manifest.mark($name));
            match RecordReader::at_rest(Arc::clone(storage), &table, hasher, mark)? {
                Some(reader) => reader,
                None => return Ok(None),
            }
        }};
    }
    let blocks = BlocksReader::at_rest(storage, config, manifest)?;
    let searches = SearchesReader::at_rest(storage, config, manifest, &blocks)?;
    let Some(searches) = searches else { return Ok(None) };
    let filters = FiltersReader::at_rest(storage, config, manifest)?;
    let (header, tx_state) = (map!("header"), map!("tx_state"));
    Ok(Some(MmapTables { header, blocks, searches, filters, tx_state }))
}

fn read_array<T: Copy + Default>(
    storage: &Arc<dyn Storage>,
    config: &MmapConfig,
    manifest: &Manifest,
    name: &str,
    decode: impl Fn(u64) -> Result<T>,
) -> Result<CowVec<T>> {
    let mut values = CowVec::from_iter([]);
    let (table, mark) = (config.table(name, 1), manifest.mark(name));
    Array::read_at_rest(Arc::clone(storage), &table, mark, |cell| {
        values.push(decode(cell)?);
        Ok::<_, BackendError>(())
    })?;
    Ok(values)
}

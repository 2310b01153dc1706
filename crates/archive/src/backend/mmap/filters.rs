//! The filters of blocks: a blob, and an array by header row that says where each one is.

use std::sync::Arc;

use varve_io::Storage;

use super::MmapConfig;
use super::row::{self, FILTER_FRONT};
use crate::backend::{BackendError, Result};
use crate::link::HeaderLink;
use crate::primitive::{
    Array, ArrayReader, Blob, BlobReader, Manifest, SlabLink, Table, TableMemory,
};
use crate::row::FilterRow;

/// The names of the tables.
pub(super) const FILTER_TABLES: [&str; 2] = [BODY, PLACES];
const BODY: &str = "filter";
const PLACES: &str = "filter_at";

/// The cell of a block that has no filter.
const NONE: u64 = u64::MAX;

/// The filters, as their writer sees them.
#[derive(Debug)]
pub(super) struct Filters {
    body: Blob,
    places: Array,
    reader: FiltersReader,
}

/// The filters, as a reader sees them.
#[derive(Clone, Debug)]
pub(super) struct FiltersReader {
    body: BlobReader,
    places: ArrayReader,
}

impl Filters {
    pub(super) fn open(
        storage: &Arc<dyn Storage>,
        config: &MmapConfig,
        manifest: &Manifest,
    ) -> Result<Self> {
        let body = Blob::open(Arc::clone(storage), &config.table(BODY, 1), manifest.mark(BODY))?;
        let places = config.table(PLACES, 1);
        let places = Array::open(Arc::clone(storage), &places, manifest.mark(PLACES))?;
        let reader = FiltersReader { body: body.reader(), places: places.reader().clone() };
        Ok(Self { body, places, reader })
    }

    pub(super) const fn reader(&self) -> &FiltersReader {
        &self.reader
    }

    pub(super) fn tables(&self) -> [&dyn Table; 2] {
        [&self.body, &self.places]
    }

    pub(super) fn tables_mut(&mut self) -> [&mut dyn Table; 2] {
        [&mut self.body, &mut self.places]
    }

    /// Stores the filter of a block that has none.
    pub(super) fn put(&mut self, header: HeaderLink, filter: &FilterRow) -> Result<()> {
        let at = self.body.push(&row::encode_filter(filter)?)?;
        let index = u64::from(header.to_u32());
        while self.places.reader().len() <= index {
            self.places.push(NONE)?;
        }
        Ok(self.places.set(index, at.0)?)
    }
}

impl FiltersReader {
    /// Opens the tables of a store at rest.
    pub(super) fn at_rest(
        storage: &Arc<dyn Storage>,
        config: &MmapConfig,
        manifest: &Manifest,
    ) -> Result<Self> {
        let (body, places) = (config.table(BODY, 1), config.table(PLACES, 1));
        Ok(Self {
            body: BlobReader::at_rest(Arc::clone(storage), &body, manifest.mark(BODY)),
            places: ArrayReader::at_rest(Arc::clone(storage), &places, manifest.mark(PLACES))?,
        })
    }

    /// One more than the greatest header row with a filter.
    pub(super) fn len(&self) -> u64 {
        self.places.len()
    }

    /// The bytes of memory.
    pub(super) fn memory(&self) -> TableMemory {
        self.places.memory()
    }

    /// The filter of a block; `None` when there is none.
    pub(super) fn get(&self, header: HeaderLink) -> Result<Option<FilterRow>> {
        let index = u64::from(header.to_u32());
        if index >= self.places.len() {
            return Ok(None);
        }
        let at = self.places.get(index)?;
        if at == NONE {
            return Ok(None);
        }
        let len = self.body.get(SlabLink(at), FILTER_FRONT, row::filter_len)?;
        let row = self.body.get(SlabLink(at), len, row::decode_filter)?;
        let damaged = || format!("the filter of {header} does not decode; run `varve repair`");
        row.map(Some).ok_or_else(|| BackendError::Fault(damaged().into()))
    }
}

//! How the files of an archive are made.

use varve_io::{Kind, StoreId};
use varve_runs::Compaction;

use crate::backend::Indexes;
use crate::primitive::{Geometry, TableConfig};
use crate::search::SearchOptions;

/// How the files of an archive are made. [`MmapConfig::segment_len`] stays as it is when it is
/// opened again; the others may differ.
#[derive(Clone, Copy, Debug)]
pub struct MmapConfig {
    /// Who the store is: drawn at random when it is made, and not used afterwards.
    pub store: StoreId,
    /// The key of its hashes: drawn at random when it is made, and not used afterwards.
    pub secret: [u8; 16],
    /// The bytes of a file, about.
    pub segment_len: u32,
    /// How many transactions the first generation of heads is made for.
    pub first_rows: u32,
    /// How many rows of a table a crash may leave to be linked again.
    pub relink: u64,
    /// The optional tables that are wanted: the others are dropped when the store is opened.
    pub indexes: Indexes,
    /// A block is settled when so many blocks of the confirmed chain are above it.
    pub window: u32,
    /// How the search tables are kept, and how much memory they have together.
    pub search: SearchOptions,
}

impl MmapConfig {
    /// A store of any size, with this identity and secret.
    #[must_use]
    pub const fn new(store: StoreId, secret: [u8; 16]) -> Self {
        let indexes = Indexes { scripts: true, filters: true };
        let (segment_len, first_rows, relink) = (64 << 20, 1 << 16, 1 << 22);
        let (window, search) = (Self::WINDOW, Self::SEARCH);
        Self { store, secret, segment_len, first_rows, relink, indexes, window, search }
    }

    /// A day of blocks.
    pub const WINDOW: u32 = 144;

    const SEARCH: SearchOptions = SearchOptions {
        memory: 256 << 20,
        fan_in: 8,
        flush_rows: 8 << 20,
        flush_links: 8 << 20,
        compaction: Compaction::Threads,
    };

    pub(super) fn table(&self, name: &str, rows: u32) -> TableConfig {
        let mut kind = [0; 8];
        name.bytes().zip(&mut kind).for_each(|(byte, place)| *place = byte.to_ascii_uppercase());
        let (kind, geometry) = (Kind(kind), Geometry::for_rows(rows));
        let Self { store, segment_len, .. } = *self;
        TableConfig { name: name.to_owned(), kind, store, segment_len, geometry }
    }
}

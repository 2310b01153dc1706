//! The configuration of an archive on disk.

use varve_io::{Kind, StoreId};
use varve_runs::Compaction;

use crate::backend::Indexes;
use crate::primitive::{Geometry, TableConfig};
use crate::search::SearchOptions;

/// How the files of an archive are laid out. [`MmapConfig::segment_len`] must not change between
/// openings; the other fields may.
#[derive(Clone, Copy, Debug)]
pub struct MmapConfig {
    /// The store's identity: drawn at random, used only to create it.
    pub store: StoreId,
    /// The key of its hashes: drawn at random, used only to create it.
    pub secret: [u8; 16],
    /// Approximate bytes of a body file.
    pub segment_len: u32,
    /// Transactions that the first generation of heads is sized for.
    pub first_rows: u32,
    /// Rows of a table that opening after a crash relinks at most.
    pub relink: u64,
    /// The optional tables to keep: opening drops the others.
    pub indexes: Indexes,
    /// Confirmed blocks above a block before its rows leave the memory.
    pub window: u32,
    /// Options of the search tables; the memory is shared among them.
    pub search: SearchOptions,
}

impl MmapConfig {
    /// A store of any size, with this identity and secret.
    #[must_use]
    pub const fn new(store: StoreId, secret: [u8; 16]) -> Self {
        let indexes = Indexes { pushdata: None, filters: true };
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

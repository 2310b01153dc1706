//! Ours: two search tables of the archive, driven as by a node.
//!
//! Every hundred blocks the owner's checkpoint is done; rows of blocks that are 144 deep may then
//! go to runs. At the end, as at the end of a sync, all runs are merged into one, unless one
//! already has nearly everything; that is timed too.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use varve_archive::TxLink;
use varve_archive::search::{
    Batch, Fingerprint, SearchOptions, SearchReader, SearchTable, Settled,
};
use varve_bench::figures::Figures;
use varve_io::{Disk, Storage, StoreId};
use varve_runs::{Secret, StoreKey};

use super::race::size;
use super::rows::{BlockRows, Both, Kind, TXS, first_link};
use super::side::Side;

/// Blocks from one checkpoint of the owner to the next.
const CHECKPOINT: u32 = 100;
/// Blocks at the tip whose rows stay in memory.
const WINDOW: u32 = 144;
/// Of each table. Both have less than half of what the child has: the page cache needs some too.
const MEMORY: usize = 448 << 20;

/// As a node has them.
pub(super) fn options() -> SearchOptions {
    SearchOptions { memory: MEMORY, ..SearchOptions::default() }
}

/// Flushed early, so that a small table is in runs, and not in memory, as large ones are.
pub(super) fn flushed_early(rows: usize) -> SearchOptions {
    SearchOptions { flush_rows: rows, flush_links: rows as u64, ..options() }
}

/// Both tables.
pub(super) struct Varve {
    tables: Both<SearchTable>,
    readers: Both<SearchReader>,
    /// Blocks that were appended.
    blocks: u32,
    /// Seconds of the last merges.
    tidied: f64,
}

impl Varve {
    pub(super) fn open(folder: &Path, options: SearchOptions) -> Result<Self> {
        let tables = Both::try_new(|kind| {
            let storage = storage(folder, kind)?;
            SearchTable::open(storage, key(kind), options, TxLink::new(0))
                .map_err(anyhow::Error::from)
        })?;
        let readers = Both { tx: tables.tx.reader(), spend: tables.spend.reader() };
        Ok(Self { tables, readers, blocks: 0, tidied: 0.0 })
    }

    fn settle(&mut self) -> Result<()> {
        let durable = TxLink::new(first_link(self.blocks));
        let deep = TxLink::new(first_link(self.blocks.saturating_sub(WINDOW)));
        for kind in Kind::ALL {
            let settled = Settled { deep, durable, stale: &[], owner: &[] };
            self.tables.of_mut(kind).settle(&settled)?;
        }
        Ok(())
    }

    /// Reports the tables' own figures: bytes of each, bytes written, memory.
    pub(super) fn report(&self, folder: &Path) -> Result<()> {
        for kind in Kind::ALL {
            Figures::report(&format!("bytes_{}", kind.name()), size(&folder.join(kind.name()))?);
        }
        let written = Kind::ALL.map(|kind| self.tables.of(kind).written()).iter().sum::<u64>();
        Figures::report("written_by_tables", written);
        Figures::report("tidied", self.tidied);
        let sizes = Kind::ALL.map(|kind| self.tables.of(kind).size());
        Figures::report("runs", sizes.iter().map(|size| size.runs).sum::<usize>());
        Figures::report("index", sizes.iter().map(|size| size.index).sum::<u64>());
        Ok(())
    }
}

/// A table that a race left, as a node opens it: its young rows are in memory.
pub(super) fn reopen(folder: &Path, kind: Kind, blocks: u32) -> Result<SearchTable> {
    let bound = TxLink::new(first_link(blocks));
    Ok(SearchTable::open(storage(folder, kind)?, key(kind), options(), bound)?)
}

/// The same at rest, as a read-only command opens it: nothing is loaded into memory.
pub(super) fn at_rest(folder: &Path, kind: Kind, blocks: u32) -> Result<SearchReader> {
    let bound = TxLink::new(first_link(blocks));
    Ok(SearchReader::at_rest(&storage(folder, kind)?, key(kind), bound)?)
}

/// What a node draws at random.
const fn key(kind: Kind) -> StoreKey {
    StoreKey { id: StoreId([kind as u8; 16]), secret: Secret::new([7; Secret::LEN]) }
}

fn storage(folder: &Path, kind: Kind) -> Result<Arc<dyn Storage>> {
    let folder = folder.join(kind.name());
    std::fs::create_dir_all(&folder)?;
    Ok(Arc::new(Disk::open(&folder)?))
}

impl Side for Varve {
    type Ready = (u64, Both<Batch>);

    fn prepare(block: BlockRows) -> Self::Ready {
        let first = block.first();
        let batch = |kind| {
            let rows = block.rows.of(kind).iter();
            Batch::new(rows.map(|(hash, position)| (Fingerprint::new(*hash), *position)))
        };
        (first, Both { tx: batch(Kind::Tx), spend: batch(Kind::Spend) })
    }

    fn append(&mut self, (first, batches): Self::Ready) -> Result<()> {
        let first = TxLink::new(first);
        self.tables.tx.append(first, TXS, batches.tx)?;
        self.tables.spend.append(first, TXS, batches.spend)?;
        self.blocks += 1;
        let crowded = Kind::ALL.iter().any(|kind| self.tables.of(*kind).is_crowded());
        if self.blocks.is_multiple_of(CHECKPOINT) || crowded { self.settle() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.settle()?;
        for kind in Kind::ALL {
            self.tables.of_mut(kind).finish()?;
        }
        let begun = Instant::now();
        for kind in Kind::ALL {
            self.tables.of_mut(kind).tidy()?;
        }
        for kind in Kind::ALL {
            self.tables.of_mut(kind).finish()?;
        }
        self.tidied = begun.elapsed().as_secs_f64();
        for kind in Kind::ALL {
            self.tables.of_mut(kind).rest()?;
        }
        Ok(())
    }

    fn find(&self, kind: Kind, hash: u64) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        self.readers.of(kind).find(&[Fingerprint::new(hash)], &mut found)?;
        let mut links: Vec<u64> = found.into_iter().map(|(_, link)| link.to_u64()).collect();
        links.sort_unstable();
        Ok(links)
    }

    fn rows(&self) -> Result<u64> {
        Ok(Kind::ALL.map(|kind| self.tables.of(kind).size().rows).iter().sum())
    }
}

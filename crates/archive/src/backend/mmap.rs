//! The default back end: the tables of the seed over append-only files.
//!
//! | table | is a | key | value | bytes a row |
//! |---|---|---|---|---|
//! | `header` | record map | block hash 32 | parent, height, times, …, work | 130 to 132 |
//! | `block`, `block_tx` | slab map, array (`blocks`) | header row 4 | rows, sizes, counts | 60 |
//! | `tx_len` | blob (`blocks`) | – | lengths of transactions | 1.4 a transaction |
//! | `tx` | search table (`searches`) | fingerprint of the txid, 40 bits | tx row | 5.2 |
//! | `spend` | search table | fingerprint of the point | tx row | 5.2 |
//! | `pushdata` | search table | fingerprint of the hash of a pushed item | tx row | 5.2 |
//! | `filter`, `filter_at` | blob, array by header row (`filters`) | – | header, filter | 44 + n |
//! | `tx_state` | record map | tx row 8 | flags, place, verdict, fee | 39 to 41 |
//! | `candidate`, `confirmed` | array by height | – | header row | 8 |
//! | `block_state` | array by header row | – | code | 8 |
//!
//! `docs/format/archive.md` draws the rows; `row` encodes them.
//!
//! **A block** is written in this order: the lengths of its transactions and its row, not reachable
//! yet; its search rows, in memory; and last the link to the block row. If a step fails, nothing
//! reaches what was written.
//!
//! **A checkpoint** saves all tables under one manifest, except the search tables, which have their
//! own manifests and flush when they have enough rows (`searches`). Heads are saved when many rows
//! would have to be relinked, so that opening after a crash relinks at most [`MmapConfig::relink`]
//! rows a table, and by the last checkpoint of a writer ([`Backend::rest`]), so that opening then
//! relinks none.

mod at_rest;
mod blocks;
mod config;
mod depth;
mod files;
mod filters;
mod lengths;
mod memory;
mod read;
mod row;
mod searches;
mod sizes;

use std::sync::Arc;

use varve_io::{Kind, Storage};
use varve_runs::Compaction;

use super::{Backend, BackendError, Chain, Indexes, Mark, Result, Saved, TableSize, Unindexed};
use crate::link::{Bounds, HeaderLink, TxLink};
use crate::primitive::{Array, Error, Heads, Keyed, Manifest, ManifestFile, RecordMap, Table};
use crate::row::{BlockRow, BlockState, FilterRow, HeaderRow, NewBlock, TxState};
use blocks::Blocks;
use depth::Depth;
use filters::{FILTER_TABLES, Filters};
use row::{HEADER, TX_STATE};
use searches::Searches;

pub use at_rest::{stored_bytes, table_bytes};
pub use config::MmapConfig;
pub use files::{SEARCH_TABLES, is_search_file, is_store_file};
pub use memory::ArchiveMemory;
pub use read::MmapTables;
pub use searches::{MmapRowMaker, MmapRows};

const MANIFEST: &str = "archive";
const KIND: Kind = Kind(*b"ARCHIVE\0");

impl From<Error> for BackendError {
    fn from(error: Error) -> Self {
        if error.is_disk_full() {
            Self::Full(Box::new(error))
        } else {
            Self::Fault(Box::new(error))
        }
    }
}

/// The tables on disk, as their writer sees them.
#[derive(Debug)]
pub struct MmapBackend {
    storage: Arc<dyn Storage>,
    manifest: Manifest,
    relink: u64,
    header: RecordMap<32, HEADER>,
    blocks: Blocks,
    searches: Searches,
    filters: Filters,
    tx_state: RecordMap<8, TX_STATE>,
    candidate: Array,
    confirmed: Array,
    block_state: Array,
    tables: MmapTables,
    /// Transaction rows, and how many of them the manifest has.
    txs: u64,
    saved_txs: u64,
    window: u32,
    compaction: Compaction,
}

impl MmapBackend {
    /// Opens the store in this directory as its last checkpoint left it, or creates one.
    pub fn open(storage: Arc<dyn Storage>, config: MmapConfig) -> Result<Self> {
        let manifest = Manifest::load(storage.as_ref(), MANIFEST, KIND)?;
        let mut manifest = manifest.unwrap_or_else(|| Manifest::new(config.store, config.secret));
        forget_unwanted(storage.as_ref(), &mut manifest, config.indexes)?;
        let config = MmapConfig { store: manifest.store, secret: manifest.secret, ..config };
        let hasher = Keyed::new(manifest.secret);
        macro_rules! map {
            ($name:literal, $rows:expr) => {{
                let table = config.table($name, $rows);
                RecordMap::open(Arc::clone(&storage), &table, hasher, manifest.mark($name))?
            }};
        }
        macro_rules! array {
            ($kind:ident, $name:literal) => {{
                let table = config.table($name, 1);
                $kind::open(Arc::clone(&storage), &table, manifest.mark($name))?
            }};
        }
        let rows = config.first_rows;
        let header = map!("header", rows.div_ceil(64));
        let blocks = Blocks::open(&storage, &config, &manifest)?;
        let txs = blocks.reader().txs()?;
        let before = row::decode_mark(&manifest.owner)?.and_then(|mark| mark.indexes.pushdata);
        let searches = Searches::open(&storage, &config, &manifest, TxLink::new(txs), before)?;
        let filters = Filters::open(&storage, &config, &manifest)?;
        let tx_state = map!("tx_state", 256);
        let tables = MmapTables {
            header: RecordMap::reader(&header).clone(),
            blocks: blocks.reader().clone(),
            searches: searches.reader(),
            filters: filters.reader().clone(),
            tx_state: RecordMap::reader(&tx_state).clone(),
        };
        let (candidate, confirmed) = (array!(Array, "candidate"), array!(Array, "confirmed"));
        let block_state = array!(Array, "block_state");
        let MmapConfig { relink, window, .. } = config;
        Ok(Self {
            storage,
            manifest,
            relink,
            header,
            blocks,
            searches,
            filters,
            tx_state,
            candidate,
            confirmed,
            block_state,
            tables,
            txs,
            saved_txs: txs,
            window,
            compaction: config.search.compaction,
        })
    }

    /// Saves the heads when a crash would leave more rows to relink than allowed.
    fn heads(&self) -> Heads {
        let unlinked = [self.header.unlinked(), self.tx_state.unlinked()];
        if unlinked.iter().any(|rows| *rows > self.relink) { Heads::Save } else { Heads::Defer }
    }

    /// Makes a checkpoint of all tables except the search tables, then settles those.
    fn save(&mut self, mark: &Mark, heads: Heads) -> Result<()> {
        let file = ManifestFile { storage: self.storage.as_ref(), name: MANIFEST, kind: KIND };
        let mut tables: Vec<&mut dyn Table> = vec![
            &mut self.header,
            &mut self.tx_state,
            &mut self.candidate,
            &mut self.confirmed,
            &mut self.block_state,
        ];
        tables.extend(self.blocks.tables_mut());
        tables.extend(self.filters.tables_mut());
        let (tables, mark) = (tables.as_mut_slice(), row::encode_mark(mark));
        let manifest = &mut self.manifest;
        match self.compaction {
            Compaction::Threads => manifest.checkpoint_side_by_side(file, tables, heads, &mark)?,
            Compaction::Inline => manifest.checkpoint(file, tables, heads, &mark)?,
        }
        self.saved_txs = self.txs;
        self.settle()
    }

    /// Passes on to the search tables which rows are saved and which are deep.
    fn settle(&mut self) -> Result<()> {
        let depth = Depth {
            headers: RecordMap::reader(&self.header),
            blocks: self.blocks.reader(),
            confirmed: self.confirmed.reader(),
            window: self.window,
        };
        self.searches.settle(&depth, TxLink::new(self.saved_txs))
    }
}

/// Removes unwanted optional tables from the manifest, durably. A table opened without a mark
/// starts empty and removes the files it finds.
fn forget_unwanted(storage: &dyn Storage, manifest: &mut Manifest, wanted: Indexes) -> Result<()> {
    let Some(mut mark) = row::decode_mark(&manifest.owner)? else { return Ok(()) };
    let found = mark.indexes;
    mark.indexes.pushdata = mark.indexes.pushdata.filter(|rule| wanted.pushdata == Some(*rule));
    mark.indexes.filters &= wanted.filters;
    if mark.indexes == found {
        return Ok(());
    }
    if !wanted.filters {
        FILTER_TABLES.iter().for_each(|name| manifest.forget(name));
    }
    manifest.owner = row::encode_mark(&mark).to_vec();
    Ok(manifest.write(ManifestFile { storage, name: MANIFEST, kind: KIND })?)
}

impl Backend for MmapBackend {
    type Tables = MmapTables;
    type Maker = MmapRowMaker;

    const ADDS_PUSHDATA: bool = true;

    fn tables(&self) -> MmapTables {
        self.tables.clone()
    }

    fn maker(&self) -> MmapRowMaker {
        self.searches.maker()
    }

    fn unindexed(&self, most: usize) -> Result<Unindexed> {
        let blocks = self.blocks.reader().from(self.searches.end())?;
        let count = blocks.len() as u64;
        let next = blocks.take(most).map(|block| block.map(|(header, _)| header));
        Ok(Unindexed { next: next.collect::<Result<_>>()?, count })
    }

    fn index_block(&mut self, rows: MmapRows) -> Result<()> {
        let first = self.searches.end();
        let next = self.blocks.reader().from(first)?.next().transpose()?;
        let Some((_, end)) = next else { return Ok(()) };
        let count = end.saturating_sub(first.to_u64());
        let count = u32::try_from(count).map_err(|_| BackendError::dangling(first))?;
        self.searches.tend()?;
        self.searches.append(first, count, rows)?;
        if self.searches.is_due() { self.settle() } else { Ok(()) }
    }

    fn verify(&self) -> Result<()> {
        let tables: [&dyn Table; 5] =
            [&self.header, &self.tx_state, &self.candidate, &self.confirmed, &self.block_state];
        let tables = tables.into_iter().chain(self.blocks.tables()).chain(self.filters.tables());
        tables.into_iter().try_for_each(Table::verify)?;
        self.searches.verify()
    }

    fn saved(&self) -> Result<Saved> {
        let chain = |array: &Array| -> Result<Vec<HeaderLink>> {
            let reader = array.reader();
            (0..reader.len()).map(|index| row::header_link(reader.get(index)?)).collect()
        };
        let states = self.block_state.reader();
        let states = (0..states.len()).map(|index| row::decode_state(states.get(index)?));
        Ok(Saved {
            mark: row::decode_mark(&self.manifest.owner)?,
            bounds: self.bounds(),
            candidate: chain(&self.candidate)?,
            confirmed: chain(&self.confirmed)?,
            states: states.collect::<Result<_>>()?,
        })
    }

    fn bounds(&self) -> Bounds {
        let headers = u32::try_from(self.header.reader().rows()).expect("links are u32");
        Bounds { headers, txs: self.txs }
    }

    fn append_headers(&mut self, rows: &[HeaderRow]) -> Result<HeaderLink> {
        let rows: Vec<_> = rows.iter().map(row::encode_header).collect();
        let pending = self.header.set(&rows)?;
        let first = HeaderLink::new(pending.first().0);
        pending.commit();
        Ok(first)
    }

    fn append_block(&mut self, block: &NewBlock<'_>, rows: MmapRows) -> Result<BlockRow> {
        let searches = &mut self.searches;
        if searches.end().to_u64() < self.txs {
            let what = "searches lack the rows of older blocks: give them first";
            return Err(BackendError::Fault(what.into()));
        }
        searches.tend()?;
        let stored = self
            .blocks
            .append(block, |stored| searches.append(stored.first_tx, stored.tx_count, rows))?;
        self.txs += u64::from(stored.tx_count);
        Ok(stored)
    }

    fn set_chain(&mut self, chain: Chain, keep: u32, links: &[HeaderLink]) -> Result<()> {
        let array = match chain {
            Chain::Candidate => &mut self.candidate,
            Chain::Confirmed => &mut self.confirmed,
        };
        array.truncate(keep.into());
        for link in links {
            array.push(link.to_u32().into())?;
        }
        Ok(())
    }

    fn set_block_states(&mut self, states: &[(HeaderLink, BlockState)]) -> Result<()> {
        for (link, state) in states {
            let index = u64::from(link.to_u32());
            while self.block_state.reader().len() <= index {
                self.block_state.push(BlockState::Unknown.code().into())?;
            }
            self.block_state.set(index, state.code().into())?;
        }
        Ok(())
    }

    fn set_tx_states(&mut self, states: &[(TxLink, TxState)]) -> Result<()> {
        for (link, state) in states {
            self.tx_state.insert(&row::tx_key(*link), &row::encode_tx_state(state))?;
        }
        Ok(())
    }

    fn set_filters(&mut self, filters: &[(HeaderLink, FilterRow)]) -> Result<()> {
        for (link, filter) in filters {
            self.filters.put(*link, filter)?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, mark: &Mark) -> Result<()> {
        self.save(mark, self.heads())
    }

    fn rest(&mut self, mark: &Mark) -> Result<()> {
        self.save(mark, Heads::Save)?;
        self.searches.rest()
    }

    fn sizes(&self) -> Result<Vec<TableSize>> {
        self.table_sizes()
    }
}

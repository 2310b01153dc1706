//! The search tables: `tx` by txid, `spend` by point, `pushdata` by the hash of a pushed item.
//!
//! Each is a [`SearchTable`] in its own folder. This file keeps them in step with the blocks:
//!
//! - **A block** is appended to all of them. Any thread builds its rows beforehand, as
//!   [`MmapRows`].
//! - **After a checkpoint** they learn which transaction rows are *durable*, so that their links
//!   are never assigned again, and which are *deep*: in blocks at least [`MmapConfig::window`]
//!   blocks below the top of the confirmed chain, or stale blocks at such heights. Deep rows go to
//!   runs, those of stale blocks to separate runs.
//! - **After a crash** each table ends at its own link (`end`), before the last block. A table that
//!   was just added ends at zero. The blocks from the lowest end on are reported one by one
//!   ([`Searches::end`]), and the tables that lack their rows take them again.
//!
//! ```text
//! blocks, as archived    ─────────────────────────────────────────► bounds
//! tx                     ═══════ runs ════════╪═══ young ═══┤end
//! spend                  ═══════ runs ══╪═══ young ═════════┤end
//! pushdata               ═ runs ═┤end      ◄── lags: these blocks are read again
//! ```

use std::sync::{Arc, OnceLock};

use varve_io::Storage;
use varve_runs::{MANIFEST_FILE, Secret, StoreKey};
use varve_types::pushdata::PushdataRule;
use varve_types::{Outpoint, PushdataHash, Txid};

use super::blocks::BlocksReader;
use super::depth::Depth;
use super::files::is_search_file;
use super::{Error, MmapConfig};
use crate::backend::{BackendError, MakeRows, Match, Result};
use crate::link::TxLink;
use crate::primitive::{KeyHasher as _, Keyed, Manifest};
use crate::row::BlockKeys;
use crate::search::{
    Batch, Fingerprint, Order, SearchError, SearchMemory, SearchOptions, SearchReader, SearchSize,
    SearchTable, Settled,
};

const TX: &str = "tx";
const SPEND: &str = "spend";
const PUSHDATA: &str = "pushdata";

/// Shares of the memory, in proportion to the rows of each: a transaction has one txid, spends two
/// or three points, and pushes about four items.
const TX_SHARE: usize = 2;
const SPEND_SHARE: usize = 5;
const PUSHDATA_SHARE: usize = 8;

/// Blocks between two settlements while tables catch up.
const SETTLE_EVERY: u64 = 64;

impl From<SearchError> for BackendError {
    fn from(error: SearchError) -> Self {
        if error.is_disk_full() {
            Self::Full(Box::new(error))
        } else {
            Self::Fault(Box::new(error))
        }
    }
}

/// The rows of a block, sorted.
#[derive(Clone, Debug)]
pub struct MmapRows {
    tx: Batch,
    spend: Batch,
    pushdata: Batch,
}

/// Makes the rows of blocks, in any thread.
#[derive(Clone, Copy, Debug)]
pub struct MmapRowMaker {
    hasher: Keyed,
}

impl MakeRows for MmapRowMaker {
    type Rows = MmapRows;

    fn rows(&self, keys: &BlockKeys<'_>) -> MmapRows {
        let print = |key: &[u8]| Fingerprint::new(self.hasher.hash(key));
        let txids = (0..).zip(keys.txids).map(|(at, txid)| (print(txid.as_bytes()), at));
        let spends = keys.spends.iter().map(|(point, at)| (print(&point.to_bytes()), *at));
        let pushes = keys.pushes.iter().map(|(hash, at)| (print(hash.as_bytes()), *at));
        let [tx, spend] = [Batch::new(txids), Batch::new(spends)];
        MmapRows { tx, spend, pushdata: Batch::new(pushes) }
    }
}

/// A table, and the link up to which its rows have been settled as deep.
#[derive(Debug)]
struct Kept {
    name: &'static str,
    table: SearchTable,
    deep: TxLink,
}

/// The tables, as their writer sees them.
#[derive(Debug)]
pub(super) struct Searches {
    tx: Kept,
    spend: Kept,
    pushdata: Option<Kept>,
    maker: MmapRowMaker,
    /// Blocks whose rows were taken again since the store was opened.
    given_again: u64,
}

impl Searches {
    /// Opens the tables beside blocks with transaction rows up to `bound`. The archive's last
    /// checkpoint had pushdata under the rule `before`.
    pub(super) fn open(
        storage: &Arc<dyn Storage>,
        config: &MmapConfig,
        manifest: &Manifest,
        bound: TxLink,
        before: Option<PushdataRule>,
    ) -> Result<Self> {
        let open = |name: &'static str, options: SearchOptions| -> Result<Kept> {
            let folder = storage.directory(name).map_err(Error::from)?;
            let table = SearchTable::open(folder, store_key(manifest), options, bound)?;
            let (deep, owner) = table.watermark();
            check_name(name, owner)?;
            Ok(Kept { name, table, deep })
        };
        let [tx, spend, pushdata] = config.search_options();
        // Rows under another rule, or of an addition that was interrupted, are worth nothing.
        if config.indexes.pushdata.is_none() || config.indexes.pushdata != before {
            remove(storage, PUSHDATA)?;
        }
        let is_wanted = config.indexes.pushdata.is_some();
        let maker = MmapRowMaker { hasher: Keyed::new(manifest.secret) };
        Ok(Self {
            tx: open(TX, tx)?,
            spend: open(SPEND, spend)?,
            pushdata: is_wanted.then(|| open(PUSHDATA, pushdata)).transpose()?,
            maker,
            given_again: 0,
        })
    }

    pub(super) const fn maker(&self) -> MmapRowMaker {
        self.maker
    }

    fn all(&self) -> impl Iterator<Item = &Kept> {
        [&self.tx, &self.spend].into_iter().chain(&self.pushdata)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Kept> {
        [&mut self.tx, &mut self.spend].into_iter().chain(&mut self.pushdata)
    }

    /// The first transaction row that some table lacks.
    pub(super) fn end(&self) -> TxLink {
        self.all().map(|kept| kept.table.end()).min().unwrap_or_default()
    }

    /// Runs the tables' due work before a block. A full disk is an error only when their memory is
    /// full too.
    pub(super) fn tend(&mut self) -> Result<()> {
        for Kept { table, .. } in self.all_mut() {
            let tended = table.tend();
            let SearchMemory { young, young_max, .. } = table.memory();
            match tended {
                Err(error) if error.is_disk_full() && young <= young_max => {}
                tended => tended?,
            }
        }
        Ok(())
    }

    /// Appends the rows of the block whose `count` transactions have the links from `first` on, to
    /// the tables that end there.
    pub(super) fn append(&mut self, first: TxLink, count: u32, rows: MmapRows) -> Result<()> {
        let MmapRows { tx, spend, pushdata } = rows;
        for (Kept { table, .. }, batch) in self.all_mut().zip([tx, spend, pushdata]) {
            if table.end() == first {
                table.append(first, count, batch)?;
            }
        }
        Ok(())
    }

    /// Whether it is time to settle rows that were taken again.
    pub(super) fn is_due(&mut self) -> bool {
        self.given_again += 1;
        self.given_again.is_multiple_of(SETTLE_EVERY) || self.is_crowded()
    }

    /// The first transaction row whose search rows are not on disk.
    pub(super) fn saved_end(&self) -> TxLink {
        self.all().map(|kept| kept.table.saved_end()).min().unwrap_or_default()
    }

    /// Whether rows take more than their share of the memory until the next checkpoint.
    pub(super) fn is_crowded(&self) -> bool {
        self.all().any(|kept| kept.table.is_crowded())
    }

    /// Settles transaction rows: those below `durable` are saved, and the deep ones among them may
    /// leave the memory.
    pub(super) fn settle(&mut self, depth: &Depth<'_>, durable: TxLink) -> Result<()> {
        for kept in self.all_mut() {
            let durable = durable.min(kept.table.end());
            let (deep, stale) = depth.below(kept.deep, durable)?;
            let owner = kept.name.as_bytes();
            kept.table.settle(&Settled { durable, deep, stale: &stale, owner })?;
            kept.deep = deep;
        }
        Ok(())
    }

    /// Merges the runs of each table into one in the background, and returns whether merges are
    /// still running. On a full disk the runs stay as they are and still answer.
    pub(super) fn tidy(&mut self) -> Result<bool> {
        let mut is_busy = false;
        for Kept { table, .. } in self.all_mut() {
            match table.tidy() {
                Err(error) if error.is_disk_full() => {}
                tidied => is_busy |= tidied?,
            }
        }
        Ok(is_busy)
    }

    /// Bytes of the runs being merged: about how many are done, and all of them.
    pub(super) fn merging(&self) -> (u64, u64) {
        let tables = self.all().map(|kept| kept.table.merging());
        tables.fold((0, 0), |(done, all), (more, of)| (done + more, all + of))
    }

    /// Saves the young rows too.
    pub(super) fn rest(&mut self) -> Result<()> {
        self.all_mut().try_for_each(|kept| Ok(kept.table.rest()?))
    }

    pub(super) fn verify(&self) -> Result<()> {
        self.all().try_for_each(|kept| Ok(kept.table.verify()?))
    }

    pub(super) fn sizes(&self) -> impl Iterator<Item = (&'static str, SearchSize)> {
        self.all().map(|kept| (kept.name, kept.table.size()))
    }

    pub(super) fn memory(&self) -> impl Iterator<Item = SearchMemory> {
        self.all().map(|kept| kept.table.memory())
    }

    pub(super) fn reader(&self) -> SearchesReader {
        let reader = |kept: &Kept| LazyReader::open(kept.table.reader());
        SearchesReader {
            hasher: self.maker.hasher,
            tx: reader(&self.tx),
            spend: reader(&self.spend),
            pushdata: self.pushdata.as_ref().map(reader),
        }
    }
}

/// Refuses a folder that holds another table.
fn check_name(name: &str, owner: &[u8]) -> Result<()> {
    if owner.is_empty() || owner == name.as_bytes() {
        return Ok(());
    }
    let found = String::from_utf8_lossy(owner);
    let what =
        format!("the folder `{name}` of the archive holds the table `{found}`; run `varve repair`");
    Err(BackendError::Fault(what.into()))
}

fn store_key(manifest: &Manifest) -> StoreKey {
    StoreKey { id: manifest.store, secret: Secret::new(manifest.secret) }
}

/// Removes the files of an unwanted table. The manifest goes first: after a crash in between, the
/// remaining files belong to no table.
fn remove(storage: &Arc<dyn Storage>, name: &str) -> Result<()> {
    let removed = || -> varve_io::Result<()> {
        if !storage.list_others()?.iter().any(|folder| folder == name) {
            return Ok(());
        }
        let folder = storage.directory(name)?;
        let files = folder.list()?;
        for file in files.iter().filter(|file| *file == MANIFEST_FILE) {
            folder.remove(file)?;
            folder.sync_dir()?;
        }
        for file in files.iter().filter(|file| *file != MANIFEST_FILE && is_search_file(file)) {
            folder.remove(file)?;
        }
        folder.sync_dir()
    };
    Ok(removed().map_err(Error::from)?)
}

impl MmapConfig {
    /// The options of the three tables.
    fn search_options(&self) -> [SearchOptions; 3] {
        let pushdata = if self.indexes.pushdata.is_some() { PUSHDATA_SHARE } else { 0 };
        let part = self.search.memory / (TX_SHARE + SPEND_SHARE + pushdata);
        [TX_SHARE, SPEND_SHARE, pushdata].map(|share| {
            let memory = part.saturating_mul(share);
            SearchOptions { memory, ..self.search }
        })
    }
}

/// The tables, as a reader sees them.
#[derive(Clone, Debug)]
pub(super) struct SearchesReader {
    hasher: Keyed,
    tx: LazyReader,
    spend: LazyReader,
    pushdata: Option<LazyReader>,
}

impl SearchesReader {
    /// The tables of a store at rest, each opened by its first lookup. `None` when one of them
    /// lacks rows.
    pub(super) fn at_rest(
        storage: &Arc<dyn Storage>,
        config: &MmapConfig,
        manifest: &Manifest,
        blocks: &BlocksReader,
    ) -> Result<Option<Self>> {
        let bound = TxLink::new(blocks.txs()?);
        let folders = storage.list_others().map_err(Error::from)?;
        let open = |name: &str| -> Result<Option<LazyReader>> {
            if !folders.iter().any(|folder| folder == name) {
                return Ok(None);
            }
            let storage = storage.directory(name).map_err(Error::from)?;
            let key = store_key(manifest);
            match SearchReader::saved(&storage, key)? {
                Some((end, owner)) if end == bound => {
                    check_name(name, &owner)?;
                    Ok(Some(LazyReader::at_rest(AtRest { storage, key, bound })))
                }
                _ => Ok(None),
            }
        };
        let pushdata = config.indexes.pushdata.map(|_| open(PUSHDATA)).transpose()?;
        if pushdata.as_ref().is_some_and(Option::is_none) {
            return Ok(None);
        }
        let (Some(tx), Some(spend)) = (open(TX)?, open(SPEND)?) else { return Ok(None) };
        let hasher = Keyed::new(manifest.secret);
        Ok(Some(Self { hasher, tx, spend, pushdata: pushdata.flatten() }))
    }

    pub(super) fn find_txs(&self, txids: &[Txid], out: &mut Vec<Match>) -> Result<()> {
        let keys = txids.iter().map(|txid| self.hasher.hash(txid.as_bytes()));
        self.tx.find(keys, out)
    }

    pub(super) fn find_spenders(&self, points: &[Outpoint], out: &mut Vec<Match>) -> Result<()> {
        let keys = points.iter().map(|point| self.hasher.hash(&point.to_bytes()));
        self.spend.find(keys, out)
    }

    pub(super) fn find_pushes(
        &self,
        hash: PushdataHash,
        from: TxLink,
        limit: usize,
        out: &mut Vec<TxLink>,
    ) -> Result<()> {
        let Some(table) = &self.pushdata else { return Ok(()) };
        let Some(reader) = table.get()? else { return Ok(()) };
        let key = Fingerprint::new(self.hasher.hash(hash.as_bytes()));
        let mut rows = reader.cursor(key, from..TxLink::new(u64::MAX), Order::Ascending)?;
        while let Some(link) = rows.next()?.filter(|_| out.len() < limit) {
            out.push(link);
        }
        Ok(())
    }
}

/// A reader that is opened by its first lookup.
#[derive(Clone, Debug)]
struct LazyReader {
    reader: Arc<OnceLock<SearchReader>>,
    rest: Option<AtRest>,
}

/// What opens a table at rest.
#[derive(Clone, Debug)]
struct AtRest {
    storage: Arc<dyn Storage>,
    key: StoreKey,
    bound: TxLink,
}

impl LazyReader {
    fn open(reader: SearchReader) -> Self {
        Self { reader: Arc::new(reader.into()), rest: None }
    }

    fn at_rest(rest: AtRest) -> Self {
        Self { reader: Arc::default(), rest: Some(rest) }
    }

    fn find(&self, hashes: impl Iterator<Item = u64>, out: &mut Vec<Match>) -> Result<()> {
        let keys: Vec<_> = hashes.map(Fingerprint::new).collect();
        match self.get()? {
            Some(reader) => Ok(reader.find(&keys, out)?),
            None => Ok(()),
        }
    }

    fn get(&self) -> Result<Option<&SearchReader>> {
        if let (None, Some(AtRest { storage, key, bound })) = (self.reader.get(), &self.rest) {
            // When another thread was first, its reader is the one.
            let _ = self.reader.set(SearchReader::at_rest(storage, *key, *bound)?);
        }
        Ok(self.reader.get())
    }
}

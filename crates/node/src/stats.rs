//! The unspent set's figures at every height of the confirmed chain.
//!
//! A row a height, in a log of frames that lags: a question for a height computes the rows up to it
//! out of blocks and archive, and is one read afterwards. MuHash is a product, so a row is the row
//! below, times the coins that the block makes, divided by those that it spends.
//!
//! ```text
//!  0        4        36       44        52       60                 828
//!  ┌────────┬────────┬────────┬─────────┬────────┬──────────────────┐
//!  │ height │ block  │ txouts │ bogosize│ amount │ MuHash: product  │
//!  │ u32    │ 32 B   │ u64    │ u64     │ u64    │ and divisor 768 B│
//!  └────────┴────────┴────────┴─────────┴────────┴──────────────────┘
//! ```
//!
//! Rows are alike in length, so the row of height h is frame h. After a reorganisation the rows
//! from the fork on name other blocks; they are cut off. A torn end is cut off too, and made anew.
//! The file `checkpoint`, an envelope, holds the position (u64) up to which the log is durable, so
//! that opening it looks at what is behind that alone. A log that begins late is what a removal has
//! left. Whoever counts on (a sync, a question for a height) removes such a log and one that is
//! damaged, and counts again; `status` and `verify` change nothing and say what is damaged.

use std::sync::Arc;

use varve_archive::Chain as ArchiveChain;
use varve_io::Error::NotFound;
use varve_io::{
    Envelope, FRAME_HEADER_LEN, FileOffset, FormatError, GlobalOffset, Kind, Segments,
    SegmentsConfig, Storage, StoreId, load, replace,
};
use varve_types::muhash::MuHash;
use varve_types::{Amount, Block, BlockHash, Coin, Height, Outpoint, Reader, unspendable};

use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::organizer::Organizer;
use crate::snapshot::ArchiveView;
use crate::spent_coins::ArchivedCoins;
use crate::store_files::STATS;

const KIND: Kind = Kind(*b"SETSTATS");
const SEGMENT_SIZE: u64 = 64 << 20;
/// What says how far the log is durable. It goes before the log's files.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// How the names of the log's files begin.
pub(crate) const PREFIX: &str = "stats";
const CHECKPOINT_KIND: Kind = Kind(*b"STATSCP\0");
const CHECKPOINT_VERSION: u32 = 1;
const ROW_LEN: usize =
    size_of::<u32>() + size_of::<BlockHash>() + 3 * size_of::<u64>() + MuHash::LEN;
const _: () = assert!(ROW_LEN == 828);
/// Rows that are appended at once.
const BATCH: usize = 64;
/// Batches between two syncs: counting a long chain can be cut off, and goes on from there.
const SYNC_EVERY: u32 = 16;

/// What the set was at a height.
#[derive(Clone, Debug)]
pub struct SetStats {
    /// The height.
    pub height: Height,
    /// The block there.
    pub block: BlockHash,
    /// How many coins there were.
    pub txouts: u64,
    /// Core's measure of their size.
    pub bogosize: u64,
    /// What they were worth, in satoshi.
    pub total_amount: u64,
    muhash: MuHash,
}

impl SetStats {
    /// The hash of all coins, in internal byte order: Core shows it reversed.
    #[must_use]
    pub fn muhash(&self) -> [u8; 32] {
        self.muhash.finalize()
    }

    /// The genesis block leaves no coin.
    fn genesis(block: BlockHash) -> Self {
        let (height, muhash) = (Height::GENESIS, MuHash::new());
        Self { height, block, txouts: 0, bogosize: 0, total_amount: 0, muhash }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ROW_LEN);
        bytes.extend_from_slice(&self.height.to_u32().to_le_bytes());
        bytes.extend_from_slice(self.block.as_bytes());
        for figure in [self.txouts, self.bogosize, self.total_amount] {
            bytes.extend_from_slice(&figure.to_le_bytes());
        }
        bytes.extend_from_slice(&self.muhash.to_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let height = Height::new(reader.u32("a height").ok()?);
        let block = BlockHash::from_bytes(*reader.array("a block hash").ok()?);
        let txouts = reader.u64("a count").ok()?;
        let bogosize = reader.u64("a size").ok()?;
        let total_amount = reader.u64("an amount").ok()?;
        let muhash = MuHash::from_bytes(reader.array("a product").ok()?);
        reader.end().ok()?;
        Some(Self { height, block, txouts, bogosize, total_amount, muhash })
    }

    fn add(&mut self, point: &Outpoint, coin: &Coin<'_>, bytes: &mut Vec<u8>) {
        bytes.clear();
        coin.write_for_hash(point, bytes);
        self.muhash.insert(bytes);
        self.txouts = self.txouts.wrapping_add(1);
        self.bogosize = self.bogosize.wrapping_add(coin.bogosize());
        self.total_amount = self.total_amount.wrapping_add(coin.value.to_sat());
    }

    fn remove(&mut self, point: &Outpoint, coin: &Coin<'_>, bytes: &mut Vec<u8>) {
        bytes.clear();
        coin.write_for_hash(point, bytes);
        self.muhash.remove(bytes);
        self.txouts = self.txouts.wrapping_sub(1);
        self.bogosize = self.bogosize.wrapping_sub(coin.bogosize());
        self.total_amount = self.total_amount.wrapping_sub(coin.value.to_sat());
    }
}

impl Organizer {
    /// What the set was at a height of the confirmed chain. `progress` is told how many rows are
    /// done and how many there are to be.
    pub fn stats_at(
        &self,
        height: Height,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<SetStats, Error> {
        let snapshot = self.snapshot();
        let view = snapshot.view();
        let tip = snapshot.tip.0;
        if height > tip {
            return Err(Error::AboveTip { height, tip });
        }
        let mut log = self.open_stats()?;
        let mut last = last_row(&mut log, &view, tip)?;
        if height < last.height {
            return read_row(&log, height);
        }
        let (mut rows, mut batches) = (Vec::new(), 0);
        while last.height < height {
            last = self.next_row(&view, last)?;
            rows.push(last.encode());
            progress(last.height.to_u32().into(), height.to_u32().into());
            if rows.len() == BATCH || last.height == height {
                log.segments.append(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
                rows.clear();
                batches += 1;
                if batches % SYNC_EVERY == 0 {
                    log.sync()?;
                }
            }
        }
        log.sync()?;
        Ok(last)
    }

    /// Reads every row and compares it with its checksum and its height.
    pub(crate) fn verify_rows(&self) -> Result<(), Error> {
        let Some(log) = read_stats(&self.directory)? else { return Ok(()) };
        (0..log.rows()).try_for_each(|height| read_row(&log, Height::new(height)).map(drop))
    }

    /// All of it can be rebuilt, so nothing needs to be there.
    fn open_stats(&self) -> Result<Log, Error> {
        let store = self.directory.identity().store;
        let open = || Log::open(self.directory.root().directory("stats")?, store);
        match open() {
            Ok(log) if log.segments.start() == GlobalOffset::ZERO => Ok(log),
            Err(error) if !error.is_damage() && !matches!(error, NotFound { .. }) => {
                Err(error.into())
            }
            _ => {
                self.directory.clear(&STATS)?;
                Ok(open()?)
            }
        }
    }

    /// The row above `row`.
    fn next_row(&self, view: &ArchiveView, mut row: SetStats) -> Result<SetStats, Error> {
        let height = row.height.checked_add(1).unwrap_or_default();
        let what = || Error::Disagree { what: format!("block {height} is not archived") };
        let link = view.to_confirmed(height).ok_or_else(what)?;
        let hash = view.header(link)?.hash;
        let bytes = view.raw_block(link)?.ok_or_else(what)?;
        let block = Block::parse(&bytes, view.network().format())
            .map_err(|source| Error::Undecodable { hash, source })?;
        let again = self.options.params.bip30_exceptions.contains(&(height, hash));
        let replaced = again.then(|| ArchivedCoins::new(&self.stores));
        let mut buffer = Vec::new();
        for (txid, tx) in block.txids().into_iter().zip(block.txs()) {
            for (vout, output) in (0..).zip(tx.outputs()) {
                let point = Outpoint::new(txid, vout);
                if unspendable(view.network(), height, output.script) {
                    continue;
                }
                if let Some(old) = &replaced
                    && let Some(old) = old.find(block.header().previous(), &point)?
                {
                    row.remove(&point, &old.as_coin(), &mut buffer);
                }
                let (value, script) = (output.value, output.script);
                let coin = Coin { height, coinbase: tx.is_coinbase(), value, script };
                row.add(&point, &coin, &mut buffer);
            }
        }
        for spent in view.block_prevouts(link)?.unwrap_or_default() {
            let spent = spent.ok_or_else(what)?;
            let (value, script): (Amount, &[u8]) = (spent.value, &spent.script);
            let (height, coinbase) = (spent.tx.height, spent.tx.is_coinbase());
            row.remove(&spent.point(), &Coin { height, coinbase, value, script }, &mut buffer);
        }
        (row.height, row.block) = (height, hash);
        Ok(row)
    }
}

/// The highest row that is there, at most up to the tip.
pub(crate) fn counted(directory: &DataDirectory, tip: Height) -> Result<Option<Height>, Error> {
    let last = read_stats(directory)?.and_then(|log| log.rows().checked_sub(1));
    Ok(last.map(|last| Height::new(last).min(tip)))
}

/// The log as it is; `None` when there is none.
fn read_stats(directory: &DataDirectory) -> Result<Option<Log>, Error> {
    let storage = directory.root().directory("stats")?;
    if storage.list()?.iter().all(|name| name == varve_io::LOCK_FILE) {
        return Ok(None);
    }
    let log = Log::open(storage, directory.identity().store)?;
    Ok(Some(log).filter(|log| log.segments.start() == GlobalOffset::ZERO))
}

/// The log of rows.
struct Log {
    storage: Arc<dyn Storage>,
    segments: Segments,
    /// As the checkpoint says.
    durable: GlobalOffset,
}

impl Log {
    fn open(storage: Arc<dyn Storage>, store: StoreId) -> varve_io::Result<Self> {
        let prefix = PREFIX.to_owned();
        let config = SegmentsConfig { prefix, kind: KIND, store, segment_size: SEGMENT_SIZE };
        let durable = read_checkpoint(storage.as_ref())?;
        let segments = Segments::open(Arc::clone(&storage), config, durable)?;
        Ok(Self { storage, segments, durable })
    }

    fn rows(&self) -> u32 {
        u32::try_from(self.segments.end().get() / frame_len()).unwrap_or(u32::MAX)
    }

    /// Makes all rows durable.
    fn sync(&mut self) -> varve_io::Result<()> {
        let end = self.segments.sync()?;
        self.checkpoint(end)
    }

    /// Cuts off the rows from this position on.
    fn truncate(&mut self, to: GlobalOffset) -> varve_io::Result<()> {
        self.checkpoint(self.durable.min(to))?;
        self.segments.truncate(to)
    }

    fn checkpoint(&mut self, durable: GlobalOffset) -> varve_io::Result<()> {
        if durable == self.durable {
            return Ok(());
        }
        let payload = durable.get().to_le_bytes();
        let envelope = Envelope { version: CHECKPOINT_VERSION, payload: payload.as_slice() };
        replace(self.storage.as_ref(), CHECKPOINT, CHECKPOINT_KIND, &envelope)?;
        self.durable = durable;
        Ok(())
    }
}

fn read_checkpoint(storage: &dyn Storage) -> varve_io::Result<GlobalOffset> {
    let Some(found) = load(storage, CHECKPOINT, CHECKPOINT_KIND)? else {
        return Ok(GlobalOffset::ZERO);
    };
    let path = storage.path().join(CHECKPOINT);
    if found.version != CHECKPOINT_VERSION {
        let error = FormatError::Version { found: found.version, supported: CHECKPOINT_VERSION };
        return Err(error.in_file(&path, FileOffset::ZERO));
    }
    let damaged = FormatError::Damaged { at: 0, what: "a checkpoint of another length" };
    let end = <[u8; 8]>::try_from(found.payload.as_slice());
    let end = end.map_err(|_| damaged.in_file(&path, FileOffset::ZERO))?;
    Ok(GlobalOffset::new(u64::from_le_bytes(end)))
}

/// The highest row that is of the confirmed chain; those above it are cut off.
fn last_row(log: &mut Log, view: &ArchiveView, tip: Height) -> Result<SetStats, Error> {
    let rows = log.rows();
    let mut height = rows.checked_sub(1).map(|last| Height::new(last).min(tip));
    while let Some(at) = height {
        let row = read_row(log, at)?;
        let link = view.at(ArchiveChain::Confirmed, at);
        let hash = link.map(|link| view.header(link)).transpose()?.map(|row| row.hash);
        if hash == Some(row.block) {
            if at.to_u32() + 1 < rows && at < tip {
                log.truncate(place(at.checked_add(1).unwrap_or_default()))?;
            }
            return Ok(row);
        }
        height = at.checked_sub(1);
    }
    log.truncate(GlobalOffset::ZERO)?;
    let genesis = SetStats::genesis(view.network().genesis_hash());
    log.segments.append(&[&genesis.encode()])?;
    Ok(genesis)
}

fn read_row(log: &Log, height: Height) -> Result<SetStats, Error> {
    let damaged = FormatError::Damaged { at: 0, what: "a row of another height or length" };
    let frame = log.segments.reader().frame(place(height))?;
    let row = SetStats::decode(&frame).filter(|row| row.height == height);
    Ok(row.ok_or_else(|| damaged.in_file("stats".as_ref(), FileOffset::ZERO))?)
}

const fn frame_len() -> u64 {
    (FRAME_HEADER_LEN + ROW_LEN) as u64
}

const fn place(height: Height) -> GlobalOffset {
    GlobalOffset::new(height.to_u32() as u64 * frame_len())
}

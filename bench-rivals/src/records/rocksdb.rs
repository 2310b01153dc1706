//! `RocksDB` with the plain mapping.
//!
//! - A batch is read by one sorted, batched lookup, applied in memory and written as one write
//!   batch, under a lock, since nothing else serialises the spends.
//! - The log is synced outside the lock: the next caller works meanwhile, and one sync covers all
//!   earlier writes. That is its group commit.
//! - Filters on every level, because half of the lookups are of transactions that have no record.
//! - The stock is ingested as sorted tables. No compression: hashes do not compress.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DataBlockIndexType, IngestExternalFileOptions,
    IteratorMode, Options, SstFileWriter, WriteBatch,
};
use varve_records::Operation;

use super::digest::RecordsDigest;
use super::plain;
use super::side::{Memory, Side, units};
use super::step::Step;

/// The column family that everything is in.
const DEFAULT: &str = "default";
/// Bytes of a table that is ingested.
const TABLE_LEN: usize = 64 << 20;

/// Records in `RocksDB`.
pub(super) struct RocksDb {
    db: DB,
    options: Options,
    folder: PathBuf,
    turn: Mutex<()>,
    /// Complete tables, and the content of the next one.
    tables: Vec<PathBuf>,
    next: Vec<(Vec<u8>, Vec<u8>)>,
    next_len: usize,
}

impl RocksDb {
    pub(super) fn open(folder: &Path, memory: Memory) -> Result<Self> {
        let options = options(memory)?;
        let family = [(DEFAULT, options.clone())];
        let db = DB::open_cf_with_opts(&options, folder.join("rocksdb"), family)?;
        let (folder, turn) = (folder.to_owned(), Mutex::new(()));
        Ok(Self { db, options, folder, turn, tables: Vec::new(), next: Vec::new(), next_len: 0 })
    }

    /// Writes the next table.
    fn write_table(&mut self) -> Result<()> {
        if self.next.is_empty() {
            return Ok(());
        }
        let path = self.folder.join(format!("load-{}.sst", self.tables.len()));
        let mut table = SstFileWriter::create(&self.options);
        table.open(&path)?;
        for (key, value) in self.next.drain(..) {
            table.put(key, value)?;
        }
        table.finish()?;
        self.next_len = 0;
        self.tables.push(path);
        Ok(())
    }

    /// Reads, applies and writes a batch.
    fn step(&self, operations: &[Operation]) -> Result<usize> {
        let keys = Step::keys(operations)?;
        let family = self.db.cf_handle(DEFAULT).context("the default family is not open")?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut step = Step::default();
        let values =
            self.db.batched_multi_get_cf(&family, keys.iter().map(|key| key.as_bytes()), true);
        for (txid, value) in keys.iter().zip(values) {
            step.hold(*txid, value?.map(|value| value.to_vec()));
        }
        let refused = step.apply(operations)?;
        let mut batch = WriteBatch::default();
        step.changed().for_each(|(txid, value)| batch.put(txid.as_bytes(), value));
        self.db.write(batch)?;
        Ok(refused)
    }
}

/// A third of the memory is the block cache, two parts of twelve are memtables; the page cache has
/// the rest.
fn options(memory: Memory) -> Result<Options> {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(usize::try_from(memory.share(3))?));
    table.set_bloom_filter(10.0, false);
    table.set_format_version(5);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    table.set_data_block_hash_ratio(0.75);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::None);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_write_buffer_size(usize::try_from(memory.share(12))?);
    options.set_max_write_buffer_number(2);
    options.set_memtable_whole_key_filtering(true);
    options.set_memtable_prefix_bloom_ratio(0.1);
    options.set_target_file_size_base(64 << 20);
    options.set_max_bytes_for_level_base(256 << 20);
    options.set_recycle_log_file_num(2);
    options.increase_parallelism(2);
    options.set_max_background_jobs(2);
    options.set_use_direct_io_for_flush_and_compaction(true);
    options.set_max_open_files(-1);
    options.set_keep_log_file_num(1);
    Ok(options)
}

impl Side for RocksDb {
    fn load(&mut self, operations: &[Operation]) -> Result<()> {
        for unit in units(operations) {
            let unit = unit?;
            let value = plain::encode_new(unit.create.as_ref().context("the stock is created")?)?;
            self.next_len += value.len();
            self.next.push((unit.txid.as_bytes().to_vec(), value));
        }
        if self.next_len > TABLE_LEN { self.write_table() } else { Ok(()) }
    }

    fn loaded(&mut self) -> Result<()> {
        self.write_table()?;
        let mut ingest = IngestExternalFileOptions::default();
        ingest.set_move_files(true);
        let tables = std::mem::take(&mut self.tables);
        Ok(self.db.ingest_external_file_opts(&ingest, tables)?)
    }

    fn apply(&self, operations: &[Operation]) -> Result<usize> {
        let refused = self.step(operations)?;
        self.db.flush_wal(true)?;
        Ok(refused)
    }

    fn digest(&self) -> Result<RecordsDigest> {
        let mut digest = RecordsDigest::default();
        for entry in self.db.iterator(IteratorMode::Start) {
            let (key, value) = entry?;
            digest.add(&key, &value);
        }
        Ok(digest)
    }
}

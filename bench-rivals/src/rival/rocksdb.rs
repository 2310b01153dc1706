//! `RocksDB`: no write-ahead log, sorted and batched lookups, filters, a large block cache.
//!
//! - The stock comes in as sorted table files that are ingested, which puts them at the bottom.
//! - One write batch a block; `flush` at the end makes all of it durable.
//! - Every lookup finds its coin, so the bottom level needs no filter; the levels above have ribbon
//!   filters, kept in memory with the indexes.
//! - No compression: txids and hashes of keys do not compress.
//! - Two background jobs, as many as there are processors.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DB, DBCompressionType, DataBlockIndexType,
    IteratorMode, Options, SstFileWriter, WriteBatch, WriteOptions,
};
use varve_consensus::BlockAt;

use crate::digest::{Found, SetDigest};
use crate::key::Key;
use crate::side::{Net, Side, each_coin, packed, unpacked};

/// Keys per call of the batched lookup: more do not make it faster.
const LOOKUP_BATCH: usize = 1_024;
/// Bytes of a file that is ingested.
const TABLE_LEN: u64 = 256 << 20;

/// The column family that everything is in.
const DEFAULT: &str = "default";

/// How the memory is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) block_cache: usize,
    /// Two of these.
    pub(crate) memtable: usize,
}

/// The set in `RocksDB`.
pub(crate) struct RocksDb {
    db: DB,
    options: Options,
    path: PathBuf,
    writes: WriteOptions,
}

impl RocksDb {
    pub(crate) fn open(path: &Path, memory: Memory) -> Result<Self> {
        let options = options(memory);
        // The batched lookup wants the handle of a family, also of the one that is always there.
        let family = [(DEFAULT, options.clone())];
        let db = DB::open_cf_with_opts(&options, path.join("rocksdb"), family)?;
        let mut writes = WriteOptions::default();
        writes.disable_wal(true);
        Ok(Self { db, options, path: path.to_owned(), writes })
    }

    /// Looks up sorted keys, all of which must be there.
    pub(crate) fn get(
        &self,
        keys: &[Key],
        mut each: impl FnMut(&Key, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let family = self.db.cf_handle(DEFAULT).context("the default family is not open")?;
        for part in keys.chunks(LOOKUP_BATCH) {
            let values = self.db.batched_multi_get_cf(&family, part, true);
            for (key, value) in part.iter().zip(values) {
                let value = value?.context("a prevout is not in RocksDB")?;
                each(key, &value)?;
            }
        }
        Ok(())
    }

    pub(crate) fn write(&self, batch: WriteBatch) -> Result<()> {
        Ok(self.db.write_opt(batch, &self.writes)?)
    }
}

fn options(memory: Memory) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(memory.block_cache));
    table.set_bloom_filter(10.0, false);
    table.set_format_version(5);
    table.set_index_type(BlockBasedIndexType::BinarySearch);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    table.set_data_block_hash_ratio(0.75);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::None);
    options.set_optimize_filters_for_hits(true);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_write_buffer_size(memory.memtable);
    options.set_max_write_buffer_number(2);
    options.set_memtable_whole_key_filtering(true);
    options.set_memtable_prefix_bloom_ratio(0.1);
    options.set_target_file_size_base(64 << 20);
    options.set_max_bytes_for_level_base(512 << 20);
    options.increase_parallelism(2);
    options.set_max_background_jobs(2);
    options.set_use_direct_io_for_flush_and_compaction(true);
    options.set_max_open_files(-1);
    options.set_keep_log_file_num(1);
    options
}

impl Side for RocksDb {
    type Ready<'b> = Net;

    fn load(&mut self, snapshot: &mut dyn Read) -> Result<()> {
        let mut tables: Vec<PathBuf> = Vec::new();
        let mut writer: Option<SstFileWriter<'_>> = None;
        each_coin(snapshot, |outpoint, coin| {
            if writer.as_ref().is_some_and(|writer| writer.file_size() > TABLE_LEN)
                && let Some(mut full) = writer.take()
            {
                full.finish()?;
            }
            let writer = match &mut writer {
                Some(writer) => writer,
                none => {
                    let table = self.path.join(format!("load-{}.sst", tables.len()));
                    let next = none.insert(SstFileWriter::create(&self.options));
                    next.open(&table)?;
                    tables.push(table);
                    next
                }
            };
            Ok(writer.put(Key::of(outpoint), packed(coin))?)
        })?;
        if let Some(mut last) = writer {
            last.finish()?;
        }
        let mut ingest = rocksdb::IngestExternalFileOptions::default();
        ingest.set_move_files(true);
        Ok(self.db.ingest_external_file_opts(&ingest, tables)?)
    }

    fn prepare<'b>(&self, block: BlockAt<'b>) -> Net {
        Net::of(&block)
    }

    fn connect(&mut self, blocks: &[Net]) -> Result<Found> {
        let mut found = Found::default();
        let mut script = Vec::new();
        for block in blocks {
            found.join(&block.inner);
            let mut batch = WriteBatch::default();
            self.get(&block.spent, |key, value| {
                let coin = unpacked(value, &mut script)?;
                found.add(coin.value.to_sat(), coin.script);
                batch.delete(key);
                Ok(())
            })?;
            block.made.iter().for_each(|(key, coin)| batch.put(key, coin));
            self.write(batch)?;
        }
        Ok(found)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn digest(&mut self) -> Result<SetDigest> {
        let mut digest = SetDigest::default();
        let mut script = Vec::new();
        for entry in self.db.iterator(IteratorMode::Start) {
            let (key, value) = entry?;
            digest.add(&Key::outpoint(&key)?, &unpacked(&value, &mut script)?);
        }
        Ok(digest)
    }
}

//! `RocksDB` as an index: a column family a table, keys of hash and link, empty values.
//!
//! - No write-ahead log; one write batch a block, its keys sorted.
//! - No filters, and LZ4 at the bottom level alone, where the zeros of the keys' trailers compress:
//!   what makes it fast and small.
//! - Two background jobs, as many as there are processors, past the page cache.
//! - Two settings: compaction by level, which is the default, and universal compaction, which
//!   writes less. The better one of each figure counts.

use std::path::Path;

use anyhow::{Context as _, Result};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, DB, DBCompactionStyle, DBCompressionType, Direction,
    IteratorMode, Options, WaitForCompactOptions, WriteBatch, WriteOptions,
};

use super::rows::{BlockRows, Both, Kind};
use super::side::{Key, Side, keys, link, prefix};

const MIB: usize = 1 << 20;
const BLOCK_CACHE: usize = 256 * MIB;
/// Of each table, up to three at a time.
const MEMTABLE: usize = 128 * MIB;

/// How it compacts.
pub(super) use rocksdb::DBCompactionStyle as Style;

/// Both tables in `RocksDB`.
pub(super) struct RocksDb {
    db: DB,
    writes: WriteOptions,
}

impl RocksDb {
    pub(super) fn open(folder: &Path, style: Style) -> Result<Self> {
        let options = options(style);
        let families = Kind::ALL.map(|kind| (kind.name(), options.clone()));
        let db = DB::open_cf_with_opts(&options, folder.join("rocksdb"), families)?;
        let mut writes = WriteOptions::default();
        writes.disable_wal(true);
        Ok(Self { db, writes })
    }

    fn family(&self, kind: Kind) -> Result<&ColumnFamily> {
        self.db.cf_handle(kind.name()).context("a column family is not open")
    }
}

fn options(style: Style) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(BLOCK_CACHE));
    table.set_format_version(5);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::None);
    options.set_bottommost_compression_type(DBCompressionType::Lz4);
    options.set_compaction_style(style);
    options.set_level_compaction_dynamic_level_bytes(matches!(style, DBCompactionStyle::Level));
    options.set_write_buffer_size(MEMTABLE);
    options.set_max_write_buffer_number(3);
    options.set_target_file_size_base(64 << 20);
    options.set_max_bytes_for_level_base(512 << 20);
    options.increase_parallelism(2);
    options.set_max_background_jobs(2);
    options.set_max_subcompactions(2);
    options.set_use_direct_io_for_flush_and_compaction(true);
    options.set_max_open_files(-1);
    options.set_keep_log_file_num(1);
    options
}

impl Side for RocksDb {
    type Ready = Both<Vec<Key>>;

    fn prepare(block: BlockRows) -> Self::Ready {
        keys(&block)
    }

    fn append(&mut self, block: Self::Ready) -> Result<()> {
        let mut batch = WriteBatch::default();
        for kind in Kind::ALL {
            let family = self.family(kind)?;
            block.of(kind).iter().for_each(|key| batch.put_cf(family, key, []));
        }
        Ok(self.db.write_opt(batch, &self.writes)?)
    }

    fn finish(&mut self) -> Result<()> {
        let mut options = WaitForCompactOptions::default();
        options.set_flush(true);
        Ok(self.db.wait_for_compact(&options)?)
    }

    fn find(&self, kind: Kind, hash: u64) -> Result<Vec<u64>> {
        let prefix = prefix(hash);
        let from = IteratorMode::From(&prefix, Direction::Forward);
        let mut links = Vec::new();
        for entry in self.db.iterator_cf(self.family(kind)?, from) {
            let (key, _) = entry?;
            if !key.starts_with(&prefix) {
                break;
            }
            links.push(link(&key)?);
        }
        links.sort_unstable();
        Ok(links)
    }

    fn rows(&self) -> Result<u64> {
        let mut rows = 0;
        for kind in Kind::ALL {
            for entry in self.db.iterator_cf(self.family(kind)?, IteratorMode::Start) {
                entry?;
                rows += 1;
            }
        }
        Ok(rows)
    }
}

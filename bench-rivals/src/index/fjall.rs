//! fjall 3 as an index: a keyspace a table, keys of hash and link, empty values.
//!
//! Its journal cannot be switched off; it is not synced before the end. No filters, as in
//! `RocksDB`; LZ4 as it has it by default.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use fjall::config::FilterPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::rows::{BlockRows, Both, Kind};
use super::side::{Key, Side, keys, link, prefix};

const CACHE: u64 = 256 << 20;
/// Of each table.
const MEMTABLE: u64 = 128 << 20;
/// How often it is polled for compactions, and how many polls in a row must find none: a compaction
/// that ends may start another.
const ASK_EVERY: Duration = Duration::from_millis(50);
const ASKED: u32 = 4;

/// Both tables in fjall.
pub(super) struct Fjall {
    db: Database,
    tables: Both<Keyspace>,
}

impl Fjall {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let db = Database::builder(folder.join("fjall"))
            .cache_size(CACHE)
            .worker_threads(2)
            .manual_journal_persist(true)
            .open()?;
        let tables = Both::try_new(|kind| {
            db.keyspace(kind.name(), || {
                KeyspaceCreateOptions::default()
                    .filter_policy(FilterPolicy::disabled())
                    .max_memtable_size(MEMTABLE)
            })
        })?;
        Ok(Self { db, tables })
    }

    /// Where it keeps its tables. Journals are elsewhere and are removed some time after they are
    /// obsolete.
    pub(super) fn tables(folder: &Path) -> PathBuf {
        folder.join("fjall").join("keyspaces")
    }
}

impl Side for Fjall {
    type Ready = Both<Vec<Key>>;

    fn prepare(block: BlockRows) -> Self::Ready {
        keys(&block)
    }

    fn append(&mut self, block: Self::Ready) -> Result<()> {
        let mut batch = self.db.batch();
        for kind in Kind::ALL {
            let table = self.tables.of(kind);
            block.of(kind).iter().for_each(|key| batch.insert(table, key.as_slice(), []));
        }
        Ok(batch.commit()?)
    }

    fn finish(&mut self) -> Result<()> {
        for kind in Kind::ALL {
            self.tables.of(kind).rotate_memtable_and_wait()?;
        }
        let mut idle = 0;
        while idle < ASKED {
            std::thread::sleep(ASK_EVERY);
            idle = if self.db.active_compactions() == 0 { idle + 1 } else { 0 };
        }
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }

    fn find(&self, kind: Kind, hash: u64) -> Result<Vec<u64>> {
        let found = self.tables.of(kind).prefix(prefix(hash));
        let mut links = found.map(|entry| link(&entry.key()?)).collect::<Result<Vec<u64>>>()?;
        links.sort_unstable();
        Ok(links)
    }

    fn rows(&self) -> Result<u64> {
        let mut rows = 0;
        for kind in Kind::ALL {
            rows += self.tables.of(kind).len()? as u64;
        }
        Ok(rows)
    }
}

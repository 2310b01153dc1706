//! fjall 3: one write batch a block, filters, a large cache.
//!
//! Its journal cannot be switched off; it is not synced before the end. The stock is ingested
//! sorted. As in `RocksDB`, every lookup finds its coin and nothing is compressed.

use std::io::Read;
use std::path::Path;

use anyhow::{Context as _, Result};
use fjall::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PinningPolicy,
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use varve_consensus::BlockAt;

use crate::digest::{Found, SetDigest};
use crate::key::Key;
use crate::side::{Net, Side, each_coin, packed, unpacked};

/// The set in fjall.
pub(crate) struct Fjall {
    db: Database,
    coins: Keyspace,
}

impl Fjall {
    /// Opens a new set with a block cache of `cache` bytes.
    pub(crate) fn open(path: &Path, cache: u64) -> Result<Self> {
        let db = Database::builder(path.join("fjall"))
            .cache_size(cache)
            .worker_threads(2)
            .manual_journal_persist(true)
            .open()?;
        let coins = db.keyspace("coins", || {
            let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
            KeyspaceCreateOptions::default()
                .filter_policy(FilterPolicy::all(bloom))
                .filter_block_pinning_policy(PinningPolicy::all(true))
                .index_block_pinning_policy(PinningPolicy::all(true))
                .expect_point_read_hits(true)
                .data_block_compression_policy(CompressionPolicy::disabled())
                .max_memtable_size(128 << 20)
        })?;
        Ok(Self { db, coins })
    }
}

impl Side for Fjall {
    type Ready<'b> = Net;

    fn load(&mut self, snapshot: &mut dyn Read) -> Result<()> {
        let mut ingestion = self.coins.start_ingestion()?;
        each_coin(snapshot, |outpoint, coin| {
            Ok(ingestion.write(Key::of(outpoint).as_bytes(), packed(coin))?)
        })?;
        Ok(ingestion.finish()?)
    }

    fn prepare<'b>(&self, block: BlockAt<'b>) -> Net {
        Net::of(&block)
    }

    fn connect(&mut self, blocks: &[Net]) -> Result<Found> {
        let mut found = Found::default();
        let mut script = Vec::new();
        for block in blocks {
            found.join(&block.inner);
            let mut batch = self.db.batch();
            for key in &block.spent {
                let value = self.coins.get(key)?.context("a prevout is not in fjall")?;
                let coin = unpacked(&value, &mut script)?;
                found.add(coin.value.to_sat(), coin.script);
                batch.remove(&self.coins, key.as_bytes());
            }
            for (key, coin) in &block.made {
                batch.insert(&self.coins, key.as_bytes(), coin.as_slice());
            }
            batch.commit()?;
        }
        Ok(found)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }

    fn digest(&mut self) -> Result<SetDigest> {
        let mut digest = SetDigest::default();
        let mut script = Vec::new();
        for entry in self.coins.iter() {
            let (key, value) = entry.into_inner()?;
            digest.add(&Key::outpoint(&key)?, &unpacked(&value, &mut script)?);
        }
        Ok(digest)
    }
}

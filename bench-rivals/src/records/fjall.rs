//! fjall 3 with the plain mapping, like `RocksDB`: a lock around read, apply and write, a sync of
//! the journal outside it. It has no batched lookup.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use fjall::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PinningPolicy,
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use varve_records::Operation;

use super::digest::RecordsDigest;
use super::plain;
use super::side::{Memory, Side, units};
use super::step::Step;

/// Bytes that are ingested at a time.
const PART_LEN: usize = 64 << 20;

/// Records in fjall.
pub(super) struct Fjall {
    db: Database,
    records: Keyspace,
    turn: Mutex<()>,
    /// What is ingested next.
    next: Vec<([u8; 32], Vec<u8>)>,
    next_len: usize,
}

impl Fjall {
    pub(super) fn open(folder: &Path, memory: Memory) -> Result<Self> {
        let db = Database::builder(folder.join("fjall"))
            .cache_size(memory.share(3))
            .worker_threads(2)
            .manual_journal_persist(true)
            .open()?;
        let records = db.keyspace("records", || {
            let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
            KeyspaceCreateOptions::default()
                .filter_policy(FilterPolicy::all(bloom))
                .filter_block_pinning_policy(PinningPolicy::all(true))
                .index_block_pinning_policy(PinningPolicy::all(true))
                .data_block_compression_policy(CompressionPolicy::disabled())
                .max_memtable_size(memory.share(12))
        })?;
        let (turn, next) = (Mutex::new(()), Vec::new());
        Ok(Self { db, records, turn, next, next_len: 0 })
    }

    fn ingest(&mut self) -> Result<()> {
        self.next_len = 0;
        let mut ingestion = self.records.start_ingestion()?;
        for (key, value) in self.next.drain(..) {
            ingestion.write(key, value)?;
        }
        Ok(ingestion.finish()?)
    }

    fn step(&self, operations: &[Operation]) -> Result<usize> {
        let keys = Step::keys(operations)?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut step = Step::default();
        for txid in keys {
            let value = self.records.get(txid.as_bytes())?;
            step.hold(txid, value.map(|value| value.to_vec()));
        }
        let refused = step.apply(operations)?;
        let mut batch = self.db.batch();
        for (txid, value) in step.changed() {
            batch.insert(&self.records, txid.as_bytes().as_slice(), value.as_slice());
        }
        batch.commit()?;
        Ok(refused)
    }
}

impl Side for Fjall {
    fn load(&mut self, operations: &[Operation]) -> Result<()> {
        for unit in units(operations) {
            let unit = unit?;
            let value = plain::encode_new(unit.create.as_ref().context("the stock is created")?)?;
            self.next_len += value.len();
            self.next.push((*unit.txid.as_bytes(), value));
        }
        if self.next_len > PART_LEN { self.ingest() } else { Ok(()) }
    }

    fn loaded(&mut self) -> Result<()> {
        if self.next.is_empty() { Ok(()) } else { self.ingest() }
    }

    fn apply(&self, operations: &[Operation]) -> Result<usize> {
        let refused = self.step(operations)?;
        self.db.persist(PersistMode::SyncData)?;
        Ok(refused)
    }

    fn digest(&self) -> Result<RecordsDigest> {
        let mut digest = RecordsDigest::default();
        for entry in self.records.iter() {
            let (key, value) = entry.into_inner()?;
            digest.add(&key, &value);
        }
        Ok(digest)
    }
}

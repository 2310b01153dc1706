//! A write-back cache of coins before `RocksDB`, as Core has one before its database.
//!
//! - A coin that is made stays in the cache as *fresh*: the database has never seen it.
//! - A fresh coin that is spent disappears, and is never written.
//! - A coin of the database that is spent leaves a tombstone.
//! - When the cache is full, everything is written and the cache is emptied.
//!
//! What is not in the cache is looked up in one sorted batch a block, which is more than Core does.

use std::io::Read;

use anyhow::Result;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use rocksdb::WriteBatch;
use varve_consensus::BlockAt;

use crate::digest::{Found, SetDigest};
use crate::key::Key;
use crate::rival::inline_coin::InlineCoin;
use crate::rival::rocksdb::RocksDb;
use crate::side::{Net, Side, packed, unpacked};

/// Bytes of a cached coin: key, coin, and the table's byte of control.
const ENTRY_LEN: usize = size_of::<(Key, Option<InlineCoin>)>() + 1;
/// Coins a write batch.
const WRITE_BATCH: usize = 10_000;

/// The cache and what is below it.
pub(crate) struct CoinCache {
    /// `None`: spent, but still in the database.
    coins: HashMap<Key, Option<InlineCoin>, foldhash::fast::RandomState>,
    capacity: usize,
    below: RocksDb,
}

impl CoinCache {
    /// A cache of `memory` bytes.
    pub(crate) fn new(below: RocksDb, memory: usize) -> Self {
        // Tables are powers of two, filled to seven eighths.
        let slots = (memory / ENTRY_LEN + 1).next_power_of_two() / 2;
        let capacity = slots / 8 * 7;
        let coins = HashMap::with_capacity_and_hasher(capacity, Default::default());
        Self { coins, capacity, below }
    }

    fn write_all(&mut self) -> Result<()> {
        // In key order, which suits the memtable.
        let mut keys: Vec<Key> = self.coins.keys().copied().collect();
        keys.sort_unstable();
        for part in keys.chunks(WRITE_BATCH) {
            let mut batch = WriteBatch::default();
            for key in part {
                match self.coins.get(key) {
                    Some(Some(coin)) => batch.put(key, packed(&coin.as_coin())),
                    Some(None) => batch.delete(key),
                    None => (),
                }
            }
            self.below.write(batch)?;
        }
        self.coins.clear();
        Ok(())
    }

    fn connect_one(&mut self, block: &Net, found: &mut Found) -> Result<()> {
        found.join(&block.inner);
        let mut missing = Vec::new();
        for key in &block.spent {
            match self.coins.entry(*key) {
                Entry::Occupied(coin) => {
                    // Fresh, like everything in the cache that is not a tombstone.
                    if let Some(coin) = coin.remove() {
                        found.add(coin.satoshi(), coin.script());
                    }
                }
                Entry::Vacant(_) => missing.push(*key),
            }
        }
        let mut script = Vec::new();
        self.below.get(&missing, |_, value| {
            let coin = unpacked(value, &mut script)?;
            found.add(coin.value.to_sat(), coin.script);
            Ok(())
        })?;
        self.coins.extend(missing.into_iter().map(|key| (key, None)));
        for (key, coin) in &block.made {
            let coin = InlineCoin::of(&unpacked(coin, &mut script)?)?;
            self.coins.insert(*key, Some(coin));
        }
        let next = block.spent.len() + block.made.len();
        if self.coins.len() + next > self.capacity { self.write_all() } else { Ok(()) }
    }
}

impl Side for CoinCache {
    type Ready<'b> = Net;

    fn load(&mut self, snapshot: &mut dyn Read) -> Result<()> {
        self.below.load(snapshot)
    }

    fn prepare<'b>(&self, block: BlockAt<'b>) -> Net {
        Net::of(&block)
    }

    fn connect(&mut self, blocks: &[Net]) -> Result<Found> {
        let mut found = Found::default();
        blocks.iter().try_for_each(|block| self.connect_one(block, &mut found))?;
        Ok(found)
    }

    fn sync(&mut self) -> Result<()> {
        self.write_all()?;
        self.below.sync()
    }

    fn digest(&mut self) -> Result<SetDigest> {
        self.below.digest()
    }
}

//! A multimap whose rows do not hold their keys: the caller says which rows are meant.
//!
//! An input's outpoint lies in the bytes of its block; keeping it again would be 36 bytes a row.
//! Here a row holds one byte of its key's hash, the tag, and a value by which the caller finds the
//! key elsewhere. A lookup shows the caller those rows of the bucket whose tag agrees, one in 256
//! of the others, and the caller compares. In `records` such a row is one with a key of one byte.
//!
//! Opening asks the caller for the keys of the rows that the saved head does not know.

use std::sync::Arc;

use varve_io::Storage;

use super::error::{Error, Result};
use super::hasher::{KeyHasher, Keyed, tag};
use super::mark::Mark;
use super::record_map::PendingRows;
use super::records::{Link, Records, RecordsOwner, Row};
use super::table::{Epoch, Heads, Table, TableConfig};

/// The owner of a table whose rows hold no keys.
#[derive(Debug)]
pub struct KeylessMap<const V: usize, H = Keyed> {
    records: RecordsOwner<1, V>,
    reader: KeylessReader<V, H>,
}

/// Reads a [`KeylessMap`] beside its owner and other readers; to be cloned into other threads.
#[derive(Debug)]
pub struct KeylessReader<const V: usize, H = Keyed> {
    records: Arc<Records<1, V>>,
    hasher: Arc<H>,
}

impl<const V: usize, H> Clone for KeylessReader<V, H> {
    fn clone(&self) -> Self {
        Self { records: Arc::clone(&self.records), hasher: Arc::clone(&self.hasher) }
    }
}

impl<const V: usize, H: KeyHasher> KeylessMap<V, H> {
    /// Opens the table as it was at `mark`; what came later is cut off. `key_of` puts the key of a
    /// row into the empty vector it gets.
    pub fn open<E: From<Error>>(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        (hasher, mark): (H, Mark),
        mut key_of: impl FnMut(Link, &[u8; V], &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut key = Vec::new();
        let hash = |link, row: &Row<1, V>| {
            key.clear();
            key_of(link, &row.value, &mut key)?;
            Ok::<_, E>(hasher.hash(&key))
        };
        let records = RecordsOwner::open(storage, config, mark, hash)?;
        let shared = Arc::clone(records.shared());
        let reader = KeylessReader { records: shared, hasher: Arc::new(hasher) };
        Ok(Self { records, reader })
    }

    /// The reader of this table.
    #[must_use]
    pub const fn reader(&self) -> &KeylessReader<V, H> {
        &self.reader
    }

    /// Writes rows that follow one another, not reachable yet. Any thread may.
    pub fn set<K: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = (K, [u8; V]), IntoIter: ExactSizeIterator>,
    ) -> Result<PendingRows<'_, 1, V>> {
        let hasher = &*self.reader.hasher;
        let rows = rows.into_iter().map(|(key, value)| {
            let hash = hasher.hash(key.as_ref());
            (hash, Row { key: [tag(hash)], value })
        });
        self.records.set(rows).map(PendingRows::new)
    }

    /// How many rows opening would have to link again if the heads were not saved by then.
    #[must_use]
    pub fn unlinked(&self) -> u64 {
        self.records.unlinked()
    }
}

impl<const V: usize, H: KeyHasher> KeylessReader<V, H> {
    /// The number of rows given out.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.records.rows()
    }

    /// The value of the row with this number, committed or not.
    pub fn get(&self, link: Link) -> Result<[u8; V]> {
        self.records.row(link).map(|linked| linked.row.value)
    }

    /// Adds to `found` all rows of a key, newest first. `is_key` says of a row whether it is one.
    pub fn find_all<E: From<Error>>(
        &self,
        key: &[u8],
        found: &mut Vec<(Link, [u8; V])>,
        mut is_key: impl FnMut(Link, &[u8; V]) -> Result<bool, E>,
    ) -> Result<(), E> {
        let hash = self.hasher.hash(key);
        self.records.search(hash, |link, row| {
            if row.key == [tag(hash)] && is_key(link, &row.value)? {
                found.push((link, row.value));
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })
    }
}

impl<const V: usize, H: KeyHasher> KeylessReader<V, H> {
    /// Candidates for the rows of many keys, added to `found` with the index of their key: all rows
    /// of each key, newest first, and among them about one in 256 of the others in its buckets. The
    /// caller compares keys. Faster than one key after the other: their waits for memory overlap.
    pub fn candidates<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        found: &mut Vec<(usize, Link, [u8; V])>,
    ) -> Result<()> {
        let hashes = keys.iter().map(|key| self.hasher.hash(key.as_ref()));
        let hashes: Vec<u64> = hashes.collect();
        let tagged = |index, row: &Row<1, V>| {
            hashes.get(index).is_some_and(|hash: &u64| row.key == [tag(*hash)])
        };
        self.records.search_many(&hashes, tagged, found)
    }
}

impl<const V: usize, H: KeyHasher> Table for KeylessMap<V, H> {
    fn name(&self) -> &str {
        self.reader.records.name()
    }

    fn prepare(&mut self, epoch: Epoch, heads: Heads) -> Result<Mark> {
        self.records.prepare(epoch, heads)
    }

    fn confirm(&mut self) -> Result<()> {
        self.records.confirm()
    }

    fn verify(&self) -> Result<()> {
        self.records.verify()
    }
}

//! The record hash map, which is also the record multimap.
//!
//! Rows of one width, found by key or by number. One structure serves both of the seed's tables:
//! [`RecordReader::find`] is the search of the hash map (the newest row of a key),
//! [`RecordReader::find_many`] that of the multimap (all rows of each key, newest first). The bytes
//! and the protocol are those of `records` and `head`.

use std::ops::ControlFlow;
use std::sync::Arc;

use varve_io::Storage;

use super::error::Result;
use super::hasher::{KeyHasher, Keyed};
use super::mark::Mark;
use super::records::{Link, Pending, Records, RecordsOwner, Row};
use super::table::{Epoch, Heads, Table, TableConfig, TableMemory};

/// The owner of a table whose rows hold their keys.
#[derive(Debug)]
pub struct RecordMap<const K: usize, const V: usize, H = Keyed> {
    records: RecordsOwner<K, V>,
    reader: RecordReader<K, V, H>,
}

/// Reads a [`RecordMap`] concurrently with its owner and other readers; clone it into other
/// threads.
#[derive(Debug)]
pub struct RecordReader<const K: usize, const V: usize, H = Keyed> {
    records: Arc<Records<K, V>>,
    hasher: Arc<H>,
}

impl<const K: usize, const V: usize, H> Clone for RecordReader<K, V, H> {
    fn clone(&self) -> Self {
        Self { records: Arc::clone(&self.records), hasher: Arc::clone(&self.hasher) }
    }
}

/// Rows that have their numbers and bytes but are not found by search yet. Committing cannot fail;
/// dropping them instead leaves unreachable rows.
#[derive(Debug)]
#[must_use = "rows are found only after they are committed"]
pub struct PendingRows<'a, const K: usize, const V: usize>(Pending<'a, K, V>);

impl<'a, const K: usize, const V: usize> PendingRows<'a, K, V> {
    pub(crate) const fn new(pending: Pending<'a, K, V>) -> Self {
        Self(pending)
    }

    /// The first row; the others follow it.
    #[must_use]
    pub fn first(&self) -> Link {
        self.0.first()
    }

    /// Makes all rows reachable, in order.
    pub fn commit(self) {
        self.0.commit();
    }
}

impl<const K: usize, const V: usize, H: KeyHasher> RecordMap<K, V, H> {
    /// Opens the table as it was at `mark`; later rows are cut off.
    pub fn open(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        hasher: H,
        mark: Mark,
    ) -> Result<Self> {
        let records = RecordsOwner::open(storage, config, mark, |key| hasher.hash(key.as_slice()))?;
        let shared = Arc::clone(records.shared());
        let reader = RecordReader { records: shared, hasher: Arc::new(hasher) };
        Ok(Self { records, reader })
    }

    /// The reader of this table.
    #[must_use]
    pub const fn reader(&self) -> &RecordReader<K, V, H> {
        &self.reader
    }

    /// Writes rows with consecutive numbers, not reachable yet, from any thread.
    pub fn set<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r Row<K, V>, IntoIter: ExactSizeIterator>,
    ) -> Result<PendingRows<'_, K, V>> {
        let hasher = &*self.reader.hasher;
        let rows = rows.into_iter().map(|row| (hasher.hash(&row.key), *row));
        self.records.set(rows).map(PendingRows::new)
    }

    /// Sets and commits one row.
    pub fn insert(&self, key: &[u8; K], value: &[u8; V]) -> Result<Link> {
        let pending = self.set(&[Row { key: *key, value: *value }])?;
        let link = pending.first();
        pending.commit();
        Ok(link)
    }

    /// Rows that opening would have to relink if the heads were not saved by then.
    #[must_use]
    pub fn unlinked(&self) -> u64 {
        self.records.unlinked()
    }
}

impl<const K: usize, const V: usize, H: KeyHasher> RecordReader<K, V, H> {
    /// Opens a table at rest, as it was at `mark`, and changes nothing. `None` when a writer would
    /// have rows to relink.
    pub(crate) fn at_rest(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        hasher: H,
        mark: Mark,
    ) -> Result<Option<Self>> {
        let records = Records::at_rest(storage, config, mark)?;
        let hasher = Arc::new(hasher);
        Ok(records.map(|records| Self { records: Arc::new(records), hasher }))
    }

    /// The number of rows, committed or not.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.records.rows()
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> TableMemory {
        self.records.memory()
    }

    /// The row with this number, committed or not.
    pub fn get(&self, link: Link) -> Result<Row<K, V>> {
        self.records.row(link).map(|linked| linked.row)
    }

    /// The row below `link` in its chain, of whatever key; `None` at the end.
    #[cfg(feature = "test-suite")]
    pub fn next(&self, link: Link) -> Result<Option<Link>> {
        let next = self.records.row(link)?.next;
        Ok(if next == super::stage::UNLINKED { None } else { Link::from_next(next) })
    }

    /// The top of the chain in a bucket; buckets of all generations are counted in one row.
    #[cfg(feature = "test-suite")]
    pub fn top(&self, bucket: u64) -> Result<Option<Link>> {
        self.records.top(bucket)
    }

    /// The newest row of a key.
    #[inline]
    pub fn find(&self, key: &[u8; K]) -> Result<Option<(Link, [u8; V])>> {
        let mut found = None;
        self.search(key, |link, value| {
            found = Some((link, *value));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// All rows of a key, newest first, added to `found`.
    #[cfg(feature = "test-suite")]
    pub fn find_all(&self, key: &[u8; K], found: &mut Vec<(Link, [u8; V])>) -> Result<()> {
        self.search(key, |link, value| {
            found.push((link, *value));
            ControlFlow::Continue(())
        })
    }

    /// All rows of many keys, added to `found` with the index of their key: in the order of the
    /// keys, those of a key newest first. Faster than one key after the other: their cache
    /// misses overlap.
    pub fn find_many(
        &self,
        keys: &[[u8; K]],
        found: &mut Vec<(usize, Link, [u8; V])>,
    ) -> Result<()> {
        let hashes: Vec<u64> = keys.iter().map(|key| self.hasher.hash(key)).collect();
        let wanted = |index, row: &Row<K, V>| keys.get(index) == Some(&row.key);
        self.records.search_many(&hashes, wanted, found)
    }

    /// Visits the rows of a key, newest first, until `visit` breaks.
    #[inline]
    pub fn search(
        &self,
        key: &[u8; K],
        mut visit: impl FnMut(Link, &[u8; V]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.records.search(self.hasher.hash(key), |link, row| {
            if row.key == *key { visit(link, &row.value) } else { ControlFlow::Continue(()) }
        })
    }
}

impl<const K: usize, const V: usize, H: KeyHasher> Table for RecordMap<K, V, H> {
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

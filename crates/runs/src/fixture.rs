//! What the tests share: a codec of the simplest rows, a store, and runs of them.
//!
//! A row is a key of 64 bits and a value of 32. Keys repeat, over many leaves, as in a search
//! table. A value with the highest bit set deletes the one without it.
//!
//! ```text
//!  leaf   │ count u16 │ count × (key u64, value u32) │
//! ```

use std::sync::Arc;

use varve_io::{BatchReader, Disk, FormatError, Kind, PAGE_PAYLOAD_LEN, Storage, StoreId};

use crate::buffers::Buffers;
use crate::codec::{Codec, Keys, LeafBuilder, LeafWalk};
use crate::cursor::Source;
use crate::footer::{RunNumber, Span};
use crate::fuse::Width;
use crate::leaf_place::LeafPlace;
use crate::pages::Pages;
use crate::query::{PageBuffers, Query};
use crate::run::{Access, Run};
use crate::run_error::RunError;
use crate::run_writer::{NewRun, RunWriter};
use crate::runs::Runs;
use crate::secret::Secret;
use crate::sequence::Sequence;
use crate::store_key::StoreKey;

pub(crate) const KEY: StoreKey =
    StoreKey { id: StoreId([0x11; 16]), secret: Secret::new([0x22; 16]) };

/// A directory on the disk that goes away with the test.
pub(crate) fn disk() -> (tempfile::TempDir, Arc<dyn Storage>) {
    let dir = tempfile::tempdir().unwrap();
    let storage = Arc::new(Disk::open(dir.path()).unwrap());
    (dir, storage)
}

pub(crate) fn span(first: u32, last: u32) -> Span {
    Span { first: Sequence::new(first), last: Sequence::new(last) }
}

/// The finaliser of `MurmurHash3`.
pub(crate) const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

/// Rows of a key and a value.
#[derive(Debug)]
pub(crate) enum Tiny {}

pub(crate) type Row = (u64, u32);

const ROW_LEN: usize = 12;
pub(crate) const LEAF_ROWS: usize = (PAGE_PAYLOAD_LEN - 2) / ROW_LEN;
/// The bit that makes a value delete the one without it.
pub(crate) const DELETE: u32 = 1 << 31;
/// The bit of a value whose order the builder does not check, so that a test sees who else does.
pub(crate) const UNCHECKED: u32 = 1 << 30;

impl Keys for Tiny {
    type Key = u64;
    const KEY_LEN: usize = 8;
    const IS_PREFIX: bool = true;

    fn prefix(key: &u64) -> u64 {
        *key
    }

    fn encode_key(key: &u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.to_le_bytes());
    }

    fn decode_key(bytes: &[u8]) -> Option<u64> {
        bytes.try_into().ok().map(u64::from_le_bytes)
    }
}

impl Codec for Tiny {
    const KIND: Kind = Kind(*b"TINYRUN\0");
    const REPEATS: bool = true;

    type Order = (u64, u32);
    type Row<'a> = Row;
    type Hasher = u64;
    type Builder = TinyBuilder;
    type Walk = TinyWalk;
    type Error = TinyError;

    fn hasher(secret: Secret) -> u64 {
        u64::from(secret.to_bytes()[0])
    }

    fn hash(hasher: &u64, key: &u64) -> u64 {
        mix(hasher ^ key)
    }

    fn key(row: &Row) -> u64 {
        row.0
    }

    fn order(row: &Row) -> (u64, u32) {
        (row.0, row.1 & !DELETE)
    }

    fn is_delete(row: &Row) -> bool {
        row.1 & DELETE != 0
    }

    /// The youngest row wins. When there is nothing older, a delete is dropped.
    fn settle<'a>(
        mut rows: impl Iterator<Item = (usize, Self::Row<'a>)>,
        whole: bool,
    ) -> Result<Option<usize>, TinyError> {
        let youngest = rows.next().filter(|(_, row)| !(whole && Self::is_delete(row)));
        Ok(youngest.map(|(source, _)| source))
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TinyError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("row {0:?} is out of order")]
    Order(Row),
}

#[derive(Debug)]
pub(crate) struct TinyBuilder(Vec<Row>);

impl LeafBuilder<Tiny> for TinyBuilder {
    fn new(_expected: u64) -> Self {
        Self(Vec::new())
    }

    fn push(&mut self, row: &Row, _hash: u64, pages: &mut Pages<Tiny>) -> Result<(), TinyError> {
        let in_order = self.0.last().is_none_or(|last| Tiny::order(last) < Tiny::order(row));
        if !in_order && row.1 & UNCHECKED == 0 {
            return Err(TinyError::Order(*row));
        }
        if self.0.len() == LEAF_ROWS {
            self.finish(pages)?;
            self.0.clear();
        }
        self.0.push(*row);
        Ok(())
    }

    fn finish(&mut self, pages: &mut Pages<Tiny>) -> Result<(), TinyError> {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else { return Ok(()) };
        let mut payload = u16::try_from(self.0.len()).unwrap().to_le_bytes().to_vec();
        for (key, value) in &self.0 {
            payload.extend_from_slice(&key.to_le_bytes());
            payload.extend_from_slice(&value.to_le_bytes());
        }
        let hasher = Tiny::hasher(KEY.secret);
        let hashes = self.0.iter().map(|(key, _)| Tiny::hash(&hasher, key));
        pages.leaf((first.0, last.0), &payload, hashes)
    }
}

/// The rows of a leaf.
pub(crate) fn decode(payload: &[u8]) -> Result<Vec<Row>, FormatError> {
    let short = FormatError::Damaged { at: 0, what: "a leaf is shorter than its header says" };
    let (count, rows) = payload.split_first_chunk().ok_or(short)?;
    let len = usize::from(u16::from_le_bytes(*count)) * ROW_LEN;
    let (rows, _) = rows.get(..len).ok_or(short)?.as_chunks::<ROW_LEN>();
    let row = |row: &[u8; ROW_LEN]| {
        let (key, value) = row.split_first_chunk().unwrap();
        let value = u32::from_le_bytes(*value.first_chunk().unwrap());
        (u64::from_le_bytes(*key), value)
    };
    Ok(rows.iter().map(row).collect())
}

#[derive(Debug, Default)]
pub(crate) struct TinyWalk {
    rows: Vec<Row>,
    next: usize,
}

impl LeafWalk<Tiny> for TinyWalk {
    fn enter(&mut self, payload: &[u8], at: LeafPlace<'_, Tiny>) -> Result<(), TinyError> {
        (self.rows, self.next) = (decode(payload).map_err(|error| at.error(error))?, 0);
        Ok(())
    }

    fn next(&mut self, _at: LeafPlace<'_, Tiny>) -> Result<bool, TinyError> {
        self.next += 1;
        Ok(self.next <= self.rows.len())
    }

    fn row(&self) -> Option<Row> {
        self.rows.get(self.next.checked_sub(1)?).copied()
    }
}

/// Begins a run with a filter of this width.
pub(crate) fn writer(
    storage: &Arc<dyn Storage>,
    number: u64,
    filter: Option<Width>,
) -> RunWriter<Tiny> {
    let step = u32::try_from(number).unwrap();
    let new = NewRun {
        number: RunNumber(number),
        span: span(step, step),
        expected: 0,
        filter,
        chunk_keys: Buffers::SMALL.chunk_keys,
    };
    RunWriter::create(storage, KEY, &new).unwrap()
}

/// Writes a run of these rows.
pub(crate) fn write_run(
    storage: &Arc<dyn Storage>,
    number: u64,
    filter: Option<Width>,
    rows: &[Row],
) -> Arc<Run<Tiny>> {
    let mut writer = writer(storage, number, filter);
    rows.iter().for_each(|row| writer.push(row).unwrap());
    Arc::new(writer.finish().unwrap())
}

/// All rows of a source.
pub(crate) fn collect(mut source: impl Source<Tiny>) -> Result<Vec<Row>, TinyError> {
    let mut rows = Vec::new();
    while let Some(row) = source.head() {
        rows.push(row);
        source.advance()?;
    }
    Ok(rows)
}

/// All rows of `keys`, which are sorted, in the order of keys, runs and rows, by either access.
pub(crate) fn look_up(runs: &Runs<Tiny>, keys: &[u64]) -> Result<Vec<Row>, TinyError> {
    let mut found = [Vec::new(), Vec::new()];
    for (found, access) in found.iter_mut().zip([Access::Mapped, Access::Direct]) {
        runs.as_slice().iter().for_each(|run| run.set_access(access));
        let (mut query, mut buffers) = (Query::new(runs, keys.to_vec()), PageBuffers::default());
        query.fetch(&mut BatchReader::new(64), &mut buffers)?;
        for candidate in query.by_key().flatten() {
            let key = *query.key(candidate);
            assert_eq!(key, keys[candidate.key()]);
            let rows = decode(query.payload(candidate)?);
            let rows = rows.map_err(|error| query.place(candidate).error(error))?;
            found.extend(rows.into_iter().filter(|row| row.0 == key));
        }
        query.release(&mut buffers);
    }
    let [by_map, by_reads] = found;
    assert!(by_map == by_reads);
    Ok(by_map)
}

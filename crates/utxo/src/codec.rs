//! The rows of the runs: entries, with their coins still packed.
//!
//! What `varve-runs` requires of a store:
//!
//! - The **key** is the outpoint; the first 8 bytes of the txid are its prefix. An adversary can
//!   choose txids, so prefixes may be equal.
//! - Rows ascend by outpoint, then birth. All of an outpoint are in one leaf, so a lookup asks a
//!   run for one page.
//! - **Merging** counts. All entries of one outpoint and birth count, an add +1, a delete −1. The
//!   sum says what is left: +1 the coin, 0 nothing, −1 a delete of a coin in an older source. If
//!   everything older takes part, −1 means that the deleted coin is missing; that, or any other
//!   sum, is damage.
//!
//! `page` draws a leaf, `record_builder` fills it, [`RecordWalk`] goes through it.

use varve_io::Kind;
use varve_runs::{Codec, Keys, LeafPlace, LeafWalk, Secret, Sequence};
use varve_types::Outpoint;

use crate::hasher::OutpointHasher;
use crate::packed::PackedCoin;
use crate::page::{Body, Leaf};
use crate::record_builder::RecordBuilder;
use crate::run_error::RunError;

/// A run of entries.
pub type Run = varve_runs::Run<CoinCodec>;
/// The runs of one version of the set, youngest first.
///
/// **Births decide.** A lookup goes from the youngest run to the oldest and remembers the births
/// that it saw deleted; the first add of another birth is the coin. A delete alone does not end the
/// search: when a coin dies while its pane is being flushed, its delete can be in a younger run
/// than a new coin of the same outpoint.
pub type Runs = varve_runs::Runs<CoinCodec>;
/// A position among the entries of a run.
pub(crate) type Cursor = varve_runs::Cursor<CoinCodec>;
/// Merged sources of entries, without what cancels.
pub(crate) type Merge<S> = varve_runs::Merge<CoinCodec, S>;

/// An entry with its coin still packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The coin's outpoint.
    pub outpoint: Outpoint,
    /// The step that created the coin.
    pub birth: Sequence,
    /// The coin that is added, or `None` when it is deleted.
    pub coin: Option<PackedCoin<'a>>,
}

/// Entries as rows of runs.
#[derive(Debug)]
pub enum CoinCodec {}

impl Keys for CoinCodec {
    type Key = Outpoint;
    const KEY_LEN: usize = Outpoint::LEN;
    const IS_PREFIX: bool = false;

    #[inline]
    fn prefix(key: &Outpoint) -> u64 {
        let first = key.txid.as_bytes().first_chunk().expect("a txid has 32 bytes");
        u64::from_be_bytes(*first)
    }

    fn encode_key(key: &Outpoint, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.to_bytes());
    }

    fn decode_key(bytes: &[u8]) -> Option<Outpoint> {
        bytes.try_into().ok().map(Outpoint::from_bytes)
    }
}

impl Codec for CoinCodec {
    const KIND: Kind = Kind(*b"UTXORUN\0");
    const REPEATS: bool = false;

    type Order = (Outpoint, Sequence);
    type Row<'a> = Record<'a>;
    type Hasher = OutpointHasher;
    type Builder = RecordBuilder;
    type Walk = RecordWalk;
    type Error = RunError;

    fn hasher(secret: Secret) -> OutpointHasher {
        OutpointHasher::new(&secret.to_bytes())
    }

    #[inline]
    fn hash(hasher: &OutpointHasher, key: &Outpoint) -> u64 {
        hasher.hash(key).bits()
    }

    #[inline]
    fn key(row: &Record<'_>) -> Outpoint {
        row.outpoint
    }

    #[inline]
    fn order(row: &Record<'_>) -> (Outpoint, Sequence) {
        (row.outpoint, row.birth)
    }

    #[inline]
    fn is_delete(row: &Record<'_>) -> bool {
        row.coin.is_none()
    }

    #[inline]
    fn settle<'a>(
        mut rows: impl Iterator<Item = (usize, Record<'a>)>,
        whole: bool,
    ) -> Result<Option<usize>, RunError> {
        let Some((source, first)) = rows.next() else { return Ok(None) };
        let (mut count, mut add, mut delete) = match first.coin {
            Some(_) => (1, Some(source), None),
            None => (-1, None, Some(source)),
        };
        for (source, row) in rows {
            match row.coin {
                Some(_) => (count, add) = (count + 1, Some(source)),
                None => (count, delete) = (count - 1, Some(source)),
            }
        }
        let Record { outpoint, birth, .. } = first;
        match count {
            0 => Ok(None),
            1 => Ok(add),
            -1 if !whole => Ok(delete),
            _ => Err(RunError::Count { outpoint, birth, count }),
        }
    }
}

/// Goes through the entries of leaves. Keeps one leaf and one packed coin.
#[derive(Debug, Default)]
pub struct RecordWalk {
    payload: Vec<u8>,
    /// The place in the leaf of the next entry.
    index: usize,
    head: Option<Head>,
    /// The packed coin of the current entry.
    coin: Vec<u8>,
}

/// The current entry, without its coin.
#[derive(Clone, Copy, Debug)]
struct Head {
    outpoint: Outpoint,
    birth: Sequence,
    delete: bool,
}

impl LeafWalk<CoinCodec> for RecordWalk {
    fn enter(&mut self, payload: &[u8], _at: LeafPlace<'_, CoinCodec>) -> Result<(), RunError> {
        self.payload.clear();
        self.payload.extend_from_slice(payload);
        self.index = 0;
        Ok(())
    }

    fn next(&mut self, at: LeafPlace<'_, CoinCodec>) -> Result<bool, RunError> {
        let leaf = Leaf::parse(&self.payload).map_err(|error| at.error(error))?;
        if self.index >= leaf.len() {
            return Ok(false);
        }
        let entry = leaf.entry(self.index).map_err(|error| at.error(error))?;
        self.coin.clear();
        match entry.body {
            Body::Deleted => {}
            Body::Packed(coin) => self.coin.extend_from_slice(coin.as_bytes()),
            Body::Spilled(spill) => at.read_spill(spill.first, spill.len, &mut self.coin)?,
        }
        let delete = entry.body == Body::Deleted;
        self.head = Some(Head { outpoint: entry.outpoint, birth: entry.birth, delete });
        self.index += 1;
        Ok(true)
    }

    #[inline]
    fn row(&self) -> Option<Record<'_>> {
        let Head { outpoint, birth, delete } = self.head?;
        let coin = (!delete).then(|| PackedCoin::new(&self.coin));
        Some(Record { outpoint, birth, coin })
    }
}

#[cfg(test)]
mod tests;

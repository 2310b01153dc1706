//! The interface of all sides of the race: two tables, fingerprint → links.

use anyhow::{Result, ensure};

use super::rows::{BlockRows, Both, Kind, Probe};

/// One side of the race.
pub(super) trait Side {
    /// The rows of a block, in the form in which the side appends them.
    type Ready: Send;

    /// Makes a block ready, in the thread that made the rows.
    fn prepare(block: BlockRows) -> Self::Ready;

    /// Appends the next block.
    fn append(&mut self, block: Self::Ready) -> Result<()>;

    /// Makes everything durable and waits until no compaction is due.
    fn finish(&mut self) -> Result<()>;

    /// The links of all rows whose hash has the same [`PREFIX`] bits, ascending.
    fn find(&self, kind: Kind, hash: u64) -> Result<Vec<u64>>;

    /// Rows of both tables.
    fn rows(&self) -> Result<u64>;
}

/// Bits of a hash that are compared: those of our fingerprints.
pub(super) const PREFIX: u32 = 40;
/// Bytes of a key in a store of keys and values: hash and link.
pub(super) const KEY_LEN: usize = 12;

/// A key in a store of keys and values. The value is empty.
pub(super) type Key = [u8; KEY_LEN];

/// The keys of a block, sorted.
pub(super) fn keys(block: &BlockRows) -> Both<Vec<Key>> {
    let sorted = |kind: Kind| {
        let first = block.first();
        let rows = block.rows.of(kind).iter();
        let mut keys: Vec<Key> =
            rows.map(|(hash, position)| key(*hash, first + u64::from(*position))).collect();
        keys.sort_unstable();
        keys
    };
    Both { tx: sorted(Kind::Tx), spend: sorted(Kind::Spend) }
}

fn key(hash: u64, link: u64) -> Key {
    let link = u32::try_from(link).expect("the benchmark has fewer transactions");
    let mut key = [0; KEY_LEN];
    let (front, back) = key.split_at_mut(size_of::<u64>());
    front.copy_from_slice(&hash.to_be_bytes());
    back.copy_from_slice(&link.to_be_bytes());
    key
}

/// The common prefix of all keys found for a hash.
pub(super) fn prefix(hash: u64) -> [u8; PREFIX as usize / 8] {
    hash.to_be_bytes().first_chunk().copied().expect("a hash has more bytes")
}

/// The link at the end of a key.
pub(super) fn link(key: &[u8]) -> Result<u64> {
    ensure!(key.len() == KEY_LEN, "a key of {} bytes", key.len());
    Ok(key.last_chunk().map_or(0, |link| u64::from(u32::from_be_bytes(*link))))
}

/// Looks up all probes; each must be found at its link. Returns a digest of all answers, including
/// those of other keys with the same fingerprint.
pub(super) fn answer<S: Side>(side: &S, kind: Kind, probes: &[Probe]) -> Result<u64> {
    let mut digest = 0_u64;
    for probe in probes {
        let found = side.find(kind, probe.hash)?;
        let right = probe.link.is_none_or(|link| found.contains(&link));
        ensure!(right, "{}: {probe:?} is found at {found:?}", kind.name());
        for link in found {
            digest = digest.rotate_left(7).wrapping_add(link ^ probe.hash);
        }
    }
    Ok(digest)
}

//! A batch: the entries that one step put into one shard.
//!
//! ```text
//!  heads     ┌─────────────┬──────┬───────┬────────┬───────┬─────────┬──────────────────────────┐
//!  96 bytes  │ outpoint    │ birth│ until │ height │ value │ length, │ script, or where it is   │
//!  each      │ 36          │ 4    │ 4     │ 4      │ 8     │ kind 4  │ 36                       │
//!            └─────────────┴──────┴───────┴────────┴───────┴─────────┴──────────────────────────┘
//!  scripts   those longer than 36 bytes, one after another
//! ```
//!
//! Everything is written before the batch is shared and never changed, with one exception: `until`,
//! the sequence at which the entry dies, is set when that happens.
//!
//! The window's time is spent waiting for memory, so an entry is contiguous: comparing the key,
//! deciding whether a reader sees it, reading amount and script and spending the coin all touch the
//! same two cache lines. All scripts of the common kinds fit in 36 bytes.

#![expect(clippy::indexing_slicing, reason = "lengths are compared with the room beforehand")]

use varve_runs::Sequence;
use varve_types::{Amount, Coin, Height, Outpoint};

use super::table::BATCH_ENTRIES_MAX;
use crate::entry::Entry;
use crate::sync::{AtomicU32, Ordering};

/// Flag in the length of a script: the entry is a delete.
const DELETE: u32 = 1 << 31;
/// Flag in the length of a script: the coin is of a coinbase transaction.
const COINBASE: u32 = 1 << 30;
/// The remaining bits are the length: at most 1 GiB less a byte.
const LENGTH: u32 = COINBASE - 1;

/// The longest script that is stored in its entry.
const INLINE: usize = 36;

/// One entry, without a long script.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Head {
    pub(crate) outpoint: Outpoint,
    pub(crate) birth: Sequence,
    until: AtomicU32,
    height: Height,
    value: Amount,
    length: u32,
    /// The script, or its start among the batch's scripts in the first four bytes.
    script: [u8; INLINE],
}

/// Bytes of an entry, without a long script.
pub(crate) const HEAD_LEN: usize = size_of::<Head>();
#[cfg(not(loom))]
const _: () = assert!(HEAD_LEN == 96);

impl Head {
    /// The sequence from which the entry no longer exists.
    #[inline]
    pub(crate) fn until(&self) -> Sequence {
        Sequence::new(self.until.load(Ordering::Relaxed))
    }

    /// Loads both cache lines of the entry, so that many loads are in flight at once. Pass the
    /// result to [`std::hint::black_box`].
    #[inline]
    pub(crate) fn touch(&self) -> u32 {
        let ([first, ..], [.., last]) = (self.outpoint.txid.as_bytes(), &self.script);
        u32::from(*first) ^ u32::from(*last)
    }

    /// Ends the entry, or revives it with [`Sequence::MAX`]. Only the writer calls this, and only
    /// with sequences that no reader has reached.
    #[inline]
    pub(crate) fn set_until(&self, sequence: Sequence) {
        debug_assert!(self.is_add(), "only adds die");
        debug_assert!(sequence >= self.birth, "no coin dies before it is born");
        self.until.store(sequence.to_u32(), Ordering::Relaxed);
    }

    /// Whether this adds a coin; otherwise it deletes one.
    #[inline]
    pub(crate) const fn is_add(&self) -> bool {
        self.length & DELETE == 0
    }
}

/// The entries of one step in one shard.
#[derive(Debug)]
pub(crate) struct Batch {
    from: Sequence,
    heads: Vec<Head>,
    scripts: Vec<u8>,
}

impl Batch {
    /// The step's sequence: readers before it do not see the batch.
    #[inline]
    pub(crate) const fn from(&self) -> Sequence {
        self.from
    }

    /// The entries.
    #[inline]
    pub(crate) fn heads(&self) -> &[Head] {
        &self.heads
    }

    #[inline]
    pub(crate) fn head(&self, index: u32) -> Option<&Head> {
        self.heads.get(index as usize)
    }

    /// Whether a reader at `at` sees this entry of the batch.
    #[inline]
    pub(crate) fn sees(&self, head: &Head, at: Sequence) -> bool {
        self.from <= at && at < head.until()
    }

    /// The entry of a head of this batch.
    #[inline]
    pub(crate) fn entry<'b>(&'b self, head: &'b Head) -> Entry<'b> {
        Entry { outpoint: head.outpoint, birth: head.birth, coin: self.coin(head) }
    }

    /// The coin of a head of this batch; `None` when it is a delete.
    #[inline]
    pub(crate) fn coin<'b>(&'b self, head: &'b Head) -> Option<Coin<'b>> {
        if !head.is_add() {
            return None;
        }
        let length = (head.length & LENGTH) as usize;
        let script =
            if length <= INLINE { &head.script[..length] } else { self.long(head, length) };
        let coinbase = head.length & COINBASE != 0;
        Some(Coin { height: head.height, coinbase, value: head.value, script })
    }

    fn long(&self, head: &Head, length: usize) -> &[u8] {
        let [a, b, c, d, ..] = head.script;
        let start = u32::from_le_bytes([a, b, c, d]) as usize;
        self.scripts.get(start..start + length).unwrap_or_default()
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.heads.capacity() * HEAD_LEN + self.scripts.capacity()
    }
}

/// Why entries do not go into one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchFull {
    /// A script of 1 GiB or more.
    Script,
    /// More entries or bytes of script than references can name.
    Batch,
}

/// A batch being built.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    from: Sequence,
    heads: Vec<Head>,
    scripts: Vec<u8>,
}

impl BatchBuilder {
    /// Begins the batch of step `from` with room for `entries` entries.
    pub(crate) fn new(from: Sequence, entries: usize) -> Self {
        Self { from, heads: Vec::with_capacity(entries), scripts: Vec::new() }
    }

    /// Adds an entry and returns its index.
    #[inline]
    pub(crate) fn push(&mut self, entry: &Entry<'_>) -> Result<u32, BatchFull> {
        let index = u32::try_from(self.heads.len()).map_err(|_| BatchFull::Batch)?;
        if self.heads.len() >= BATCH_ENTRIES_MAX {
            return Err(BatchFull::Batch);
        }
        let mut head = Head {
            outpoint: entry.outpoint,
            birth: entry.birth,
            until: AtomicU32::new(Sequence::MAX.to_u32()),
            height: Height::GENESIS,
            value: Amount::ZERO,
            length: DELETE,
            script: [0; INLINE],
        };
        if let Some(coin) = entry.coin {
            head.height = coin.height;
            head.value = coin.value;
            head.length = if coin.coinbase { COINBASE } else { 0 };
            head.length |= self.push_script(coin.script, &mut head.script)?;
        }
        self.heads.push(head);
        Ok(index)
    }

    /// Stores a script in its entry or after the others, and returns its length.
    #[inline]
    fn push_script(&mut self, script: &[u8], inline: &mut [u8; INLINE]) -> Result<u32, BatchFull> {
        let length = u32::try_from(script.len()).ok().filter(|length| *length <= LENGTH);
        let length = length.ok_or(BatchFull::Script)?;
        if script.len() <= INLINE {
            inline[..script.len()].copy_from_slice(script);
        } else {
            let start = u32::try_from(self.scripts.len()).map_err(|_| BatchFull::Batch)?;
            inline[..size_of::<u32>()].copy_from_slice(&start.to_le_bytes());
            self.scripts.extend_from_slice(script);
        }
        Ok(length)
    }

    /// Moves the batch to step `from`: entries born by the step that the batch was created for are
    /// born by `from` instead.
    pub(crate) fn at(mut self, from: Sequence) -> Self {
        if self.from != from {
            for head in self.heads.iter_mut().filter(|head| head.birth == self.from) {
                head.birth = from;
            }
            self.from = from;
        }
        self
    }

    /// Reserves room for exactly this many more entries.
    pub(crate) fn reserve(&mut self, entries: usize) {
        self.heads.reserve_exact(entries);
    }

    /// Appends the entries of another batch.
    pub(crate) fn absorb(&mut self, other: Self) -> Result<(), BatchFull> {
        let start = u32::try_from(self.scripts.len()).map_err(|_| BatchFull::Batch)?;
        let end = self.scripts.len().checked_add(other.scripts.len());
        let fits = end.is_some_and(|end| u32::try_from(end).is_ok());
        if !fits || self.heads.len() + other.heads.len() > BATCH_ENTRIES_MAX {
            return Err(BatchFull::Batch);
        }
        self.scripts.extend_from_slice(&other.scripts);
        self.heads.extend(other.heads.into_iter().map(|mut head| {
            if (head.length & LENGTH) as usize > INLINE {
                let [a, b, c, d, ..] = head.script;
                let moved = u32::from_le_bytes([a, b, c, d]) + start;
                head.script[..size_of::<u32>()].copy_from_slice(&moved.to_le_bytes());
            }
            head
        }));
        Ok(())
    }

    /// The entries so far.
    #[inline]
    pub(crate) fn heads(&self) -> &[Head] {
        &self.heads
    }

    /// The finished batch, which never changes except for the deaths of its entries.
    pub(crate) fn finish(self) -> Batch {
        let Self { from, heads, scripts } = self;
        Batch { from, heads, scripts }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use varve_types::Txid;

    use super::*;

    #[test]
    fn long_scripts_move_with_their_entries() {
        let scripts = [vec![1; 10], vec![2; 80], vec![3; INLINE], vec![4; INLINE + 1]];
        let entry = |number: u8, script| {
            let outpoint = Outpoint::new(Txid::from_bytes([number; 32]), 0);
            let (height, value) = (Height::new(7), Amount::COIN);
            let coin = Coin { height, coinbase: number == 0, value, script };
            Entry::add(outpoint, Sequence::new(1), coin)
        };
        let entries: Vec<_> = (0..).zip(&scripts).map(|(n, script)| entry(n, script)).collect();
        let builder = |entries: &[Entry<'_>]| {
            let mut builder = BatchBuilder::new(Sequence::new(1), 0);
            for entry in entries {
                builder.push(entry).unwrap();
            }
            builder
        };
        let mut whole = builder(&entries[..2]);
        whole.absorb(builder(&entries[2..])).unwrap();
        let batch = whole.finish();
        let found: Vec<Entry<'_>> = batch.heads().iter().map(|head| batch.entry(head)).collect();
        assert_eq!(found, entries);
    }
}

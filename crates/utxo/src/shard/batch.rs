//! A batch: the entries that one step put into one shard.
//!
//! ```text
//!  heads     ┌──────────────┬──────┬───────┬───────┬────────┬───────┬────────┬────────┐
//!  64 bytes  │ outpoint 36  │birth │ until │height │ value 8│ script│ length,│  one cache line each
//!  each      │              │ 4    │ 4     │ 4     │        │ at 4  │ kind 4 │
//!            └──────────────┴──────┴───────┴───────┴────────┴───────┴────────┴────────┘
//!  scripts   one after another
//! ```
//!
//! Everything is written before the batch is shared and never again, with one exception: `until`, the
//! sequence at which the entry dies, is set when that happens. So comparing the key, deciding whether
//! a reader sees the entry, reading the amount and spending the coin all touch one cache
//! line; the script is touched only by who wants it.

use varve_types::{Amount, Coin, Height, Outpoint};

use super::table::BATCH_ENTRIES_MAX;
use crate::entry::Entry;
use crate::sequence::Sequence;
use crate::sync::{AtomicU32, Ordering};

/// In the length of a script: the entry is a delete.
const DELETE: u32 = 1 << 31;
/// In the length of a script: the coin is of a coinbase transaction.
const COINBASE: u32 = 1 << 30;
/// The rest of it is the length: 1 GiB less a byte at most.
const LENGTH: u32 = COINBASE - 1;

/// One entry without its script.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Head {
    pub(crate) outpoint: Outpoint,
    pub(crate) birth: Sequence,
    until: AtomicU32,
    height: Height,
    value: Amount,
    script: u32,
    length: u32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Head>() == 64);

impl Head {
    /// The sequence from which on the entry is no more.
    #[inline]
    pub(crate) fn until(&self) -> Sequence {
        Sequence::new(self.until.load(Ordering::Relaxed))
    }

    /// Ends the entry, or lets it live on with [`Sequence::MAX`]. Only the writer calls this, and
    /// only with sequences that no reader has reached.
    #[inline]
    pub(crate) fn set_until(&self, sequence: Sequence) {
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
    heads: Box<[Head]>,
    scripts: Box<[u8]>,
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

    /// The entry behind a head of this batch.
    #[inline]
    pub(crate) fn entry(&self, head: &Head) -> Entry<'_> {
        Entry { outpoint: head.outpoint, birth: head.birth, coin: self.coin(head) }
    }

    /// The coin behind a head of this batch; `None` when it is a delete.
    #[inline]
    pub(crate) fn coin(&self, head: &Head) -> Option<Coin<'_>> {
        if !head.is_add() {
            return None;
        }
        let start = head.script as usize;
        let end = start + (head.length & LENGTH) as usize;
        Some(Coin {
            height: head.height,
            coinbase: head.length & COINBASE != 0,
            value: head.value,
            script: self.scripts.get(start..end).unwrap_or_default(),
        })
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.heads) + self.scripts.len()
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

/// A batch in the making.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    from: Sequence,
    heads: Vec<Head>,
    scripts: Vec<u8>,
}

impl BatchBuilder {
    /// Begins the batch of step `from` with room for what is known to come.
    pub(crate) fn new(from: Sequence, entries: usize, script_bytes: usize) -> Self {
        let (heads, scripts) = (Vec::with_capacity(entries), Vec::with_capacity(script_bytes));
        Self { from, heads, scripts }
    }

    /// Adds an entry and returns its index.
    #[inline]
    pub(crate) fn push(&mut self, entry: &Entry<'_>) -> Result<u32, BatchFull> {
        let index = u32::try_from(self.heads.len()).map_err(|_| BatchFull::Batch)?;
        let script = u32::try_from(self.scripts.len()).map_err(|_| BatchFull::Batch)?;
        if self.heads.len() >= BATCH_ENTRIES_MAX {
            return Err(BatchFull::Batch);
        }
        let (height, value, length) = match entry.coin {
            None => (Height::default(), Amount::ZERO, DELETE),
            Some(coin) => {
                let length = u32::try_from(coin.script.len()).ok().filter(|len| *len <= LENGTH);
                let length = length.ok_or(BatchFull::Script)?;
                self.scripts.extend_from_slice(coin.script);
                let coinbase = if coin.coinbase { COINBASE } else { 0 };
                (coin.height, coin.value, length | coinbase)
            }
        };
        self.heads.push(Head {
            outpoint: entry.outpoint,
            birth: entry.birth,
            until: AtomicU32::new(Sequence::MAX.to_u32()),
            height,
            value,
            script,
            length,
        });
        Ok(index)
    }

    /// The entries so far.
    #[inline]
    pub(crate) fn heads(&self) -> &[Head] {
        &self.heads
    }

    /// The batch, never to change again but for the deaths of its entries.
    pub(crate) fn finish(self) -> Batch {
        let Self { from, heads, scripts } = self;
        Batch { from, heads: heads.into_boxed_slice(), scripts: scripts.into_boxed_slice() }
    }
}

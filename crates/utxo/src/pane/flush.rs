//! A pane on its way to a run: its living entries at one moment, in the order of a run.
//!
//! A flush is taken at a sequence *S* and can be read in another thread. Meanwhile the window takes
//! further steps, and records what dies in the pane after *S* (`shard/writer.rs`).
//!
//! Entries are sorted by outpoint, then birth. A coin of a run that was spent and restored by a
//! disconnected block leaves a delete and an add of the same birth here: they cancel, and the run
//! keeps the coin.

use std::cmp::Ordering;

use varve_runs::Sequence;
use varve_types::Outpoint;

use super::{Pane, PaneId};
use crate::entry::Entry;
use crate::shard::{Place, Seen};
use crate::sync::Arc;

/// Entries that are loaded together, for the reason given in `window/version.rs`.
const GROUP: usize = 32;

/// A pane that is to become a run.
#[derive(Clone, Debug)]
pub struct Flush {
    pane: Arc<Pane>,
    at: Sequence,
}

impl Flush {
    pub(crate) const fn new(pane: Arc<Pane>, at: Sequence) -> Self {
        Self { pane, at }
    }

    /// The pane, which the step that replaces it by its run names.
    #[must_use]
    pub fn pane(&self) -> PaneId {
        self.pane.id()
    }

    /// Sorts the living entries: 16 bytes of memory each while they are held.
    #[must_use]
    pub fn entries(&self) -> FlushEntries<'_> {
        let mut order: Vec<Key> = Vec::new();
        for (shard, entries) in (0_u16..).zip(self.pane.shards()) {
            let living = entries.living(self.at);
            order.extend(
                living.map(|Seen { place, head, .. }| Key::new(&head.outpoint, shard, place)),
            );
        }
        let full = |key: &Key| key.seen(&self.pane).entry().key();
        order.sort_unstable_by(|a, b| match a.prefix.cmp(&b.prefix) {
            Ordering::Equal => full(a).cmp(&full(b)),
            decided => decided,
        });
        FlushEntries { pane: &self.pane, order, next: 0 }
    }
}

/// A reference to an entry that sorts by the first bytes of its txid.
struct Key {
    prefix: u64,
    index: u32,
    shard: u16,
    batch: u16,
}

const _: () = assert!(size_of::<Key>() == 16);

impl Key {
    fn new(outpoint: &Outpoint, shard: u16, place: Place) -> Self {
        let prefix = outpoint.txid.as_bytes().first_chunk().expect("a txid has 32 bytes");
        let Place { batch, index } = place;
        Self { prefix: u64::from_be_bytes(*prefix), index, shard, batch }
    }

    fn seen<'p>(&self, pane: &'p Pane) -> Seen<'p> {
        let place = Place { batch: self.batch, index: self.index };
        let found = pane.shard(usize::from(self.shard)).head(place);
        let (batch, head) = found.expect("keys are made of entries that are there");
        Seen { place, batch, head }
    }
}

/// The entries of a flush, by outpoint and birth.
pub struct FlushEntries<'p> {
    pane: &'p Pane,
    order: Vec<Key>,
    next: usize,
}

impl<'p> FlushEntries<'p> {
    /// An upper bound of their number; there are fewer when some cancel.
    #[must_use]
    pub(crate) const fn len_max(&self) -> usize {
        self.order.len() - self.next
    }

    /// The next entry, cancelled or not. Entries are scattered in memory, so those of a group are
    /// loaded together instead of one after another.
    fn advance(&mut self) -> Option<Entry<'p>> {
        if self.next.is_multiple_of(GROUP) {
            let group = self.order.iter().skip(self.next).take(GROUP);
            let sum = group.fold(0, |sum, key| sum ^ key.seen(self.pane).head.touch());
            std::hint::black_box(sum);
        }
        let entry = self.order.get(self.next)?.seen(self.pane).entry();
        self.next += 1;
        Some(entry)
    }
}

impl<'p> Iterator for FlushEntries<'p> {
    type Item = Entry<'p>;

    fn next(&mut self) -> Option<Entry<'p>> {
        loop {
            let at = self.next;
            let entry = self.advance()?;
            let alike = |[a, b]: [&Key; 2]| {
                a.prefix == b.prefix && b.seen(self.pane).entry().key() == entry.key()
            };
            let two = self.order.get(at).zip(self.order.get(self.next));
            if !two.is_some_and(|(a, b)| alike([a, b])) {
                return Some(entry);
            }
            let twin = self.advance()?;
            debug_assert!(
                twin.coin.is_some() != entry.coin.is_some(),
                "within a birth, coming and going take turns"
            );
        }
    }
}

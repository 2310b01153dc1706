//! The window at one moment, for readers to keep.
//!
//! A lookup goes through the panes, youngest first. Its time is spent waiting for memory: a slot of
//! the table, then the entry's cache line. So keys are looked up in groups of 32, and each stage is
//! a loop over the group whose loads are independent: the CPU waits for all of them at once.
//!
//! 1. hash all keys;
//! 2. load the first slot of each in the pane's table;
//! 3. go to the first slot whose tag agrees, which is nearly always in the same cache line, and
//!    load its entry;
//! 4. compare keys, and continue the search where the entry has another key;
//! 5. unresolved keys go to the next pane.

#![expect(clippy::indexing_slicing, reason = "numbers of keys in a group are below its length")]

use varve_runs::Sequence;
use varve_types::{Coin, Outpoint};

use super::step::Location;
use crate::entry::Entry;
use crate::hasher::{OutpointHash, OutpointHasher};
use crate::pane::{PaneId, PaneView};
use crate::shard::{Probe, Seen, Shard, Table};

/// Keys that go through the stages together: enough to keep all of a core's outstanding misses
/// busy, few enough for their state to stay in the first-level cache.
const GROUP: usize = 32;

/// The window at one sequence. Nothing that happens later changes what it answers.
#[derive(Debug)]
pub struct WindowVersion {
    sequence: Sequence,
    hasher: OutpointHasher,
    /// Oldest first.
    panes: Vec<PaneView>,
}

/// What the window knows about an outpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<'v> {
    /// The coin is unspent.
    Found(FoundCoin<'v>),
    /// Coins of these births are spent. A run may have one of another birth: adds of these births
    /// in runs must be ignored.
    Deleted(Vec<Sequence>),
    /// The window has no entry: the runs decide.
    Unknown,
}

/// An unspent coin in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundCoin<'v> {
    /// The coin.
    pub coin: Coin<'v>,
    /// The step that created it.
    pub birth: Sequence,
    /// Where it is, for spending it.
    pub location: Location,
}

impl WindowVersion {
    pub(crate) const fn new(
        sequence: Sequence,
        hasher: OutpointHasher,
        panes: Vec<PaneView>,
    ) -> Self {
        Self { sequence, hasher, panes }
    }

    /// The sequence of this version.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Every entry visible in this version, pane by pane from the oldest on, in no order within a
    /// pane.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let shards = self.panes.iter().flat_map(|view| view.pane.shards());
        shards.flat_map(|shard| shard.living(self.sequence)).map(|seen| seen.entry())
    }

    /// The hash by which the window places outpoints.
    pub(crate) const fn hasher(&self) -> &OutpointHasher {
        &self.hasher
    }

    /// The number of shards.
    pub(crate) fn shards(&self) -> usize {
        self.panes.last().map_or(1, |view| view.tables.len())
    }

    /// The oldest pane and the youngest.
    pub(crate) fn panes(&self) -> Option<(PaneId, PaneId)> {
        Some((self.panes.first()?.pane.id(), self.panes.last()?.pane.id()))
    }

    /// Whether the coin of this outpoint and birth is at this location, unspent.
    #[inline]
    pub(crate) fn holds(&self, at: Location, outpoint: &Outpoint, birth: Sequence) -> bool {
        let oldest = self.panes.first().map(|view| view.pane.id());
        let position = oldest.and_then(|oldest| at.pane().since(oldest));
        let view = position.and_then(|position| self.panes.get(position));
        let shard = view.and_then(|view| view.pane.shards().get(at.shard()));
        shard.and_then(|shard| shard.head(at.place())).is_some_and(|(batch, head)| {
            let same = head.outpoint == *outpoint && head.birth == birth;
            same && head.is_add() && batch.sees(head, self.sequence)
        })
    }

    /// The last step in which a coin of this outpoint died, as far as the panes know: one that died
    /// while its pane was being flushed may have died some steps earlier.
    pub(crate) fn last_death(&self, outpoint: &Outpoint) -> Option<Sequence> {
        let hash = self.hasher.hash(outpoint);
        let deaths = self.panes.iter().filter_map(|view| {
            let (shard, table) = (view.shard(hash), view.table(hash));
            shard.last_death(table, hash, outpoint, self.sequence)
        });
        deaths.max()
    }

    /// Looks up `keys` and appends what it finds, in their order, to `found`.
    pub fn lookup<'v>(&'v self, keys: &[Outpoint], found: &mut Vec<Lookup<'v>>) {
        found.reserve(keys.len());
        self.lookup_since(None, keys, |_, answer| found.push(answer));
    }

    /// Looks up `keys` in the panes from `first` on, or in all, and calls `found` with the place
    /// and the answer of each key, in order.
    pub(crate) fn lookup_since<'v>(
        &'v self,
        first: Option<PaneId>,
        keys: &[Outpoint],
        mut found: impl FnMut(usize, Lookup<'v>),
    ) {
        let skipped = self.panes.iter().take_while(|view| Some(view.pane.id()) < first).count();
        let panes = &self.panes[skipped..];
        let mut answers = [const { Lookup::Unknown }; GROUP];
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            let answers = &mut answers[..keys.len()];
            self.lookup_group(panes, keys, answers);
            for (place, answer) in (group * GROUP..).zip(answers) {
                found(place, std::mem::replace(answer, Lookup::Unknown));
            }
        }
    }

    fn lookup_group<'v>(
        &'v self,
        panes: &'v [PaneView],
        keys: &[Outpoint],
        found: &mut [Lookup<'v>],
    ) {
        let mut hashes = [OutpointHash::default(); GROUP];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hasher.hash(key);
        }
        // The keys that are not found yet, by their number in the group.
        let mut pending: [usize; GROUP] = std::array::from_fn(|number| number);
        let mut left = keys.len();
        for view in panes.iter().rev() {
            let pending_now = &pending[..left];
            let mut probes = [Probe::default(); GROUP];
            for (probe, number) in probes.iter_mut().zip(pending_now) {
                *probe = view.table(hashes[*number]).first(hashes[*number]);
            }
            let mut firsts = [None; GROUP];
            let mut touched = 0;
            for ((first, probe), number) in firsts.iter_mut().zip(&probes).zip(pending_now) {
                *first = view.first(hashes[*number], *probe);
                touched ^= first.map_or(0, |(seen, _)| seen.head.touch());
            }
            std::hint::black_box(touched);
            let mut still = 0;
            for at in 0..left {
                let number = pending[at];
                let (key, hash, found) = (&keys[number], hashes[number], &mut found[number]);
                if let Some((seen, behind)) = firsts[at] {
                    if seen.head.outpoint == *key && seen.batch.sees(seen.head, self.sequence) {
                        view.note(hash, &seen, found);
                    }
                    if !matches!(found, Lookup::Found(_)) {
                        view.resolve(key, self.sequence, hash, behind, found);
                    }
                }
                if !matches!(found, Lookup::Found(_)) {
                    pending[still] = number;
                    still += 1;
                }
            }
            left = still;
        }
    }
}

impl PaneView {
    #[inline]
    fn table(&self, hash: OutpointHash) -> &Table {
        let table = self.tables.get(hash.shard(self.tables.len()));
        table.expect("a hash is reduced to the number of shards")
    }

    #[inline]
    fn shard(&self, hash: OutpointHash) -> &Shard {
        self.pane.shard(hash.shard(self.tables.len()))
    }

    /// The entry of the first slot whose tag agrees, whether or not the reader sees it, and the
    /// probe after it.
    #[inline]
    fn first(&self, hash: OutpointHash, mut probe: Probe) -> Option<(Seen<'_>, Probe)> {
        loop {
            let (slot, behind) = self.table(hash).next(hash, probe)?;
            let place = slot.place();
            if let Some((batch, head)) = self.shard(hash).head(place) {
                return Some((Seen { place, batch, head }, behind));
            }
            probe = behind;
        }
    }

    /// Searches from `probe` on and records what it finds.
    fn resolve<'v>(
        &'v self,
        key: &Outpoint,
        at: Sequence,
        hash: OutpointHash,
        probe: Probe,
        found: &mut Lookup<'v>,
    ) {
        for seen in self.shard(hash).search(self.table(hash), hash, probe, key, at) {
            self.note(hash, &seen, found);
            if matches!(found, Lookup::Found(_)) {
                return;
            }
        }
    }

    /// Records a visible entry of the key: an add decides, a delete is remembered.
    #[inline]
    fn note<'v>(&self, hash: OutpointHash, seen: &Seen<'v>, found: &mut Lookup<'v>) {
        let Seen { place, batch, head } = *seen;
        match (batch.coin(head), found) {
            (Some(coin), found) => {
                let shard = u16::try_from(hash.shard(self.tables.len()));
                let shard = shard.expect("a pane has at most 2^15 shards");
                let location = Location::new(self.pane.id(), shard, place);
                *found = Lookup::Found(FoundCoin { coin, birth: head.birth, location });
            }
            (None, Lookup::Deleted(births)) => births.push(head.birth),
            (None, found) => *found = Lookup::Deleted(vec![head.birth]),
        }
    }
}

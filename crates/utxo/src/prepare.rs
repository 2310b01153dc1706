//! The expensive part of connecting a block, which does not depend on the blocks before it.
//!
//! It runs in any thread and in any order, also for blocks whose parents are not connected yet:
//!
//! 1. [`Parsed`]: the block is walked ([`Changes`]).
//! 2. [`Queried`]: its keys are looked up at the version of the moment, V. The keys are the
//!    prevouts and, where outputs can repeat older ones, the outputs it makes.
//! 3. [`Prepared`]: the pages have been read and the coins unpacked. What the block adds to the
//!    window is laid out (`window/layout.rs`), and its undo record is encoded except for its head.
//!
//! When its turn comes, at a later version W, what was found is brought up to date, by
//! [`Prepared::bring_up_to`], with a few probes of memory. The rule, for each key:
//!
//! - **Found in the window** at a location. If the location still holds the coin alive at W, it is
//!   the coin: at most one coin of an outpoint lives. This is not checked beforehand: the step that
//!   ends the coin there refuses if it is gone, and then the key is looked up again
//!   ([`Prepared::find_again`]). It is also looked up again when its pane has left the window.
//! - **Found in a run, or not at all.** Whatever happened to the outpoint after V is an entry in
//!   V's youngest pane or a younger one: a spend of a coin in a run adds a delete there, and every
//!   coin made or restored is an add there. So these panes are searched. A coin found there is the
//!   answer. A coin of a run whose birth they do not delete is still the answer. And an outpoint
//!   that had no coin at V and has no entry there has no coin at W.
//!
//! There are two exceptions. If V's youngest pane has itself become a run, the panes no longer hold
//! everything since V. And when a pane becomes a run, a coin that was restored while the run was
//! being written is dropped from the window because the run has it (`shard/writer.rs`), so absence
//! cannot be concluded from the panes. So when any pane has left the window since V, keys without a
//! coin are looked up again, and when V's youngest has, so are all keys not found at a location.
//! Merges of runs do not matter: they move coins and change none. All of this happens once in a
//! flush interval, to the few blocks in progress.
//!
//! Looking a key up again is an ordinary lookup at W, which is always correct.
//!
//! **Blocks prepared long before their turn** lack the outputs of all blocks between. So that their
//! turn does not take long, they are [refreshed](Prepared::refresh) on the way, by any worker: the
//! same rule, applied to a version between V and W.

use std::ops::Range;

use varve_consensus::BlockAt;
use varve_io::{BatchReader, Completion, ReadRequest};
use varve_runs::{PageBuffers, Sequence};
use varve_types::{BlockHash, Height, Network, Outpoint};

use crate::changes::Changes;
use crate::coins::Coins;
use crate::entry::Entry;
use crate::entry_list::write_entry;
use crate::error::Error;
use crate::hasher::OutpointHasher;
use crate::pane::PaneId;
use crate::run_error::RunError;
use crate::search::Search;
use crate::undo::encode_txs;
use crate::version::{READ_DEPTH, Version};
use crate::window::{Layout, Location, Lookup, Placing, Window};

/// Estimated bytes of an encoded coin, for allocations.
const USUAL_ENTRY: usize = 64;

/// Whether outputs of a block can have the outpoints of older coins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// They can, so they are looked up: a coin that is overwritten counts as spent.
    Possible,
    /// They cannot: see [`varve_consensus::can_repeat`].
    Impossible,
}

/// A block that was walked.
#[derive(Debug)]
pub(crate) struct Parsed {
    height: Height,
    repeats: Repeats,
    changes: Changes,
}

impl Parsed {
    /// Walks a block, whose keys will be looked up at `version` or a later one.
    pub(crate) fn new(
        version: &Version,
        network: Network,
        block: &BlockAt<'_>,
        repeats: Repeats,
    ) -> Self {
        let changes = Changes::of(network, version.window().hasher(), block, repeats);
        Self { height: block.height(), repeats, changes }
    }

    /// Looks the keys up, without reading pages.
    pub(crate) fn query(self, version: &Version) -> Queried {
        let search = Search::new(version, &self.changes.keys);
        let moment = Moment { sequence: version.sequence(), panes: version.window().panes() };
        let (hasher, shards) = (version.window().hasher().clone(), version.window().shards());
        let step = version.step_of(self.height);
        Queried { parsed: self, search, moment, hasher, shards, step }
    }
}

/// A block whose keys were looked up, except for reading pages.
#[derive(Debug)]
pub(crate) struct Queried {
    parsed: Parsed,
    search: Search,
    moment: Moment,
    /// How the window places outpoints.
    hasher: OutpointHasher,
    shards: usize,
    /// The step that the block will be, if nothing is disconnected before its turn.
    step: Sequence,
}

impl Queried {
    /// The reads it needs, tagged for [`Queried::accept`]. Call it once.
    pub(crate) fn requests(&self, buffers: &mut PageBuffers) -> Result<Vec<ReadRequest>, RunError> {
        self.search.requests(buffers)
    }

    /// Takes a completed read.
    pub(crate) fn accept(&mut self, completion: Completion) -> Result<(), RunError> {
        self.search.accept(completion)
    }

    /// Unpacks the coins, once all pages have been read, and lays out what `block`, the one that
    /// was parsed, adds.
    pub(crate) fn finish(
        self,
        block: &BlockAt<'_>,
        buffers: &mut PageBuffers,
    ) -> Result<Prepared, RunError> {
        let Self { parsed, search, moment, hasher, shards, step } = self;
        let Parsed { repeats, changes, .. } = parsed;
        let coins = search.finish(buffers)?;
        let spent = SpentBytes::of(changes.prevouts(), &coins);
        let txs = encode_txs(&changes.undo_txs(block), changes.left(block));
        let prevouts = changes.prevouts().iter().enumerate();
        let of_runs = prevouts
            .filter(|(place, _)| coins.birth(*place).is_some() && coins.location(*place).is_none());
        let deletes = of_runs.map(|(_, outpoint)| *outpoint);
        let placing = Placing { hasher: &hasher, shards };
        let adds = Layout::of_block(placing, step, block, &changes, deletes);
        let (block, adds) = (block.hash(), Some(adds));
        Ok(Prepared { block, repeats, changes, coins, spent, txs, adds, moment })
    }
}

/// When a lookup was made: the step, and the oldest and the youngest pane then.
#[derive(Clone, Copy, Debug)]
struct Moment {
    sequence: Sequence,
    panes: Option<(PaneId, PaneId)>,
}

/// A block with everything that was found for it, ready for
/// [`Database::append_prepared`](crate::Database::append_prepared).
#[derive(Debug)]
pub struct Prepared {
    pub(crate) block: BlockHash,
    pub(crate) repeats: Repeats,
    pub(crate) changes: Changes,
    /// In the order of the changes' keys.
    pub(crate) coins: Coins,
    /// The spent coins as the undo record has them.
    spent: SpentBytes,
    /// The transactions as the undo record has them.
    pub(crate) txs: Vec<u8>,
    /// What the block adds to the window, until a step takes it.
    pub(crate) adds: Option<Layout>,
    moment: Moment,
}

impl Prepared {
    /// Walks a block and looks its keys up at `version`, waiting for the disk where necessary. The
    /// version may be older than the block's parent.
    pub fn new(
        version: &Version,
        network: Network,
        block: &BlockAt<'_>,
        repeats: Repeats,
    ) -> Result<Self, Error> {
        let mut queried = Parsed::new(version, network, block, repeats).query(version);
        let mut buffers = PageBuffers::default();
        if queried.search.unread() > 0 {
            let mut reader = BatchReader::new(READ_DEPTH);
            queried.search.fetch(&mut reader, &mut buffers)?;
        }
        Ok(queried.finish(block, &mut buffers)?)
    }

    /// Bytes of the window that the block takes at most.
    pub(crate) fn window_bytes(&self) -> usize {
        let changes = &self.changes;
        Window::memory_of(changes.spends() + changes.outputs(), changes.script_bytes)
    }

    /// Updates what was found to `version`, by the rule in the module's doc. Coins at a location in
    /// the window are trusted to be there.
    pub(crate) fn bring_up_to(&mut self, version: &Version) -> Result<(), Error> {
        let now = Moment { sequence: version.sequence(), panes: version.window().panes() };
        if now.sequence == self.moment.sequence {
            return Ok(());
        }
        let oldest = now.panes.map(|(oldest, _)| oldest);
        let (places, keys) = self.without_location(|at| Some(at.pane()) >= oldest);
        let unsettled = match (self.moment.panes, now.panes) {
            (Some((oldest, youngest)), Some((oldest_now, _))) if youngest >= oldest_now => {
                self.ask_panes(version, youngest, oldest == oldest_now, &places, &keys)
            }
            _ => places,
        };
        self.moment = now;
        self.look_up_again(version, &unsettled)
    }

    /// Updates what was found to a later version before the block's turn comes: the less has
    /// happened since, the less is left to do then.
    pub(crate) fn refresh(&mut self, version: &Version) -> Result<(), Error> {
        self.bring_up_to(version)?;
        if self.spent.forgotten {
            self.spent = SpentBytes::of(self.changes.prevouts(), &self.coins);
        }
        Ok(())
    }

    /// Looks all keys up at `version` whose coin is not where it was found: a step was refused.
    pub(crate) fn find_again(&mut self, version: &Version) -> Result<(), Error> {
        let keys = self.changes.keys.iter().enumerate();
        let moved = keys.filter(|(place, key)| {
            let found = self.coins.location(*place).zip(self.coins.birth(*place));
            found.is_some_and(|(at, birth)| !version.window().holds(at, key, birth))
        });
        let places: Vec<usize> = moved.map(|(place, _)| place).collect();
        self.look_up_again(version, &places)
    }

    /// The keys whose coin was not found at a location in the window that `is_good`, and their
    /// places.
    fn without_location(&self, is_good: impl Fn(Location) -> bool) -> (Vec<usize>, Vec<Outpoint>) {
        let keys = self.changes.keys.iter().enumerate();
        keys.filter(|(place, _)| !self.coins.location(*place).is_some_and(&is_good)).unzip()
    }

    /// Searches the panes from `first` on for what has happened to these keys. Returns the places
    /// of those that the panes cannot answer completely; they can answer all when `all_stayed`.
    fn ask_panes(
        &mut self,
        version: &Version,
        first: PaneId,
        all_stayed: bool,
        places: &[usize],
        keys: &[Outpoint],
    ) -> Vec<usize> {
        let mut unsettled = Vec::new();
        let (coins, spent) = (&mut self.coins, &mut self.spent);
        version.window().lookup_since(Some(first), keys, |number, found| {
            let Some(&place) = places.get(number) else { return };
            let located = coins.location(place).is_some();
            let decided = match (found, coins.birth(place).filter(|_| !located)) {
                (Lookup::Found(found), _) => {
                    coins.set(place, found.birth, found.coin, found.location);
                    spent.forget(place);
                    true
                }
                (Lookup::Unknown, Some(_)) => true,
                (Lookup::Deleted(births), Some(birth)) => !births.contains(&birth),
                (_, None) => all_stayed && !located,
            };
            if !decided {
                unsettled.push(place);
            }
        });
        unsettled
    }

    /// Looks these keys up at `version`, whatever was known about them.
    fn look_up_again(&mut self, version: &Version, places: &[usize]) -> Result<(), Error> {
        if places.is_empty() {
            return Ok(());
        }
        let key = |place: &usize| self.changes.keys.get(*place).copied();
        let keys: Vec<Outpoint> = places.iter().filter_map(key).collect();
        let found = version.get(&keys)?;
        for (number, place) in places.iter().enumerate() {
            self.coins.copy(*place, &found, number);
            self.spent.forget(*place);
        }
        Ok(())
    }

    /// Appends the coins of the keys in these places, encoded for an undo record. Adjacent ones are
    /// copied together.
    pub(crate) fn write_spent(&self, places: &[usize], out: &mut Vec<u8>) {
        let mut known = 0..0;
        for &place in places {
            let span = self.spent.span(place);
            if !span.is_empty() && span.start == known.end {
                known.end = span.end;
                continue;
            }
            out.extend_from_slice(self.spent.get(known));
            known = span;
            if known.is_empty() {
                let found = self.changes.keys.get(place).zip(self.coins.birth(place));
                if let Some(((outpoint, birth), coin)) = found.zip(self.coins.get(place)) {
                    write_entry(&Entry::add(*outpoint, birth, coin), out);
                }
            }
        }
        out.extend_from_slice(self.spent.get(known));
    }
}

/// Spent coins, encoded before their turn.
#[derive(Debug)]
struct SpentBytes {
    bytes: Vec<u8>,
    /// Where each prevout's coin is; empty when it was not known.
    spans: Vec<Range<u32>>,
    /// Some spans have been invalidated since.
    forgotten: bool,
}

impl SpentBytes {
    fn of(prevouts: &[Outpoint], coins: &Coins) -> Self {
        let mut bytes = Vec::with_capacity(prevouts.len() * USUAL_ENTRY);
        let mut spans = Vec::with_capacity(prevouts.len());
        // A span beyond four gibibytes is not kept.
        let at = |bytes: &Vec<u8>| u32::try_from(bytes.len()).unwrap_or_default();
        for (place, outpoint) in prevouts.iter().enumerate() {
            let start = at(&bytes);
            if let Some((coin, birth)) = coins.get(place).zip(coins.birth(place)) {
                write_entry(&Entry::add(*outpoint, birth, coin), &mut bytes);
            }
            spans.push(start..at(&bytes));
        }
        Self { bytes, spans, forgotten: false }
    }

    /// Where the coin of a key is.
    fn span(&self, place: usize) -> Range<u32> {
        self.spans.get(place).cloned().unwrap_or_default()
    }

    fn get(&self, span: Range<u32>) -> &[u8] {
        self.bytes.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// The key has another coin now.
    fn forget(&mut self, place: usize) {
        if let Some(span) = self.spans.get_mut(place) {
            *span = 0..0;
            self.forgotten = true;
        }
    }
}

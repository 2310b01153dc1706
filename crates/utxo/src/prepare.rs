//! A block on its way into the set, as far as that goes without its turn.
//!
//! Everything dear about connecting a block is done here, in any thread and in any order, also for
//! blocks whose parents are not connected yet:
//!
//! 1. [`Parsed`]: the block is walked ([`Changes`]).
//! 2. [`Queried`]: its keys are looked up at the version of the moment, V. The keys are the prevouts
//!    and, where outputs can repeat older ones, the outputs it makes.
//! 3. [`Prepared`]: the pages have been read and the coins unpacked.
//!
//! When its turn comes, at a later version W, what was found is brought up to date, by
//! [`Prepared::bring_up_to`], with a few probes of memory. The rule, for each key:
//!
//! - **Found in the window** at a location. If the location still holds the coin alive at W, it is
//!   the coin: at most one coin of an outpoint lives. Otherwise the key is asked anew.
//! - **Found in a run, or not at all.** Whatever happened to the outpoint after V is an entry in V's
//!   youngest pane or a younger one: a spend of a coin in a run adds a delete there, and every coin
//!   made or given back is an add there. So these panes are asked. A coin found there is the answer.
//!   A coin of a run whose birth they do not delete is still the answer. And what was not there at V
//!   and is not found there is not there at W.
//!
//! Two things bend this. If V's youngest pane has itself become a run, the panes no longer tell
//! everything since V. And when a pane becomes a run, a coin that was given back while the run was
//! being written is dropped from the window in favour of the run (`shard/writer.rs`), so "not
//! there" cannot be concluded from the panes. So when any pane has left the window since V, keys
//! without a coin are asked anew, and when V's youngest has, all that were not found at a location.
//! Merges of runs do not matter: they move coins and change none. All of this happens once in a
//! flush interval, to the few blocks that were under way.
//!
//! To ask anew is an ordinary lookup at W, which is right whatever the rest is worth.

use varve_consensus::BlockAt;
use varve_io::{BatchReader, Completion, ReadRequest};
use varve_types::{BlockHash, Network, Outpoint};

use crate::changes::Changes;
use crate::coins::Coins;
use crate::error::Error;
use crate::pane::PaneId;
use crate::query::PageBuffers;
use crate::run_error::RunError;
use crate::search::Search;
use crate::sequence::Sequence;
use crate::version::{READ_DEPTH, Version};
use crate::window::{Lookup, Window};

/// Whether outputs of a block can have the outpoints of older coins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// They can, so they are looked up: a coin that is overwritten counts as spent.
    Possible,
    /// They cannot: see [`varve_consensus::can_repeat`], which knows where that is so.
    Impossible,
}

/// A block that was walked.
#[derive(Debug)]
pub(crate) struct Parsed {
    block: BlockHash,
    repeats: Repeats,
    changes: Changes,
}

impl Parsed {
    /// Walks a block, whose keys will be looked up at `version` or a later one.
    pub(crate) fn new(
        version: &Version,
        network: Network,
        (block, repeats): (&BlockAt<'_>, Repeats),
    ) -> Self {
        let changes = Changes::of(network, version.window().hasher(), (block, repeats));
        Self { block: block.hash(), repeats, changes }
    }

    /// Looks the keys up, but for reading pages.
    pub(crate) fn query(self, version: &Version) -> Queried {
        let search = Search::new(version, &self.changes.keys);
        let moment = Moment { sequence: version.sequence(), panes: version.window().panes() };
        Queried { parsed: self, search, moment }
    }
}

/// A block whose keys were looked up, but for reading pages.
#[derive(Debug)]
pub(crate) struct Queried {
    parsed: Parsed,
    search: Search,
    moment: Moment,
}

impl Queried {
    /// The reads that it takes, tagged for [`Queried::accept`]. Call it once.
    pub(crate) fn requests(
        &self,
        buffers: &mut PageBuffers,
    ) -> Result<Vec<ReadRequest>, RunError> {
        self.search.requests(buffers)
    }

    /// Takes a completed read.
    pub(crate) fn accept(&mut self, completion: Completion) -> Result<(), RunError> {
        self.search.accept(completion)
    }

    /// Unpacks the coins, when all pages have come.
    pub(crate) fn finish(self, buffers: &mut PageBuffers) -> Result<Prepared, RunError> {
        let Self { parsed: Parsed { block, repeats, changes }, search, moment } = self;
        Ok(Prepared { block, repeats, changes, coins: search.finish(buffers)?, moment })
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
    moment: Moment,
}

impl Prepared {
    /// Walks a block and looks its keys up at `version`, waiting for the disk where it must. The
    /// version may be older than the block's parent.
    pub fn new(
        version: &Version,
        network: Network,
        block: &BlockAt<'_>,
        repeats: Repeats,
    ) -> Result<Self, Error> {
        let mut queried = Parsed::new(version, network, (block, repeats)).query(version);
        let mut buffers = PageBuffers::default();
        if queried.search.unread() > 0 {
            let mut reader = BatchReader::new(READ_DEPTH);
            queried.search.fetch(&mut reader, &mut buffers)?;
        }
        Ok(queried.finish(&mut buffers)?)
    }

    /// Bytes of the window that the block takes at most.
    pub(crate) fn window_bytes(&self) -> usize {
        let changes = &self.changes;
        Window::memory_of(changes.spends() + changes.outputs(), changes.script_bytes)
    }

    /// Makes what was found right for `version`: the rule is in the module's doc.
    pub(crate) fn bring_up_to(&mut self, version: &Version) -> Result<(), Error> {
        let now = Moment { sequence: version.sequence(), panes: version.window().panes() };
        if now.sequence == self.moment.sequence {
            return Ok(());
        }
        let (places, keys) = self.not_at_their_location(version);
        let anew = match (self.moment.panes, now.panes) {
            (Some((oldest, youngest)), Some((oldest_now, _))) if youngest >= oldest_now => {
                self.ask_panes(version, youngest, oldest == oldest_now, (&places, &keys))
            }
            _ => places,
        };
        self.moment = now;
        self.ask_anew(version, &anew)
    }

    /// The keys whose coin is not alive at the location where it was found, and their places.
    fn not_at_their_location(&self, version: &Version) -> (Vec<usize>, Vec<Outpoint>) {
        let (mut places, mut keys) = (Vec::new(), Vec::new());
        for (place, key) in self.changes.keys.iter().enumerate() {
            let found = self.coins.location(place).zip(self.coins.birth(place));
            if !found.is_some_and(|(at, birth)| version.window().holds(at, (key, birth))) {
                places.push(place);
                keys.push(*key);
            }
        }
        (places, keys)
    }

    /// Asks the panes from `first` on what has happened to these keys. Returns the places of those
    /// to which they do not have the whole answer; they have it when `all_stayed`.
    fn ask_panes(
        &mut self,
        version: &Version,
        first: PaneId,
        all_stayed: bool,
        (places, keys): (&[usize], &[Outpoint]),
    ) -> Vec<usize> {
        let mut anew = Vec::new();
        let coins = &mut self.coins;
        version.window().lookup_since(Some(first), keys, |number, found| {
            let Some(&place) = places.get(number) else { return };
            let located = coins.location(place).is_some();
            let decided = match (found, coins.birth(place).filter(|_| !located)) {
                (Lookup::Found(found), _) => {
                    coins.set(place, (found.birth, found.coin), found.location);
                    true
                }
                (Lookup::Unknown, Some(_)) => true,
                (Lookup::Deleted(births), Some(birth)) => !births.contains(&birth),
                (_, None) => all_stayed && !located,
            };
            if !decided {
                anew.push(place);
            }
        });
        anew
    }

    /// Looks these keys up at `version`, whatever was known of them.
    fn ask_anew(&mut self, version: &Version, places: &[usize]) -> Result<(), Error> {
        if places.is_empty() {
            return Ok(());
        }
        let key = |place: &usize| self.changes.keys.get(*place).copied();
        let keys: Vec<Outpoint> = places.iter().filter_map(key).collect();
        let found = version.get(&keys)?;
        for (number, place) in places.iter().enumerate() {
            self.coins.copy(*place, &found, number);
        }
        Ok(())
    }
}

//! A step: what connecting or disconnecting one block changes.
//!
//! | | connecting a block | disconnecting it |
//! |---|---|---|
//! | adds | its outputs, born now | the coins it spent, as they were, from its undo record |
//! | spends | the coins it spends | its outputs |
//!
//! Outputs that the same block spends are in neither list: they never were part of the set. A coin
//! that a block overwrites (before BIP30 was enforced) is spent by it.
//!
//! Spends carry what a lookup found at the latest version, and are checked: the location must hold
//! the coin, and the coin must be alive.

use varve_runs::Sequence;
use varve_types::{Height, Outpoint};

use crate::pane::PaneId;
use crate::shard::Place;
use crate::undo::UndoRecord;
use crate::window::{Lookup, WindowVersion};

/// The changes of one step, besides the coins that it adds (`Layout`).
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The step's number, above those of all earlier steps.
    pub sequence: Sequence,
    /// The height of the block that is connected or disconnected.
    pub height: Height,
    /// Coins to remove.
    pub spends: &'a [Spend],
    /// The oldest pane, when this step replaces it by its run: see `Window::begin_flush`.
    pub replaces: Option<PaneId>,
}

/// A coin to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spend {
    /// The coin's outpoint.
    pub outpoint: Outpoint,
    /// The step that created it.
    pub birth: Sequence,
    /// Where the window has it; `None` when it is in a run. A location in a pane that has left the
    /// window counts as `None`.
    pub location: Option<Location>,
}

/// Where the window has a coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pane: PaneId,
    shard: u16,
    batch: u16,
    index: u32,
}

impl Location {
    pub(crate) const fn new(pane: PaneId, shard: u16, place: Place) -> Self {
        Self { pane, shard, batch: place.batch, index: place.index }
    }

    pub(crate) const fn pane(self) -> PaneId {
        self.pane
    }

    pub(crate) fn shard(self) -> usize {
        usize::from(self.shard)
    }

    pub(crate) const fn place(self) -> Place {
        Place { batch: self.batch, index: self.index }
    }
}

/// Why a step was refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// A sequence that is not above that of the window.
    #[error("step {sequence} does not come after step {at}; take the next sequence")]
    Order {
        /// The step's.
        sequence: Sequence,
        /// The window's.
        at: Sequence,
    },
    /// A coin spent by two inputs of one block.
    #[error("{outpoint} is spent twice in one block; refuse the block")]
    SpentTwice {
        /// The coin.
        outpoint: Outpoint,
    },
    /// A coin that an earlier step spent.
    #[error("{outpoint} was spent by step {at} already; look it up at the latest version")]
    Spent {
        /// The coin.
        outpoint: Outpoint,
        /// The step that spent it.
        at: Sequence,
    },
    /// A location that never held this coin.
    #[error("{outpoint} is not where the spend says; pass the location of its lookup")]
    NotThere {
        /// The coin.
        outpoint: Outpoint,
    },
    /// A coin that is in the set already. The window detects this in its youngest pane only; where
    /// older coins can be overwritten, the caller must look them up.
    #[error("{outpoint} exists already; spend the coin that the block overwrites")]
    Exists {
        /// The coin.
        outpoint: Outpoint,
    },
    /// A script of a gibibyte or more.
    #[error("the script of {outpoint} is too long: the window takes less than 1 GiB")]
    ScriptTooLong {
        /// The coin.
        outpoint: Outpoint,
    },
    /// More coins or bytes than a shard takes in one step.
    #[error("the block is too large for {shards} shards; open the store with more")]
    TooLarge {
        /// The number of shards.
        shards: usize,
    },
    /// A pane that is not being flushed.
    #[error("there is no flush of this pane; begin one first")]
    NoFlush,
}

/// The spends that disconnect the block of `record`: its outputs, wherever they are. None is looked
/// up on disk: an unspent output of the block is in the window or in a run.
pub(crate) fn spends_of_disconnect(version: &WindowVersion, record: &UndoRecord) -> Vec<Spend> {
    let mut found = Vec::with_capacity(record.created.len());
    version.lookup(&record.created, &mut found);
    let birth = record.sequence;
    let spend = |(outpoint, found): (&Outpoint, &Lookup<'_>)| {
        let location = match found {
            Lookup::Found(found) if found.birth == birth => Some(found.location),
            _ => None,
        };
        Spend { outpoint: *outpoint, birth, location }
    };
    record.created.iter().zip(&found).map(spend).collect()
}

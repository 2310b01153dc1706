//! Coins that were looked up, in the order of their keys, in two allocations.
//!
//! The window puts its coins in as they are, a query of the runs unpacks its own into the same
//! list, each at the place of its key.

use std::ops::Range;

use varve_runs::Sequence;
use varve_types::{Coin, DecodeError};

use crate::packed::{CoinHead, PackedCoin};
use crate::window::Location;

/// Estimated bytes of a script, for allocations.
const USUAL_SCRIPT: usize = 28;

/// The coins of some outpoints. Keeps its memory from one block to the next.
#[derive(Clone, Debug, Default)]
pub struct Coins {
    found: Vec<Option<Found>>,
    scripts: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Found {
    birth: Sequence,
    head: CoinHead,
    script: Range<usize>,
    location: Option<Location>,
}

impl Coins {
    /// One entry per key, none found yet.
    pub(crate) fn unknown(keys: usize) -> Self {
        Self { found: vec![None; keys], scripts: Vec::with_capacity(keys * USUAL_SCRIPT) }
    }

    /// Adds a coin of the window.
    pub(crate) fn set(
        &mut self,
        place: usize,
        birth: Sequence,
        coin: Coin<'_>,
        location: Location,
    ) {
        let start = self.scripts.len();
        self.scripts.extend_from_slice(coin.script);
        let script = start..self.scripts.len();
        let Coin { height, coinbase, value, .. } = coin;
        let head = CoinHead { height, coinbase, value };
        if let Some(found) = self.found.get_mut(place) {
            *found = Some(Found { birth, head, script, location: Some(location) });
        }
    }

    /// Unpacks a coin of a run.
    pub(crate) fn set_packed(
        &mut self,
        place: usize,
        birth: Sequence,
        packed: PackedCoin<'_>,
    ) -> Result<(), DecodeError> {
        let start = self.scripts.len();
        let head = packed.unpack(&mut self.scripts)?;
        let script = start..self.scripts.len();
        if let Some(found) = self.found.get_mut(place) {
            *found = Some(Found { birth, head, script, location: None });
        }
        Ok(())
    }

    /// The number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there are no keys.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The coin of the key in this place; `None` when the set does not have it.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<Coin<'_>> {
        let found = self.found.get(place)?.as_ref()?;
        Some(found.head.with_script(self.scripts.get(found.script.clone())?))
    }

    /// The step that created the coin in this place.
    pub(crate) fn birth(&self, place: usize) -> Option<Sequence> {
        self.found.get(place)?.as_ref().map(|found| found.birth)
    }

    /// All of them, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = Option<Coin<'_>>> {
        (0..self.len()).map(|place| self.get(place))
    }

    /// Copies entry `from` of `other` to `place`, including the absence of a coin.
    pub(crate) fn copy(&mut self, place: usize, other: &Self, from: usize) {
        let found = other.found.get(from).cloned().flatten();
        let found = found.map(|mut found| {
            let start = self.scripts.len();
            let script = other.scripts.get(found.script).unwrap_or_default();
            self.scripts.extend_from_slice(script);
            found.script = start..self.scripts.len();
            found
        });
        if let Some(old) = self.found.get_mut(place) {
            *old = found;
        }
    }

    /// Where the window has the coin in this place; `None` when a run has it.
    pub(crate) fn location(&self, place: usize) -> Option<Location> {
        self.found.get(place)?.as_ref()?.location
    }
}

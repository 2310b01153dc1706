//! Blocks that readers may still want the bytes of.
//!
//! Pruning removes whole files of blocks, and a snapshot that is being read must not lose them. So
//! a reader *pins* the blocks from the *floor* on: everything below it is about to go. Pruning
//! first raises the floor, which holds for readers that come later, and then removes what no pin
//! holds; what an older reader holds goes with the next pruning. A reader that comes and stays
//! cannot keep a busy node from pruning, because it pins only what is above the floor.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use varve_blocks::BlockNumber;

/// The pins of one node; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The first block that a new reader can count on.
    floor: u32,
    /// How many readers count on the blocks from a number on.
    held: BTreeMap<u32, usize>,
}

/// Holds the bytes of blocks while it exists.
#[derive(Debug)]
pub struct Pin {
    pins: Pins,
    from: u32,
}

impl Pins {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pins the blocks from the floor on.
    pub(crate) fn pin(&self) -> Pin {
        let mut state = self.lock();
        let from = state.floor;
        *state.held.entry(from).or_default() += 1;
        drop(state);
        Pin { pins: self.clone(), from }
    }

    /// Blocks below this one are to go. Returns the first that is pinned; `None` when none is.
    pub(crate) fn raise(&self, floor: BlockNumber) -> Option<BlockNumber> {
        let mut state = self.lock();
        state.floor = state.floor.max(floor.get());
        state.held.first_key_value().map(|(from, _)| BlockNumber::new(*from))
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.pins.lock();
        if let Some(count) = state.held.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                state.held.remove(&self.from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_keeps_what_it_found_and_later_ones_do_not() {
        let pins = Pins::default();
        let number = BlockNumber::new;
        let first = pins.pin();
        assert_eq!(pins.raise(number(10)), Some(number(0)), "the first reader holds all");
        let (second, third) = (pins.pin(), pins.pin());
        drop(first);
        assert_eq!(pins.raise(number(12)), Some(number(10)));
        drop(second);
        assert_eq!(pins.raise(number(12)), Some(number(10)), "the third is there still");
        let fourth = pins.pin();
        drop(third);
        assert_eq!(pins.raise(number(15)), Some(number(12)));
        drop(fourth);
        assert_eq!(pins.raise(number(15)), None);
    }
}

//! What a query found, in the order of its keys, in two allocations.

use std::ops::Range;

use varve_types::{Coin, DecodeError};

use crate::packed::{CoinHead, PackedCoin};
use crate::sequence::Sequence;

/// The coins found, in the order of the keys. Keeps its memory from one block to the next.
#[derive(Debug, Default)]
pub struct Answers {
    found: Vec<Option<Answer>>,
    scripts: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Answer {
    birth: Sequence,
    head: CoinHead,
    script: Range<usize>,
}

impl Answers {
    pub(super) fn clear(&mut self, keys: usize) {
        self.scripts.clear();
        self.found.clear();
        self.found.resize(keys, None);
    }

    /// Unpacks the coin of the key in this place.
    pub(super) fn set(
        &mut self,
        place: usize,
        birth: Sequence,
        packed: PackedCoin<'_>,
    ) -> Result<(), DecodeError> {
        let start = self.scripts.len();
        let head = packed.unpack(&mut self.scripts)?;
        let script = start..self.scripts.len();
        let found = self.found.get_mut(place).expect("there is an answer for every key");
        *found = Some(Answer { birth, head, script });
        Ok(())
    }

    /// The number of keys asked.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.found.len()
    }

    /// True when nothing was asked.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The birth and the coin of the key in this place; `None` when it is not in the runs or
    /// deleted there.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<(Sequence, Coin<'_>)> {
        let Answer { birth, head, script } = self.found.get(index)?.as_ref()?;
        Some((*birth, head.with_script(self.scripts.get(script.clone())?)))
    }

    /// All answers, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = Option<(Sequence, Coin<'_>)>> {
        (0..self.len()).map(|index| self.get(index))
    }
}

//! The coins that a step adds, laid out as the window will keep them.
//!
//! ```text
//!  the block's coins      a b c d e f g …          in block order
//!                          │ hash, divide, copy     any thread, before the block's turn
//!                          ▼
//!  shard 0   │ heads: b e … │ hashes, numbers │ room for deletes │
//!  shard 1   │ heads: a g … │ hashes, numbers │ room for deletes │       the writer's turn:
//!  …                                                                ──► slots filled, shown
//! ```
//!
//! Hashing the outpoints, dividing them by shard and copying the coins needs nothing but the coins.
//! So the outputs of a block are laid out when it is prepared, and the writer, which takes blocks
//! one by one, only fills one table slot for each.
//!
//! One thing is not certain before a block's turn: the sequence of its step, with which its coins
//! are born. It is predicted (every block above the set is a step, if nothing is disconnected in
//! between). If the prediction fails, the births are rewritten.

use varve_consensus::BlockAt;
use varve_runs::Sequence;
use varve_types::Outpoint;

use super::StepError;
use crate::changes::Changes;
use crate::entry::Entry;
use crate::hasher::{OutpointHash, OutpointHasher};
use crate::shard::{BatchBuilder, BatchFull, Refused};

/// What a step adds, by shard.
#[derive(Debug)]
pub(crate) struct Layout {
    hasher: OutpointHasher,
    pub(super) shards: Vec<LaidOut>,
    /// Entries so far.
    len: u32,
    /// The first entry that cannot be kept, by its number among all.
    pub(super) refused: Option<Refused>,
}

/// What a step adds to one shard.
#[derive(Debug)]
pub(crate) struct LaidOut {
    pub(crate) batch: BatchBuilder,
    pub(crate) hashes: Vec<OutpointHash>,
    /// The number of each entry among all that the step adds.
    pub(crate) numbers: Vec<u32>,
}

/// How outpoints are distributed over shards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing<'a> {
    pub(crate) hasher: &'a OutpointHasher,
    pub(crate) shards: usize,
}

impl Layout {
    /// An empty layout of step `from`, with room for the adds at these outpoints and for the step's
    /// deletes.
    pub(crate) fn with_room(
        placing: Placing<'_>,
        from: Sequence,
        adds: impl Iterator<Item = Outpoint>,
        deletes: impl Iterator<Item = Outpoint>,
    ) -> Self {
        let Placing { hasher, shards } = placing;
        let count = |outpoints: &mut dyn Iterator<Item = Outpoint>| {
            let mut counts = vec![0; shards];
            for outpoint in outpoints {
                if let Some(count) = counts.get_mut(hasher.hash(&outpoint).shard(shards)) {
                    *count += 1;
                }
            }
            counts
        };
        let (mut adds, mut deletes) = (adds, deletes);
        let rooms = count(&mut adds).into_iter().zip(count(&mut deletes));
        let shard = |(adds, deletes): (usize, usize)| LaidOut {
            batch: BatchBuilder::new(from, adds + deletes),
            hashes: Vec::with_capacity(adds + deletes),
            numbers: Vec::with_capacity(adds),
        };
        let shards = rooms.map(shard).collect();
        Self { hasher: hasher.clone(), shards, len: 0, refused: None }
    }

    /// What connecting a block, as step `from`, adds, with room for these deletes.
    pub(crate) fn of_block(
        placing: Placing<'_>,
        from: Sequence,
        block: &BlockAt<'_>,
        changes: &Changes,
        deletes: impl Iterator<Item = Outpoint>,
    ) -> Self {
        let mut layout = Self::with_room(placing, from, changes.left(block), deletes);
        changes.for_each_created(block, |outpoint, coin| {
            layout.push(&Entry::add(outpoint, from, coin));
        });
        layout
    }

    /// Appends an entry.
    #[inline]
    pub(crate) fn push(&mut self, entry: &Entry<'_>) {
        let (hash, shards) = (self.hasher.hash(&entry.outpoint), self.shards.len());
        let Some(shard) = self.shards.get_mut(hash.shard(shards)) else { return };
        match shard.batch.push(entry) {
            Ok(_) => {
                shard.hashes.push(hash);
                shard.numbers.push(self.len);
            }
            Err(full) => self.refuse(entry.outpoint, full),
        }
        self.len += 1;
    }

    #[cold]
    fn refuse(&mut self, outpoint: Outpoint, full: BatchFull) {
        let error = match full {
            BatchFull::Script => StepError::ScriptTooLong { outpoint },
            BatchFull::Batch => StepError::TooLarge { shards: self.shards.len() },
        };
        self.refused.get_or_insert(Refused { rank: self.len as usize, error });
    }

    /// How many entries there are.
    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::num::NonZeroUsize;

    use varve_types::{Amount, Coin, Height, Txid};

    use super::*;
    use crate::window::{Step, Window, WindowConfig};

    #[test]
    fn coins_are_born_by_the_step_that_comes_and_not_by_the_foreseen_one() {
        let hasher = OutpointHasher::new(&[7; 16]);
        let mut window = Window::new(WindowConfig::default(), hasher, Sequence::ZERO);
        let outpoint = |number| Outpoint::new(Txid::from_bytes([number; 32]), 0);
        let (height, value) = (Height::GENESIS, Amount::COIN);
        let coin = Coin { height, coinbase: false, value, script: &[0x51] };
        // A coin of the block, and one that is restored with its original birth.
        let (foreseen, sequence, old) = (Sequence::new(3), Sequence::new(5), Sequence::new(1));
        let adds = |new| [Entry::add(outpoint(1), new, coin), Entry::add(outpoint(2), old, coin)];
        let layout = window.lay_out(foreseen, adds(foreseen).into_iter());
        let step = Step { sequence, height, spends: &[], replaces: None };
        let version = window.apply(&step, layout, NonZeroUsize::MIN).unwrap();
        let mut entries: Vec<Entry<'_>> = version.entries().collect();
        entries.sort_unstable_by_key(Entry::key);
        assert_eq!(entries, adds(sequence));
    }

    fn apply(window: &mut Window, sequence: u32, adds: &[Entry<'_>]) -> Result<(), StepError> {
        let (sequence, height) = (Sequence::new(sequence), Height::GENESIS);
        let step = Step { sequence, height, spends: &[], replaces: None };
        window.apply_entries(&step, adds, NonZeroUsize::MIN).map(|_| ())
    }

    fn add(number: u8, script: &[u8]) -> Entry<'_> {
        let (height, value) = (Height::GENESIS, Amount::COIN);
        let coin = Coin { height, coinbase: false, value, script };
        Entry::add(Outpoint::new(Txid::from_bytes([number; 32]), 0), Sequence::new(1), coin)
    }

    /// Each shard finds its own errors. The step is refused for the one that comes first in it.
    #[test]
    fn the_first_entry_that_is_refused_is_named_whatever_its_shard() {
        let hasher = OutpointHasher::new(&[7; 16]);
        let mut window = Window::new(WindowConfig::default(), hasher, Sequence::ZERO);
        let mut adds: Vec<Entry<'_>> = (0..40).map(|number| add(number, &[0x51])).collect();
        apply(&mut window, 1, &adds).unwrap();
        for _ in 0..adds.len() {
            adds.rotate_left(1);
            let error = apply(&mut window, 2, &adds).unwrap_err();
            assert_eq!(error, StepError::Exists { outpoint: adds[0].outpoint });
        }
        let long = vec![0; 1 << 30];
        let adds = [add(50, &[0x51]), add(51, &long), add(52, &long)];
        let error = apply(&mut window, 2, &adds).unwrap_err();
        assert_eq!(error, StepError::ScriptTooLong { outpoint: adds[1].outpoint });
    }
}

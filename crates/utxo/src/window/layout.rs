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
//! To hash the outpoints, to divide them by shard and to copy the coins takes nothing but the
//! coins. So the outputs of a block are laid out when it is prepared, and all that is left for the
//! writer, who takes blocks one by one, is a slot of the table for each.
//!
//! One thing is not known for sure before a block's turn: the sequence of its step, with which its
//! coins are born. It is foreseen (every block above the set is a step, if nothing is disconnected
//! in between). When it comes otherwise, the births are written again.

use varve_types::Outpoint;

use super::StepError;
use crate::entry::Entry;
use crate::hasher::{OutpointHash, OutpointHasher};
use crate::sequence::Sequence;
use crate::shard::{BatchBuilder, BatchFull, Refused};

/// What a step adds, by shard.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(super) shards: Vec<LaidOut>,
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

impl Layout {
    /// Lays out the entries of step `from` for so many shards, with room for the deletes that the
    /// step will add for these outpoints.
    pub(crate) fn new<'e, 'd>(
        (hasher, shards): (&OutpointHasher, usize),
        from: Sequence,
        entries: impl Iterator<Item = Entry<'e>> + Clone,
        deletes: impl Iterator<Item = &'d Outpoint>,
    ) -> Self {
        let hashes: Vec<OutpointHash> =
            entries.clone().map(|entry| hasher.hash(&entry.outpoint)).collect();
        let (mut adds, mut rooms) = (vec![0; shards], vec![0; shards]);
        let count = |counts: &mut [usize], hash: OutpointHash| {
            if let Some(count) = counts.get_mut(hash.shard(shards)) {
                *count += 1;
            }
        };
        hashes.iter().for_each(|hash| count(&mut adds, *hash));
        deletes.for_each(|outpoint| count(&mut rooms, hasher.hash(outpoint)));
        let shard = |(adds, room): (usize, usize)| LaidOut {
            batch: BatchBuilder::new(from, adds + room),
            hashes: Vec::with_capacity(adds + room),
            numbers: Vec::with_capacity(adds),
        };
        let mut layout =
            Self { shards: adds.into_iter().zip(rooms).map(shard).collect(), refused: None };
        for ((number, entry), hash) in (0..).zip(entries).zip(hashes) {
            if let Some(refused) = layout.push(number, hash, &entry) {
                layout.refused = Some(refused);
                break;
            }
        }
        layout
    }

    #[inline]
    fn push(&mut self, number: u32, hash: OutpointHash, entry: &Entry<'_>) -> Option<Refused> {
        let (shards, outpoint) = (self.shards.len(), entry.outpoint);
        let shard = self.shards.get_mut(hash.shard(shards))?;
        let error = match shard.batch.push(entry) {
            Ok(_) => {
                shard.hashes.push(hash);
                shard.numbers.push(number);
                return None;
            }
            Err(BatchFull::Script) => StepError::ScriptTooLong { outpoint },
            Err(BatchFull::Batch) => StepError::TooLarge { shards },
        };
        Some(Refused { rank: number as usize, error })
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.hashes.len()).sum()
    }
}

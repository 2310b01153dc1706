//! The part of a step that one thread stages.

use super::{LaidOut, Location, Placing, Step};
use crate::shard::{Refused, ShardStep, ShardWriter};

/// Neighbouring shards that one thread stages, and what a step adds to each.
pub(super) struct ShardRange<'a> {
    /// The number of the first shard.
    pub(super) first: usize,
    pub(super) shards: &'a mut [ShardWriter],
    pub(super) adds: Vec<LaidOut>,
}

impl ShardRange<'_> {
    /// Selects the part of `step` that concerns these shards, and stages it in them.
    pub(super) fn stage(self, placing: Placing<'_>, step: &Step<'_>) -> Option<Refused> {
        let Self { first, shards, adds } = self;
        let Placing { hasher, shards: count } = placing;
        debug_assert_eq!(shards.len(), adds.len(), "every shard has its part of the layout");
        let expected = step.spends.len() / count + step.spends.len() / count / 4;
        let part = |adds| ShardStep {
            sequence: step.sequence,
            adds,
            first_add: step.spends.len(),
            spends: Vec::with_capacity(expected),
            replaces_oldest: step.replaces.is_some(),
        };
        let mut parts: Vec<ShardStep<'_>> = adds.into_iter().map(part).collect();
        for (rank, spend) in step.spends.iter().enumerate() {
            let shard = spend.location.map(Location::shard).filter(|shard| *shard < count);
            let shard = shard.unwrap_or_else(|| hasher.hash(&spend.outpoint).shard(count));
            if let Some(part) = shard.checked_sub(first).and_then(|shard| parts.get_mut(shard)) {
                part.spends.push((rank, spend));
            }
        }
        let staged = shards.iter_mut().zip(parts).map(|(shard, part)| shard.stage(part).err());
        staged.flatten().min_by_key(|refused| refused.rank)
    }
}

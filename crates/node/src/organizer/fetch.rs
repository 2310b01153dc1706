//! Which blocks are asked of which giver.
//!
//! Each giver has an *offer*: the best header that it has sent. It is asked for blocks of that
//! branch alone, the lowest that are not stored first, and only while the branch has more work than
//! the tip. So headers without blocks hold nothing up: they are the offer of one giver, and the
//! branches of others are fetched beside them.
//!
//! ```text
//! stored   ■ ■ ■ ■                            tip 4
//! offer A        └ □ □ □ □ □ □ □ □            asked of A, and of B as far as they share it
//! offer B          └ □ □ □ □ □                asked of B
//! archive          └ □ □ □ □ □ □ □ □ □ □      the best header, which nobody offers: not asked for
//! ```
//!
//! * A block is asked of one giver. When that one does not send it, the others that offer it are
//!   asked. One that all have failed with is *missing*: when nothing else is left to do, the lowest
//!   of each branch is reported.
//! * A slow giver does not hold up the others: one that has room and finds nothing else in the
//!   window is also asked for the lowest blocks that another has owed for [`LATE`]. Whichever copy
//!   comes first is taken, the other is dropped. No block is in flight at more than two givers.
//! * Headers of peers below the known work of the chain are no offer.
//! * A source that the user vouches for may be asked for everything that it has, on all branches.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use varve_types::{BlockHash, Height};

use crate::header_tree::{HeaderId, HeaderTree};
use crate::source::Giver;

/// How far above the lowest block that is not stored blocks are asked for.
const WINDOW: u32 = 512;
/// Blocks that a giver without its own limit is asked for at a time.
const AT_A_TIME: usize = 256;
/// How long one giver may owe a block before another is asked for it too.
const LATE: Duration = Duration::from_secs(2);
/// How often a giver is asked for a block when its bytes were not those of the header.
const ATTEMPTS: u32 = 3;

/// What is asked for, of whom.
#[derive(Default)]
pub(crate) struct Fetch {
    /// Blocks of all branches are fetched, from the one giver of a trusted source.
    all_branches: bool,
    offers: BTreeMap<Giver, HeaderId>,
    owed: HashMap<BlockHash, Owed>,
    /// Blocks that have come and are being checked.
    checking: HashSet<BlockHash>,
    /// Who was asked in vain, and how often.
    tried: HashMap<BlockHash, BTreeMap<Giver, u32>>,
    reported: HashSet<BlockHash>,
    /// Headers whose blocks are still to be asked for, when all branches are fetched. What has been
    /// asked for is taken out, so that nobody walks past it again and again.
    unfetched: BTreeSet<(Height, HeaderId)>,
    /// Those whose blocks were asked for in vain.
    failed: BTreeSet<(Height, HeaderId)>,
}

/// Who was asked for a block.
struct Owed {
    giver: Giver,
    /// Who was asked too, because the first is late.
    rival: Option<Giver>,
    /// When the first was asked.
    since: Duration,
}

/// What decides whether a block is worth asking for.
pub(crate) struct Aim {
    /// The tip of the confirmed chain.
    pub(crate) tip: HeaderId,
    pub(crate) stop: Height,
    pub(crate) is_trusted: bool,
    /// The time by the caller's clock.
    pub(crate) now: Duration,
}

impl Fetch {
    /// Fetches the blocks of all branches, or of those alone that may become the best chain.
    pub(crate) fn new(all_branches: bool) -> Self {
        Self { all_branches, ..Self::default() }
    }

    /// A header whose block is not stored, when all branches are fetched.
    pub(crate) fn add_unfetched(&mut self, height: Height, id: HeaderId) {
        self.unfetched.insert((height, id));
    }

    /// A giver has sent this header, and so has the blocks up to it.
    pub(crate) fn offer(&mut self, tree: &HeaderTree, giver: Giver, id: HeaderId) {
        let best = self.offers.entry(giver).or_insert(id);
        if tree.work(id) > tree.work(*best) || tree.invalid(*best).is_some() {
            *best = id;
        }
    }

    /// What a giver offers.
    pub(crate) fn offer_of(&self, giver: Giver) -> Option<HeaderId> {
        self.offers.get(&giver).copied()
    }

    /// The givers that have offers.
    pub(crate) fn givers(&self) -> Vec<Giver> {
        self.offers.keys().copied().collect()
    }

    /// A giver is gone. What it owed has been reported as missing.
    pub(crate) fn forget(&mut self, giver: Giver) {
        self.offers.remove(&giver);
        for tried in self.tried.values_mut() {
            tried.remove(&giver);
        }
    }

    /// Whether a block is on its way, or being checked.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.owed.is_empty() || !self.checking.is_empty()
    }

    /// Whether blocks of some branch were asked for in vain.
    pub(crate) fn is_missing_some(&self) -> bool {
        !self.tried.is_empty()
    }

    /// A block came.
    pub(crate) fn arrived(&mut self, hash: &BlockHash) {
        self.owed.remove(hash);
    }

    /// A block that came is going to be checked. `false`: a copy of it is already.
    pub(crate) fn check(&mut self, hash: BlockHash) -> bool {
        self.checking.insert(hash)
    }

    /// A block has been checked.
    pub(crate) fn checked(&mut self, hash: &BlockHash) {
        self.checking.remove(hash);
    }

    /// A block was stored.
    pub(crate) fn stored(&mut self, hash: &BlockHash, height: Height, id: HeaderId) {
        self.owed.remove(hash);
        self.tried.remove(hash);
        self.unfetched.remove(&(height, id));
    }

    /// A giver that was asked for a block does not send it.
    pub(crate) fn missed(&mut self, tree: &HeaderTree, hash: &BlockHash, giver: Giver) {
        let Entry::Occupied(mut entry) = self.owed.entry(*hash) else { return };
        let owed = entry.get_mut();
        if owed.rival == Some(giver) {
            owed.rival = None;
        } else if owed.giver == giver {
            match owed.rival.take() {
                Some(rival) => owed.giver = rival,
                None => {
                    entry.remove();
                    let id = tree.find(hash).filter(|_| self.all_branches);
                    self.failed.extend(id.map(|id| (tree.height(id), id)));
                }
            }
        } else {
            return;
        }
        self.tried.entry(*hash).or_default().insert(giver, ATTEMPTS);
    }

    /// The bytes that a giver sent were not those of the block.
    pub(crate) fn spoiled(&mut self, tree: &HeaderTree, hash: &BlockHash, giver: Giver) {
        let tries = self.tried.entry(*hash).or_default().entry(giver).or_default();
        *tries += 1;
        let again = if *tries < ATTEMPTS { &mut self.unfetched } else { &mut self.failed };
        let id = tree.find(hash).filter(|_| self.all_branches);
        again.extend(id.map(|id| (tree.height(id), id)));
    }

    /// Givers may have by now what they did not have. Whether there is such a thing.
    pub(crate) fn try_again(&mut self) -> bool {
        self.unfetched.append(&mut self.failed);
        let has_tried = !self.tried.is_empty();
        self.tried.clear();
        has_tried
    }

    /// The blocks to ask a giver for that has this much room. They are noted as owed.
    pub(crate) fn choose(
        &mut self,
        tree: &HeaderTree,
        aim: &Aim,
        giver: Giver,
        room: usize,
    ) -> Vec<BlockHash> {
        let limited = room < AT_A_TIME;
        if room == 0 || (!limited && self.owed.len() > AT_A_TIME / 2) {
            return Vec::new();
        }
        let room = if limited { room } else { AT_A_TIME - self.owed.len() };
        let wanted = |id: &HeaderId| {
            let hash = tree.hash(*id);
            let tried = self.tried.get(&hash).and_then(|tried| tried.get(&giver));
            tree.height(*id) <= aim.stop
                && !tree.is_stored(*id)
                && tree.invalid(*id).is_none()
                && tried.is_none_or(|tries| *tries < ATTEMPTS)
                && !self.checking.contains(&hash)
        };
        let (mut hashes, mut late) = (Vec::new(), Vec::new());
        if self.all_branches {
            while hashes.len() < room
                && let Some((height, id)) = self.unfetched.first().copied()
                && height <= aim.stop
            {
                self.unfetched.pop_first();
                let hash = tree.hash(id);
                hashes.extend((wanted(&id) && !self.owed.contains_key(&hash)).then_some(hash));
            }
        } else {
            let tip = self.offers.get(&giver).and_then(|best| worthwhile(tree, aim, *best));
            let ids = tip.map(|tip| tree.to_fetch(tip, WINDOW)).unwrap_or_default();
            for hash in ids.into_iter().filter(wanted).map(|id| tree.hash(id)) {
                let is_owed = self.owed.contains_key(&hash);
                if is_owed { &mut late } else { &mut hashes }.push(hash);
                if hashes.len() >= room {
                    break;
                }
            }
        }
        let since = aim.now;
        let new = |hash: &BlockHash| (*hash, Owed { giver, rival: None, since });
        self.owed.extend(hashes.iter().map(new));
        if limited {
            let room = room.saturating_sub(hashes.len());
            hashes.extend(self.race(aim.now, giver, late, room));
        }
        hashes
    }

    /// The lowest of these blocks that another is late with. They are noted as owed by both.
    fn race(
        &mut self,
        now: Duration,
        giver: Giver,
        mut owed: Vec<BlockHash>,
        room: usize,
    ) -> Vec<BlockHash> {
        owed.retain(|hash| {
            self.owed.get(hash).is_some_and(|owed| {
                let late = now.saturating_sub(owed.since) >= LATE;
                late && owed.giver != giver && owed.rival.is_none()
            })
        });
        owed.truncate(room);
        for hash in &owed {
            if let Some(owed) = self.owed.get_mut(hash) {
                owed.rival = Some(giver);
            }
        }
        owed
    }

    /// The blocks that nobody has sent and that were not reported: the lowest of each branch.
    pub(crate) fn missing(&mut self, tree: &HeaderTree) -> Vec<BlockHash> {
        let lowest = |hash: &&BlockHash| {
            tree.find(hash).is_some_and(|id| {
                let follows = tree.parent(id).is_some_and(|parent| tree.is_whole(parent));
                follows && !tree.is_stored(id) && tree.invalid(id).is_none()
            })
        };
        let mut missing: Vec<_> = self.tried.keys().filter(lowest).copied().collect();
        missing.retain(|hash| self.reported.insert(*hash));
        missing.sort_unstable();
        missing
    }
}

/// The part of an offered branch that can become the chain, if that is better than the tip.
fn worthwhile(tree: &HeaderTree, aim: &Aim, best: HeaderId) -> Option<HeaderId> {
    let best = match tree.invalid(best) {
        Some(invalid) => tree.find(&invalid.block).and_then(|id| tree.parent(id))?,
        None => best,
    };
    let known = aim.is_trusted || tree.work(best) >= tree.params().minimum_work;
    (known && tree.work(best) > tree.work(aim.tip)).then_some(best)
}

#[cfg(test)]
mod tests;

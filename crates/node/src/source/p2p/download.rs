//! Who is asked for which block.
//!
//! Blocks are wanted in an order. Each waits, or is *in flight*: asked of one peer. A peer has at
//! most [`IN_FLIGHT`] in flight; the lowest that wait go to the peer with the fewest. The newest
//! blocks may be on a branch that others do not have: they go to the peer that told of them.
//!
//! ```text
//! order      41   42   43   44   45   46   47   48
//!            A    B    A    B    A    –    –    –        41 holds the window when B is idle
//! ```
//!
//! 1. The window is *held* when somebody could take more and the lowest in flight does not come, or
//!    when nobody sends anything. After [`HOLD`] its peer loses all it has in flight to the others,
//!    and is given half as much from then on, at last nothing; each block that it delivers, and
//!    each message that tells of blocks, gives one back.
//! 2. Nodes answer in order, and say nothing when they are asked for a block that they do not have.
//!    So a block that comes shows that those asked of its peer before will not: others get them.
//! 3. A peer that owes something and sends not a byte for [`SILENCE`] is given up, and so is one
//!    that comes to owe more than [`MAX_OWED`]. A block for which that happened [`SILENCES`] times
//!    is one that nobody has.
//! 4. A block that comes late, after another peer was asked for it, is taken if it is the first.
//!    A block that its peer was never asked for is an offence.
//!
//! Nothing here knows a socket or a clock: time is what the caller says it waited.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use varve_types::BlockHash;

use crate::source::Giver;

/// Blocks in flight from one peer.
pub(super) const IN_FLIGHT: usize = 16;
/// How long one peer may hold the window.
pub(super) const HOLD: Duration = Duration::from_secs(2);
/// How long a peer that owes something may say nothing.
pub(super) const SILENCE: Duration = Duration::from_secs(20);
/// How often a block is asked for of peers that say nothing.
pub(super) const SILENCES: u32 = 3;
/// Blocks that a peer may owe, with those that others were asked for meanwhile.
const MAX_OWED: usize = 4 * IN_FLIGHT;
/// Blocks for which it is remembered who told of them: of one message, and in all.
const NEWEST: usize = 144;
const TOLD: usize = 16 * NEWEST;

/// What a block that came is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receipt {
    /// The first copy of a block that was wanted.
    Wanted,
    /// It was asked for, but another peer was faster.
    Late,
    /// Nobody asked this peer.
    Unasked,
}

/// All that is wanted, and all peers.
#[derive(Default)]
pub(super) struct Download {
    wanted: HashMap<BlockHash, Wanted>,
    /// Those not in flight, by their order.
    waiting: BTreeMap<u64, BlockHash>,
    /// Those in flight, by their order.
    flying: BTreeMap<u64, Giver>,
    peers: BTreeMap<Giver, Load>,
    /// Who told of which block: the newest alone, on whatever branch.
    told: HashMap<BlockHash, Giver>,
    /// How long nobody has sent anything.
    still: Duration,
    next_order: u64,
    /// The lowest in flight, and how long the window has waited for it.
    held: Option<(u64, Duration)>,
}

struct Wanted {
    order: u64,
    /// Who was too slow with it.
    avoid: Option<Giver>,
    /// Who said that it is not there.
    lacking: BTreeSet<Giver>,
    /// How many peers were given up for their silence while they were asked for it.
    silences: u32,
}

struct Load {
    /// What was asked of this peer and has not come, and when: the first, the second, ….
    asked: HashMap<BlockHash, u64>,
    questions: u64,
    /// How many of these are in flight, and not taken over by others.
    flying: usize,
    limit: usize,
    silent: Duration,
}

impl Load {
    const fn has_room(&self) -> bool {
        self.flying < self.limit
    }
}

impl Download {
    /// Adds blocks behind those that are wanted.
    pub(super) fn want(&mut self, hashes: &[BlockHash]) {
        for hash in hashes {
            let order = self.next_order;
            self.wanted.entry(*hash).or_insert_with(|| {
                self.next_order += 1;
                self.waiting.insert(order, *hash);
                Wanted { order, avoid: None, lacking: BTreeSet::new(), silences: 0 }
            });
        }
    }

    /// A peer that can be asked.
    pub(super) fn add_peer(&mut self, peer: Giver) {
        let (asked, silent) = (HashMap::new(), Duration::ZERO);
        self.peers.insert(peer, Load { asked, questions: 0, flying: 0, limit: IN_FLIGHT, silent });
    }

    /// A peer is gone. What it owed waits again.
    pub(super) fn remove_peer(&mut self, peer: Giver) {
        if let Some(load) = self.peers.remove(&peer) {
            load.asked.keys().for_each(|hash| self.take_back(peer, hash, None));
        }
    }

    /// A peer told of these blocks, each above the one before it.
    pub(super) fn told(&mut self, peer: Giver, hashes: &[BlockHash]) {
        if self.told.len() > TOLD {
            self.told.clear();
        }
        self.told.extend(hashes.iter().rev().take(NEWEST).map(|hash| (*hash, peer)));
        if let Some(load) = self.peers.get_mut(&peer) {
            load.limit = (load.limit + 1).min(IN_FLIGHT);
        }
    }

    /// Decides whom to ask for what, and notes it as asked.
    pub(super) fn assign(&mut self) -> Vec<(Giver, Vec<BlockHash>)> {
        let mut asked: BTreeMap<Giver, Vec<BlockHash>> = BTreeMap::new();
        if self.peers.values().all(|load| load.limit == 0) {
            self.peers.values_mut().for_each(|load| load.limit = 1);
        }
        if !self.peers.values().any(Load::has_room) {
            return Vec::new();
        }
        for (order, hash) in self.waiting.clone() {
            let Some(peer) = self.choose(&hash) else { continue };
            let load = self.peers.get_mut(&peer).expect("chosen from the peers");
            load.flying += 1;
            self.waiting.remove(&order);
            self.flying.insert(order, peer);
            // A peer that was slow with it still owes it, and would send it twice.
            load.asked.entry(hash).or_insert_with(|| {
                asked.entry(peer).or_default().push(hash);
                load.questions += 1;
                load.questions
            });
        }
        asked.into_iter().collect()
    }

    /// Of the peers that may have the block the one with the fewest in flight. The one that told of
    /// the block is waited for, unless it was asked in vain.
    fn choose(&self, hash: &BlockHash) -> Option<Giver> {
        let wanted = self.wanted.get(hash)?;
        let slow = |peer: &Giver| wanted.avoid == Some(*peer) && self.peers.len() > 1;
        let has = |peer: &Giver| !wanted.lacking.contains(peer) && !slow(peer);
        let asked = |peer: &Giver| self.peers.get(peer).is_some_and(|load| load.limit > 0);
        let teller = self.told.get(hash).filter(|peer| asked(peer) && has(peer));
        let able = self.peers.iter().filter(|(peer, load)| {
            has(peer) && load.has_room() && teller.is_none_or(|teller| teller == *peer)
        });
        able.min_by_key(|(_, load)| load.flying).map(|(peer, _)| *peer)
    }

    /// A block came from a peer.
    pub(super) fn received(&mut self, peer: Giver, hash: &BlockHash) -> Receipt {
        let Some(load) = self.peers.get_mut(&peer) else { return Receipt::Unasked };
        let Some(question) = load.asked.remove(hash) else { return Receipt::Unasked };
        load.limit = (load.limit + 1).min(IN_FLIGHT);
        let passed = load.asked.iter().filter(|(_, asked)| **asked < question);
        for hash in passed.map(|(hash, _)| *hash).collect::<Vec<_>>() {
            self.take_back(peer, &hash, Some(peer));
        }
        self.told.remove(hash);
        let Some(wanted) = self.wanted.remove(hash) else { return Receipt::Late };
        self.waiting.remove(&wanted.order);
        if let Some(flier) = self.flying.remove(&wanted.order) {
            self.landed(flier);
        }
        Receipt::Wanted
    }

    /// A peer does not have a block. `true`: nobody has it, and it is no longer wanted.
    pub(super) fn not_found(&mut self, peer: Giver, hash: &BlockHash) -> bool {
        let Some(load) = self.peers.get_mut(&peer) else { return false };
        if load.asked.remove(hash).is_none() {
            return false;
        }
        let Some(wanted) = self.wanted.get_mut(hash) else { return false };
        wanted.lacking.insert(peer);
        wanted.avoid = None;
        let (order, nobody) =
            (wanted.order, self.peers.keys().all(|peer| wanted.lacking.contains(peer)));
        if self.flying.get(&order) == Some(&peer) {
            self.flying.remove(&order);
            self.waiting.insert(order, *hash);
            self.landed(peer);
        }
        if nobody {
            self.wanted.remove(hash);
            self.waiting.remove(&order);
        }
        nobody
    }

    /// The caller waited so long, and these peers sent something meanwhile. Returns the peers to
    /// be given up.
    pub(super) fn waited(&mut self, time: Duration, heard: &BTreeSet<Giver>) -> Vec<Giver> {
        self.still = if heard.is_empty() { self.still + time } else { Duration::ZERO };
        self.hold(time);
        let mut given_up = Vec::new();
        for (peer, load) in &mut self.peers {
            let excused = heard.contains(peer) || load.flying == 0;
            load.silent = if excused { Duration::ZERO } else { load.silent + time };
            let is_silent = load.silent >= SILENCE;
            for hash in load.asked.keys().filter(|_| is_silent) {
                if let Some(wanted) = self.wanted.get_mut(hash)
                    && self.flying.get(&wanted.order) == Some(peer)
                {
                    wanted.silences += 1;
                }
            }
            if is_silent || load.asked.len() > MAX_OWED {
                given_up.push(*peer);
            }
        }
        given_up
    }

    /// The blocks that nobody seems to have, in their order. They are no longer wanted.
    pub(super) fn unanswered(&mut self) -> Vec<BlockHash> {
        let silent = self.wanted.iter().filter(|(_, wanted)| wanted.silences >= SILENCES);
        let silent: BTreeMap<_, _> = silent.map(|(hash, wanted)| (wanted.order, *hash)).collect();
        for (order, hash) in &silent {
            self.wanted.remove(hash);
            self.waiting.remove(order);
            if let Some(peer) = self.flying.remove(order) {
                self.landed(peer);
            }
        }
        silent.into_values().collect()
    }

    /// Looks whether one peer holds the window.
    fn hold(&mut self, time: Duration) {
        let Some((order, peer)) = self.flying.first_key_value().map(|(o, p)| (*o, *p)) else {
            return;
        };
        let idle = self.peers.iter().any(|(other, load)| *other != peer && load.has_room());
        let since = self.held.filter(|(held, _)| *held == order && idle);
        let waited = since.map_or(Duration::ZERO, |(_, waited)| waited + time);
        self.held = Some((order, waited));
        if waited.max(self.still) >= HOLD && self.peers.len() > 1 {
            (self.held, self.still) = (None, Duration::ZERO);
            let Some(load) = self.peers.get_mut(&peer) else { return };
            load.limit /= 2;
            for hash in load.asked.keys().copied().collect::<Vec<_>>() {
                self.take_back(peer, &hash, Some(peer));
            }
        }
    }

    /// A block that a peer has in flight waits again.
    fn take_back(&mut self, peer: Giver, hash: &BlockHash, avoid: Option<Giver>) {
        let Some(wanted) = self.wanted.get_mut(hash) else { return };
        if self.flying.get(&wanted.order) == Some(&peer) {
            self.flying.remove(&wanted.order);
            self.waiting.insert(wanted.order, *hash);
            wanted.avoid = avoid;
            self.landed(peer);
        }
    }

    fn landed(&mut self, peer: Giver) {
        if let Some(load) = self.peers.get_mut(&peer) {
            load.flying = load.flying.saturating_sub(1);
        }
    }
}

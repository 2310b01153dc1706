//! Which blocks each peer owes, and whether it delivers.
//!
//! The receiver knows the branches, so it decides which blocks a peer is asked for, never more than
//! the peer has [`room`](Download::room) for. A block that was asked for is *in flight* until it
//! comes or is *taken back*; then the receiver may ask another peer.
//!
//! ```text
//! peer A   asked  41 43 45 47        in flight 45 47    41 and 43 were taken back: late, if ever
//! peer B   asked  42 44 46 41 43     in flight 42 44 46 41 43
//! ```
//!
//! 1. Nodes answer in order, and say nothing when they are asked for a block that they do not have.
//!    So a block that comes shows that those asked of its peer before will not: they are taken
//!    back.
//! 2. A peer that sends no part of a block for [`HOLD`] while another could take more loses all
//!    that it has in flight and is given half as much from then on, at last nothing: it
//!    *withholds*. Each block that it delivers, and each message that tells of new blocks, gives
//!    one back.
//! 3. A peer that owes blocks and sends no part of one for [`SILENCE`] is given up, whatever else
//!    it sends; so is one that comes to owe more than [`MAX_OWED`].
//! 4. A block that comes late is as good as another. One that its peer was never asked for is an
//!    offence.
//!
//! A branch whose blocks are withheld costs the others nothing: each peer has its own room. Nothing
//! here knows a socket or a clock: time is what the caller says it waited.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use varve_types::BlockHash;

use crate::source::Giver;

/// Blocks in flight from one peer.
pub(super) const IN_FLIGHT: usize = 16;
/// How long a peer may send no part of a block while another could take more.
pub(super) const HOLD: Duration = Duration::from_secs(2);
/// How long a peer that owes blocks may send no part of one at all.
pub(super) const SILENCE: Duration = Duration::from_secs(20);
/// Blocks that a peer may owe, with those that were taken back.
const MAX_OWED: usize = 4 * IN_FLIGHT;

/// All peers.
#[derive(Default)]
pub(super) struct Download {
    peers: BTreeMap<Giver, Load>,
}

struct Load {
    /// What was asked of this peer and has not come.
    asked: HashMap<BlockHash, Asked>,
    /// How many blocks it has been asked for.
    questions: u64,
    in_flight: usize,
    limit: usize,
    /// How long it has owed blocks and sent no part of one.
    quiet: Duration,
    /// It was reported as one that withholds.
    is_reported: bool,
}

struct Asked {
    question: u64,
    in_flight: bool,
}

/// What follows from waiting.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Late {
    /// Blocks that others may be asked for.
    pub(super) taken_back: Vec<BlockHash>,
    /// Peers that have now lost all their room.
    pub(super) withholding: Vec<Giver>,
    /// Peers to be given up.
    pub(super) silent: Vec<Giver>,
}

impl Download {
    /// A peer that can be asked.
    pub(super) fn add_peer(&mut self, peer: Giver) {
        let (asked, quiet) = (HashMap::new(), Duration::ZERO);
        let (questions, in_flight, limit, is_reported) = (0, 0, IN_FLIGHT, false);
        let load = Load { asked, questions, in_flight, limit, quiet, is_reported };
        self.peers.insert(peer, load);
    }

    /// A peer is gone. Returns what it had in flight.
    pub(super) fn remove_peer(&mut self, peer: Giver) -> Vec<BlockHash> {
        self.peers.remove(&peer).map_or_else(Vec::new, |mut load| load.take_back(|_| true))
    }

    /// How many more blocks a peer can be asked for; `None` when it is gone.
    pub(super) fn room(&self, peer: Giver) -> Option<usize> {
        let load = self.peers.get(&peer)?;
        // When nobody has any room left, they are better than nobody.
        let nobody = self.peers.values().all(|load| load.limit == 0);
        Some(load.limit.max(usize::from(nobody)).saturating_sub(load.in_flight))
    }

    /// A peer told of new blocks.
    pub(super) fn told(&mut self, peer: Giver) {
        if let Some(load) = self.peers.get_mut(&peer) {
            load.limit = (load.limit + 1).min(IN_FLIGHT);
        }
    }

    /// A peer is asked for blocks. Returns those that it does not owe already.
    pub(super) fn ask(&mut self, peer: Giver, hashes: &[BlockHash]) -> Vec<BlockHash> {
        let Some(load) = self.peers.get_mut(&peer) else { return Vec::new() };
        let mut new = Vec::new();
        for hash in hashes {
            let asked = load.asked.entry(*hash).or_insert_with(|| {
                new.push(*hash);
                load.questions += 1;
                Asked { question: load.questions, in_flight: false }
            });
            load.in_flight += usize::from(!asked.in_flight);
            asked.in_flight = true;
        }
        new
    }

    /// A block came. `None` when its peer was not asked for it, else what the peer passed over.
    pub(super) fn received(&mut self, peer: Giver, hash: &BlockHash) -> Option<Vec<BlockHash>> {
        let load = self.peers.get_mut(&peer)?;
        let Asked { question, in_flight } = load.asked.remove(hash)?;
        load.in_flight -= usize::from(in_flight);
        load.limit = (load.limit + 1).min(IN_FLIGHT);
        Some(load.take_back(|asked| asked.question < question))
    }

    /// A peer does not have a block. Whether that was in flight.
    pub(super) fn not_found(&mut self, peer: Giver, hash: &BlockHash) -> bool {
        let Some(load) = self.peers.get_mut(&peer) else { return false };
        let in_flight = load.asked.remove(hash).is_some_and(|asked| asked.in_flight);
        load.in_flight -= usize::from(in_flight);
        in_flight
    }

    /// The caller waited so long, and these peers sent parts of blocks meanwhile.
    pub(super) fn waited(&mut self, time: Duration, delivering: &BTreeSet<Giver>) -> Late {
        let mut late = Late::default();
        let with_room: BTreeSet<Giver> =
            self.peers.keys().copied().filter(|peer| self.room(*peer) > Some(0)).collect();
        for (peer, load) in &mut self.peers {
            let excused = load.in_flight == 0 || delivering.contains(peer);
            load.quiet = if excused { Duration::ZERO } else { load.quiet + time };
            if load.quiet >= SILENCE || load.asked.len() > MAX_OWED {
                late.silent.push(*peer);
            } else if load.quiet >= HOLD && with_room.iter().any(|other| other != peer) {
                load.quiet = Duration::ZERO;
                load.limit /= 2;
                late.taken_back.extend(load.take_back(|_| true));
                if load.limit == 0 && !std::mem::replace(&mut load.is_reported, true) {
                    late.withholding.push(*peer);
                }
            }
        }
        late
    }
}

impl Load {
    /// Takes back those in flight that are chosen, in the order in which they were asked for.
    fn take_back(&mut self, choose: impl Fn(&Asked) -> bool) -> Vec<BlockHash> {
        let mut taken = BTreeMap::new();
        for (hash, asked) in &mut self.asked {
            if asked.in_flight && choose(asked) {
                asked.in_flight = false;
                taken.insert(asked.question, *hash);
            }
        }
        self.in_flight -= taken.len();
        taken.into_values().collect()
    }
}

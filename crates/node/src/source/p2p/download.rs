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
//! 2. A peer that owes blocks and sends no part of one for [`SILENCE`] is given up, whatever else
//!    it sends; so is one that comes to owe more than [`MAX_OWED`]. Until then it keeps what it was
//!    asked for. A slow peer does not hold up the sync: the receiver asks another for the same
//!    blocks.
//! 3. A block that comes late is as good as another. One that its peer was never asked for is an
//!    offence.
//!
//! A branch whose blocks are withheld costs the others nothing: each peer has its own room. Nothing
//! here knows a socket or a clock: the caller says how much time has passed.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use varve_types::BlockHash;

use crate::source::Giver;

/// Blocks in flight from one peer.
pub(super) const IN_FLIGHT: usize = 16;
/// How long a peer that owes blocks may send no part of one.
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
    /// How long it has owed blocks and sent no part of one.
    quiet: Duration,
}

struct Asked {
    question: u64,
    in_flight: bool,
}

impl Download {
    /// A peer that can be asked.
    pub(super) fn add_peer(&mut self, peer: Giver) {
        let asked = HashMap::new();
        let load = Load { asked, questions: 0, in_flight: 0, quiet: Duration::ZERO };
        self.peers.insert(peer, load);
    }

    /// A peer is gone. Returns what it had in flight.
    pub(super) fn remove_peer(&mut self, peer: Giver) -> Vec<BlockHash> {
        self.peers.remove(&peer).map_or_else(Vec::new, |mut load| load.take_back(|_| true))
    }

    /// How many more blocks a peer can be asked for; `None` when it is gone.
    pub(super) fn room(&self, peer: Giver) -> Option<usize> {
        self.peers.get(&peer).map(|load| IN_FLIGHT.saturating_sub(load.in_flight))
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
        Some(load.take_back(|asked| asked.question < question))
    }

    /// A peer does not have a block. Whether that was in flight.
    pub(super) fn not_found(&mut self, peer: Giver, hash: &BlockHash) -> bool {
        let Some(load) = self.peers.get_mut(&peer) else { return false };
        let in_flight = load.asked.remove(hash).is_some_and(|asked| asked.in_flight);
        load.in_flight -= usize::from(in_flight);
        in_flight
    }

    /// Counts time in which these peers sent parts of blocks. Returns the peers to be given up.
    pub(super) fn waited(&mut self, time: Duration, delivering: &BTreeSet<Giver>) -> Vec<Giver> {
        let mut silent = Vec::new();
        for (peer, load) in &mut self.peers {
            let excused = load.in_flight == 0 || delivering.contains(peer);
            load.quiet = if excused { Duration::ZERO } else { load.quiet + time };
            if load.quiet >= SILENCE || load.asked.len() > MAX_OWED {
                silent.push(*peer);
            }
        }
        silent
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

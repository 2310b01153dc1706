//! Blocks that come unasked, each right behind its header: what a pipe and a maker in this process
//! have in common.
//!
//! A block that comes before its parent waits here, within a limit of bytes. What the receiver asks
//! for comes by itself or not at all.

use std::collections::{BTreeSet, VecDeque};

use varve_types::{BlockHash, Header, Network};

use super::linker::{Found, Linker};
use super::{Event, Giver, SourceError, Warning};

/// Blocks in an order in which parents come first, as events.
pub(super) struct PushedBlocks {
    linker: Linker<Vec<u8>, ()>,
    pub(super) events: VecDeque<Event>,
    /// Bytes of the blocks that wait.
    waiting: u64,
    limit: u64,
    /// What was asked for and has not been given since.
    wanted: BTreeSet<BlockHash>,
    ended: bool,
}

impl PushedBlocks {
    /// At most `limit` bytes of blocks wait for their parents.
    pub(super) fn new(network: Network, limit: u64) -> Self {
        Self {
            linker: Linker::new(network.genesis_hash(), |_| ()),
            events: VecDeque::new(),
            waiting: 0,
            limit,
            wanted: BTreeSet::new(),
            ended: false,
        }
    }

    /// Takes a block, which is not shorter than a header.
    pub(super) fn push(&mut self, bytes: Vec<u8>) -> Result<(), SourceError> {
        let header = *bytes.first_chunk().expect("records are not shorter than a header");
        let hash = Header::new(&header).hash();
        let is_genesis = Header::new(&header).previous() == BlockHash::ZERO;
        if self.linker.is_linked(&hash) && !is_genesis {
            // The receiver has the header, but perhaps not the block, or a copy that is torn.
            self.events.push_back(Event::Block { hash, bytes, giver: Giver::ONLY });
            return Ok(());
        }
        let (size, before, mut linked) = (bytes.len() as u64, self.linker.waiting(), Vec::new());
        let unknown = self.linker.push(Found { hash, header, with: bytes }, &mut linked);
        self.events.extend(unknown.map(|hash| Event::Parent { hash }));
        // Another copy of one that waits is dropped.
        let is_taken = !linked.is_empty() || self.linker.waiting() > before;
        self.waiting += if is_taken { size } else { 0 };
        if self.linker.waiting() == 0 {
            self.waiting = 0;
        }
        self.give(linked);
        if self.waiting > self.limit {
            return Err(SourceError::TooUnordered { limit: self.limit });
        }
        Ok(())
    }

    fn give(&mut self, linked: Vec<Found<Vec<u8>>>) {
        let giver = Giver::ONLY;
        for Found { hash, header, with: bytes } in linked {
            self.waiting = self.waiting.saturating_sub(bytes.len() as u64);
            self.events.push_back(Event::Headers { headers: vec![header], giver });
            self.events.push_back(Event::Block { hash, bytes, giver });
        }
    }

    /// The next event, if there is one.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Block { hash, .. } = &event {
            self.wanted.remove(hash);
        }
        Some(event)
    }

    /// No more blocks come.
    pub(super) fn end(&mut self) {
        self.ended = true;
        if self.linker.waiting() > 0 {
            let count = self.linker.waiting();
            self.events.push_back(Event::Warning(Warning::Unlinked { count }));
        }
        self.pause();
    }

    /// No more blocks come for the moment: those that were asked for are missing.
    pub(super) fn pause(&mut self) {
        let missing = std::mem::take(&mut self.wanted).into_iter();
        let giver = Giver::ONLY;
        self.events.extend(missing.map(|hash| Event::Missing { hash, giver }));
        self.events.push_back(Event::HeadersDone);
    }

    pub(super) fn seek(&mut self, locator: &[BlockHash]) {
        locator.iter().for_each(|hash| self.root(*hash));
        if self.ended {
            self.events.push_back(Event::HeadersDone);
        }
    }

    /// The receiver knows this block.
    pub(super) fn root(&mut self, hash: BlockHash) {
        let mut linked = Vec::new();
        self.linker.root(hash, &mut linked);
        self.give(linked);
    }

    pub(super) fn want(&mut self, giver: Giver, hashes: &[BlockHash]) {
        if self.ended {
            let missing = hashes.iter().map(|hash| Event::Missing { hash: *hash, giver });
            self.events.extend(missing);
        } else {
            self.wanted.extend(hashes);
        }
    }

    pub(super) fn bound(&mut self, unordered: u64) {
        self.limit = self.limit.min(unordered);
    }

    /// The blocks that may wait for their parents, and the hashes of those that were given.
    pub(super) fn memory(&self) -> u64 {
        self.limit + self.linker.memory()
    }
}

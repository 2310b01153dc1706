//! Verdicts that an operator gives and takes back, as Bitcoin Core's `invalidateblock` and
//! `reconsiderblock` do.
//!
//! * [`Organizer::invalidate`] marks a block. The chain leaves it at once for the best branch that
//!   does not have it, and no sync follows it until it is reconsidered.
//! * [`Organizer::reconsider`] takes the marks of a block, of its ancestors and of its descendants
//!   back, an operator's or our own. The chain moves to the best branch; what is not known to be
//!   valid is checked again on the way.
//!
//! Both then *settle*: the chain is brought to its target with the blocks that are stored, as a
//! sync with an empty source would do it. The verdict and the new tip go into one frame of the
//! commit log, so a crash leaves both or neither. (Marks that a sync finds may be durable before
//! the chain has left them; the next opening settles then.)

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use varve_types::BlockHash;

use super::feeder::{Pause, Purpose};
use super::intake::Intake;
use super::{Organizer, Report, SyncOptions, Verify};
use crate::checked::Checked;
use crate::error::Error;
use crate::header_tree::{HeaderId, INVALIDATED};
use crate::source::{Event, Giver, Source, SourceError};

impl Organizer {
    /// Marks a block as invalid, durably, and takes the chain to the best branch without it.
    /// Marking it again changes nothing.
    pub fn invalidate(
        &mut self,
        hash: BlockHash,
        report: &mut dyn FnMut(Report<'_>),
    ) -> Result<(), Error> {
        let id = self.stores.chain.read().tree.find(&hash);
        let id = id.ok_or(Error::UnknownBlock { hash })?;
        if id == HeaderId::GENESIS {
            return Err(Error::Genesis { hash });
        }
        if !self.stores.marks.contains_key(&hash) {
            self.check_leaving(id)?;
            self.stores.mark_invalid(id, INVALIDATED)?;
            self.stores.follow_best_header()?;
        }
        self.settle(report)
    }

    /// Takes back the marks of a block, of all below it and of all above it, durably, and takes
    /// the chain to the best branch. Blocks that are refused again are marked again. A block
    /// without a mark stays as it is.
    pub fn reconsider(
        &mut self,
        hash: BlockHash,
        report: &mut dyn FnMut(Report<'_>),
    ) -> Result<(), Error> {
        let id = self.stores.chain.read().tree.find(&hash);
        if id.is_none() && !self.stores.marks.contains_key(&hash) {
            return Err(Error::UnknownBlock { hash });
        }
        let related: Vec<BlockHash> = {
            let tree = &self.stores.chain.read().tree;
            let is_related = |mark: &BlockHash| {
                let marked = id.zip(tree.find(mark));
                *mark == hash
                    || marked.is_some_and(|(id, mark)| {
                        tree.is_on_branch(mark, id) || tree.is_on_branch(id, mark)
                    })
            };
            self.stores.marks.keys().filter(|mark| is_related(mark)).copied().collect()
        };
        for mark in related {
            self.stores.unmark(mark)?;
        }
        self.stores.follow_best_header()?;
        self.settle(report)
    }

    /// Brings the chain to its target with the blocks that are stored, and makes that durable.
    /// Blocks are checked as far as those of the confirmed tip were.
    pub(crate) fn settle(&mut self, report: &mut dyn FnMut(Report<'_>)) -> Result<(), Error> {
        let checked = self.stores.chain.read().checked(self.stores.tip);
        let scripts = checked == Checked::Scripts && !self.options.params.network.is_bsv();
        let options = SyncOptions {
            verify: if scripts { Verify::Scripts } else { Verify::Spends },
            assume_valid: None,
            stop_height: None,
            follow: false,
            all_branches: false,
            mempool: false,
            stop: Arc::default(),
            clock: Arc::new(|| Duration::ZERO),
            now: Arc::new(|| u32::MAX),
        };
        let mut nobody = Nobody::default();
        let quiet = &mut |told: Report<'_>| match told {
            // Blocks that were never fetched are no news here.
            Report::Missing { .. } | Report::Headers { .. } => {}
            told => report(told),
        };
        self.catch_up_indexes(quiet)?;
        let (checkers, kept) = self.waiting(&self.stores.budget(self.options.memory, 0))?;
        let mut intake = Intake::new(&mut nobody, &options, quiet, checkers, kept);
        intake.begin(&self.stores)?;
        while intake.is_waiting() {
            intake.take(&mut self.stores, Duration::ZERO)?;
        }
        loop {
            self.turn(&intake)?;
            if self.join(&mut intake, Purpose::Settle)? != Pause::Turn {
                // What moved no tip.
                self.stores.commit_verdicts()?;
                return self.checkpoint();
            }
        }
    }

    /// Takes the chain from a tip that is marked to the best branch without the mark. A crash has
    /// come between the mark and the turn.
    pub(crate) fn leave_marked_tip(&mut self) -> Result<(), Error> {
        let is_marked = {
            let tree = &self.stores.chain.read().tree;
            tree.invalid(self.stores.tip).is_some()
        };
        if !is_marked {
            return Ok(());
        }
        match self.settle(&mut |_| {}) {
            // The blocks that it takes are gone; the chain stays, and so does the mark.
            Err(Error::Pruned { .. }) => Ok(()),
            settled => settled,
        }
    }

    /// Refuses a mark when the chain could not leave the block, because what it takes is pruned.
    fn check_leaving(&self, id: HeaderId) -> Result<(), Error> {
        let target = {
            let mut chain = self.stores.chain.write();
            chain.tree.mark_invalid(id, INVALIDATED);
            let target = chain.target(self.stores.tip, None, None);
            chain.tree.clear_invalid(id);
            target
        };
        self.check_reach(target)
    }
}

/// A source without headers and blocks.
#[derive(Default)]
struct Nobody {
    events: VecDeque<Event>,
}

impl Source for Nobody {
    fn seek(&mut self, _: &[BlockHash]) -> Result<(), SourceError> {
        self.events.push_back(Event::HeadersDone);
        Ok(())
    }

    fn want(&mut self, giver: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
        self.events.extend(hashes.iter().map(|hash| Event::Missing { hash: *hash, giver }));
        Ok(())
    }

    fn next_event(&mut self, _: Duration) -> Result<Event, SourceError> {
        Ok(self.events.pop_front().unwrap_or(Event::Idle))
    }

    fn blame(&mut self, _: Giver, _: &str) {}
}

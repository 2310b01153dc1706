//! The joiner's decisions, without its threads.
//!
//! Slots are kept by height. `next` is the lowest height that has not retired, `append` the lowest
//! whose step has not been made, so `next ≤ append`, and the blocks between are appended and not
//! published.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use varve_types::Height;

use super::room::Room;
use super::slot::{BlockId, Held, JoinState, Slot, Ticket};
use super::{AsBlock, JoinError, Retired, SubmitError};
use crate::database::{Appended, Publisher};
use crate::error::Error;
use crate::prepare::{Prepared, Repeats};
use crate::version::Version;

/// Blocks prepared at most this many steps before their turn are not refreshed.
const REFRESH_MIN: u32 = 4;

/// Everything under way.
#[derive(Debug)]
pub(super) struct State<T, R, E> {
    slots: BTreeMap<Height, Slot<T, R, JoinError<E>>>,
    retired: VecDeque<Retired<T, R, E>>,
    next: Height,
    append: Height,
    depth: u32,
    room: Room,
    /// A block did not fit, and nothing has left since.
    refused: bool,
    tickets: u32,
    /// A writer is appending or rewinding.
    writing: bool,
    /// The lowest block that has failed: no work starts at or above it.
    failed: Option<Height>,
    /// A failure has not been reported yet; or, if `stuck`, recovery is impossible.
    broken: bool,
    stuck: bool,
    /// The workers should exit.
    pub(super) ending: bool,
    /// The set with all steps that were made.
    newest: Arc<Version>,
    publisher: Publisher,
}

/// Something to do, and for which block.
#[derive(Debug)]
pub(super) struct Job<T> {
    pub(super) id: BlockId,
    pub(super) block: Arc<T>,
    pub(super) task: Task,
}

/// What to do.
#[derive(Debug)]
pub(super) enum Task {
    /// Walk it and look its keys up at this version.
    Prepare(Arc<Version>, Repeats),
    /// Bring what was found up to this version, while its turn has not come.
    Refresh(Box<Prepared>, Arc<Version>),
    /// Make its step on top of this version.
    Append(Box<Prepared>, Arc<Version>),
    /// Run the check.
    Check(Box<Appended>),
    /// It has failed: rewind all that is not published.
    Rewind,
}

impl<T: AsBlock, R, E> State<T, R, E> {
    pub(super) fn new(
        newest: Arc<Version>,
        publisher: Publisher,
        depth: usize,
        room: Room,
    ) -> Self {
        let tip = newest.tip().map(|(height, _)| height);
        let next = tip.map_or(Some(Height::GENESIS), |tip| tip.checked_add(1)).unwrap_or_default();
        Self {
            slots: BTreeMap::new(),
            retired: VecDeque::new(),
            next,
            append: next,
            depth: u32::try_from(depth).unwrap_or(u32::MAX),
            room,
            refused: false,
            tickets: 0,
            writing: false,
            failed: None,
            broken: false,
            stuck: false,
            ending: false,
            newest,
            publisher,
        }
    }

    /// The highest height that can be submitted.
    fn end(&self) -> Height {
        self.next.checked_add(self.depth - 1).unwrap_or(Height::new(u32::MAX))
    }

    pub(super) fn submit(&mut self, block: T, repeats: Repeats) -> Result<(), SubmitError<T>> {
        if self.broken || self.failed.is_some() || self.ending {
            return Err(SubmitError::Failed(block));
        }
        let height = block.as_block().height();
        let (next, end) = (self.next, self.end());
        if height < next || height > end || self.slots.contains_key(&height) {
            return Err(SubmitError::Height { block, next, end });
        }
        let charge = self.room.charge(block.as_block().block().bytes().len());
        // The lowest is taken in any case: the others wait for it.
        if height != next && !self.room.fits(charge) {
            self.refused = true;
            return Err(SubmitError::Full(block));
        }
        self.room.take(charge);
        self.tickets = self.tickets.wrapping_add(1);
        let slot = Slot::new(Arc::new(block), repeats, Ticket(self.tickets), charge);
        self.slots.insert(height, slot);
        Ok(())
    }

    /// Whether nothing can be submitted before something has retired: every height is taken, the
    /// memory is, or a failure has not been reported yet.
    pub(super) fn is_full(&self) -> bool {
        let taken = self.slots.len() >= self.depth as usize
            || (self.slots.contains_key(&self.next) && (self.refused || !self.room.fits(0)));
        taken || self.broken || self.failed.is_some()
    }

    /// Pages are being read for a block.
    pub(super) fn reads(&mut self, id: BlockId, bytes: usize) {
        if let Some(slot) = self.slot(id) {
            slot.pages = bytes;
            self.room.take(bytes);
        }
    }

    #[cfg(feature = "test-suite")]
    pub(super) fn states(&self) -> Vec<(Height, JoinState)> {
        self.slots.iter().map(|(height, slot)| (*height, slot.state)).collect()
    }

    /// A retired block. With the last of them a failure has been reported.
    pub(super) fn take_retired(&mut self) -> Option<Retired<T, R, E>> {
        let retired = self.retired.pop_front();
        self.broken = self.stuck || (self.broken && !self.retired.is_empty());
        retired
    }

    /// Whether something will retire if one waits.
    pub(super) fn will_retire(&self) -> bool {
        !self.ending && !self.stuck && self.slots.contains_key(&self.next)
    }

    /// The lowest block that something can be done for, and what.
    pub(super) fn pick(&mut self) -> Option<Job<T>> {
        let (append, failed, crowded) = (self.append, self.failed, self.room.is_over());
        if failed == Some(self.next) {
            return self.pick_rewind();
        }
        let begun = self.slots.iter_mut().take_while(|(height, _)| Some(**height) != failed);
        for (height, slot) in begun.filter(|(_, slot)| !slot.busy) {
            let task = match (slot.state, std::mem::replace(&mut slot.held, Held::Nothing)) {
                // When its memory is exceeded, the joiner starts only the block that the others
                // wait for.
                (JoinState::Init, _) if !crowded || *height <= append => {
                    slot.seen = append;
                    Task::Prepare(Arc::clone(&self.newest), slot.repeats)
                }
                (JoinState::Fetched, Held::Prepared(prepared))
                    if *height == append && !self.writing =>
                {
                    self.writing = true;
                    Task::Append(prepared, Arc::clone(&self.newest))
                }
                (JoinState::Fetched, Held::Prepared(prepared))
                    if is_stale(*height, slot.seen, append) =>
                {
                    slot.seen = append;
                    Task::Refresh(prepared, Arc::clone(&self.newest))
                }
                (JoinState::Appended, Held::Appended(appended)) => Task::Check(appended),
                (_, held) => {
                    slot.held = held;
                    continue;
                }
            };
            slot.busy = true;
            let id = BlockId { height: *height, ticket: slot.ticket };
            return Some(Job { id, block: Arc::clone(&slot.block), task });
        }
        None
    }

    /// All below the failed block has retired: the rest can go, unless a step is being made.
    fn pick_rewind(&mut self) -> Option<Job<T>> {
        let slot = self.slots.get_mut(&self.next).filter(|_| !self.writing && !self.stuck)?;
        self.writing = true;
        let id = BlockId { height: self.next, ticket: slot.ticket };
        Some(Job { id, block: Arc::clone(&slot.block), task: Task::Rewind })
    }

    /// The block of this ticket, unless it was cancelled meanwhile.
    fn slot(&mut self, id: BlockId) -> Option<&mut Slot<T, R, JoinError<E>>> {
        self.slots.get_mut(&id.height).filter(|slot| slot.ticket == id.ticket)
    }

    /// The block has reached this state and is not finished.
    pub(super) fn reached(&mut self, id: BlockId, state: JoinState) {
        if let Some(slot) = self.slot(id) {
            slot.state.go_to(state);
        }
    }

    pub(super) fn fetched(&mut self, id: BlockId, prepared: Prepared) {
        if let Some(slot) = self.slot(id) {
            slot.state.go_to(JoinState::Fetched);
            slot.held = Held::Prepared(Box::new(prepared));
            slot.busy = false;
            let pages = std::mem::take(&mut slot.pages);
            self.room.give_back(pages);
        }
    }

    pub(super) fn refreshed(&mut self, id: BlockId, result: Result<Box<Prepared>, Error>) {
        match result {
            Err(error) => self.fail(id, JoinError::Set(error)),
            Ok(prepared) => {
                if let Some(slot) = self.slot(id) {
                    slot.held = Held::Prepared(prepared);
                    slot.busy = false;
                }
            }
        }
    }

    /// The step is made, or refused.
    pub(super) fn appended(&mut self, id: BlockId, result: Result<Appended, Error>) {
        self.writing = false;
        let appended = match result {
            Ok(appended) => appended,
            Err(error) => return self.fail(id, JoinError::Set(error)),
        };
        assert_eq!(id.height, self.append, "blocks are appended in order");
        self.newest = Arc::clone(&appended.version);
        self.append = id.height.checked_add(1).unwrap_or(id.height);
        if let Some(slot) = self.slot(id) {
            slot.state.go_to(JoinState::Appended);
            slot.held = Held::Appended(Box::new(appended));
            slot.busy = false;
        }
    }

    /// The check of the block that `version` ends with has returned.
    pub(super) fn checked(&mut self, id: BlockId, result: Result<(Arc<Version>, R), E>) {
        match result {
            Err(error) => self.fail(id, JoinError::Check(error)),
            Ok((version, given)) => {
                if let Some(slot) = self.slot(id) {
                    slot.state.go_to(JoinState::Joined);
                    slot.held = Held::Joined(version, given);
                    slot.busy = false;
                }
                self.publish_joined();
            }
        }
    }

    /// Publishes and retires what is joined up to the first block that is not.
    fn publish_joined(&mut self) {
        while let Some(first) = self.slots.first_entry().filter(|slot| *slot.key() == self.next) {
            if first.get().state != JoinState::Joined {
                return;
            }
            let Slot { block, held, charge, .. } = first.remove();
            self.room.give_back(charge);
            self.refused = false;
            if let Held::Joined(version, given) = held {
                self.publisher.publish(version);
                self.retired.push_back(Retired { block, result: Ok(given) });
            }
            self.next = self.next.checked_add(1).unwrap_or(self.next);
            assert!(self.next <= self.append, "a block is appended before it retires");
        }
    }

    pub(super) fn fail(&mut self, id: BlockId, error: JoinError<E>) {
        if let Some(slot) = self.slot(id) {
            slot.state.go_to(JoinState::Failed);
            slot.held = Held::Error(error);
            slot.busy = false;
            let pages = std::mem::take(&mut slot.pages);
            self.room.give_back(pages);
            self.failed = Some(self.failed.map_or(id.height, |failed| failed.min(id.height)));
        }
    }

    /// What was not published is rewound, or cannot be: everything retires.
    pub(super) fn rewound(&mut self, result: Result<Arc<Version>, Error>) {
        self.writing = false;
        self.broken = true;
        let below = self.next;
        self.refused = false;
        for (height, mut slot) in std::mem::take(&mut self.slots) {
            self.room.give_back(slot.charge.saturating_add(slot.pages));
            let error = match slot.held {
                Held::Error(error) if height == below => error,
                _ => {
                    slot.state.go_to(JoinState::Cancelled);
                    JoinError::Cancelled { below }
                }
            };
            self.retired.push_back(Retired { block: slot.block, result: Err(error) });
        }
        match result {
            Ok(newest) => {
                (self.newest, self.append, self.failed) = (newest, below, None);
            }
            Err(_) => self.stuck = true,
        }
    }
}

/// Whether a block that was prepared when `seen` was the next to be appended should be refreshed
/// now that `append` is: when half of the blocks between have been appended since. So a block is
/// refreshed a few times, at shrinking distances from its turn, and in the end lacks the outputs of
/// only a few blocks.
fn is_stale(height: Height, seen: Height, append: Height) -> bool {
    let (was, is) = (height.since(seen).unwrap_or(0), height.since(append).unwrap_or(0));
    was > REFRESH_MIN && is > 0 && is <= was / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a block prepared at this distance from its turn is refreshed, and its last
    /// distance.
    fn refreshes(distance: u32) -> (u32, u32) {
        let height = Height::new(1_000);
        let (mut seen, mut count) = (1_000 - distance, 0);
        for append in 1_000 - distance..1_000 {
            if is_stale(height, Height::new(seen), Height::new(append)) {
                (seen, count) = (append, count + 1);
            }
        }
        (count, 1_000 - seen)
    }

    #[test]
    fn a_block_is_refreshed_a_few_times_on_its_way() {
        assert_eq!(refreshes(1), (0, 1));
        assert_eq!(refreshes(REFRESH_MIN), (0, REFRESH_MIN));
        assert_eq!(refreshes(8), (1, 4));
        assert_eq!(refreshes(64), (4, 4));
    }
}

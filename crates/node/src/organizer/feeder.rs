//! Blocks into the joiner, and out of it into commits.
//!
//! One turn of the loop:
//!
//! 1. Take what the joiner is done with. A good block moves the *reached* tip; a bad one is
//!    marked, and the target becomes another.
//! 2. Commit, when there is something worth it: the reached tip has more work than the confirmed
//!    one, or is all there is to reach. Commits are grouped by bytes and by time, so that a long
//!    sync does not wait for the disk; with nothing more on its way a commit is made at once. The
//!    first commit of a sync comes after a sixteenth of the latency, and each after it waits twice
//!    as long, so that a process which is killed again and again still advances.
//! 3. Make a checkpoint when it is due. The stores are made durable here and the set by another
//!    thread, so the joiner keeps working on the blocks that it has.
//! 4. Submit blocks of the target's branch, while there is room.
//! 5. With no block to be joined, serve the mempool (`tend`).
//! 6. Take an event of the source; or, while the joiner is full, wait for that instead, so that the
//!    source does not run ahead.
//!
//! It ends with a [`Pause`] when the unspent set must be turned to another branch, when a
//! checkpoint is due behind which more is to be done than the feeder can, when scripts are to be
//! checked in place, or when all is done.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use varve_consensus::can_repeat;
use varve_types::Height;
use varve_utxo::{AsBlock as _, Error as UtxoError, JoinError, Joiner, Reader, Repeats, Retired};
use varve_utxo::{SubmitError, Version};

use super::intake::Intake;
use super::judge::{Good, Refusal, reason};
use super::{Limits, Report, Verify, set_memory};
use crate::budget::Budget;
use crate::commit_log::LIST_MAX;
use crate::error::Error;
use crate::header_tree::{HeaderId, HeaderTree};
use crate::owned_block::OwnedBlock;
use crate::script_index::ScriptIndex;
use crate::stores::Stores;

/// How long to wait for the source while blocks are being joined.
const SHORT: Duration = Duration::from_millis(2);
/// How long to wait for the source when there is nothing else to do.
const LONG: Duration = Duration::from_millis(100);
/// The same while somebody may hand in a transaction and wait for the answer.
const ATTENTIVE: Duration = Duration::from_millis(10);

/// Why the feeder came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// There is nothing left to do, or the caller wants the sync to end.
    Done,
    /// The target is not above the blocks that were joined.
    Turn,
    /// Stores and set are to be made durable.
    Checkpoint,
    /// All that came is joined, and scripts of confirmed blocks are to be checked in place.
    Recheck,
}

/// What blocks are joined for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To follow the source.
    Sync,
    /// The same, and scripts are left to be checked in place.
    Recheck,
    /// To carry out an operator's verdict: it is committed with the tip that it leads to, and not
    /// before, so that a crash leaves both or neither.
    Settle,
}

/// A block in the joiner.
pub(crate) type Joining = OwnedBlock;
type Done = Retired<Joining, Good, Refusal>;

/// Feeds one joiner.
pub(crate) struct Feeder<'r, 'p, 'd, 's> {
    pub(crate) stores: &'r mut Stores,
    pub(crate) intake: &'r mut Intake<'s>,
    pub(crate) joiner: &'r Joiner<'p, 'd, Joining, Good, Refusal>,
    /// Sees the set up to the last block that the joiner published.
    pub(crate) set: Reader,
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
    pub(crate) workers: NonZeroUsize,
    /// Whether a checkpoint needs the set and the stores at the same block.
    pub(crate) pauses: bool,
    /// Blocks between two checkpoints, at most.
    pub(crate) checkpoint_every: u32,
    pub(crate) purpose: Purpose,
    /// The last block that was submitted, or that the set stood at.
    pub(crate) head: HeaderId,
    /// The last block that came out good, or that the set stood at.
    pub(crate) reached: HeaderId,
    pub(crate) in_flight: usize,
    /// Bytes of blocks, and the time, since the last commit.
    pub(crate) uncommitted: u64,
    pub(crate) committed_at: Duration,
    /// How long the next commit waits: it doubles up to the latency, so that a process that is
    /// killed soon has committed something.
    pub(crate) patience: Duration,
    /// So many blocks may be submitted whose bytes may not be durable, and how many have been.
    pub(crate) sync_every: u32,
    pub(crate) unsynced: u32,
    /// The next block, when the joiner had no memory for it.
    pub(crate) refused: Option<(HeaderId, Joining)>,
}

impl Feeder<'_, '_, '_, '_> {
    /// Works until something else must be done.
    pub(crate) fn run(mut self) -> Result<Pause, Error> {
        loop {
            while let Some(done) = self.joiner.try_retire() {
                self.retired(done)?;
            }
            let target = self.target();
            if self.is_commit_due(target) {
                self.commit()?;
            }
            if self.is_checkpoint_due() && !self.pauses {
                self.checkpoint()?;
            }
            let pause = self.pause(target);
            if pause.is_none() {
                self.submit(target)?;
            }
            if self.in_flight == 0 {
                let idle = self.head == target && self.intake.is_done(self.stores);
                let rechecks = self.purpose == Purpose::Recheck
                    && self.head == target
                    && !self.intake.is_waiting();
                let pause = pause.or(rechecks.then_some(Pause::Recheck));
                // An empty joiner that takes nothing could not rewind a block that failed. Ending
                // the joiner returns the error.
                let stuck = self.joiner.is_full().then_some(Pause::Turn);
                if let Some(pause) = pause.or(stuck).or(idle.then_some(Pause::Done)) {
                    self.commit()?;
                    if pause == Pause::Done {
                        self.intake.report_missing(self.stores);
                    }
                    return Ok(pause);
                }
            }
            if self.in_flight > 0 && (pause.is_some() || self.joiner.is_full()) {
                if let Some(done) = self.joiner.retire() {
                    self.retired(done)?;
                }
            } else {
                let is_busy = self.in_flight > 0 || self.head != target;
                if !is_busy {
                    if !self.intake.is_waiting() {
                        self.stores.archive.tidy()?;
                        self.stores.scripts.as_mut().map_or(Ok(false), ScriptIndex::tidy)?;
                    }
                    self.tend(target)?;
                }
                let wait = if is_busy { SHORT } else { self.patience_for_source() };
                self.intake.take(self.stores, wait)?;
            }
        }
    }

    /// How long to wait for the source when there is no block to be joined.
    fn patience_for_source(&self) -> Duration {
        match self.stores.mempool.is_open() {
            _ if self.intake.has_txs() => SHORT,
            true => ATTENTIVE,
            false => LONG,
        }
    }

    fn target(&self) -> HeaderId {
        self.intake.target(self.stores)
    }

    fn pause(&self, target: HeaderId) -> Option<Pause> {
        if self.intake.options.is_stopped() {
            return Some(Pause::Done);
        }
        let tree = &self.stores.chain.read().tree;
        if !tree.is_on_branch(self.head, target) {
            return Some(Pause::Turn);
        }
        (self.is_checkpoint_due() && self.pauses).then_some(Pause::Checkpoint)
    }

    /// Whether a crash would cost too much, or the rows that wait take their share of the memory.
    fn is_checkpoint_due(&self) -> bool {
        self.stores.since_checkpoint >= self.limits.lag
            || self.stores.connected_since >= self.checkpoint_every
            || self.stores.archive.is_crowded()
            || self.stores.archive.memory().stage > self.budget.stage_due()
    }

    /// Makes the stores durable, and begins to with the set. Neither needs the other: the set may
    /// be ahead of the commit log, and behind it.
    fn checkpoint(&mut self) -> Result<(), Error> {
        self.commit()?;
        let budget = self.stores.budget(self.budget.memory, self.intake.source_memory());
        self.joiner.begin_flush()?;
        self.stores.checkpoint()?;
        (self.stores.since_checkpoint, self.stores.connected_since) = (0, 0);
        // Heads have grown. When they leave too little for the set, what was stored is safe.
        self.budget = set_memory(budget, |memory| self.joiner.set_memory(memory))?;
        Ok(())
    }

    /// Submits what there is room for.
    fn submit(&mut self, target: HeaderId) -> Result<(), Error> {
        while self.head != target && !self.joiner.is_full() {
            let (id, height, repeats) = {
                let tree = &self.stores.chain.read().tree;
                let height = tree.height(self.head).checked_add(1).unwrap_or_default();
                let id = tree.ancestor(target, height).expect("the head is below the target");
                (id, height, repeats(tree, self.head, height))
            };
            self.sync_bytes()?;
            let refused = self.refused.take().filter(|(refused, _)| *refused == id);
            let kept =
                refused.map(|(_, block)| block).or_else(|| self.intake.take_kept(height, id));
            let block = match kept {
                Some(block) => block,
                None => self.stores.read(id)?,
            };
            match self.joiner.submit(block, repeats) {
                Ok(()) => {}
                // A block has failed meanwhile; it retires next.
                Err(SubmitError::Failed(_)) => return Ok(()),
                // Those in the joiner take all of its memory; it is full until one retires.
                Err(SubmitError::Full(block)) => {
                    self.refused = Some((id, block));
                    return Ok(());
                }
                Err(SubmitError::Height { next, .. }) => {
                    let what = format!("the unspent set wants block {next} next");
                    return Err(Error::Disagree { what });
                }
            }
            self.head = id;
            self.in_flight += 1;
            self.unsynced += 1;
        }
        Ok(())
    }

    /// The set makes its own checkpoints, ahead of the last commit. Recovery rewinds it by undo
    /// records, and below these by the bytes of the blocks; so bytes are made durable before their
    /// undo records can be pruned.
    fn sync_bytes(&mut self) -> Result<(), Error> {
        if self.unsynced >= self.sync_every {
            self.stores.blocks.sync()?;
            self.unsynced = 0;
        }
        Ok(())
    }

    /// Takes a block that the joiner is done with.
    fn retired(&mut self, Retired { block, result }: Done) -> Result<(), Error> {
        self.in_flight -= 1;
        let (hash, size) = (block.as_block().hash(), block.size());
        let id = {
            let mut chain = self.stores.chain.write();
            let id = chain.tree.find(&hash).expect("only blocks of the tree are submitted");
            if let Ok(good) = &result {
                chain.set_checked(id, good.checked);
            }
            id
        };
        let reason = match result {
            Ok(good) => {
                good.connected.map_or(Ok(()), |connected| self.stores.index(connected))?;
                self.stores.connected_since += 1;
                self.reached = id;
                self.uncommitted += size;
                let height = block.as_block().height();
                (self.intake.report)(Report::Connected { height, bytes: size });
                return Ok(());
            }
            Err(JoinError::Check(Refusal::Failed(error))) => return Err(error),
            Err(JoinError::Check(refusal)) => refusal.to_string(),
            Err(JoinError::Set(UtxoError::Prevout(error))) => {
                let name = error.reject_reason().unwrap_or_default();
                reason(&name, &error)
            }
            Err(JoinError::Set(error)) => return Err(error.into()),
            Err(JoinError::Cancelled { .. }) => return Ok(()),
        };
        let scripts = self.intake.options.verify == Verify::Scripts;
        self.stores.confirm_refusal(id, &reason, scripts.then_some(self.workers))?;
        // Those above it were given up: they retire now, and the set stands below it.
        self.head = self.reached;
        self.stores.mark_invalid(id, &reason)?;
        self.stores.follow_best_header()?;
        self.intake.drop_invalid(self.stores);
        self.intake.refuse(hash, &reason);
        while let Some(done) = self.joiner.retire() {
            self.retired(done)?;
        }
        Ok(())
    }

    /// Whether the reached tip is better than the confirmed one, or all there is to reach.
    fn is_better(&self, target: HeaderId) -> bool {
        let tree = &self.stores.chain.read().tree;
        let (reached, tip) = (self.reached, self.stores.tip);
        reached != tip && (reached == target || tree.work(reached) > tree.work(tip))
    }

    fn is_commit_due(&mut self, target: HeaderId) -> bool {
        let now = (self.intake.options.clock)();
        let has_marks = !self.stores.new_marks.is_empty() && self.purpose != Purpose::Settle;
        if !self.is_better(target) && !has_marks {
            self.committed_at = now;
            return false;
        }
        let nothing_comes =
            self.in_flight == 0 && self.reached == target && !self.intake.is_waiting();
        nothing_comes
            || self.stores.new_marks.len() >= LIST_MAX
            || self.stores.stats.is_crowded()
            || self.stores.scripts.as_ref().is_some_and(ScriptIndex::is_crowded)
            || self.uncommitted >= self.budget.group(self.limits.group)
            || now.saturating_sub(self.committed_at) >= self.patience
    }

    /// Commits what was reached, if it is better.
    fn commit(&mut self) -> Result<(), Error> {
        let version = self.version()?;
        if self.is_better(self.target()) {
            self.stores.commit(self.reached, version, (self.intake.options.clock)())?;
            self.unsynced = 0;
            let (height, hash) = self.stores.tip_at();
            self.intake.passed(height);
            (self.intake.report)(Report::Committed { height, hash });
            self.intake.report_mempool(self.stores);
        } else if self.purpose != Purpose::Settle {
            self.stores.commit_verdicts()?;
        }
        self.patience = self.patience.saturating_mul(2).min(self.limits.latency);
        self.uncommitted = 0;
        self.committed_at = (self.intake.options.clock)();
        Ok(())
    }

    /// The set at the reached tip. The joiner may have published more than was taken out of it:
    /// then that is taken too.
    fn version(&mut self) -> Result<Arc<Version>, Error> {
        loop {
            let version = self.set.snapshot();
            let reached = self.stores.chain.read().tree.hash(self.reached);
            if version.tip().is_some_and(|(_, hash)| hash == reached) {
                return Ok(version);
            }
            let Some(done) = self.joiner.retire() else {
                let what = "the unspent set stands at another block than was joined last";
                return Err(Error::Disagree { what: what.to_owned() });
            };
            self.retired(done)?;
        }
    }
}

/// Whether outputs of a block above `parent` can repeat older ones.
fn repeats(tree: &HeaderTree, parent: HeaderId, height: Height) -> Repeats {
    match can_repeat(tree.params(), height, &tree.branch(parent)) {
        true => Repeats::Possible,
        false => Repeats::Impossible,
    }
}

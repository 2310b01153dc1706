//! Checking the scripts of confirmed blocks that were taken without.
//!
//! A folder may have been synced with `spends`, or up to a block that was assumed to be valid. A
//! sync that verifies scripts checks what is left, in place: the bytes come from the block store
//! and the spent outputs from the history; the unspent set is not touched.
//!
//! 1. It begins when the source has no more headers and every block that came is joined: only then
//!    it is known which blocks an assume-valid block vouches for. New blocks go first all the time.
//! 2. Blocks are checked from the lowest on, in slices of about [`SLICE`]. After each the spans are
//!    committed, so an interrupted check resumes there, and the source is served.
//! 3. A block that fails is marked like any other, and the chain turns to the best branch without
//!    it.
//! 4. Blocks that the assume-valid block vouches for are not read; they are recorded as assumed.
//!
//! In a folder with pruned blocks the outputs are not there to be read: how many blocks stay
//! unchecked is reported, and nothing else happens.

use std::time::Duration;

use varve_blocks::BlockNumber;
use varve_consensus::ScriptError;
use varve_utxo::AsBlock as _;

use super::intake::Intake;
use super::judge::{Judge, reason};
use super::{Organizer, Report};
use crate::checked::Checked;
use crate::error::Error;
use crate::header_tree::HeaderId;

/// How long blocks are checked before the spans are committed and the source is served.
const SLICE: Duration = Duration::from_secs(1);
/// The same in bytes of blocks, for a clock that stands still.
const SLICE_BYTES: u64 = 64 << 20;
/// Events of the source that are taken between two slices.
const EVENTS: usize = 64;

/// What is left to be checked.
pub(crate) struct Recheck {
    /// The highest first; `None` before it is known.
    left: Option<Vec<HeaderId>>,
    all: u64,
}

impl Recheck {
    pub(crate) const fn new() -> Self {
        Self { left: None, all: 0 }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left.as_ref().is_some_and(Vec::is_empty)
    }
}

impl Organizer {
    /// Checks one slice of blocks.
    pub(crate) fn recheck(
        &mut self,
        recheck: &mut Recheck,
        judge: &Judge,
        intake: &mut Intake<'_>,
    ) -> Result<(), Error> {
        if recheck.left.is_none() {
            let left = self.unchecked(judge, intake)?;
            recheck.all = left.len() as u64;
            recheck.left = Some(left);
        }
        let left = recheck.left.get_or_insert_default();
        let (begin, mut bytes) = ((intake.options.clock)(), 0);
        let is_over = |bytes| {
            let now = (intake.options.clock)();
            now.saturating_sub(begin) >= SLICE || bytes >= SLICE_BYTES
        };
        let view = self.stores.view();
        let mut refused = false;
        while let Some(id) = left.last().copied()
            && !(refused || is_over(bytes) || intake.options.is_stopped())
        {
            left.pop();
            let is_confirmed = self.stores.chain.read().tree.is_on_branch(id, self.stores.tip);
            if !is_confirmed {
                continue;
            }
            let size;
            (refused, size) = self.recheck_block(&view, id, intake)?;
            bytes += size;
            let done = recheck.all - left.len() as u64;
            (intake.report)(Report::ScriptsChecked { done, all: recheck.all });
        }
        self.stores.commit_verdicts()?;
        for _ in 0..EVENTS {
            intake.take(&mut self.stores, Duration::ZERO)?;
        }
        Ok(())
    }

    /// Checks one block. Whether it was refused, and its size.
    fn recheck_block(
        &mut self,
        view: &crate::snapshot::ArchiveView,
        id: HeaderId,
        intake: &mut Intake<'_>,
    ) -> Result<(bool, u64), Error> {
        let block = self.stores.read(id)?;
        let (hash, size) = (block.as_block().hash(), block.size());
        let found = self.stores.check_scripts_by_history(view, &block, self.options.workers)?;
        let Err(error) = found else {
            self.stores.record_checked(id, Checked::Scripts);
            return Ok((false, size));
        };
        if let ScriptError::Prevout(error) = &error {
            let what = format!("the history does not have what block {hash} spends ({error})");
            return Err(Error::Disagree { what });
        }
        let Some(name) = error.reject_reason() else {
            return Err(Error::Unchecked { hash, what: error.to_string() });
        };
        let reason = reason(&name, &error);
        self.stores.mark_invalid(id, &reason)?;
        self.stores.follow_best_header()?;
        intake.drop_invalid(&self.stores);
        intake.refuse(hash, &reason);
        Ok((true, size))
    }

    /// The confirmed blocks whose scripts are to be checked, the highest first. Those that need
    /// not be are recorded as assumed.
    fn unchecked(
        &mut self,
        judge: &Judge,
        intake: &mut Intake<'_>,
    ) -> Result<Vec<HeaderId>, Error> {
        let (assumed, left): (Vec<HeaderId>, Vec<HeaderId>) = {
            let chain = self.stores.chain.read();
            let assumed_to = judge.assumed_up_to(&chain.tree, self.stores.tip);
            let is_assumed =
                |id: HeaderId| assumed_to.is_some_and(|to| chain.tree.height(id) <= to);
            let wanted = |id| if is_assumed(id) { Checked::Assumed } else { Checked::Scripts };
            let below = |id: &HeaderId| chain.tree.parent(*id);
            let branch = std::iter::successors(Some(self.stores.tip), below);
            let lacking = branch.filter(|id| chain.checked(*id) < wanted(*id));
            lacking.partition(|id| is_assumed(*id))
        };
        for id in assumed.into_iter().rev() {
            self.stores.record_checked(id, Checked::Assumed);
        }
        if !left.is_empty() && self.stores.blocks.reader().first_held()? > BlockNumber::ZERO {
            (intake.report)(Report::ScriptsPruned { blocks: left.len() as u64 });
            return Ok(Vec::new());
        }
        Ok(left)
    }
}

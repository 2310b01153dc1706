//! Disconnecting blocks, at any depth.
//!
//! Disconnecting is a step forward: the outputs of the tip are spent, and the coins it had spent
//! are added again, from its undo record. Where the record is no longer kept, or damaged, the
//! caller passes a source that knows them ([`SpentCoins`]). From there on the undo log is empty:
//! the blocks below have no usable records, and blocks connected next start a new chain. (A record
//! below a damaged one is useless: it names coins by their births, and coins restored from a source
//! have new ones.)

use varve_runs::Sequence;
use varve_types::{BlockHash, Height};

use super::{Database, NextStep, Pause};
use crate::error::Error;
use crate::spent_coins::{Disconnect, SpentCoins};
use crate::undo::{Below, UndoError};
use crate::window::spends_of_disconnect;

impl Database {
    /// A height from which every block of the chain has an undo record, so that it can be
    /// disconnected without a source; `None` when unknown.
    #[must_use]
    pub fn undo_from(&self) -> Option<Height> {
        self.undo.kept_from()
    }

    /// Disconnects the tip: the set is again what it was before that block.
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.disconnect(None)?;
        self.publish();
        Ok(())
    }

    /// Disconnects the blocks that were appended but not published; readers never saw them. A
    /// joiner does this when it ends. If that failed, call it before appending again.
    pub fn rewind_unpublished(&mut self) -> Result<(), Error> {
        self.retry_undo();
        while let Some(pause) = self.rewind_or_pause()? {
            pause.finish()?;
        }
        Ok(())
    }

    /// Retries to write undo records that could not be written.
    pub(crate) fn retry_undo(&mut self) {
        self.undo.retry();
    }

    /// Does [`Database::rewind_unpublished`] as far as possible without waiting for the disk. A
    /// pause means that it is not done: finish the pause and call again.
    pub(crate) fn rewind_or_pause(&mut self) -> Result<Option<Pause>, Error> {
        let published = self.snapshot().tip();
        while self.tip != published {
            if let Some(end) = self.maintain_or_wait(0)? {
                return Ok(Some(Pause::Job(end)));
            }
            if let Some(read) = self.undo.tip_to_read() {
                return Ok(Some(Pause::Record(read)));
            }
            self.disconnect_now(None)?;
        }
        self.publish();
        Ok(None)
    }

    /// Disconnects the tip, with the help of `source` when its undo record is gone or damaged.
    pub fn rewind_with(&mut self, source: &dyn SpentCoins) -> Result<(), Error> {
        self.disconnect(Some(source))?;
        self.publish();
        Ok(())
    }

    /// Disconnects all blocks above `height`, one step each. After an error, the blocks
    /// disconnected so far stay disconnected; [`Database::tip`] says where the set is.
    #[cfg(feature = "test-suite")]
    pub fn rewind_to(&mut self, height: Height) -> Result<(), Error> {
        while self.tip.is_some_and(|(tip, _)| tip > height) {
            self.rewind()?;
        }
        Ok(())
    }

    fn disconnect(&mut self, source: Option<&dyn SpentCoins>) -> Result<(), Error> {
        if self.tip.is_some() {
            self.maintain(0)?;
        }
        self.disconnect_now(source)
    }

    /// Makes the step, after maintenance.
    fn disconnect_now(&mut self, source: Option<&dyn SpentCoins>) -> Result<(), Error> {
        let (height, hash) = self.tip.ok_or(Error::Empty)?;
        let sequence = self.next_sequence()?;
        let by_record = match (self.by_record(height, hash), source) {
            (Err(Error::Undo(error)), Some(_)) if error.is_damage() => None,
            (by_record, _) => by_record?,
        };
        let (step, below) = match (by_record, source) {
            (Some((step, below)), _) => (step, Some(below)),
            (None, Some(source)) => (self.by_source(sequence, (height, hash), source)?, None),
            (None, None) => return Err(Error::RewindTooDeep { height }),
        };
        let adds = self.window.lay_out(sequence, step.adds.iter());
        let parent = height.checked_sub(1).filter(|_| step.previous != BlockHash::ZERO);
        let tip = parent.map(|parent| (parent, step.previous));
        let next = NextStep { sequence, height, adds, spends: &step.spends, tip };
        self.step(next, self.options.workers)?;
        match below {
            Some(below) => self.undo.pop(below),
            None => self.undo.forget_chain(),
        }
        Ok(())
    }

    /// Disconnects by the undo record of the tip; `None` when none is kept.
    fn by_record(
        &self,
        height: Height,
        hash: BlockHash,
    ) -> Result<Option<(Disconnect, Below)>, Error> {
        let (record, below) = match self.undo.tip() {
            Ok(Some(tip)) => tip,
            Ok(None) | Err(UndoError::TooDeep) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if (record.height, record.block) != (height, hash) {
            return Err(self.inconsistent("the undo log is at another block than the set"));
        }
        let spends = spends_of_disconnect(self.window.version(), &record);
        let step = Disconnect { previous: record.previous, adds: record.spent, spends };
        Ok(Some((step, below)))
    }

    fn by_source(
        &self,
        sequence: Sequence,
        tip: (Height, BlockHash),
        source: &dyn SpentCoins,
    ) -> Result<Disconnect, Error> {
        let network = self.options.network;
        let step = Disconnect::ask(&self.latest, network, sequence, tip, source)?;
        step.ok_or_else(|| self.inconsistent("the outputs of the tip are not in the set"))
    }

    fn inconsistent(&self, what: &'static str) -> Error {
        Error::Inconsistent { path: self.storage.path().to_path_buf(), what }
    }
}

//! Disconnecting blocks, at any depth.
//!
//! A step forward like every other: the outputs of the tip are spent, what it had spent is added.
//! What it had spent is told by its undo record, or below the last of these by a source that the
//! caller passes ([`SpentCoins`]). From there on the undo log is empty: the blocks below have no
//! records either, and those that are connected next begin a chain of their own.

use varve_types::{BlockHash, Height};

use super::Database;
use crate::error::Error;
use crate::sequence::Sequence;
use crate::spent_coins::{Disconnect, SpentCoins};
use crate::undo::UndoError;
use crate::window::spends_of_disconnect;

impl Database {
    /// A height from which on every block of the chain has an undo record, so that it can be
    /// disconnected without a source; `None` when that is not known.
    #[must_use]
    pub fn undo_from(&self) -> Option<Height> {
        self.undo.kept_from()
    }

    /// Disconnects the tip: the set is again as it was below it.
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.disconnect(None)?;
        self.publish();
        Ok(())
    }

    /// Disconnects the blocks that were appended and not published. Readers see no difference.
    pub fn rewind_unpublished(&mut self) -> Result<(), Error> {
        let published = self.snapshot().tip();
        while self.tip != published {
            self.disconnect(None)?;
        }
        self.publish();
        Ok(())
    }

    /// Disconnects the tip, with the help of `source` when its undo record is gone.
    pub fn rewind_with(&mut self, source: &dyn SpentCoins) -> Result<(), Error> {
        self.disconnect(Some(source))?;
        self.publish();
        Ok(())
    }

    /// Disconnects all blocks above `height`, one step each. After an error the blocks that were
    /// disconnected stay so, and [`Database::tip`] says how far it came.
    pub fn rewind_to(&mut self, height: Height) -> Result<(), Error> {
        self.disconnect_to(height, None)
    }

    /// Disconnects all blocks above `height` as [`Database::rewind_to`] does, with the help of
    /// `source` where undo records are gone.
    pub fn rewind_to_with(&mut self, height: Height, source: &dyn SpentCoins) -> Result<(), Error> {
        self.disconnect_to(height, Some(source))
    }

    fn disconnect_to(
        &mut self,
        height: Height,
        source: Option<&dyn SpentCoins>,
    ) -> Result<(), Error> {
        while self.tip.is_some_and(|(tip, _)| tip > height) {
            self.disconnect(source)?;
            self.publish();
        }
        Ok(())
    }

    fn disconnect(&mut self, source: Option<&dyn SpentCoins>) -> Result<(), Error> {
        let (height, hash) = self.tip.ok_or(Error::Empty)?;
        self.maintain(0)?;
        let sequence = self.next_sequence()?;
        let position = self.undo.position();
        let step = match (self.by_record(height, hash)?, source) {
            (Some(step), _) => {
                self.undo.pop()?;
                step
            }
            (None, Some(source)) => {
                let step = self.by_source(sequence, (height, hash), source)?;
                self.undo.forget_chain();
                step
            }
            (None, None) => return Err(Error::RewindTooDeep { height }),
        };
        let adds = self.window.lay_out(sequence, step.adds.iter());
        let below = height.checked_sub(1).filter(|_| step.previous != BlockHash::ZERO);
        let tip = below.map(|below| (below, step.previous));
        let workers = self.options.workers;
        if let Err(refused) = self.step((sequence, height), (adds, &step.spends), tip, workers) {
            self.undo.return_to(position);
            return Err(refused.into());
        }
        Ok(())
    }

    /// By the undo record of the tip; `None` when none is kept.
    fn by_record(&self, height: Height, hash: BlockHash) -> Result<Option<Disconnect>, Error> {
        let record = match self.undo.tip() {
            Ok(Some(record)) => record,
            Ok(None) | Err(UndoError::TooDeep) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if (record.height, record.block) != (height, hash) {
            return Err(self.inconsistent("the undo log stands at another block than the set"));
        }
        let spends = spends_of_disconnect(self.window.version(), &record);
        Ok(Some(Disconnect { previous: record.previous, adds: record.spent, spends }))
    }

    fn by_source(
        &self,
        sequence: Sequence,
        tip: (Height, BlockHash),
        source: &dyn SpentCoins,
    ) -> Result<Disconnect, Error> {
        let at = (self.options.network, sequence);
        let step = Disconnect::ask(&self.latest, at, tip, source)?;
        step.ok_or_else(|| self.inconsistent("the outputs of the tip are not in the set"))
    }

    fn inconsistent(&self, what: &'static str) -> Error {
        Error::Inconsistent { path: self.storage.path().to_path_buf(), what }
    }
}

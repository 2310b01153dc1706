//! Connecting blocks: at once, or prepared and unpublished.
//!
//! [`Database::append`] does it all in one call. [`Database::append_prepared`] takes a block whose
//! coins were found before, at any version, and leaves the publication to others: the joiner's way.
//!
//! What was found is brought up to date (`prepare`), and the step is tried. It refuses a coin that
//! is not alive at the location in the window where it was found. That is rare: another block has
//! spent it, or a run has taken it over. Then such coins are looked up again, and the result of the
//! second try, or the verdict, is final. Lookups may read from the disk, so the joiner makes them
//! without holding the set: it calls [`Database::append_current`] itself and does the rest outside.
//! Where that has to wait for the disk, it returns a [`Pause`], which the joiner finishes without
//! holding the set.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use varve_consensus::{BlockAt, PrevoutError};
use varve_runs::JobEnd;
use varve_types::{BlockHash, Outpoint};

use super::{Database, NextStep};
use crate::changes::Changes;
use crate::coins::Coins;
use crate::error::Error;
use crate::prepare::{Prepared, Repeats};
use crate::undo::{RecordRead, Spenders, UndoHead};
use crate::version::Version;
use crate::view::DatabaseView;
use crate::window::Spend;

/// A block that was connected but not published.
#[derive(Debug)]
pub struct Appended {
    /// The set with the block in it.
    pub version: Arc<Version>,
    /// The view of the set below the block, for the rules.
    pub view: DatabaseView,
}

/// What the writer must wait for before it can continue: the disk, in either case.
#[derive(Debug)]
pub(crate) enum Pause {
    /// The writer is too far ahead of this job.
    Job(JobEnd),
    /// An undo record that is not in memory.
    Record(RecordRead),
}

impl Pause {
    /// Waits, without holding the set.
    pub(crate) fn finish(self) -> Result<(), Error> {
        match self {
            Self::Job(end) => end.wait(),
            Self::Record(read) => read.finish()?,
        }
        Ok(())
    }
}

impl Database {
    /// Connects a block that extends the tip. The first block of a set is one without a parent.
    pub fn append(&mut self, block: &BlockAt<'_>) -> Result<(), Error> {
        self.check_next(block)?;
        if self.replay(block)? {
            self.publish();
            return Ok(());
        }
        let network = self.options.network;
        let mut prepared = Prepared::new(&self.latest, network, block, Repeats::Possible)?;
        self.connect(block, &mut prepared)?;
        self.publish();
        Ok(())
    }

    /// Connects a block on the tip that was prepared at any version, without showing it to readers:
    /// a publisher does that later, or the block is [rewound](Database::rewind_unpublished) and
    /// nobody has seen it. A checkpoint may already hold it.
    #[cfg(feature = "test-suite")]
    pub fn append_prepared(
        &mut self,
        block: &BlockAt<'_>,
        mut prepared: Prepared,
    ) -> Result<Appended, Error> {
        self.connect(block, &mut prepared)?;
        let view = DatabaseView::of(prepared, block);
        Ok(Appended { version: Arc::clone(&self.latest), view })
    }

    /// Makes the step of a block that was prepared at any version. Afterwards the coins found for
    /// it are those of the set below it.
    fn connect(&mut self, block: &BlockAt<'_>, prepared: &mut Prepared) -> Result<(), Error> {
        prepared.bring_up_to(&self.latest)?;
        let connected = match self.append_waiting(block, prepared) {
            Err(error) if error.is_moved() => {
                prepared.find_again(&self.latest)?;
                self.append_waiting(block, prepared)
            }
            result => result,
        };
        connected.map_err(|error| self.spender_search().name_in(error))
    }

    fn append_waiting(
        &mut self,
        block: &BlockAt<'_>,
        prepared: &mut Prepared,
    ) -> Result<(), Error> {
        while let Some(pause) = self.append_current(block, prepared)? {
            pause.finish()?;
        }
        Ok(())
    }

    /// Makes the step of a block for which everything was found at the latest version, without
    /// waiting for a disk. [`Error::is_moved`] says whether an error means that coins must be
    /// looked up again. A pause means that nothing was done: finish it and call again.
    pub(crate) fn append_current(
        &mut self,
        block: &BlockAt<'_>,
        prepared: &mut Prepared,
    ) -> Result<Option<Pause>, Error> {
        self.check_next(block)?;
        let (made_for, asked) = (prepared.block, block.hash());
        if made_for != asked {
            return Err(Error::OtherBlock { made_for, asked });
        }
        if let Some(end) = self.maintain_or_wait(prepared.window_bytes())? {
            return Ok(Some(Pause::Job(end)));
        }
        let sequence = self.next_sequence()?;
        if let Some(read) = self.undo.survivor_to_read(sequence) {
            return Ok(Some(Pause::Record(read)));
        }
        let Prepared { changes, coins, .. } = prepared;
        changes.verdict(block, |place| coins.birth(place).is_some())?;
        let (places, spends) = gone(changes, coins);
        let head = UndoHead {
            sequence,
            height: block.height(),
            block: block.hash(),
            previous: block.block().header().previous(),
        };
        let staged = self.undo.stage(&head, places.len(), |out| {
            let write = |out: &mut Vec<u8>| prepared.write_spent(&places, out);
            head.encode(places.len(), write, &prepared.txs, out);
        })?;
        let adds = prepared
            .adds
            .take()
            .unwrap_or_else(|| self.window.lay_out_block(sequence, block, &prepared.changes));
        let tip = Some((block.height(), block.hash()));
        let next = NextStep { sequence, height: block.height(), adds, spends: &spends, tip };
        // What is left is too little for a second thread.
        self.step(next, NonZeroUsize::MIN)?;
        self.undo.push(staged);
        Ok(None)
    }

    /// A search for the spender of a missing coin, which does not hold the set.
    pub(crate) fn spender_search(&self) -> SpenderSearch {
        SpenderSearch { version: Arc::clone(&self.latest), spenders: self.undo.spenders() }
    }

    fn check_next(&self, block: &BlockAt<'_>) -> Result<(), Error> {
        let (height, previous) = (block.height(), block.block().header().previous());
        let follows = match self.tip {
            None => previous == BlockHash::ZERO,
            Some((tip, hash)) => previous == hash && tip.checked_add(1) == Some(height),
        };
        let (block, tip) = (block.hash(), self.tip);
        if follows { Ok(()) } else { Err(Error::NotNext { block, height, previous, tip }) }
    }
}

/// Finds the earlier spender of a coin that a block tries to spend.
#[derive(Debug)]
pub(crate) struct SpenderSearch {
    version: Arc<Version>,
    spenders: Spenders,
}

impl SpenderSearch {
    /// The same reason, naming the transaction that spent a missing coin earlier, if it is found. A
    /// record that cannot be read does not change the verdict.
    pub(crate) fn name(&self, reason: PrevoutError) -> PrevoutError {
        match reason {
            PrevoutError::Missing { outpoint, spender, spent_by: None } => {
                let died = self.version.window().last_death(&outpoint);
                let spent_by = self.spenders.find(&outpoint, died).unwrap_or(None);
                PrevoutError::Missing { outpoint, spender, spent_by }
            }
            other => other,
        }
    }

    /// The same error, with that name.
    pub(crate) fn name_in(&self, error: Error) -> Error {
        match error {
            Error::Prevout(reason) => Error::Prevout(self.name(reason)),
            other => other,
        }
    }
}

/// The coins that a block removes: those that it spends and those that it overwrites, with the
/// place of each among the keys.
fn gone(changes: &Changes, coins: &Coins) -> (Vec<usize>, Vec<Spend>) {
    let prevouts = changes.spends();
    let (mut places, mut spends) = (Vec::with_capacity(prevouts), Vec::with_capacity(prevouts));
    let mut spent: Option<HashSet<&Outpoint>> = None;
    for (place, outpoint) in changes.keys.iter().enumerate() {
        let Some(birth) = coins.birth(place) else { continue };
        if place >= prevouts {
            // A coin that the block both spends and makes again is removed once.
            let spent = spent.get_or_insert_with(|| changes.prevouts().iter().collect());
            if spent.contains(outpoint) {
                continue;
            }
        }
        places.push(place);
        spends.push(Spend { outpoint: *outpoint, birth, location: coins.location(place) });
    }
    (places, spends)
}

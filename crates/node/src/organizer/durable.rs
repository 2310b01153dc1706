//! Checkpoints: while the node works, and when it ends.
//!
//! A running node makes a checkpoint of its stores and of the set, so that a crash costs little. A
//! node that ends *rests*: the next opening has nothing to do, and a reader need not open
//! everything (`reading`).

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::error::Error;
use crate::organizer::{Organizer, SyncOptions};
use crate::script_index::ScriptIndex;
use crate::stores::Stores;

/// How soon a request to stop is noticed while search tables are merged.
const TIDY_POLL: Duration = Duration::from_millis(20);

impl Organizer {
    /// Makes everything durable, so that opening again finds nothing to do, and drops the blocks
    /// that need not be kept.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        self.rest()?;
        self.prune()
    }

    /// Merges the archive's search tables once the sync has caught up, so that a lookup costs one
    /// page. A request to stop ends it: the next sync decides it again.
    pub(crate) fn tidy(&mut self, options: &SyncOptions) -> Result<(), Error> {
        self.stores.scripts.as_mut().map_or(Ok(()), ScriptIndex::tidy)?;
        while !options.is_stopped() && self.stores.archive.tidy()? {
            std::thread::sleep(TIDY_POLL);
        }
        Ok(())
    }

    /// Makes everything durable while the node keeps working.
    pub(crate) fn make_durable(&mut self) -> Result<(), Error> {
        self.save(Stores::checkpoint)
    }

    /// Makes everything durable when the node is done, so that readers need not open all of it.
    pub(crate) fn rest(&mut self) -> Result<(), Error> {
        let coins = self.utxo.latest().coin_count();
        let index = self.utxo.memory().index;
        self.save(|stores| stores.rest(coins, index))
    }

    /// The stores and the set side by side. Neither needs the other: the set may be ahead of the
    /// commit log, and behind it.
    fn save(
        &mut self,
        save_stores: impl FnOnce(&mut Stores) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { stores, utxo, options, .. } = self;
        let (stored, flushed) = if options.workers == NonZeroUsize::MIN {
            (save_stores(stores), utxo.flush())
        } else {
            std::thread::scope(|scope| {
                let set = scope.spawn(|| utxo.flush());
                let stored = save_stores(stores);
                (stored, set.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            })
        };
        stored?;
        flushed?;
        (stores.since_checkpoint, stores.connected_since) = (0, 0);
        Ok(())
    }
}

//! Checkpoints: while the node works, and when it ends.
//!
//! A running node makes a checkpoint of its stores and of the set, so that a crash costs little. A
//! node that ends *rests*: the next opening has nothing to do, and a reader need not open
//! everything (`reading`).

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::error::Error;
use crate::organizer::Organizer;
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

    /// Merges the archive's search tables and the script history once the sync has caught up, so
    /// that a lookup costs one page. A request to stop ends it: the next sync decides it again.
    /// `progress` gets about how many bytes are merged, and how many are to be.
    pub(crate) fn tidy(
        &mut self,
        is_stopped: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        // One merge may make another due: what is done is never less than before.
        let (mut finished, mut seen) = (0, 0);
        while !is_stopped() {
            let Stores { archive, scripts, .. } = &mut self.stores;
            let is_merging = scripts.as_mut().map_or(Ok(false), ScriptIndex::tidy)?;
            if !archive.tidy()? && !is_merging {
                break;
            }
            let (done, all) = archive.merging();
            let (more, of) = scripts.as_ref().map_or((0, 0), ScriptIndex::merging);
            let (done, all) = (done + more, all + of);
            if all < seen {
                finished += seen - all;
            }
            seen = all;
            progress(finished + done, finished + all);
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

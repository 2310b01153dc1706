//! What keeps the window small, the runs few and the checkpoint near.
//!
//! All of it happens in the writer, before a step, in a fixed order, so that a test can cut the
//! power at every single operation. None of it changes which coins there are.
//!
//! 1. **Flush.** The oldest pane is *due* when it is sealed and the tip is `window` blocks above
//!    its highest, or when the window is over its memory. Its living entries are written as a run,
//!    which then waits for the next step to take the pane's place. (A thread could write it while
//!    steps go on: the window notes what dies in the pane meanwhile.)
//! 2. **Merge** while `choose` finds something to merge. A merged run takes the place of its parts
//!    at once, in a version of the same step.
//! 3. **Checkpoint**, when runs have changed since the last: run files are synced by their writers,
//!    then the window file, the undo log, the directory; then the manifest is replaced atomically.
//!    Only then the files of the checkpoint before are removed. A crash anywhere leaves one whole
//!    checkpoint, the old or the new.

use std::sync::Arc;

use crate::compact::{Choice, Policy, choose, merge_runs};
use crate::database::Database;
use crate::error::Error;
use crate::footer::{RunNumber, Span};
use crate::manifest::{Checkpoint, Manifest, SavedWindow};
use crate::pane::{Flush, PaneId, PaneInfo};
use crate::run::{Run, RunInfo};
use crate::run_error::RunError;
use crate::run_writer::RunWriter;

/// A run that waits for the next step to take the place of its pane.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) pane: PaneId,
    /// `None` when nothing in the pane lived.
    pub(super) run: Option<Arc<Run>>,
}

impl Database {
    /// Does all that is due.
    pub(super) fn maintain(&mut self) -> Result<(), Error> {
        self.flush_pane()?;
        self.merge()?;
        if self.checkpoint_due { self.make_checkpoint() } else { Ok(()) }
    }

    /// Writes the run of the oldest pane, if it is due and none is waiting.
    fn flush_pane(&mut self) -> Result<(), Error> {
        if self.waiting.is_some() {
            return Ok(());
        }
        let memory: usize = self.window.panes().map(|pane| pane.memory).sum();
        let over = memory > self.options.window_memory;
        if over {
            self.window.seal();
        }
        let Some(oldest) = self.window.panes().next() else { return Ok(()) };
        if !oldest.sealed || !(over || self.is_deep(&oldest)) {
            return Ok(());
        }
        let Some(flush) = self.window.begin_flush() else { return Ok(()) };
        match self.write_run(&flush, &oldest) {
            Ok(run) => {
                self.waiting = Some(Waiting { pane: flush.pane(), run: run.map(Arc::new) });
                Ok(())
            }
            Err(error) => {
                self.window.cancel_flush();
                Err(error.into())
            }
        }
    }

    fn is_deep(&self, pane: &PaneInfo) -> bool {
        let above = self.tip.and_then(|(tip, _)| tip.since(pane.height));
        above.is_some_and(|above| above >= self.manifest.parameters.window)
    }

    fn write_run(&mut self, flush: &Flush, pane: &PaneInfo) -> Result<Option<Run>, RunError> {
        let entries = flush.entries();
        let span = Span { first: pane.first, last: pane.last };
        let (key, expected) = (self.manifest.key(), entries.len_max() as u64);
        let named = (self.next_number(), span);
        let mut writer = RunWriter::create(&self.storage, key, named, expected)?;
        for entry in entries {
            writer.push(&entry)?;
        }
        // A writer that is dropped takes its file away.
        if writer.entries() == 0 { Ok(None) } else { writer.finish().map(Some) }
    }

    /// Merges until there is nothing to merge.
    fn merge(&mut self) -> Result<(), Error> {
        let parameters = self.manifest.parameters;
        let policy = Policy {
            fan_in: parameters.fan_in as usize,
            max_probed: parameters.max_probed as usize,
        };
        loop {
            let infos: Vec<RunInfo> = self.runs.infos();
            let Choice::Merge(range) = choose(&infos, &policy) else { return Ok(()) };
            let number = self.next_number();
            let chosen = self.runs.as_slice().get(range.clone()).unwrap_or_default();
            let whole = range.end == infos.len();
            let merged = merge_runs(&self.storage, self.manifest.key(), number, (chosen, whole))?;
            self.runs = self.runs.with_replaced(range, merged.map(Arc::new));
            self.checkpoint_due = true;
            self.renew();
        }
    }

    /// Makes the set durable as it is now.
    pub(super) fn make_checkpoint(&mut self) -> Result<(), Error> {
        let number = self.next_number();
        let name = SavedWindow::file_name(number);
        let saved = self.window.save(&*self.storage, &name, self.manifest.key().file_id(number));
        let window = match saved {
            Ok(saved) => Some(SavedWindow { number, pages: saved.pages }),
            Err(error) => {
                // A disk that is full must not stay full. What cannot be removed now is swept away
                // after the next checkpoint.
                let _ = self.storage.remove(&name);
                return Err(error.into());
            }
        };
        let undo = self.undo.sync()?;
        self.storage.sync_dir()?;
        let checkpoint = Checkpoint { sequence: self.sequence, tip: self.tip };
        let runs = self.runs.infos();
        let manifest = Manifest { checkpoint, window, undo, runs, ..self.manifest.clone() };
        manifest.store(&*self.storage)?;
        self.manifest = manifest;
        self.checkpoint_due = false;
        let waiting = self.waiting.as_ref().and_then(|waiting| waiting.run.as_ref());
        self.manifest.sweep(&*self.storage, waiting.map(|run| run.info().number))?;
        if let Some((height, _)) = self.tip {
            self.undo.prune(height)?;
        }
        Ok(())
    }

    /// The number of a new file. Also one that comes to nothing is not used again.
    pub(super) fn next_number(&mut self) -> RunNumber {
        let number = self.manifest.next_run;
        self.manifest.next_run.0 += 1;
        number
    }
}

//! Makes the set durable as it is at one step.
//!
//! A checkpoint is *whole*: manifest, runs, window file and undo log all belong to the same step.
//! The writer records that step: the runs, an image of the window, the end of the undo log. Then,
//! in a thread beside the steps that follow:
//!
//! 1. The window file is written and synced. (Run files were synced by those who wrote them.)
//! 2. When the undo log's lane has written all records up to that step, the log is synced up to
//!    there, and so are the names of files.
//! 3. The manifest is replaced atomically. From here on the checkpoint is in force.
//! 4. Files that neither the manifest nor the running set needs are removed.
//!
//! A crash anywhere leaves one whole checkpoint, the old or the new. It is *due* when a pane has
//! become a run since the last one and `flush_interval` steps have been made (so the small panes of
//! a small budget do not cost a window file each), or when the owner asks for one.
//!
//! **Naming.** A merge changes no coin, at any step. So a manifest that lists the merged run in
//! place of its parts is a checkpoint of the same step as before, with the same window file, and
//! costs only the manifest itself. It is made after a merge whose parts are all in the manifest, so
//! that they can be removed; other merges come in with the next whole checkpoint.
//!
//! Only one is in progress at a time. [`Database::flush`] waits for it and then makes another in
//! the caller's thread; it does not wait for pane flushes or merges.

use std::sync::Arc;

use varve_io::{PAGE_LEN, Storage};
use varve_runs::{Kept, Merged, RunInfo, RunNumber, Stop};

use crate::database::Database;
use crate::error::Error;
use crate::manifest::{Checkpoint, Manifest, SavedWindow};
use crate::run_error::RunError;
use crate::undo::PendingUndo;
use crate::window::WindowImage;

/// A durable checkpoint.
#[derive(Debug)]
pub(super) struct Saved {
    manifest: Manifest,
    /// Bytes of the window file.
    window: u64,
    /// The result of removing files. The checkpoint is in force in any case.
    swept: Result<usize, RunError>,
}

/// Everything needed to make a checkpoint in another thread.
struct Plan {
    storage: Arc<dyn Storage>,
    /// The new manifest, without the window file of a whole checkpoint.
    manifest: Manifest,
    whole: Option<Whole>,
    kept: Kept,
}

/// What a whole checkpoint writes.
struct Whole {
    number: RunNumber,
    image: WindowImage,
    undo: PendingUndo,
}

impl Database {
    /// Takes in a finished checkpoint, and starts one that is due.
    pub(super) fn checkpoint_if_due(&mut self) -> Result<(), Error> {
        self.take_checkpoint(false)?;
        if !self.work.checkpoint.is_free() {
            return Ok(());
        }
        let plan = if self.is_checkpoint_due() { Some(self.whole()) } else { self.naming() };
        let Some(plan) = plan else { return Ok(()) };
        let stop = self.work.stop.clone();
        let job = self.work.checkpoint_lane.start(move || plan.carry_out(&stop));
        self.work.checkpoint.fill((), job);
        self.take_checkpoint(false)
    }

    /// Makes a whole checkpoint of this step and waits for it.
    pub(super) fn make_checkpoint(&mut self) -> Result<(), Error> {
        self.take_checkpoint(true)?;
        // Report the lane's own error, not that the checkpoint could not proceed.
        self.undo.wait()?;
        let saved = self.whole().carry_out(&Stop::never());
        self.note(saved)
    }

    /// Waits for a checkpoint that is under way, and cancels earlier requests for one.
    pub(super) fn forget_checkpoints(&mut self) -> Result<(), Error> {
        self.take_checkpoint(true)?;
        (self.checkpoint_due, self.checkpoint_asked) = (false, false);
        Ok(())
    }

    fn take_checkpoint(&mut self, wait: bool) -> Result<(), Error> {
        match self.work.checkpoint.take(wait) {
            Some(((), saved)) => self.note(saved),
            None => Ok(()),
        }
    }

    fn is_checkpoint_due(&self) -> bool {
        let steps = self.sequence.to_u32() - self.manifest.checkpoint.sequence.to_u32();
        let flushed = self.checkpoint_due && steps >= self.manifest.parameters.flush_interval;
        flushed || self.checkpoint_asked
    }

    /// The plan of a whole checkpoint of this step.
    fn whole(&mut self) -> Plan {
        let number = self.next_number();
        let (undo, pending) = self.undo.begin_sync();
        let checkpoint = Checkpoint { sequence: self.sequence, tip: self.tip };
        let runs = self.runs.infos();
        let manifest = Manifest { checkpoint, undo, runs, window: None, ..self.manifest.clone() };
        (self.checkpoint_due, self.checkpoint_asked) = (false, false);
        self.merged.clear();
        let whole = Some(Whole { number, image: self.window.image(), undo: pending });
        self.plan(manifest, whole)
    }

    /// The plan of a manifest that lists the last checkpoint's runs as merged since, if that
    /// changes the list.
    fn naming(&mut self) -> Option<Plan> {
        let runs = renamed(&self.manifest.runs, &self.merged);
        self.merged.clear();
        if runs == self.manifest.runs {
            return None;
        }
        Some(self.plan(Manifest { runs, ..self.manifest.clone() }, None))
    }

    /// Keeps what the running set needs, and files created after this moment.
    fn plan(&self, manifest: Manifest, whole: Option<Whole>) -> Plan {
        let waiting = self.waiting.as_ref().and_then(|waiting| waiting.run.as_ref());
        let runs = self.runs.as_slice().iter().chain(waiting).map(|run| run.info().number);
        let numbers = runs.chain(self.work.numbers()).collect();
        let kept = Kept { numbers, from: self.manifest.next_run };
        Plan { storage: Arc::clone(&self.storage), manifest, whole, kept }
    }

    /// Takes in the result of a checkpoint. One that failed is due again.
    fn note(&mut self, saved: Result<Saved, Error>) -> Result<(), Error> {
        let Saved { manifest, window, swept } = match saved {
            Ok(saved) => saved,
            Err(error) => {
                self.checkpoint_due = true;
                return Err(error);
            }
        };
        assert!(
            manifest.checkpoint.sequence >= self.manifest.checkpoint.sequence,
            "a checkpoint never goes back"
        );
        self.work.written.windows += window;
        self.manifest = Manifest { next_run: self.manifest.next_run, ..manifest };
        let tips = self.tip.zip(self.manifest.checkpoint.tip);
        if let Some(((now, _), (then, _))) = tips {
            self.undo.prune(now.min(then));
        }
        swept?;
        Ok(())
    }
}

impl Plan {
    fn carry_out(self, stop: &Stop) -> Result<Saved, Error> {
        let Self { storage, mut manifest, whole, kept } = self;
        let mut window = 0;
        if let Some(Whole { number, image, undo }) = whole {
            let name = SavedWindow::file_name(number);
            let id = manifest.key().file_id(number);
            let saved = match image.save(&*storage, &name, id, stop) {
                Ok(Some(saved)) => saved,
                given_up => {
                    // A full disk must not stay full. A file that cannot be removed now is swept
                    // after the next checkpoint.
                    let _ = storage.remove(&name);
                    return Err(given_up.map_or_else(Error::from, |_| RunError::Stopped.into()));
                }
            };
            window = saved.pages * PAGE_LEN as u64;
            manifest.window = Some(SavedWindow { number, pages: saved.pages });
            // Syncs the names of all files, that of the window file too.
            undo.finish()?;
        }
        manifest.store(&*storage)?;
        let swept = manifest.sweep(&*storage, &kept);
        Ok(Saved { manifest, window, swept })
    }
}

/// The runs of a manifest after these merges, as far as all of their parts are in it.
fn renamed(named: &[RunInfo], merged: &[Merged]) -> Vec<RunInfo> {
    let mut runs = named.to_vec();
    for Merged { inputs, output } in merged {
        let numbers: Vec<RunNumber> = runs.iter().map(|run| run.number).collect();
        let start = numbers.windows(inputs.len()).position(|window| window == inputs);
        if let Some(start) = start {
            runs.splice(start..start + inputs.len(), *output);
        }
    }
    runs
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::fixture::span;

    fn info(number: u64) -> RunInfo {
        RunInfo {
            number: RunNumber(number),
            span: span(1, 1),
            adds: 1,
            deletes: 0,
            pages: 3,
            digest: 0,
        }
    }

    fn after(named: &[u64], merged: &[(&[u64], Option<u64>)]) -> Vec<u64> {
        let named: Vec<RunInfo> = named.iter().copied().map(info).collect();
        let merged = merged.iter().map(|(inputs, run)| Merged {
            inputs: inputs.iter().copied().map(RunNumber).collect(),
            output: run.map(info),
        });
        let runs = renamed(&named, &merged.collect::<Vec<_>>());
        runs.iter().map(|run| run.number.0).collect()
    }

    #[test]
    fn a_merge_of_named_runs_takes_their_place() {
        assert_eq!(after(&[4, 3, 2, 1], &[(&[3, 2], Some(5))]), [4, 5, 1]);
        assert_eq!(after(&[4, 3, 2, 1], &[(&[3, 2], Some(5)), (&[4, 5], Some(6))]), [6, 1]);
        assert_eq!(after(&[4, 3, 2, 1], &[(&[2, 1], None)]), [4, 3]);
    }

    /// Run 9 was flushed after the checkpoint: what it holds is in the checkpoint's window file.
    /// That its merge with run 4 left nothing must not remove run 4 from the manifest.
    #[test]
    fn a_merge_with_a_run_that_is_not_named_takes_nothing() {
        assert_eq!(after(&[4, 3], &[(&[9, 4], None)]), [4, 3]);
        assert_eq!(after(&[4, 3], &[(&[9, 4], Some(10)), (&[10, 3], Some(11))]), [4, 3]);
        assert_eq!(after(&[4, 3, 2], &[(&[9, 4], None), (&[3, 2], Some(11))]), [4, 11]);
    }
}

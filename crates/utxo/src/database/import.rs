//! Fills a new set from a snapshot of Core.
//!
//! 1. The set must be new: no step was ever made in it. A checkpoint of the empty set that is in
//!    progress is waited for, so that it cannot replace the new manifest.
//! 2. The coins are written as one run, while they are read.
//! 3. The manifest that names the run, and the base block as tip, replaces that of the empty set.
//!
//! Until then the set is empty, also after a crash; the unfinished run is removed. Afterwards there
//! is no undo below the base block.

use std::io::Read;
use std::sync::Arc;

use varve_runs::{Buffers, Sequence, Span};
use varve_types::{BlockHash, Height};

use super::{Database, window_of};
use crate::codec::Runs;
use crate::error::Error;
use crate::manifest::{Checkpoint, Manifest};
use crate::run_writer::{NewRun, RunWriter};
use crate::snapshot_file::{SnapshotError, SnapshotReader};
use crate::window::Window;

impl Database {
    /// Loads a snapshot file of Core into this set, which must be new. The file does not contain
    /// the height of its base block, so `base_height` supplies it. `progress` gets the number of
    /// coins done and the total.
    ///
    /// The format has no checksum: compare [`Version::statistics`](crate::Version::statistics)
    /// afterwards with a hash that you trust.
    pub fn import(
        &mut self,
        input: impl Read,
        base_height: Height,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Height, BlockHash), Error> {
        if self.sequence != Sequence::ZERO || self.tip.is_some() {
            return Err(SnapshotError::NotNew.into());
        }
        self.forget_checkpoints()?;
        let snapshot = SnapshotReader::new(input, self.manifest.network, base_height)?;
        let (tip, sequence) = (snapshot.base(), snapshot.sequence()?);
        let span = Span { first: Sequence::new(1), last: sequence };
        let (key, number) = (self.manifest.key(), self.next_number());
        let (expected, buffers) = (snapshot.coins(), Buffers::LARGE);
        let new = NewRun { number, span, expected, buffers };
        let mut writer = RunWriter::create(&self.storage, key, &new)?;
        snapshot.copy_to(&mut writer, progress)?;
        // A writer that is dropped removes its file.
        let run = if writer.entries() == 0 { None } else { Some(Arc::new(writer.finish()?)) };
        let runs = Runs::empty(key).with_replaced(0..0, run);
        let manifest = Manifest {
            checkpoint: Checkpoint { sequence, tip: Some(tip) },
            runs: runs.infos(),
            // The empty set may have been saved with a window file.
            window: None,
            ..self.manifest.clone()
        };
        manifest.store(&*self.storage)?;
        let (config, hasher) = window_of(&manifest, &self.options);
        self.window = Window::new(config, hasher, sequence);
        (self.manifest, self.runs) = (manifest, runs);
        (self.sequence, self.tip) = (sequence, Some(tip));
        self.renew();
        self.publish();
        Ok(tip)
    }
}

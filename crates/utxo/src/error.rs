//! The one error of the set: which part failed, and what to do.

use std::path::PathBuf;

use varve_consensus::PrevoutError;
use varve_types::{BlockHash, Height};

use crate::run_error::RunError;
use crate::snapshot_file::SnapshotError;
use crate::spent_coins::SourceError;
use crate::undo::UndoError;
use crate::window::StepError;

/// Why an operation on the set failed. After any of these the set is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The block spends a coin that is missing or already spent.
    #[error("the block cannot be connected: {0}; refuse it")]
    Prevout(#[from] PrevoutError),
    /// The block does not extend the tip.
    #[error(
        "block {block} at {height} extends {previous}, but the tip is {}; append the block \
         above the tip, or rewind first", tip_name(*.tip)
    )]
    NotNext {
        /// The block.
        block: BlockHash,
        /// Its height.
        height: Height,
        /// The block below it.
        previous: BlockHash,
        /// The tip of the set.
        tip: Option<(Height, BlockHash)>,
    },
    /// The undo record of the tip is no longer kept.
    #[error(
        "no undo record is kept for the block at {height}; pass a source of spent coins, or \
         rebuild the set from the blocks"
    )]
    RewindTooDeep {
        /// The height of the tip.
        height: Height,
    },
    /// The source of spent coins could not supply what is needed.
    #[error(
        "the block at {height} cannot be disconnected: {error}; rebuild the set from the blocks"
    )]
    Source {
        /// The height of the tip.
        height: Height,
        /// What is wrong.
        error: SourceError,
    },
    /// There is no block to disconnect.
    #[error("the set is empty; there is nothing to rewind")]
    Empty,
    /// A view was asked about a block other than its own.
    #[error("the view was made for block {made_for}, not for {asked}; make one for each block")]
    OtherBlock {
        /// The block it was made for.
        made_for: BlockHash,
        /// The block asked about.
        asked: BlockHash,
    },
    /// A block was prepared with `Repeats::Impossible`, and then asked whether it repeats outputs.
    #[error(
        "whether block {block} repeats older outputs was not looked up; prepare it with \
         `Repeats::Possible`"
    )]
    RepeatsUnknown {
        /// The block.
        block: BlockHash,
    },
    /// The directory has files of a set but no manifest.
    #[error(
        "{} has files of an unspent set but no manifest; restore the manifest, or empty the \
         directory and rebuild the set from the blocks", path.display()
    )]
    NoManifest {
        /// The directory.
        path: PathBuf,
    },
    /// The parts of a checkpoint do not belong together.
    #[error("{} is damaged: {what}; rebuild the set from the blocks", path.display())]
    Inconsistent {
        /// The directory.
        path: PathBuf,
        /// What does not fit.
        what: &'static str,
    },
    /// The memory budget is too small for this set.
    #[error(
        "the unspent set needs at least {} MiB of memory and was given {} MiB; give it more",
        needed.div_ceil(1 << 20), given >> 20
    )]
    Memory {
        /// Bytes of the budget.
        given: usize,
        /// The minimum in bytes.
        needed: usize,
    },
    /// A thread of the set, or the first worker of a joiner, could not be started.
    #[error(
        "cannot start a thread: {0}; raise the limits of the process (ulimit -u, ulimit -v) or of \
         its container"
    )]
    Thread(#[source] std::io::Error),
    /// The window refused the step.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The runs or the manifest failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A snapshot could not be written, or was refused.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The undo log failed.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// The storage failed, or what it holds is damaged; says where.
    #[error(transparent)]
    Storage(#[from] varve_io::Error),
}

impl Error {
    /// True when a coin was not alive at the location in the window where it was found.
    pub(crate) const fn is_moved(&self) -> bool {
        matches!(self, Self::Step(StepError::Spent { .. } | StepError::NotThere { .. }))
    }
}

fn tip_name(tip: Option<(Height, BlockHash)>) -> String {
    match tip {
        Some((height, hash)) => format!("{hash} at {height}"),
        None => "not there yet".to_owned(),
    }
}

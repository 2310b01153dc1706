//! How the coins of a version are laid down: panes in memory, runs on disk, and which runs are
//! being merged. For those who look at a set, not for those who ask it.
//!
//! ```text
//!  pane   pane   │  run   run   run   run          youngest first
//!  in memory     │  └─ merging ─┘
//! ```
//!
//! The writer notes panes and merges with each version, so they are those of its last step: a merge
//! that has ended since is listed until the next step takes it in.

use varve_io::PAGE_LEN;
use varve_runs::RunInfo;
use varve_types::Height;

use crate::pane::PaneInfo;

/// How the coins of one version are laid down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    /// The window, youngest pane first.
    pub panes: Vec<PaneLayer>,
    /// The runs, youngest first.
    pub runs: Vec<RunLayer>,
    /// Merges of runs that were under way.
    pub merges: Vec<MergeUnderWay>,
}

/// A pane of the window: the changes of some neighbouring blocks, in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneLayer {
    /// Its first step: blocks connected and disconnected are numbered.
    pub first_step: u32,
    /// How many steps it has.
    pub steps: usize,
    /// The greatest height that one of them reached.
    pub height: Height,
    /// Whether it takes no more steps.
    pub sealed: bool,
    /// Whether a run is being made of it.
    pub flushing: bool,
    /// Coins and spends in it that have not cancelled each other.
    pub living: usize,
    /// Bytes of memory.
    pub memory: usize,
}

/// A run: a file of sorted coins and spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLayer {
    /// The number of the file.
    pub number: u64,
    /// The first step whose changes it holds.
    pub first_step: u32,
    /// The last one.
    pub last_step: u32,
    /// Coins in it.
    pub coins: u64,
    /// Spends of coins of older runs.
    pub spends: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Runs that are becoming one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeUnderWay {
    /// The numbers of the runs, youngest first.
    pub inputs: Vec<u64>,
    /// The number of the run in their place.
    pub output: u64,
}

/// What the writer notes with a version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    /// Oldest first.
    pub(crate) panes: Vec<PaneInfo>,
    pub(crate) merges: Vec<MergeUnderWay>,
}

impl Layers {
    pub(crate) fn new(noted: &Noted, runs: &[RunInfo]) -> Self {
        Self {
            panes: noted.panes.iter().rev().map(PaneLayer::from).collect(),
            runs: runs.iter().map(RunLayer::from).collect(),
            merges: noted.merges.clone(),
        }
    }
}

impl From<&PaneInfo> for PaneLayer {
    fn from(pane: &PaneInfo) -> Self {
        Self {
            first_step: if pane.steps == 0 { 0 } else { pane.first.to_u32() },
            steps: pane.steps,
            height: pane.height,
            sealed: pane.sealed,
            flushing: pane.flushing.is_some(),
            living: pane.living,
            memory: pane.memory,
        }
    }
}

impl From<&RunInfo> for RunLayer {
    fn from(run: &RunInfo) -> Self {
        Self {
            number: run.number.0,
            first_step: run.span.first.to_u32(),
            last_step: run.span.last.to_u32(),
            coins: run.adds,
            spends: run.deletes,
            bytes: run.pages * PAGE_LEN as u64,
        }
    }
}

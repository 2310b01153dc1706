//! How the sync of a served node is doing: what readiness and metrics report.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the sync does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPhase {
    /// There is no source: what is in the folder is served.
    NoSource,
    /// The source is being reached.
    Starting,
    /// Blocks are being taken, and the tip is behind the best header.
    Syncing,
    /// The tip is the best header, and new blocks are waited for.
    Following,
    /// The source has ended, or the stop height is reached.
    Ended,
    /// It failed, and is tried again.
    Failed,
    /// A command of the operator has the writers.
    Paused,
}

impl SyncPhase {
    /// All phases.
    pub const ALL: [Self; 7] = [
        Self::NoSource,
        Self::Starting,
        Self::Syncing,
        Self::Following,
        Self::Ended,
        Self::Failed,
        Self::Paused,
    ];

    /// The name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSource => "no_source",
            Self::Starting => "starting",
            Self::Syncing => "syncing",
            Self::Following => "following",
            Self::Ended => "ended",
            Self::Failed => "failed",
            Self::Paused => "paused",
        }
    }

    /// Whether answers are those of the chain as the source has it.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::NoSource | Self::Following | Self::Ended)
    }
}

/// What the sync does, and why it failed last.
#[derive(Clone, Debug)]
pub struct SyncReport {
    /// What it does.
    pub phase: SyncPhase,
    /// Why the last try failed, until one goes well.
    pub failure: Option<String>,
}

/// The state that the syncing thread sets and the servers read.
#[derive(Debug)]
pub struct SyncState(Mutex<SyncReport>);

impl Default for SyncState {
    fn default() -> Self {
        Self(Mutex::new(SyncReport { phase: SyncPhase::NoSource, failure: None }))
    }
}

impl SyncState {
    fn lock(&self) -> MutexGuard<'_, SyncReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what the sync does. A sync that has reached its source has no failure any more.
    pub fn set(&self, phase: SyncPhase) {
        let mut report = self.lock();
        report.phase = phase;
        if phase.is_ready() || phase == SyncPhase::Syncing {
            report.failure = None;
        }
    }

    /// Sets that it failed.
    pub fn fail(&self, failure: String) {
        *self.lock() = SyncReport { phase: SyncPhase::Failed, failure: Some(failure) };
    }

    /// What it does now.
    #[must_use]
    pub fn report(&self) -> SyncReport {
        self.lock().clone()
    }
}

//! One state of the history table, which readers hold ([`Shared`](crate::shared::Shared)).

use std::sync::Arc;

use varve_runs::Runs;

use super::codec::History;
use super::pane::{Mark, Pane};

/// A state of the table.
#[derive(Clone, Debug)]
pub(super) struct Version {
    /// Blocks in memory, oldest first.
    pub(super) panes: Box<[Arc<Pane>]>,
    /// Runs, youngest first.
    pub(super) runs: Runs<History>,
    /// The state of the runs alone.
    pub(super) watermark: Option<Mark>,
}

impl Version {
    pub(super) fn tip(&self) -> Option<Mark> {
        self.panes.last().map_or(self.watermark, |pane| pane.mark)
    }
}

//! One state of a search table, which readers hold ([`Shared`](crate::shared::Shared)).

use std::sync::Arc;

use varve_runs::Runs;

use super::codec::Search;
use super::pane::Pane;
use crate::link::TxLink;

/// A state of a table.
#[derive(Debug)]
pub(super) struct Version {
    /// Rows in memory, oldest first.
    pub(super) panes: Box<[Arc<Pane>]>,
    /// The runs of the confirmed chain, youngest first, and behind them those of stale branches.
    pub(super) runs: Runs<Search>,
    /// Rows with links from here on are invalid: a file of young rows may have some, of blocks that
    /// the owner has lost.
    pub(super) end: TxLink,
}

//! The database itself: where the coins lie, which runs are being merged, how far each index goes,
//! and how many bytes each store takes.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use varve::{Budget, Layers, MemorySplit, PaneLayer, RunLayer};

use super::Shared;
use super::chain::IndexReach;
use super::reply::{Refusals, Refused, Reply, Tip};

/// The database.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SedimentAnswer {
    tip: Tip,
    /// Unspent outputs.
    coins: u64,
    /// Transactions of stored blocks, on every branch.
    transactions: u64,
    /// Stored blocks, on every branch.
    blocks: u32,
    /// Headers, on every branch.
    headers: u32,
    /// How often the tip has moved.
    commits: u64,
    /// Bytes of all stores.
    bytes: u64,
    window: Window,
    /// The sorted files of the unspent set, youngest first.
    runs: Vec<Run>,
    /// Runs that were becoming one when the last block was connected.
    merges: Vec<Merge>,
    indexes: Vec<IndexReach>,
    /// The largest first.
    stores: Vec<Store>,
    /// How the memory is split, as of the start of the sync that is under way.
    memory: Option<Memory>,
}

/// Coins of young blocks, in memory.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Window {
    /// Blocks connected or disconnected.
    steps: usize,
    /// Coins and spends.
    entries: usize,
    /// Bytes.
    memory: usize,
    /// Youngest first.
    panes: Vec<Pane>,
}

/// A part of the window that leaves it as a whole.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Pane {
    first: u32,
    steps: usize,
    /// The greatest height that it reaches.
    height: u32,
    /// It takes no more blocks.
    sealed: bool,
    /// A run is being made of it.
    flushing: bool,
    living: usize,
    memory: usize,
}

/// A sorted file.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Run {
    number: u64,
    /// The first step whose changes it holds.
    first: u32,
    /// The last one.
    last: u32,
    /// Coins.
    adds: u64,
    /// Spends of coins in older runs.
    deletes: u64,
    bytes: u64,
}

/// Runs that are becoming one.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Merge {
    inputs: Vec<u64>,
    output: u64,
}

/// A folder of the data directory.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Store {
    name: String,
    bytes: u64,
}

/// How memory is split.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Memory {
    /// Bytes that were declared.
    budget: usize,
    /// The largest first.
    parts: Vec<Part>,
}

/// A part of the memory.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Part {
    name: &'static str,
    bytes: usize,
}

/// The database itself.
#[utoipa::path(get, path = "/sediment", tag = "varve", responses(
    (status = 200, body = SedimentAnswer), Refusals))]
pub(super) async fn sediment(State(own): State<Shared>) -> Result<Reply<SedimentAnswer>, Refused> {
    own.ask(|own, snapshot| {
        let (node, Layers { panes, runs, merges }) = (&own.service.node, snapshot.layers()?);
        let status = node.status()?;
        let stores = node.store_bytes()?;
        let merge =
            |merge: varve::MergeUnderWay| Merge { inputs: merge.inputs, output: merge.output };
        Ok(SedimentAnswer {
            tip: snapshot.tip().into(),
            coins: status.stores.coins,
            transactions: status.stores.transactions,
            blocks: status.stores.blocks,
            headers: status.stores.headers,
            commits: status.stores.commits,
            bytes: stores.iter().map(|store| store.bytes).sum(),
            window: Window {
                steps: panes.iter().map(|pane| pane.steps).sum(),
                entries: panes.iter().map(|pane| pane.living).sum(),
                memory: panes.iter().map(|pane| pane.memory).sum(),
                panes: panes.iter().map(Pane::from).collect(),
            },
            runs: runs.iter().map(Run::from).collect(),
            merges: merges.into_iter().map(merge).collect(),
            indexes: status.indexes.iter().map(IndexReach::from).collect(),
            stores: stores
                .into_iter()
                .map(|store| Store { name: store.name, bytes: store.bytes })
                .collect(),
            memory: status.memory.map(Memory::from),
        })
    })
    .await
}

impl From<&PaneLayer> for Pane {
    fn from(pane: &PaneLayer) -> Self {
        let PaneLayer { first_step, steps, height, sealed, flushing, living, memory } = *pane;
        let height = height.to_u32();
        Self { first: first_step, steps, height, sealed, flushing, living, memory }
    }
}

impl From<&RunLayer> for Run {
    fn from(run: &RunLayer) -> Self {
        let RunLayer { number, first_step, last_step, coins, spends, bytes } = *run;
        let (first, last) = (first_step, last_step);
        Self { number, first, last, adds: coins, deletes: spends, bytes }
    }
}

impl From<(Budget, MemorySplit)> for Memory {
    fn from((budget, set): (Budget, MemorySplit)) -> Self {
        let mut parts = vec![
            Part { name: "window", bytes: set.window },
            Part { name: "set index", bytes: set.index },
            Part { name: "merges", bytes: set.merge },
            Part { name: "joiner", bytes: set.joining },
            Part { name: "undo", bytes: set.undo },
            Part { name: "page buffers", bytes: set.buffers },
            Part { name: "archive", bytes: budget.archive },
            Part { name: "script history", bytes: budget.history },
            Part { name: "headers", bytes: budget.headers },
            Part { name: "source", bytes: budget.source },
            Part { name: "blocks", bytes: budget.blocks },
            Part { name: "program", bytes: budget.program },
        ];
        parts.retain(|part| part.bytes > 0);
        parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
        Self { budget: budget.memory, parts }
    }
}

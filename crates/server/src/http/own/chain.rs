//! The chain as a whole: status, health, readiness, and its branches.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Serialize;
use utoipa::ToSchema;
use varve::{BlockHash, BlockHeader, Error, Height, Prune, Snapshot};

use super::Shared;
use super::reply::{Refusals, Refused, Reply, Tip};
use crate::sync_state::SyncReport;

/// Branches that are described.
const BRANCHES: usize = 64;
/// Blocks of a branch that are described: these from below, the last one, and a number for those
/// between.
const DRAWN: u32 = 5;
/// Headers that are walked down from the tip of a branch.
const WALKED: u32 = 4_096;

/// What the node has and how it is kept.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StatusAnswer {
    tip: Tip,
    network: &'static str,
    /// The height of the best header.
    headers: u32,
    /// The version of the program.
    version: &'static str,
    /// Seconds since the server started.
    uptime: u64,
    /// Bytes of blocks that are kept; `null` when all are.
    prune: Option<u64>,
    /// Confirmed blocks from this height on have their bytes; `null` when all have.
    pruned_below: Option<u32>,
    /// Scripts were checked up to this height.
    scripts_checked_to: u32,
    indexes: Vec<IndexReach>,
    invalid: Vec<InvalidBlock>,
}

/// How far an index goes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct IndexReach {
    name: &'static str,
    /// `null` when it has not begun, or is damaged.
    height: Option<u32>,
    /// What is wrong with it.
    damaged: Option<String>,
}

impl From<&varve::IndexStatus> for IndexReach {
    fn from(index: &varve::IndexStatus) -> Self {
        let (name, height) = (index.index.name(), index.height.map(Height::to_u32));
        Self { name, height, damaged: index.damaged.clone() }
    }
}

/// A block that was refused.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct InvalidBlock {
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    hash: BlockHash,
    reason: String,
}

/// What the node has and how it is kept.
#[utoipa::path(get, path = "/status", tag = "varve", responses(
    (status = 200, body = StatusAnswer), Refusals))]
pub(super) async fn status(State(own): State<Shared>) -> Result<Reply<StatusAnswer>, Refused> {
    let uptime = own.service.uptime().as_secs();
    own.ask(move |own, _| {
        let status = own.service.node.status()?;
        let invalid = status.invalid.iter();
        Ok(StatusAnswer {
            tip: status.tip.into(),
            network: status.network.name(),
            headers: status.headers.to_u32(),
            version: env!("CARGO_PKG_VERSION"),
            uptime,
            prune: match status.prune {
                Prune::Off => None,
                Prune::To(bytes) => Some(bytes),
            },
            pruned_below: status.pruned_below.map(Height::to_u32),
            scripts_checked_to: status.scripts.checked_to.to_u32(),
            indexes: status.indexes.iter().map(IndexReach::from).collect(),
            invalid: invalid
                .map(|one| InvalidBlock { hash: one.block, reason: one.reason.to_string() })
                .collect(),
        })
    })
    .await
}

/// That the server answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HealthAnswer {
    tip: Tip,
    /// `ok`.
    status: &'static str,
}

/// Whether the server answers at all.
#[utoipa::path(get, path = "/health", tag = "varve", responses(
    (status = 200, body = HealthAnswer), Refusals))]
pub(super) async fn health(State(own): State<Shared>) -> Result<Reply<HealthAnswer>, Refused> {
    own.ask(|_, snapshot| Ok(HealthAnswer { tip: snapshot.tip().into(), status: "ok" })).await
}

/// Whether the answers are those of the whole chain.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReadyAnswer {
    tip: Tip,
    ready: bool,
    /// What the sync does: `no_source`, `starting`, `syncing`, `following`, `ended`, `failed` or
    /// `paused`.
    state: &'static str,
    /// Why its last try failed.
    failure: Option<String>,
    /// The height of the best header.
    headers: u32,
    /// What is still to come, a sentence each.
    missing: Vec<String>,
}

/// Whether the sync has caught up with its source and every index is at the tip: 200, or 503 with
/// what is missing.
#[utoipa::path(get, path = "/ready", tag = "varve", responses(
    (status = 200, body = ReadyAnswer), (status = 503, body = ReadyAnswer)))]
pub(super) async fn ready(State(own): State<Shared>) -> axum::response::Response {
    let report = own.service.sync_state().report();
    let found = own.ask(|own, _| Ok(readiness(&own.service.node.status()?, report))).await;
    match found {
        Err(refused) => refused.into_response(),
        Ok(Reply(answer)) if answer.ready => Reply(answer).into_response(),
        Ok(reply) => (StatusCode::SERVICE_UNAVAILABLE, reply).into_response(),
    }
}

fn readiness(status: &varve::Status, sync: SyncReport) -> ReadyAnswer {
    let mut missing = Vec::new();
    if !sync.phase.is_ready() {
        let behind = status.headers.since(status.tip.height).unwrap_or_default();
        let state = sync.phase.name();
        missing.push(format!("{behind} blocks are known to come, and the sync is {state}"));
    }
    for index in status.indexes.iter().filter(|index| index.height != Some(status.tip.height)) {
        let name = index.index.name();
        missing.push(match (&index.damaged, index.height) {
            (Some(damage), _) => format!("the index {name} is damaged: {damage}"),
            (None, Some(height)) => format!("the index {name} is at {height}"),
            (None, None) => format!("the index {name} has not begun"),
        });
    }
    let (tip, headers) = (status.tip.into(), status.headers.to_u32());
    let (state, failure) = (sync.phase.name(), sync.failure);
    ReadyAnswer { tip, ready: missing.is_empty(), state, failure, headers, missing }
}

/// Every branch that is known.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ForksAnswer {
    tip: Tip,
    /// How many branches there are; the highest are described.
    total: usize,
    branches: Vec<Branch>,
}

/// What is known of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum BranchState {
    /// The confirmed chain.
    Active,
    /// Its blocks are stored, and it has less work.
    Stale,
    /// A block of it was refused.
    Invalid,
    /// Its headers alone have come.
    Headers,
}

/// A branch, from the block below its first to its tip.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Branch {
    tip: Tip,
    state: BranchState,
    /// Why it was refused.
    reason: Option<String>,
    /// The last block that it shares with the confirmed chain.
    fork: Option<Tip>,
    /// Its blocks above the fork.
    length: u32,
    /// The same, lowest first, the middle of a long branch as a number.
    blocks: Vec<BranchBlock>,
    /// What the confirmed chain has beside them.
    beside: Vec<BranchBlock>,
    /// Whether the confirmed chain goes on above these.
    beside_more: bool,
}

/// A block of a branch, or blocks that are left out.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum BranchBlock {
    /// A block.
    Block(Tip),
    /// How many are left out here.
    Gap {
        /// Their number.
        gap: u32,
    },
}

/// The confirmed chain and every branch beside it, with both sides of each fork.
#[utoipa::path(get, path = "/forks", tag = "varve", responses(
    (status = 200, body = ForksAnswer), Refusals))]
pub(super) async fn forks(State(own): State<Shared>) -> Result<Reply<ForksAnswer>, Refused> {
    own.ask(|_, snapshot| {
        let mut tips = snapshot.chain_tips();
        tips.sort_unstable_by_key(|tip| (tip.branch_length > 0, std::cmp::Reverse(tip.height)));
        let total = tips.len();
        let branches = tips.iter().take(BRANCHES).map(|tip| branch(snapshot, tip));
        let branches = branches.collect::<Result<_, _>>()?;
        Ok(ForksAnswer { tip: snapshot.tip().into(), total, branches })
    })
    .await
}

fn branch(snapshot: &Snapshot, tip: &varve::ChainTip) -> Result<Branch, Refused> {
    let varve::ChainTip { height, hash, branch_length: length } = *tip;
    let here = Tip { height: height.to_u32(), hash };
    if length == 0 {
        let (state, reason, fork) = (BranchState::Active, None, None);
        let (blocks, beside, beside_more) = (Vec::new(), Vec::new(), false);
        return Ok(Branch { tip: here, state, reason, fork, length, blocks, beside, beside_more });
    }
    let invalid = snapshot.invalid(hash)?;
    let state = match (&invalid, snapshot.block_summary(hash)) {
        (Some(_), _) => BranchState::Invalid,
        (None, Err(Error::NotStored { .. } | Error::Refused { .. })) => BranchState::Headers,
        (None, found) => found.map(|_| BranchState::Stale)?,
    };
    let fork = snapshot.header(Height::new(here.height.saturating_sub(length)))?;
    let first = here.height.saturating_sub(length) + 1;
    let (last, top) = (here.height, snapshot.tip().height.to_u32());
    let beside = (first..=top).take(length.min(u32::MAX - 1) as usize + 1).last();
    let confirmed = |height| Ok(snapshot.header(Height::new(height))?.as_ref().map(tip_of));
    Ok(Branch {
        state,
        reason: invalid.map(|invalid| invalid.reason.to_string()),
        fork: fork.as_ref().map(tip_of),
        length,
        blocks: drawn(first..=last, below(snapshot, hash, length)?.as_slice()),
        beside: match beside {
            Some(end) => outline(first..=end, confirmed)?,
            None => Vec::new(),
        },
        beside_more: beside.is_some_and(|end| end < top),
        tip: here,
    })
}

fn tip_of(header: &BlockHeader) -> Tip {
    Tip { height: header.height.to_u32(), hash: header.hash }
}

/// The blocks of a branch from its tip down, as far as they are walked.
fn below(snapshot: &Snapshot, tip: BlockHash, length: u32) -> Result<Vec<Tip>, Refused> {
    let mut found = Vec::new();
    let mut next = Some(tip);
    for _ in 0..length.min(WALKED) {
        let Some(header) = next.map(|hash| snapshot.header(hash)).transpose()?.flatten() else {
            break;
        };
        found.push(tip_of(&header));
        next = header.previous;
    }
    Ok(found)
}

/// The heights of a branch that are described, and where some are left out.
fn outline(
    heights: std::ops::RangeInclusive<u32>,
    block: impl Fn(u32) -> Result<Option<Tip>, Refused>,
) -> Result<Vec<BranchBlock>, Refused> {
    let (first, last) = (*heights.start(), *heights.end());
    let count = (last - first).saturating_add(1);
    let from_below = if count <= DRAWN { count } else { DRAWN - 1 };
    let mut blocks = Vec::new();
    for height in first..first + from_below {
        blocks.extend(block(height)?.map(BranchBlock::Block));
    }
    if from_below < count {
        blocks.push(BranchBlock::Gap { gap: count - from_below - 1 });
        blocks.extend(block(last)?.map(BranchBlock::Block));
    }
    Ok(blocks)
}

/// The same out of blocks that were walked from the tip down. Those of a very long branch that were
/// not reached are not named.
fn drawn(heights: std::ops::RangeInclusive<u32>, walked: &[Tip]) -> Vec<BranchBlock> {
    let block = |height| Ok(walked.iter().find(|block| block.height == height).copied());
    outline(heights, block).unwrap_or_default()
}

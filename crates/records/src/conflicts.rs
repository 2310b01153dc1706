//! When a block holds a transaction that lost a double spend: the loser wins after all.
//!
//! ```text
//!        P:0 ──► L ──► C           L spent P:0 first, W came later and is kept as conflicting.
//!          └···► W                 A block has W. Then L and all that builds on it must give way:
//!
//! 0  look    winners are conflicting and may spend what they claim; losers are the spenders of
//!            what they claim, with all that builds on those. Every refusal is here.
//! 1  intent  written down: winners and losers
//! 2  mark    losers become conflicting, and so do children that came since the look
//! 3  free    what losers spent is unspent, its owners are locked
//! 4  spend   winners spend, ignoring locks and marks
//! 5  clear   winners are no longer conflicting, owners are unlocked, losers are scheduled for
//!            removal, the intent is crossed out
//! ```
//!
//! A winner is judged by its own account of the outputs it spends (script and value, as in its
//! extended form), exactly as in a plain spend. So a former owner of a reassigned output cannot win
//! it back, nor can one that lies about a value.
//!
//! A loser need not have a record: the spender never created one, or its record was deleted.
//! What it holds of the winners' inputs and of other losers is freed all the same. But a record
//! that was *pruned* while it held an output was confirmed, because an unconfirmed one gives back
//! what it holds when it is pruned: it cannot lose.
//!
//! Every step after the intent can be repeated: marking is absolute, freeing takes only what the
//! loser owns, a spend by the same spender stands. So an intent that is found at start is resumed
//! from step 2, with the losers that it names. Another caller may take what was freed before a
//! winner does, because being mined unlocks an owner: then the resolution looks again, and that one
//! loses too. An intent whose step is refused otherwise stays, with its locks, until it is retried
//! or abandoned (`pending`).
//!
//! Resolutions of one store run one at a time: the second looks when the first is done. Spends that
//! come meanwhile meet the locks.
//!
//! The walk over what builds on a transaction is breadth first, reads a generation in one batch,
//! and ends with an error when it has seen more transactions than its budget. A frozen output is
//! seen as the placeholder and never followed.
//!
//! | file | step |
//! |---|---|
//! | `claim` | what winners claim, and whether they may |
//! | `closure` | who loses |
//! | `plan` | from the intent to its end |
//! | `pending` | intents that were left: resume, retry, abandon |

mod claim;
mod closure;
mod pending;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use varve_types::{BlockHash, Height, Outpoint, Txid};

use crate::blob::BlobError;
use crate::error::{RecordError, SlotError};
use crate::record::BlockId;
use crate::spending_data::PLACEHOLDER;
use crate::store::{Store, StoreError};
use claim::Claim;
use plan::Plan;

pub use crate::intent::{Intent, IntentId, IntentKind};
pub use closure::{
    CLOSURE_BUDGET, get_and_lock_children, get_conflicting_children, get_counter_conflicting,
};
pub(crate) use pending::owners;
pub use pending::{Replayed, Retry, abandon, replay, retry};

/// The block that asks for winners.
pub struct ConflictBlock<'a> {
    /// Its height.
    pub height: Height,
    /// Its hash.
    pub hash: BlockHash,
    /// The time, in milliseconds.
    pub now_ms: u64,
    /// How many transactions may lose.
    pub budget: usize,
    /// Whether a block is below it, on its own branch.
    pub is_ancestor: &'a dyn Fn(BlockId) -> bool,
}

/// Why conflicts were not resolved. Only [`ConflictError::Store`], [`ConflictError::Stuck`] and
/// [`ConflictError::Pending`] can come after an intent was written; with all others nothing was
/// changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConflictError {
    /// A winner must have lost before.
    #[error("{0} is not conflicting, so it cannot win")]
    NotConflicting(Txid),
    /// The placeholder is no transaction.
    #[error("the placeholder is no transaction")]
    Placeholder,
    /// More transactions would lose than the budget allows.
    #[error("more than {budget} transactions would be touched; give a larger budget")]
    TooMany {
        /// The budget.
        budget: usize,
    },
    /// An output on the way is frozen.
    #[error("{outpoint} is frozen")]
    Frozen {
        /// The output.
        outpoint: Outpoint,
    },
    /// What builds on a loser has a frozen output.
    #[error("an output of a transaction that builds on {0} is frozen")]
    FrozenChild(Txid),
    /// A winner may not spend an output that it claims.
    #[error("{txid} cannot win {outpoint}: {error}")]
    Unspendable {
        /// The winner.
        txid: Txid,
        /// The output.
        outpoint: Outpoint,
        /// The check of a spend that fails.
        error: SlotError,
    },
    /// A parent has no such output.
    #[error("{0} does not exist")]
    NoSuchOutput(Outpoint),
    /// A loser is in a block below the one that asks.
    #[error("{txid} cannot lose: block {} below has it", block.0)]
    LoserConfirmed {
        /// The transaction.
        txid: Txid,
        /// The block.
        block: BlockId,
    },
    /// A loser was confirmed so long ago that its record is gone.
    #[error("{0} cannot lose: it was confirmed, and its record is pruned")]
    LoserPruned(Txid),
    /// A winner builds on a loser.
    #[error("{0} builds on a transaction that it makes lose")]
    WinnerBuildsOnLoser(Txid),
    /// Two winners spend the same output.
    #[error("two of the winners spend {0}")]
    WinnersConflict(Outpoint),
    /// A winner could not spend after the losers gave way. The intent stays.
    #[error(
        "{txid} cannot spend what was freed: {error}{}; retry the intent or abandon it",
        failed_inputs(.error)
    )]
    Stuck {
        /// The winner.
        txid: Txid,
        /// Why.
        error: RecordError,
    },
    /// A resolution that had begun looked again and was refused. The intent stays.
    #[error("conflict resolution {id} has begun and cannot continue: {error}; retry or abandon it")]
    Pending {
        /// The intent.
        id: IntentId,
        /// Why.
        error: Box<ConflictError>,
    },
    /// No such intent is pending.
    #[error("no conflict resolution with the id {0} is pending")]
    NoSuchIntent(IntentId),
    /// The store failed. An intent that was written stays and is resumed at the next start.
    #[error(transparent)]
    Store(#[from] StoreError),
}

type Result<T, E = ConflictError> = std::result::Result<T, E>;

impl ConflictError {
    /// Whether the storage itself failed, so that other intents would fail as well.
    const fn is_storage(&self) -> bool {
        matches!(self, Self::Store(StoreError::Engine(_) | StoreError::Blob(BlobError::Bucket(_))))
    }
}

/// The inputs of a spend that failed, the first few of them, and why.
fn failed_inputs(error: &RecordError) -> String {
    let failed = error.items().iter().filter_map(|item| Some((item.outpoint, item.error?)));
    let named: Vec<String> =
        failed.take(NAMED).map(|(outpoint, error)| format!("{outpoint}: {error}")).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

/// Inputs that an error names.
const NAMED: usize = 5;

/// Attempts of a resolution, when another caller takes what was freed before a winner does.
const TRIES: usize = 3;

/// Lets these transactions win. Returns the losers, in the order in which they were found.
pub fn process_conflicting(
    store: &Store,
    winners: &[Txid],
    block: &ConflictBlock<'_>,
) -> Result<Vec<Txid>> {
    if winners.is_empty() {
        return Ok(Vec::new());
    }
    let _alone = store.resolve_alone()?;
    look_and_resolve(store, None, winners, block)
}

/// Looks, writes the intent and carries it out, and looks again when another caller interfered. A
/// new intent names the losers of the one before and takes its place.
fn look_and_resolve(
    store: &Store,
    mut before: Option<Plan>,
    winners: &[Txid],
    block: &ConflictBlock<'_>,
) -> Result<Vec<Txid>> {
    let mut tries = 0;
    loop {
        let known = before.as_ref().map_or(&[][..], Plan::losers);
        let intent = look(store, winners, block, known).map_err(|error| match &before {
            Some(plan) if !error.is_storage() => {
                ConflictError::Pending { id: plan.intent().id(), error: Box::new(error) }
            }
            _ => error,
        })?;
        let mut plan = Plan::begin(store, intent, before.take())?;
        pending::supersede(store, &plan)?;
        tries += 1;
        match plan.carry_out(store) {
            Ok(()) => return Ok(plan.into_losers()),
            Err(ConflictError::Stuck { .. }) if tries < TRIES => before = Some(plan),
            Err(error) => return Err(error),
        }
    }
}

/// Step 0: what is to be done, or why it is refused. The losers come behind those that are known.
fn look(
    store: &Store,
    winners: &[Txid],
    block: &ConflictBlock<'_>,
    known: &[Txid],
) -> Result<Intent> {
    let claims = Claim::read(store, winners, block.height)?;
    if let Some(claim) = claims.iter().find(|claim| !claim.is_conflicting) {
        return Err(ConflictError::NotConflicting(claim.txid));
    }
    let found = closure::losers(store, &claims, block)?;
    claim::check(store, &claims, block.height)?;
    let again: HashSet<Txid> = found.iter().copied().collect();
    let mut txids = winners.to_vec();
    txids.push(PLACEHOLDER);
    txids.extend(known.iter().filter(|txid| !again.contains(txid)));
    txids.extend(found);
    Ok(Intent {
        kind: IntentKind::ResolveConflicts,
        height: block.height,
        block: block.hash,
        txids,
        created_at: block.now_ms,
    })
}

//! When a block holds a transaction that lost a double spend: the loser wins after all.
//!
//! ```text
//!        P:0 ──► L ──► C           L spent P:0 first, W came later and is kept as conflicting.
//!          └···► W                 A block has W. Then L and all that builds on it must give way:
//!
//! 0  look    winners are conflicting; losers are the spenders of what they spend, with all that
//!            builds on those. Nothing is written, and every refusal is here.
//! 1  intent  written down: winners and losers
//! 2  mark    losers become conflicting
//! 3  free    what losers spent is unspent, its owners are locked
//! 4  spend   winners spend, ignoring locks and marks
//! 5  clear   winners are no longer conflicting, owners are unlocked, losers are scheduled for
//!            removal, the intent is crossed out
//! ```
//!
//! Every step after the intent can be repeated: marking is absolute, freeing takes only what the
//! loser owns, a spend by the same spender stands. So an intent that is found at start is simply
//! done again from step 2, with the losers that it names. Somebody may take what was freed before a
//! winner does, because being mined unlocks an owner: then the resolution looks again, and that one
//! loses too. A step that is refused otherwise leaves the intent and the locks.
//!
//! Resolutions of one store come one after the other: a second one looks when the first is done, so
//! its losers are those of that moment. Spends that come meanwhile meet the locks.
//!
//! The walk over what builds on a transaction is breadth first, reads a generation in one batch,
//! and ends with an error when it has seen more transactions than its budget. A frozen output is
//! seen as the placeholder and never followed.

mod closure;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use varve_types::{BlockHash, Height, Outpoint, Txid};

use crate::error::RecordError;
use crate::fields::Fields;
use crate::freeze_window::Tier;
use crate::intent::{Intent, IntentKind};
use crate::operation::{Operation, Spend, SpendPart, SpendRules, Unit, Unspend};
use crate::record::{BlockId, Record};
use crate::spending_data::PLACEHOLDER;
use crate::store::{Store, StoreError};

pub use closure::{
    CLOSURE_BUDGET, get_and_lock_children, get_conflicting_children, get_counter_conflicting,
};

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

/// Why conflicts were not resolved. Except for [`ConflictError::Store`] and
/// [`ConflictError::Stuck`] nothing was changed.
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
    /// A winner builds on a loser.
    #[error("{0} builds on a transaction that it makes lose")]
    WinnerBuildsOnLoser(Txid),
    /// Two winners spend the same output.
    #[error("two of the winners spend {0}")]
    WinnersConflict(Outpoint),
    /// A winner could not spend after the losers gave way. The intent stays.
    #[error("{txid} cannot spend what was freed: {error}; resolve the conflict again")]
    Stuck {
        /// The winner.
        txid: Txid,
        /// Why.
        error: RecordError,
    },
    /// The store failed. If the intent was written, it stays and is done again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

type Result<T, E = ConflictError> = std::result::Result<T, E>;

/// How often a resolution looks, when somebody takes what was freed before a winner does.
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
    let _alone = store.resolve_alone();
    let mut losers = Vec::new();
    let mut begun = Vec::new();
    loop {
        let intent = look(store, winners, block, &mut losers)?;
        store.apply_one(Operation::BeginIntent(intent.clone()))?;
        begun.push(intent.id());
        match resolve(store, &intent) {
            Err(ConflictError::Stuck { .. }) if begun.len() < TRIES => {}
            done => {
                done?;
                break;
            }
        }
    }
    // The last try has completed its intent, and done what the earlier ones left.
    begun.pop();
    for id in begun {
        store.apply_one(Operation::CompleteIntent(id))?;
    }
    Ok(losers)
}

/// Step 0: what is to be done, or why it is refused. Adds to the losers that are known.
fn look(
    store: &Store,
    winners: &[Txid],
    block: &ConflictBlock<'_>,
    losers: &mut Vec<Txid>,
) -> Result<Intent> {
    let records = records(store, winners, Fields::INPOINTS)?;
    if let Some(record) = records.iter().find(|record| !record.conflicting) {
        return Err(ConflictError::NotConflicting(record.txid));
    }
    let found = closure::losers(store, &records, block)?;
    check_spendable(store, &records, block.height)?;
    losers.retain(|txid| !found.contains(txid));
    losers.extend(found);
    let mut txids = winners.to_vec();
    txids.push(PLACEHOLDER);
    txids.extend_from_slice(losers);
    Ok(Intent {
        kind: IntentKind::ResolveConflicts,
        height: block.height,
        block: block.hash,
        txids,
        created_at: block.now_ms,
    })
}

/// Does again what was begun and not completed. Returns how many intents there were. One that is
/// stuck may wait for another, so it is tried again as long as others come to their end.
pub fn replay(store: &Store) -> Result<usize> {
    let _alone = store.resolve_alone();
    let mut left = store.engine().intents().map_err(StoreError::from)?;
    let count = left.len();
    while !left.is_empty() {
        let mut waiting = Vec::new();
        let mut stuck = None;
        for intent in &left {
            match resolve(store, intent) {
                Err(error @ ConflictError::Stuck { .. }) => {
                    waiting.push(intent.clone());
                    stuck = Some(error);
                }
                done => done?,
            }
        }
        match stuck {
            Some(error) if waiting.len() == left.len() => return Err(error),
            _ => left = waiting,
        }
    }
    Ok(count)
}

/// Steps 2 to 5. The list of an intent is the winners, the placeholder, the losers.
fn resolve(store: &Store, intent: &Intent) -> Result<()> {
    let mut parts = intent.txids.split(|txid| *txid == PLACEHOLDER);
    let winners = parts.next().unwrap_or_default();
    let losers = parts.next().unwrap_or_default();
    let owners = mark_and_free(store, losers)?;
    spend_winners(store, winners, intent.height)?;
    tolerate_missing(store.set_conflicting(winners, false)?)?;
    unlock(store, &owners)?;
    // A lock takes a record from the schedule of the pruner; losers go back to it.
    tolerate_missing(store.set_conflicting(losers, true)?)?;
    store.apply_one(Operation::CompleteIntent(intent.id()))?;
    Ok(())
}

/// Marks losers and takes back what they spent. Returns the owners of what they may have spent.
fn mark_and_free(store: &Store, losers: &[Txid]) -> Result<Vec<Txid>> {
    let spends: Vec<Unspend> = tolerate_missing(store.set_conflicting(losers, true)?)?
        .into_iter()
        .flat_map(|conflicting| conflicting.parents)
        .collect();
    let outpoints: Vec<Outpoint> = spends.iter().map(|spend| spend.slot.outpoint).collect();
    let slots = store.engine().slots(&outpoints).map_err(StoreError::from)?;
    let owned = spends.iter().zip(&slots).filter(|(spend, slot)| {
        let slot = slot.as_ref().and_then(|view| view.slot);
        slot.is_some_and(|slot| slot.spender() == Some(spend.by))
    });
    let owned: Vec<Unspend> = owned.map(|(spend, _)| *spend).collect();
    if !owned.is_empty() {
        store.unspend(owned, true)?;
    }
    let owners: BTreeSet<Txid> = outpoints.iter().map(|outpoint| outpoint.txid).collect();
    Ok(owners.into_iter().collect())
}

/// Winners spend what they spend. The hashes are those of the slots, so no transaction is read.
fn spend_winners(store: &Store, winners: &[Txid], height: Height) -> Result<()> {
    let records = records(store, winners, Fields::INPOINTS)?;
    let rules = SpendRules {
        ignore_conflicting: true,
        ignore_locked: true,
        tier: Tier::Consensus,
        ..SpendRules::at(height)
    };
    let mut operations = Vec::new();
    for record in &records {
        let slots = store.engine().slots(&record.inputs).map_err(StoreError::from)?;
        let inputs = (0_u32..).zip(record.inputs.iter().zip(slots));
        let spends = inputs.filter_map(|(vin, (outpoint, view))| {
            let hash = view?.slot?.hash;
            Some(Spend { outpoint: *outpoint, hash, vin })
        });
        let spend = Some(SpendPart { spends: spends.collect(), rules });
        operations.push(Operation::from(Unit { txid: record.txid, spend, create: None }));
    }
    for (record, answer) in records.iter().zip(store.apply(&operations)?) {
        let stuck = |error| ConflictError::Stuck { txid: record.txid, error };
        answer.map_err(stuck)?;
    }
    Ok(())
}

/// Unlocks owners that are there.
fn unlock(store: &Store, owners: &[Txid]) -> Result<()> {
    match store.set_locked(owners, false) {
        Ok(()) | Err(StoreError::Missing { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses winners whose inputs nobody may spend, before anything is changed.
fn check_spendable(store: &Store, winners: &[Record], height: Height) -> Result<()> {
    let mut spent = BTreeSet::new();
    for winner in winners {
        let slots = store.engine().slots(&winner.inputs).map_err(StoreError::from)?;
        for (outpoint, view) in winner.inputs.iter().zip(slots) {
            if !spent.insert(*outpoint) {
                return Err(ConflictError::WinnersConflict(*outpoint));
            }
            // A parent that was pruned is no fault of one who has a record.
            let Some(view) = view else { continue };
            let Some(slot) = view.slot else {
                return Err(ConflictError::NoSuchOutput(*outpoint));
            };
            let window = view.window.is_some_and(|w| w.forbids(Tier::Consensus, height));
            let rests = [view.spendable_in, view.spending_height].into_iter().flatten().max();
            if slot.is_frozen() || window || rests.is_some_and(|from| from > height) {
                return Err(ConflictError::Frozen { outpoint: *outpoint });
            }
        }
    }
    Ok(())
}

/// Records that must be there.
fn records(store: &Store, txids: &[Txid], fields: Fields) -> Result<Vec<Record>> {
    if txids.contains(&PLACEHOLDER) {
        return Err(ConflictError::Placeholder);
    }
    let found = store.batch_decorate(txids, fields)?;
    Ok(found.into_iter().collect::<Result<_, RecordError>>().map_err(StoreError::from)?)
}

/// The answers of those that are there: a loser may have been removed before a replay.
fn tolerate_missing<T>(answers: Vec<Result<T, RecordError>>) -> Result<Vec<T>> {
    let present = |answer| match answer {
        Err(RecordError::TxNotFound { .. }) => None,
        answer => Some(answer),
    };
    let answers: Result<Vec<T>, RecordError> = answers.into_iter().filter_map(present).collect();
    Ok(answers.map_err(StoreError::from)?)
}

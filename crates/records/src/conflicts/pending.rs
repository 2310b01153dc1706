//! Intents that were left behind by a crash or by a step that was refused.
//!
//! | call | what it does |
//! |---|---|
//! | [`replay`] | at start: resumes every intent; those that are stuck are reported and stay |
//! | [`retry`] | resumes one intent, and looks for losers again when it is stuck |
//! | [`abandon`] | gives one up |
//!
//! A new resolution that decides the other way gives up older intents as well: the chain has
//! changed its mind. A crash may come before that, so [`replay`] does the same first.
//!
//! An abandoned intent leaves no lock. What was marked and freed stays so: winners are conflicting
//! as before, losers may be, and whichever a later block asks for can win. It never goes back,
//! because others may have built on what was freed.

use std::collections::{HashMap, HashSet};

use varve_types::{Outpoint, Txid};

use super::closure::read;
use super::{ConflictBlock, ConflictError, Plan, Result, look_and_resolve};
use crate::fields::Fields;
use crate::intent::{Intent, IntentId};
use crate::record::BlockId;
use crate::store::{Store, StoreError};

/// Intents that are asked for together. Hardly ever is there more than one.
const INTENTS_PAGE: usize = 100;

/// What became of the intents that were found.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Intents that came to their end.
    pub done: usize,
    /// Intents that cannot be finished now, and why.
    pub stuck: Vec<(IntentId, ConflictError)>,
}

/// What a retry needs that the intent does not say.
pub struct Retry<'a> {
    /// The time, in milliseconds.
    pub now_ms: u64,
    /// How many transactions may lose.
    pub budget: usize,
    /// Whether a block is below the one that asked, on its own branch.
    pub is_ancestor: &'a dyn Fn(BlockId) -> bool,
}

/// Resumes all intents, oldest first, but gives up those that a newer one contradicts. One that is
/// stuck may wait for another, so it is tried again as long as others come to their end. An error
/// is that of the storage.
pub fn replay(store: &Store) -> Result<Replayed> {
    let _alone = store.resolve_alone()?;
    let mut left = give_up_contradicted(store)?;
    let mut done = 0;
    loop {
        let count = left.len();
        let mut waiting = Vec::new();
        let mut stuck = Vec::new();
        for mut plan in left {
            match plan.carry_out(store) {
                Ok(()) => done += 1,
                Err(error) if error.is_storage() => return Err(error),
                Err(error) => {
                    let intent = plan.into_intent();
                    stuck.push((intent.id(), error));
                    waiting.push(Plan::of(intent));
                }
            }
        }
        if waiting.len() == count {
            return Ok(Replayed { done, stuck });
        }
        left = waiting;
    }
}

/// Resumes an intent. If it is stuck, the losers are looked for again, as for a new block. Returns
/// the losers.
pub fn retry(store: &Store, id: IntentId, with: &Retry<'_>) -> Result<Vec<Txid>> {
    let _alone = store.resolve_alone()?;
    let intent = find(store, id)?;
    let Retry { now_ms, budget, is_ancestor } = *with;
    let (height, hash) = (intent.height, intent.block);
    let mut plan = Plan::of(intent);
    match plan.carry_out(store) {
        Ok(()) => Ok(plan.into_losers()),
        Err(error) if error.is_storage() => Err(error),
        Err(_) => {
            let winners = plan.winners().to_vec();
            let block = ConflictBlock { height, hash, now_ms, budget, is_ancestor };
            look_and_resolve(store, Some(plan), &winners, &block)
        }
    }
}

/// Gives an intent up and returns it.
pub fn abandon(store: &Store, id: IntentId) -> Result<Intent> {
    let _alone = store.resolve_alone()?;
    let plan = Plan::of(find(store, id)?);
    plan.abandon(store)?;
    Ok(plan.into_intent())
}

/// Gives up older intents that the new one contradicts. Resumed later they would undo the new
/// decision.
pub(super) fn supersede(store: &Store, plan: &Plan) -> Result<()> {
    let pending = store.intents()?;
    if pending.len() < 2 {
        return Ok(());
    }
    let new = Decision::of(store, plan.intent())?;
    for old in pending {
        if Decision::of(store, &old)?.contradicts(&new) {
            Plan::of(old).abandon(store)?;
        }
    }
    Ok(())
}

/// Gives up intents that a newer one contradicts and returns the others, oldest first.
fn give_up_contradicted(store: &Store) -> Result<Vec<Plan>> {
    let mut pending = store.intents()?;
    pending.sort_by_key(|intent| (intent.created_at, intent.height, intent.id()));
    let mut newer: Vec<Decision> = Vec::new();
    let mut left = Vec::new();
    for intent in pending.into_iter().rev() {
        let decision = Decision::of(store, &intent)?;
        let plan = Plan::of(intent);
        if newer.iter().any(|newer| newer.contradicts(&decision)) {
            plan.abandon(store)?;
        } else {
            left.push(plan);
        }
        newer.push(decision);
    }
    left.reverse();
    Ok(left)
}

/// What an intent decides.
struct Decision {
    winners: HashSet<Txid>,
    losers: HashSet<Txid>,
    /// The outputs that winners claim, each with its winner.
    claims: HashMap<Outpoint, Txid>,
}

impl Decision {
    fn of(store: &Store, intent: &Intent) -> Result<Self> {
        let mut claims = HashMap::new();
        for record in read(store, intent.winners(), Fields::INPOINTS)? {
            claims.extend(record.inputs.iter().map(|input| (*input, record.txid)));
        }
        let [winners, losers] =
            [intent.winners(), intent.losers()].map(|txids| txids.iter().copied().collect());
        Ok(Self { winners, losers, claims })
    }

    /// Whether both cannot hold: a winner of one loses in the other, or they give one output to
    /// different winners.
    fn contradicts(&self, other: &Self) -> bool {
        let other_winner = |outpoint| other.claims.get(outpoint);
        !self.winners.is_disjoint(&other.losers)
            || !self.losers.is_disjoint(&other.winners)
            || self.claims.iter().any(|(outpoint, winner)| {
                other_winner(outpoint).is_some_and(|other| other != winner)
            })
    }
}

fn find(store: &Store, id: IntentId) -> Result<Intent> {
    let found = store.intents()?.into_iter().find(|intent| intent.id() == id);
    found.ok_or(ConflictError::NoSuchIntent(id))
}

/// The owners of outputs that pending intents may have freed: they stay locked.
pub(crate) fn owners(store: &Store, intents: &[Intent]) -> Result<Vec<Txid>> {
    let mut owners = Vec::new();
    for intent in intents {
        owners.extend(Plan::of(intent.clone()).owners(store)?);
    }
    Ok(owners)
}

impl Store {
    /// Conflict resolutions that were begun and are not finished, in the order of their ids.
    pub fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        let mut found: Vec<Intent> = Vec::new();
        loop {
            let page = self.engine().intents(found.last().map(Intent::id), INTENTS_PAGE)?;
            let more = page.len() == INTENTS_PAGE;
            found.extend(page);
            if !more {
                return Ok(found);
            }
        }
    }
}

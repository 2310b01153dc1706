//! All that builds on a transaction.

use std::collections::BTreeSet;

use varve_types::{Outpoint, Txid};

use super::claim::Claim;
use super::{ConflictBlock, ConflictError, Result};
use crate::fields::Fields;
use crate::record::Record;
use crate::slot::Slot;
use crate::spending_data::PLACEHOLDER;
use crate::store::{Store, StoreError};

/// How many transactions a walk may see, when the caller does not say.
pub const CLOSURE_BUDGET: usize = 100_000;

/// All that builds on a transaction: its conflicting children, the spenders of its outputs, and
/// theirs. The transaction itself is not among them. A frozen output somewhere is the placeholder.
pub fn get_conflicting_children(store: &Store, txid: Txid, budget: usize) -> Result<Vec<Txid>> {
    let mut walk = Walk::new(budget);
    walk.seen.insert(txid);
    walk.run(store, vec![txid])?;
    Ok(walk.found)
}

/// The transaction itself, the spenders of what it spends, and all that builds on those.
pub fn get_counter_conflicting(store: &Store, txid: Txid, budget: usize) -> Result<Vec<Txid>> {
    if txid == PLACEHOLDER {
        return Err(ConflictError::Placeholder);
    }
    let inputs = store.get(txid, Fields::INPOINTS)?.inputs;
    let mut walk = Walk::new(budget);
    walk.note(txid)?;
    walk.rivals(store, txid, &inputs)?;
    Ok(walk.found)
}

/// The transaction and all that spends it, directly or not, each locked before the next
/// generation is looked for.
pub fn get_and_lock_children(store: &Store, txid: Txid, budget: usize) -> Result<Vec<Txid>> {
    if txid == PLACEHOLDER {
        return Ok(Vec::new());
    }
    let mut walk = Walk::new(budget);
    walk.note(txid)?;
    let mut generation = vec![txid];
    store.set_locked(&generation, true)?;
    while !generation.is_empty() {
        let found = read(store, &generation, Fields::UTXOS)?;
        let spenders = found.iter().flat_map(spenders).filter(|txid| *txid != PLACEHOLDER);
        let mut next = Vec::new();
        for spender in spenders {
            if walk.note(spender)? {
                next.push(spender);
            }
        }
        // A spender that was pruned has nothing to lock.
        next = read(store, &next, Fields::HEAD)?.into_iter().map(|record| record.txid).collect();
        store.set_locked(&next, true)?;
        generation = next;
    }
    Ok(walk.found)
}

/// The transactions that lose against the winners: no winners, none in a block below, and none that
/// was confirmed and pruned.
pub(super) fn losers(
    store: &Store,
    winners: &[Claim],
    block: &ConflictBlock<'_>,
) -> Result<Vec<Txid>> {
    let mut walk = Walk::new(block.budget);
    for winner in winners {
        let inputs: Vec<Outpoint> = winner.spends().iter().map(|spend| spend.outpoint).collect();
        walk.rivals(store, winner.txid, &inputs)?;
    }
    let names: BTreeSet<Txid> = winners.iter().map(|winner| winner.txid).collect();
    if let Some(txid) = walk.found.iter().find(|txid| names.contains(txid)) {
        return Err(ConflictError::WinnerBuildsOnLoser(*txid));
    }
    let mut absent: BTreeSet<Txid> = walk.found.iter().copied().collect();
    for record in read(store, &walk.found, Fields::HEAD)? {
        absent.remove(&record.txid);
        let below = record.blocks.iter().find(|found| (block.is_ancestor)(found.id));
        if let Some(found) = below {
            return Err(ConflictError::LoserConfirmed { txid: record.txid, block: found.id });
        }
    }
    walk.check_pruned(store, &absent)?;
    Ok(walk.found)
}

/// Who was seen, in which order, and how many may be.
struct Walk {
    seen: BTreeSet<Txid>,
    found: Vec<Txid>,
    budget: usize,
    /// Rivals, each with the owner of an output that it holds.
    rivals: Vec<(Txid, Txid)>,
    /// Spenders that the owner of the output remembers as pruned.
    pruned: Vec<Txid>,
}

impl Walk {
    const fn new(budget: usize) -> Self {
        Self {
            seen: BTreeSet::new(),
            found: Vec::new(),
            budget,
            rivals: Vec::new(),
            pruned: Vec::new(),
        }
    }

    /// Adds a transaction; false when it was seen before.
    fn note(&mut self, txid: Txid) -> Result<bool> {
        let new = self.seen.insert(txid);
        if new {
            if self.found.len() == self.budget {
                return Err(ConflictError::TooMany { budget: self.budget });
            }
            self.found.push(txid);
        }
        Ok(new)
    }

    /// Adds all that builds on a generation, generation by generation.
    fn run(&mut self, store: &Store, mut generation: Vec<Txid>) -> Result<()> {
        while !generation.is_empty() {
            let parents = read(store, &generation, Fields::UTXOS.union(Fields::CHILDREN))?;
            generation.clear();
            for parent in &parents {
                let deleted = &parent.children.deleted;
                self.pruned.extend(spenders(parent).filter(|txid| deleted.contains(txid)));
                let conflicting = parent.children.conflicting.iter().copied();
                for child in conflicting.chain(spenders(parent)) {
                    if self.note(child)? && child != PLACEHOLDER {
                        generation.push(child);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the spenders of what a transaction spends, and all that builds on them. A frozen
    /// output on the way is an error.
    fn rivals(&mut self, store: &Store, winner: Txid, inputs: &[Outpoint]) -> Result<()> {
        let slots = store.engine().slots(inputs).map_err(StoreError::from)?;
        for (outpoint, view) in inputs.iter().zip(slots) {
            // `claim` refuses a claim on an output whose parent is gone.
            let Some(view) = view else { continue };
            let Some(slot) = view.slot else {
                return Err(ConflictError::NoSuchOutput(*outpoint));
            };
            if slot.is_frozen() {
                return Err(ConflictError::Frozen { outpoint: *outpoint });
            }
            let rival = slot.spender().map(|data| data.txid);
            let Some(rival) = rival.filter(|rival| *rival != winner) else { continue };
            self.rivals.push((rival, outpoint.txid));
            if self.note(rival)? {
                self.run(store, vec![rival])?;
                self.check_frozen(*outpoint)?;
            }
        }
        Ok(())
    }

    /// Refuses when one of those without a record was pruned while it held an output.
    fn check_pruned(&self, store: &Store, absent: &BTreeSet<Txid>) -> Result<()> {
        if let Some(txid) = self.pruned.iter().find(|txid| absent.contains(txid)) {
            return Err(ConflictError::LoserPruned(*txid));
        }
        for (rival, owner) in self.rivals.iter().filter(|(rival, _)| absent.contains(rival)) {
            let owners = read(store, &[*owner], Fields::CHILDREN)?;
            if owners.iter().any(|record| record.children.deleted.contains(rival)) {
                return Err(ConflictError::LoserPruned(*rival));
            }
        }
        Ok(())
    }

    fn check_frozen(&self, outpoint: Outpoint) -> Result<()> {
        if self.seen.contains(&PLACEHOLDER) {
            return Err(ConflictError::FrozenChild(outpoint.txid));
        }
        Ok(())
    }
}

/// The spenders of a record's outputs; the placeholder for a frozen one.
fn spenders(record: &Record) -> impl Iterator<Item = Txid> {
    let spender = |slot: &Slot| slot.spending.map(|data| data.txid);
    record.utxos.iter().flatten().filter_map(spender)
}

/// The records that are there. The engine has answered for the others that they are not.
pub(super) fn read(store: &Store, txids: &[Txid], fields: Fields) -> Result<Vec<Record>> {
    let found = store.engine().read(txids, fields).map_err(StoreError::from)?;
    Ok(found.into_iter().flatten().collect())
}

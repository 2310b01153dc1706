//! Our own rules: few, and all of them numbers. What is not here is not judged: dust and
//! standardness are for those who mine.
//!
//! Replacement follows BIP125: a transaction that spends what others spend takes their place, and
//! all that builds on them goes with them, when
//!
//! 1. each of them, or one that it builds on, signals it by a sequence below `fffffffe` (unless
//!    [`Policy::full_rbf`]);
//! 2. it spends no unconfirmed output of a transaction that they did not spend from;
//! 3. it builds on none of those it replaces;
//! 4. no more than [`Policy::max_replaced`] go;
//! 5. its rate is higher than that of each of them;
//! 6. it pays all their fees and the incremental rate for its own size.

use varve_types::Amount;
use varve_types::pushdata::PushdataRule;

use super::entry::{Body, EntryId};
use super::fee_rate::{FeeRate, Sum};
use super::reject::{Reject, ReplaceError};
use super::version::{Ids, Version};

/// Sequences below this signal that a transaction can be replaced.
const REPLACEABLE_BELOW: u32 = 0xffff_fffe;

/// Whose rules decide about a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// Ours: consensus, scripts included, and [`Policy`].
    Ours,
    /// Ours, but scripts are taken on trust: whoever gives it vouches for them, as for those of
    /// blocks.
    Spends,
    /// A node's, which has accepted it: we check only what could corrupt our own view, and
    /// whoever is in its way gives way.
    Node,
    /// It was accepted before, by us or by a block: no policy, no scripts.
    Before,
}

/// The numbers of a mempool.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The lowest rate that is taken.
    pub min_relay: FeeRate,
    /// What a replacement pays for its own relay, and what a newcomer pays above what was evicted.
    pub incremental: FeeRate,
    /// Unconfirmed transactions in a line: a transaction with its ancestors, and any of those with
    /// its descendants.
    pub max_relatives: u64,
    /// Virtual bytes of the same.
    pub max_relatives_vsize: u64,
    /// The heaviest transaction that is taken, in weight units. Its scripts are executed before it
    /// is known whether a miner would take it, and the cost of legacy signature hashes grows with
    /// the square of the length.
    pub max_weight: u64,
    /// The highest cost of signature operations that is taken.
    pub max_sigop_cost: u64,
    /// Whether transactions are replaced that do not signal it.
    pub full_rbf: bool,
    /// How many transactions one replacement may remove.
    pub max_replaced: usize,
    /// Seconds after which an unconfirmed transaction is dropped.
    pub expiry: u64,
    /// Bytes of memory for all transactions with their rows.
    pub memory: u64,
    /// Transactions that wait for their parents.
    pub max_orphans: usize,
    /// Bytes of all of them.
    pub max_orphan_bytes: usize,
    /// Seconds that one waits.
    pub orphan_expiry: u64,
    /// Which pushed items are indexed.
    pub push_rule: Option<PushdataRule>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            min_relay: FeeRate::per_kvb(100),
            incremental: FeeRate::per_kvb(100),
            max_relatives: 25,
            max_relatives_vsize: 101_000,
            max_weight: 400_000,
            max_sigop_cost: 16_000,
            full_rbf: true,
            max_replaced: 100,
            expiry: 336 * 3_600,
            memory: 300 << 20,
            max_orphans: 100,
            max_orphan_bytes: 10 << 20,
            orphan_expiry: 20 * 60,
            push_rule: None,
        }
    }
}

/// A transaction that wants to come in, with what is known of it.
pub(super) struct Candidate<'a> {
    pub(super) version: &'a Version,
    pub(super) body: &'a Body,
    /// Its unconfirmed parents.
    pub(super) parents: &'a Ids,
    /// The transactions that spend what it spends.
    pub(super) conflicts: &'a Ids,
    /// Those with their descendants.
    pub(super) replaced: &'a Ids,
}

impl Policy {
    /// Checks the size of a transaction and the cost of its signature operations.
    pub(super) fn check_size(&self, body: &Body) -> Result<(), Reject> {
        let txid = body.txid();
        if body.weight > self.max_weight {
            return Err(Reject::TooHeavy { txid, weight: body.weight, limit: self.max_weight });
        }
        if body.sigop_cost > self.max_sigop_cost {
            return Err(Reject::TooManySigops { txid, cost: body.sigop_cost });
        }
        Ok(())
    }

    /// Checks the limits of relatives as they would be after the replacement.
    pub(super) fn check_relatives(&self, new: &Candidate<'_>) -> Result<(), Reject> {
        let mut line = new.version.ancestors(new.parents);
        line.extend(new.parents);
        let own = new.body.sum();
        let mut over = own;
        line.iter().for_each(|id| over.add(&new.version.at(*id).body.sum()));
        self.check_line(new, &over)?;
        for id in &line {
            let mut below = new.version.at(*id).descendants;
            let leaving = new.version.with_descendants(&Ids::from([*id]));
            for gone in leaving.intersection(new.replaced) {
                below.subtract(&new.version.at(*gone).body.sum());
            }
            below.add(&own);
            self.check_line(new, &below)?;
        }
        Ok(())
    }

    fn check_line(&self, new: &Candidate<'_>, sum: &Sum) -> Result<(), Reject> {
        let broken = if sum.count > self.max_relatives {
            self.max_relatives
        } else if sum.vsize > self.max_relatives_vsize {
            self.max_relatives_vsize
        } else {
            return Ok(());
        };
        Err(Reject::TooManyRelatives { txid: new.body.txid(), limit: broken })
    }

    /// Checks the rules of replacement. Says which original is in the way, and why.
    pub(super) fn check_replacement(
        &self,
        new: &Candidate<'_>,
    ) -> Result<(), (EntryId, ReplaceError)> {
        let Some(first) = new.conflicts.first().copied() else { return Ok(()) };
        let version = new.version;
        let rate = new.body.sum().rate();
        let mut known_parents = Ids::new();
        for id in new.conflicts {
            let original = version.at(*id);
            if !self.full_rbf && !signals(version, *id) {
                return Err((*id, ReplaceError::NotSignaled));
            }
            if rate <= original.rate() {
                return Err((*id, ReplaceError::Rate));
            }
            known_parents.extend(version.parents(&original.body));
        }
        if !new.parents.is_subset(&known_parents) {
            return Err((first, ReplaceError::NewUnconfirmedInput));
        }
        if new.replaced.len() > self.max_replaced {
            return Err((first, ReplaceError::TooMany { count: new.replaced.len() }));
        }
        let mut sum = Sum::default();
        new.replaced.iter().for_each(|id| sum.add(&version.at(*id).body.sum()));
        let own = self.incremental.fee(new.body.vsize());
        let needed = sum.fees.checked_add(own).unwrap_or(Amount::MAX_MONEY);
        if new.body.fee < needed {
            return Err((first, ReplaceError::Fee { needed }));
        }
        Ok(())
    }
}

/// Whether a transaction, or one that it builds on, says that it can be replaced.
fn signals(version: &Version, id: EntryId) -> bool {
    let one = Ids::from([id]);
    let mut line = version.ancestors(&one);
    line.insert(id);
    line.into_iter().any(|id| {
        let tx = &version.at(id).body.tx;
        tx.view().inputs().any(|input| input.sequence < REPLACEABLE_BELOW)
    })
}

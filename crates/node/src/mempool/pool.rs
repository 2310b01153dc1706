//! The mempool: the one writer of its versions and records.
//!
//! Every change is a step: it begins from the published version, is judged and computed without
//! anybody seeing it, and ends in this order:
//!
//! 1. its records are written: losers marked, parents imported and spent, new records locked;
//! 2. [`Sink::publish`] makes the version visible, events follow;
//! 3. the new records are unlocked.
//!
//! A step that fails before 2 has changed nothing that a reader can see, and a restart puts the
//! records right. A batch of arrivals is one step: three writes however many transactions it has.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use varve_consensus::Params;
use varve_records::{RecordError, Store, Transaction};
use varve_types::Txid;

use super::admission::{Admission, CoinCache, Terms, decode};
use super::chain::Moment;
use super::draft::{Draft, Net};
use super::event::{Removal, Sink};
use super::eviction::{self, Floor};
use super::fee_rate::Sum;
use super::ledger::Ledger;
use super::orphanage::Orphanage;
use super::policy::{Judge, Policy};
use super::reject::{MempoolError, Refusal, Reject};
use super::rules::{LooseVerifier, NextBlock};
use super::version::{Ids, Version};

/// Transactions of a package.
const MAX_PACKAGE: usize = 25;

/// Unconfirmed transactions, over a store of records that nobody else writes.
pub struct Mempool {
    pub(super) params: Params,
    pub(super) policy: Policy,
    pub(super) verifier: Option<Box<dyn LooseVerifier>>,
    pub(super) ledger: Ledger,
    pub(super) orphans: Orphanage,
    pub(super) floor: Floor,
    pub(super) version: Arc<Version>,
}

impl fmt::Debug for Mempool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mempool").field("version", &self.version).finish_non_exhaustive()
    }
}

/// What became of one transaction: its txid, or why it is not here.
pub type Verdict = Result<Txid, Reject>;

/// What a mempool is made of.
pub struct MempoolParts {
    /// The records. Nobody else writes to them while the mempool lives.
    pub store: Arc<Store>,
    /// The rules of the chain.
    pub params: Params,
    /// Our own rules.
    pub policy: Policy,
    /// Who executes scripts; `None` where nobody can (BSV), and scripts are believed.
    pub verifier: Option<Box<dyn LooseVerifier>>,
}

impl fmt::Debug for MempoolParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MempoolParts").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Mempool {
    /// The version that was published last.
    #[must_use]
    pub const fn version(&self) -> &Arc<Version> {
        &self.version
    }

    /// Transactions that wait for their parents.
    #[must_use]
    pub fn orphans(&self) -> usize {
        self.orphans.len()
    }

    /// Whether a transaction waits for its parents.
    #[must_use]
    pub fn is_orphan(&self, txid: &Txid) -> bool {
        self.orphans.contains(txid)
    }

    /// The transactions that wait for this parent, which may pay for it.
    #[must_use]
    pub fn waiting_for(&self, parent: &Txid) -> Vec<Bytes> {
        self.orphans.children(parent).into_iter().map(|tx| tx.bytes().clone()).collect()
    }

    /// Takes transactions in, in their order, as one step. Those that wait for one of them follow.
    pub fn accept(
        &mut self,
        at: Moment<'_>,
        txs: &[Bytes],
        judge: Judge,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Verdict>, MempoolError> {
        let mut draft = Draft::new(&self.version);
        let format = self.params.network.format();
        let txs = txs.iter().map(|bytes| decode(bytes.clone(), format)).collect::<Vec<_>>();
        let mut admission = self.admission(at)?;
        let inputs = txs.iter().flatten().flat_map(Transaction::outpoints);
        admission.coins.fetch(inputs.filter(|input| !draft.version.contains(&input.txid)))?;
        let mut verdicts = Vec::with_capacity(txs.len());
        for tx in txs {
            verdicts.push(match tx {
                Ok(tx) => arrive(&mut admission, &mut draft, tx, judge)?,
                Err(reject) => Err(reject),
            });
        }
        let refused = self.finish(draft, at.now, sink)?;
        Ok(verdicts.into_iter().map(|verdict| after(verdict, &refused)).collect())
    }

    /// Takes a child and its unconfirmed parents in, the child last: all or none. The fee of all
    /// together counts, so a child pays for a parent that would be refused alone.
    pub fn accept_package(
        &mut self,
        at: Moment<'_>,
        txs: &[Bytes],
        sink: &mut dyn Sink,
    ) -> Result<Vec<Verdict>, MempoolError> {
        let mut draft = Draft::new(&self.version);
        let format = self.params.network.format();
        let decoded = txs.iter().map(|bytes| decode(bytes.clone(), format));
        let decoded = match decoded.collect::<Result<Vec<Transaction>, Reject>>() {
            Ok(decoded) if is_package(&decoded) => decoded,
            Ok(_) => return Ok(vec![Err(Reject::NoPackage(txs.len())); txs.len()]),
            Err(reject) => return Ok(vec![Err(reject); txs.len()]),
        };
        let mut admission = self.admission(at)?;
        let admitted = admit_package(&mut admission, &mut draft, &decoded)?;
        let verdicts = match admitted {
            Ok(verdicts) => verdicts,
            Err((place, reject)) => {
                let other = |tx: &Transaction| Err(Reject::Package(tx.txid()));
                let mut verdicts: Vec<Verdict> = decoded.iter().map(other).collect();
                if let Some(verdict) = verdicts.get_mut(place) {
                    *verdict = Err(reject);
                }
                return Ok(verdicts);
            }
        };
        let taken: Vec<Txid> = verdicts.iter().flatten().copied().collect();
        taken.iter().for_each(|txid| drop(admission.orphans.remove(txid)));
        adopt(&mut admission, &mut draft, taken.into())?;
        let refused = self.finish(draft, at.now, sink)?;
        Ok(verdicts.into_iter().map(|verdict| after(verdict, &refused)).collect())
    }

    /// Drops transactions that the deciding node no longer has, with all that builds on them.
    pub fn drop_txs(
        &mut self,
        txids: &[Txid],
        now: u64,
        sink: &mut dyn Sink,
    ) -> Result<(), MempoolError> {
        let mut draft = Draft::new(&self.version);
        let ids: Ids = txids.iter().filter_map(|txid| draft.version.id(txid)).collect();
        let leaving = draft.version.with_descendants(&ids);
        draft.remove(&leaving, Removal::Dropped);
        txids.iter().for_each(|txid| drop(self.orphans.remove(txid)));
        self.finish(draft, now, sink).map(drop)
    }

    /// Drops what has waited too long. Call it every minute or so.
    pub fn expire(&mut self, now: u64, sink: &mut dyn Sink) -> Result<(), MempoolError> {
        self.orphans.expire(now.saturating_sub(self.policy.orphan_expiry));
        let mut draft = Draft::new(&self.version);
        eviction::expire(&mut draft, now.saturating_sub(self.policy.expiry));
        self.finish(draft, now, sink).map(drop)
    }

    /// What transactions of a step above this chain are judged with.
    pub(super) fn admission<'a>(
        &'a mut self,
        at: Moment<'a>,
    ) -> Result<Admission<'a>, MempoolError> {
        Ok(Admission {
            next: NextBlock::new(&self.params, at.chain)?,
            coins: CoinCache::new(at.chain),
            policy: &self.policy,
            verifier: self.verifier.as_deref(),
            floor: &mut self.floor,
            orphans: &mut self.orphans,
            now: at.now,
        })
    }

    /// Ends a step. Returns the transactions that the records refused, which are not in it.
    pub(super) fn finish(
        &mut self,
        mut draft: Draft,
        now: u64,
        sink: &mut dyn Sink,
    ) -> Result<HashMap<Txid, RecordError>, MempoolError> {
        let (net, refused) = self.write(&mut draft)?;
        draft.version.min_rate = self.floor.rate(&self.policy, now);
        let moved = draft.version.tip != self.version.tip;
        if moved || !net.added.is_empty() || !net.removed.is_empty() {
            self.version = Arc::new(draft.version);
            sink.publish(&self.version);
        }
        net.events.iter().for_each(|event| sink.event(event));
        self.ledger.unlock(&net.added)?;
        self.ledger.retire(&self.version)?;
        Ok(refused)
    }

    /// Writes the records of a draft. What they refuse leaves the draft.
    pub(super) fn write(
        &mut self,
        draft: &mut Draft,
    ) -> Result<(Net, HashMap<Txid, RecordError>), MempoolError> {
        let net = draft.net();
        let refused = self.ledger.write(&net, &draft.blocks, &draft.version)?;
        if refused.is_empty() {
            return Ok((net, HashMap::new()));
        }
        let ids: Ids = refused.keys().filter_map(|txid| draft.version.id(txid)).collect();
        let leaving = draft.version.with_descendants(&ids);
        let bodies = draft.remove(&leaving, Removal::Invalidated);
        self.ledger.undo(&bodies, draft.version.tip)?;
        Ok((draft.net(), refused))
    }
}

/// Splits a refusal: what is wrong with the transaction is a verdict, anything else ends the step.
pub(super) fn verdict(result: Result<Txid, Refusal>) -> Result<Verdict, MempoolError> {
    match result {
        Ok(txid) => Ok(Ok(txid)),
        Err(Refusal::Reject(reject)) => Ok(Err(reject)),
        Err(Refusal::Failed(error)) => Err(error),
    }
}

/// A verdict after the records had their say.
fn after(verdict: Verdict, refused: &HashMap<Txid, RecordError>) -> Verdict {
    let txid = verdict?;
    match refused.get(&txid) {
        None => Ok(txid),
        Some(error) => Err(Reject::Record { txid, error: error.clone() }),
    }
}

/// Admits one transaction, and what waited for it. An orphan is kept.
fn arrive(
    admission: &mut Admission<'_>,
    draft: &mut Draft,
    tx: Transaction,
    judge: Judge,
) -> Result<Verdict, MempoolError> {
    let terms = Terms { judge, time: admission.now, fee_waived: false };
    let verdict = verdict(admission.admit(draft, &tx, terms))?;
    match verdict {
        Ok(txid) => {
            admission.orphans.remove(&txid);
            adopt(admission, draft, VecDeque::from([txid]))?;
        }
        Err(Reject::Orphan { .. }) => {
            admission.orphans.insert(tx, judge, admission.now, admission.policy);
        }
        Err(_) => {}
    }
    Ok(verdict)
}

/// Tries what waited for these transactions, in their order, and what waited for that.
pub(super) fn adopt(
    admission: &mut Admission<'_>,
    draft: &mut Draft,
    mut arrived: VecDeque<Txid>,
) -> Result<(), MempoolError> {
    while let Some(parent) = arrived.pop_front() {
        for (tx, judge) in admission.orphans.take_children(&parent) {
            let terms = Terms { judge, time: admission.now, fee_waived: false };
            match verdict(admission.admit(draft, &tx, terms))? {
                Ok(txid) => arrived.push_back(txid),
                Err(Reject::Orphan { .. }) => {
                    admission.orphans.insert(tx, judge, admission.now, admission.policy);
                }
                Err(_) => {}
            }
        }
    }
    Ok(())
}

/// Whether these are a child and its parents: each but the last is spent by the last.
fn is_package(txs: &[Transaction]) -> bool {
    let Some((child, parents)) = txs.split_last() else { return false };
    let spent = child.outpoints();
    let is_parent = |tx: &Transaction| spent.iter().any(|outpoint| outpoint.txid == tx.txid());
    txs.len() <= MAX_PACKAGE && parents.iter().all(is_parent)
}

type PackageVerdict = Result<Vec<Verdict>, (usize, Reject)>;

/// Admits a package, or says which transaction spoils it. Those that are here already count as
/// taken and pay for nobody.
fn admit_package(
    admission: &mut Admission<'_>,
    draft: &mut Draft,
    txs: &[Transaction],
) -> Result<PackageVerdict, MempoolError> {
    let mut sum = Sum::default();
    let mut verdicts = Vec::with_capacity(txs.len());
    let now = admission.now;
    let needed_rate = admission.floor.rate(admission.policy, now);
    for (place, tx) in txs.iter().enumerate() {
        let terms = Terms { judge: Judge::Ours, time: now, fee_waived: true };
        match verdict(admission.admit(draft, tx, terms))? {
            Ok(txid) => {
                sum.add(&draft.version.entry(&txid).expect("admitted just now").body.sum());
                verdicts.push(Ok(txid));
            }
            Err(Reject::Here(txid)) => verdicts.push(Err(Reject::Here(txid))),
            Err(reject) => return Ok(Err((place, reject))),
        }
    }
    let child = txs.last().map_or(Txid::ZERO, Transaction::txid);
    let own = draft.version.entry(&child).map_or(Sum::default(), |entry| entry.body.sum());
    // The child pays for its parents, never they for it.
    for paying in [sum, own] {
        let needed = needed_rate.fee(paying.vsize);
        if paying.fees < needed {
            let reject = Reject::Fee { txid: child, paid: paying.fees, needed };
            return Ok(Err((txs.len().saturating_sub(1), reject)));
        }
    }
    admission.floor.make_room(draft, admission.policy, now);
    let lost = txs.iter().position(|tx| !draft.version.contains(&tx.txid()));
    Ok(match lost {
        Some(place) => Err((place, Reject::Full(child))),
        None => Ok(verdicts),
    })
}

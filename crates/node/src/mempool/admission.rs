//! Whether one transaction may come in, and its place in the draft.
//!
//! ```text
//! alone ─► coins ─► spends ─► policy ─► scripts ─► replace, insert, make room
//!            │ unknown: orphan          (Judge::Ours)
//! ```
//!
//! What is cheap comes first: scripts are verified only for what would be taken otherwise.

use std::collections::HashMap;
use std::sync::Arc;

use varve_consensus::{OwnedCoin, SpendingTx, WITNESS_SCALE};
use varve_records::Transaction;
use varve_types::{Amount, Format, Outpoint, TxOut, Txid, unspendable};

use super::chain::{Chain, ChainError};
use super::draft::Draft;
use super::entry::{Body, CoinAt};
use super::event::{Event, Removal};
use super::eviction::Floor;
use super::orphanage::Orphanage;
use super::policy::{Candidate, Judge, Policy};
use super::reject::{MempoolError, Refusal, Reject, ReplaceError};
use super::rules::{LooseVerifier, NextBlock};
use super::version::{Ids, Version};

/// Coins that were asked for in a step, each once.
pub(super) struct CoinCache<'a> {
    chain: &'a dyn Chain,
    known: HashMap<Outpoint, Option<OwnedCoin>>,
}

impl<'a> CoinCache<'a> {
    pub(super) fn new(chain: &'a dyn Chain) -> Self {
        Self { chain, known: HashMap::new() }
    }

    /// Asks for the coins that are not known, in one call.
    pub(super) fn fetch(
        &mut self,
        outpoints: impl IntoIterator<Item = Outpoint>,
    ) -> Result<(), ChainError> {
        let mut new: Vec<Outpoint> = outpoints.into_iter().collect();
        new.retain(|outpoint| !self.known.contains_key(outpoint));
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        let found = self.chain.coins(&new)?;
        assert_eq!(found.len(), new.len(), "a chain answers every outpoint");
        self.known.extend(new.into_iter().zip(found));
        Ok(())
    }

    fn get(&self, outpoint: &Outpoint) -> Option<&OwnedCoin> {
        self.known.get(outpoint).and_then(Option::as_ref)
    }
}

/// What a step judges transactions with.
pub(super) struct Admission<'a> {
    pub(super) next: NextBlock<'a>,
    pub(super) coins: CoinCache<'a>,
    pub(super) policy: &'a Policy,
    pub(super) verifier: Option<&'a dyn LooseVerifier>,
    pub(super) floor: &'a mut Floor,
    pub(super) orphans: &'a mut Orphanage,
    pub(super) now: u64,
}

/// How one transaction is judged.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) judge: Judge,
    /// When it arrived.
    pub(super) time: u64,
    /// Whether its package pays for it.
    pub(super) fee_waived: bool,
}

/// An output that is spent, wherever it is.
struct Found {
    value: Amount,
    script: Vec<u8>,
    at: Option<CoinAt>,
}

impl Admission<'_> {
    /// Takes a transaction into the draft.
    pub(super) fn admit(
        &mut self,
        draft: &mut Draft,
        tx: &Transaction,
        terms: Terms,
    ) -> Result<Txid, Refusal> {
        let txid = tx.txid();
        if draft.version.contains(&txid) {
            return Err(Reject::Here(txid).into());
        }
        self.next.check_alone(txid, &tx.view())?;
        let found = self.find_spent(&draft.version, tx)?;
        let spent: Vec<TxOut<'_>> =
            found.iter().map(|found| TxOut { value: found.value, script: &found.script }).collect();
        let body = self.body(tx, &spent, found.iter().map(|found| found.at).collect(), terms)?;
        let parents = draft.version.parents(&body);
        let conflicts = conflicts(&draft.version, tx);
        let replaced = draft.version.with_descendants(&conflicts);
        let new = Candidate {
            version: &draft.version,
            body: &body,
            parents: &parents,
            conflicts: &conflicts,
            replaced: &replaced,
        };
        if let Err(error) = self.judge(&new, terms) {
            if let Reject::Replace { holder, outpoint, .. } = &error {
                let (holder, outpoint) = (*holder, *outpoint);
                draft.note(Event::DoubleSpend { outpoint, holder, refused: txid });
            }
            return Err(error.into());
        }
        if terms.judge == Judge::Ours
            && let Some(verifier) = self.verifier
        {
            let tx = SpendingTx { tx: &tx.view(), spent: &spent };
            verifier.verify(&tx, self.next.flags()).map_err(|(vin, error)| Reject::Script {
                txid,
                vin,
                error,
            })?;
        }
        self.place(draft, body, &replaced, terms)
    }

    /// The rules that are not consensus.
    fn judge(&self, new: &Candidate<'_>, terms: Terms) -> Result<(), Reject> {
        let txid = new.body.txid();
        let in_the_way = |error| self.replace_error(new, error);
        let mut line = new.version.ancestors(new.parents);
        line.extend(new.parents);
        if let Some(id) = line.intersection(new.replaced).next() {
            return Err(in_the_way((*id, ReplaceError::BuildsOnIt)));
        }
        match terms.judge {
            Judge::Node => return Ok(()),
            Judge::Before => {
                // What was accepted before gives way to what came in since.
                let first = new.conflicts.first();
                return first.map_or(Ok(()), |id| Err(in_the_way((*id, ReplaceError::Rate))));
            }
            Judge::Ours | Judge::Spends => {}
        }
        self.policy.check_size(new.body)?;
        let needed = self.floor.rate(self.policy, self.now).fee(new.body.vsize());
        if !terms.fee_waived && new.body.fee < needed {
            return Err(Reject::Fee { txid, paid: new.body.fee, needed });
        }
        self.policy.check_replacement(new).map_err(in_the_way)?;
        self.policy.check_relatives(new)
    }

    fn replace_error(
        &self,
        new: &Candidate<'_>,
        (id, error): (super::entry::EntryId, ReplaceError),
    ) -> Reject {
        let spends = new.body.tx.outpoints().into_iter();
        let mut taken = spends.filter(|outpoint| new.version.spends.contains(outpoint));
        let outpoint = taken.next().unwrap_or(Outpoint::NULL);
        let holder = new.version.at(id).txid();
        Reject::Replace { txid: new.body.txid(), holder, outpoint, error }
    }

    /// Puts it into the draft in place of what it replaces, and makes room.
    fn place(
        &mut self,
        draft: &mut Draft,
        body: Body,
        replaced: &Ids,
        terms: Terms,
    ) -> Result<Txid, Refusal> {
        let txid = body.txid();
        let mark = draft.mark();
        draft.remove(replaced, Removal::Replaced { by: txid });
        draft.insert(Arc::new(body));
        // A package makes room when all of it is here, a reorganisation at its end.
        if terms.judge != Judge::Before && !terms.fee_waived {
            self.floor.make_room(draft, self.policy, self.now);
            if !draft.version.contains(&txid) {
                draft.roll_back(mark);
                return Err(Reject::Full(txid).into());
            }
        }
        Ok(txid)
    }

    /// The outputs that a transaction spends, in the order of its inputs.
    fn find_spent(&mut self, version: &Version, tx: &Transaction) -> Result<Vec<Found>, Refusal> {
        let txid = tx.txid();
        let outpoints = tx.outpoints();
        let confirmed = outpoints.iter().filter(|outpoint| !version.contains(&outpoint.txid));
        self.coins.fetch(confirmed.copied()).map_err(MempoolError::from)?;
        let mut found = Vec::with_capacity(outpoints.len());
        for outpoint in outpoints {
            if let Some(parent) = version.entry(&outpoint.txid) {
                let output = parent.body.tx.view().outputs().nth(outpoint.vout as usize);
                let (network, height) = (self.next.params.network, self.next.height);
                let output = output.filter(|out| !unspendable(network, height, out.script));
                let output = output.ok_or(Reject::NoSuchOutput { txid, outpoint })?;
                let (value, script) = (output.value, output.script.to_vec());
                found.push(Found { value, script, at: None });
            } else if let Some(coin) = self.coins.get(&outpoint) {
                let at = Some(CoinAt { height: coin.height, coinbase: coin.coinbase });
                found.push(Found { value: coin.value, script: coin.script.clone(), at });
            } else {
                return Err(self.missing(tx, outpoint)?.into());
            }
        }
        Ok(found)
    }

    /// An input is unknown: the transaction is confirmed itself, or its parent did not come yet.
    fn missing(&mut self, tx: &Transaction, missing: Outpoint) -> Result<Reject, MempoolError> {
        let txid = tx.txid();
        let outputs = u32::try_from(tx.view().outputs().len()).unwrap_or(u32::MAX);
        let own: Vec<Outpoint> = (0..outputs).map(|vout| Outpoint::new(txid, vout)).collect();
        self.coins.fetch(own.iter().copied())?;
        let confirmed = own.iter().any(|outpoint| self.coins.get(outpoint).is_some());
        Ok(if confirmed { Reject::Confirmed(txid) } else { Reject::Orphan { txid, missing } })
    }

    fn body(
        &self,
        tx: &Transaction,
        spent: &[TxOut<'_>],
        coins: Vec<Option<CoinAt>>,
        terms: Terms,
    ) -> Result<Body, Refusal> {
        let view = tx.view();
        let spending = SpendingTx { tx: &view, spent };
        let sums = self.next.check_spends(tx.txid(), &spending, &coins)?;
        let size = view.bytes().len() as u64;
        Ok(Body {
            tx: tx.extend(spent).expect("one spent output an input"),
            size,
            weight: (WITNESS_SCALE - 1) * view.base_len() as u64 + size,
            fee: sums.fee,
            time: terms.time,
            timed: NextBlock::is_timed(&view, &coins),
            coins,
            sigop_cost: sums.sigop_cost,
        })
    }
}

/// The unconfirmed transactions that spend what this one spends.
fn conflicts(version: &Version, tx: &Transaction) -> Ids {
    let spenders = tx
        .outpoints()
        .into_iter()
        .filter_map(|outpoint| version.spends.get(&outpoint).map(|spender| spender.id));
    spenders.collect()
}

/// A transaction in the form that blocks have. What an extended one claims to spend is dropped: the
/// chain decides.
pub(super) fn decode(bytes: bytes::Bytes, format: Format) -> Result<Transaction, Reject> {
    let tx = Transaction::parse(bytes, format)?;
    if tx.format() != Format::Extended && !tx.is_extended() {
        return Ok(tx);
    }
    let plain = match tx.format() {
        Format::Extended => tx.view().to_legacy(),
        Format::Legacy | Format::Segwit => tx.view().bytes().to_vec(),
    };
    Ok(Transaction::parse(plain.into(), format)?)
}

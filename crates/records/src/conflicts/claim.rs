//! What winners claim: the outputs they spend, by their own account.
//!
//! The account is the extended form of the transaction, so it is read from the record or its blob.
//! A few records are read at once and only the spends of each are kept: 68 bytes an input.

use std::collections::BTreeSet;

use varve_types::{Height, Txid};

use super::{ConflictError, Result};
use crate::engine::SlotView;
use crate::error::{RecordError, SlotError};
use crate::fields::Fields;
use crate::freeze_window::Tier;
use crate::operation::{Operation, Spend, SpendPart, SpendRules, Unit};
use crate::record::{Body, Record};
use crate::spending_data::{PLACEHOLDER, SpendingData};
use crate::store::{Store, StoreError};

/// Transactions that are in memory at once, unless they lie in blobs, which come one by one.
const TOGETHER: usize = 16;

/// What one winner claims.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) txid: Txid,
    pub(super) is_conflicting: bool,
    part: SpendPart,
}

impl Claim {
    /// The claims of transactions that must have records.
    pub(super) fn read(store: &Store, winners: &[Txid], height: Height) -> Result<Vec<Self>> {
        if winners.contains(&PLACEHOLDER) {
            return Err(ConflictError::Placeholder);
        }
        let fields = Fields::TX.union(Fields::INPOINTS);
        let mut claims = Vec::with_capacity(winners.len());
        for some in winners.chunks(TOGETHER) {
            let records = store.engine().read(some, fields).map_err(StoreError::from)?;
            for (txid, record) in some.iter().zip(records) {
                let missing = RecordError::TxNotFound { txid: *txid };
                let record = record.ok_or(missing).map_err(StoreError::from)?;
                claims.push(Self::of(store, record, height)?);
            }
        }
        Ok(claims)
    }

    fn of(store: &Store, record: Record, height: Height) -> Result<Self, StoreError> {
        let (txid, is_conflicting) = (record.txid, record.conflicting);
        let rules = SpendRules {
            ignore_conflicting: true,
            ignore_locked: true,
            tier: Tier::Consensus,
            ..SpendRules::at(height)
        };
        let body = match record.body {
            _ if record.inputs.is_empty() => None,
            Some(Body::External) => store.get(txid, Fields::TX)?.body,
            body => body,
        };
        let part = match body {
            Some(Body::Transaction(tx)) => SpendPart::new(&tx, rules)?,
            _ => SpendPart { spends: Vec::new(), rules },
        };
        Ok(Self { txid, is_conflicting, part })
    }

    pub(super) fn spends(&self) -> &[Spend] {
        &self.part.spends
    }

    /// The spend of the winner.
    pub(super) fn into_operation(self) -> Operation {
        Operation::from(Unit { txid: self.txid, spend: Some(self.part), create: None })
    }
}

/// Refuses claims that a spend would refuse, before anything is changed. That an output is spent is
/// no fault: its spender is about to lose.
pub(super) fn check(store: &Store, claims: &[Claim], height: Height) -> Result<()> {
    let mut taken = BTreeSet::new();
    for claim in claims {
        let outpoints: Vec<_> = claim.spends().iter().map(|spend| spend.outpoint).collect();
        let slots = store.engine().slots(&outpoints).map_err(StoreError::from)?;
        for (spend, view) in claim.spends().iter().zip(slots) {
            let outpoint = spend.outpoint;
            if !taken.insert(outpoint) {
                return Err(ConflictError::WinnersConflict(outpoint));
            }
            let fault = |error| match error {
                SlotError::Frozen => ConflictError::Frozen { outpoint },
                SlotError::UtxoNotFound => ConflictError::NoSuchOutput(outpoint),
                error => ConflictError::Unspendable { txid: claim.txid, outpoint, error },
            };
            let by = SpendingData::new(claim.txid, spend.vin);
            // The spender of an output whose parent is gone is unknown: it may be confirmed.
            let view = view.ok_or(SlotError::TxNotFound).map_err(fault)?;
            judge(spend, by, &view, height).map_err(fault)?;
        }
    }
    Ok(())
}

/// The checks of a spend, in the order of the contract, without those that a winner ignores.
fn judge(
    spend: &Spend,
    by: SpendingData,
    view: &SlotView,
    height: Height,
) -> Result<(), SlotError> {
    if view.creating {
        return Err(SlotError::Creating);
    }
    if let Some(spendable) = view.spending_height.filter(|from| *from > height) {
        return Err(SlotError::CoinbaseImmature { spendable });
    }
    let slot = view.slot.ok_or(SlotError::UtxoNotFound)?;
    if slot.hash != spend.hash {
        return Err(SlotError::HashMismatch);
    }
    if let Some(spendable) = view.spendable_in.filter(|from| *from > height) {
        return Err(SlotError::FrozenUntil { spendable });
    }
    // One who has the output already meets no window again.
    let window = view.window.filter(|_| slot.spending != Some(by));
    if slot.is_frozen() || window.is_some_and(|w| w.forbids(Tier::Consensus, height)) {
        return Err(SlotError::Frozen);
    }
    Ok(())
}

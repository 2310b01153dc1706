//! The sums of a block, accumulated spend by spend.
//!
//! ```text
//! open a transaction ─► add its inputs, one by one ─► close it: fee, operations
//!          ▲                                             │
//!          └────────────── the next transaction ◄────────┘
//! ```
//!
//! A view must report every input of the block once and in order. If it did not, a rule would
//! silently not be applied; so the tally counts, and panics if a view violates this, which is a
//! bug.

use varve_types::{Amount, Tx, Txid, Witnesses};

use super::{SpendError, Spending};
use crate::ancestors::{Ancestors, median_time_past};
use crate::block::sigop_limit;
use crate::block_at::BlockAt;
use crate::lock_time::{has_relative, is_relatively_final};
use crate::params::Params;
use crate::script::ScriptFlags;
use crate::sigops;
use crate::transaction::BSV_MAX_TX_SIGOPS;
use crate::view::Spend;
use crate::weight::WITNESS_SCALE;

const IN_ORDER: &str = "a view gives every spend of a block once, in block order";

pub(super) struct Tally<'a, A: ?Sized> {
    params: &'a Params,
    block: &'a BlockAt<'a>,
    ancestors: &'a A,
    flags: ScriptFlags,
    sigop_limit: Option<u64>,
    open: Open<'a>,
    spending: Spending,
}

/// The transaction whose inputs are being added.
struct Open<'a> {
    index: usize,
    txid: Txid,
    tx: &'a Tx<'a>,
    witnesses: Witnesses<'a>,
    seen: usize,
    value: Amount,
    /// Its legacy signature operations.
    sigops: u64,
    /// The cost of the operations of the transactions before.
    sigops_before: u64,
    /// The first input whose relative lock time has not passed.
    locked: Option<usize>,
}

impl<'a> Open<'a> {
    fn new(block: &'a BlockAt<'a>, index: usize, sigops_before: u64) -> Option<Self> {
        let (txid, tx) = (*block.txids().get(index)?, block.block().txs().get(index)?);
        let sigops = *block.legacy_sigops().get(index)?;
        let (witnesses, value, locked) = (tx.witnesses(), Amount::ZERO, None);
        Some(Self { index, txid, tx, witnesses, seen: 0, value, sigops, sigops_before, locked })
    }
}

impl<'a, A: Ancestors + ?Sized> Tally<'a, A> {
    pub(super) fn new(
        params: &'a Params,
        block: &'a BlockAt<'a>,
        ancestors: &'a A,
    ) -> Result<Self, SpendError> {
        let open = Open::new(block, 0, 0).expect("an empty block is not tallied");
        let mut tally = Self {
            params,
            block,
            ancestors,
            flags: sigop_flags(params, block, ancestors)?,
            sigop_limit: sigop_limit(params, block),
            open,
            spending: Spending { fees: Amount::ZERO, sigop_cost: 0, inputs: 0 },
        };
        tally.add_sigops(WITNESS_SCALE * tally.open.sigops)?;
        Ok(tally)
    }

    /// Adds the next spend.
    pub(super) fn add(&mut self, spend: &Spend<'_>) -> Result<(), SpendError> {
        while self.open.index < spend.tx {
            self.next_transaction()?;
        }
        assert_eq!((spend.tx, spend.vin), (self.open.index, self.open.seen), "{IN_ORDER}");
        self.check_maturity(spend)?;
        let open = &mut self.open;
        open.seen += 1;
        let sum = open.value.checked_add(spend.coin.value).filter(|sum| sum.is_money());
        open.value = sum.ok_or(SpendError::InputsTooLarge { txid: open.txid })?;
        self.check_relative_lock(spend)?;
        let witness = self.open.witnesses.next().expect(IN_ORDER);
        let script = spend.coin.script;
        self.spending.inputs += 1;
        // Compared with the limit when the transaction is closed, as Core does.
        self.spending.sigop_cost +=
            sigops::input_cost(spend.input.script, &witness, script, self.flags);
        Ok(())
    }

    /// Closes the last transaction and checks the whole.
    pub(super) fn finish(mut self) -> Result<Spending, SpendError> {
        while self.open.index + 1 < self.block.txids().len() {
            self.next_transaction()?;
        }
        self.close()?;
        let subsidy = self.params.network.subsidy(self.block.height());
        let allowed = self.spending.fees.checked_add(subsidy).ok_or(SpendError::FeesTooLarge)?;
        let coinbase = self.block.block().txs().first().map_or(Some(Amount::ZERO), output_sum);
        let taken = coinbase.unwrap_or(Amount::from_sat(u64::MAX));
        if taken > allowed {
            return Err(SpendError::CoinbaseTooLarge { taken, allowed });
        }
        Ok(self.spending)
    }

    fn next_transaction(&mut self) -> Result<(), SpendError> {
        self.close()?;
        let next = self.open.index + 1;
        self.open = Open::new(self.block, next, self.spending.sigop_cost).expect(IN_ORDER);
        self.add_sigops(WITNESS_SCALE * self.open.sigops)
    }

    fn close(&mut self) -> Result<(), SpendError> {
        let open = &self.open;
        if open.tx.is_coinbase() {
            return Ok(());
        }
        assert_eq!(open.seen, open.tx.inputs().len(), "{IN_ORDER}");
        let outputs = output_sum(open.tx).unwrap_or(Amount::from_sat(u64::MAX));
        let fee = open.value.checked_sub(outputs);
        let fee =
            fee.ok_or(SpendError::Overspent { txid: open.txid, inputs: open.value, outputs })?;
        let fees = self.spending.fees.checked_add(fee).filter(|fees| fees.is_money());
        self.spending.fees = fees.ok_or(SpendError::FeesTooLarge)?;
        if let Some(vin) = open.locked {
            return Err(SpendError::RelativelyLocked { txid: open.txid, vin });
        }
        // Where BSV limits the operations of a block, it also limits those of a transaction.
        let count = (self.spending.sigop_cost - open.sigops_before) / WITNESS_SCALE;
        let limited = self.params.network.is_bsv() && self.sigop_limit.is_some();
        if limited && count > BSV_MAX_TX_SIGOPS {
            return Err(SpendError::TransactionSigops { txid: open.txid, count });
        }
        self.add_sigops(0)
    }

    fn check_maturity(&self, spend: &Spend<'_>) -> Result<(), SpendError> {
        let depth = self.block.height().since(spend.coin.height).unwrap_or(0);
        let maturity = self.params.coinbase_maturity;
        if spend.coin.coinbase && depth < maturity {
            let outpoint = spend.input.outpoint;
            let spender = self.open.txid;
            return Err(SpendError::ImmatureCoinbase { spender, outpoint, depth, maturity });
        }
        Ok(())
    }

    /// Records an input that is locked. Core checks amounts first, so the verdict is delayed.
    fn check_relative_lock(&mut self, spend: &Spend<'_>) -> Result<(), SpendError> {
        let height = self.block.height();
        let applies = self.params.has_relative_lock_times(height) && has_relative(self.open.tx);
        if applies && self.open.locked.is_none() {
            let sequence = spend.input.sequence;
            let funded = spend.coin.height;
            let passed = is_relatively_final(sequence, funded, height, self.ancestors)?;
            self.open.locked = (!passed).then_some(spend.vin);
        }
        Ok(())
    }

    fn add_sigops(&mut self, cost: u64) -> Result<(), SpendError> {
        self.spending.sigop_cost += cost;
        let cost = self.spending.sigop_cost;
        match self.sigop_limit {
            Some(limit) if cost > limit => Err(SpendError::Sigops { cost, limit }),
            _ => Ok(()),
        }
    }
}

/// The sum of a transaction's outputs, unless it overflows.
fn output_sum(tx: &Tx<'_>) -> Option<Amount> {
    tx.outputs().try_fold(Amount::ZERO, |sum, output| sum.checked_add(output.value))
}

/// Which operations of spent scripts count.
fn sigop_flags<A: Ancestors + ?Sized>(
    params: &Params,
    block: &BlockAt<'_>,
    ancestors: &A,
) -> Result<ScriptFlags, SpendError> {
    if !params.network.is_bsv() {
        return Ok(ScriptFlags::of(params, block));
    }
    // BSV still enables P2SH by time, and counts nothing from its Genesis upgrade on.
    const P2SH_TIME: u32 = 1_333_234_914;
    let below = block.height().checked_sub(1).unwrap_or_default();
    let p2sh = median_time_past(ancestors, below)? >= P2SH_TIME;
    Ok(if p2sh { ScriptFlags::P2SH } else { ScriptFlags::NONE })
}

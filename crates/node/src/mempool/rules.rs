//! The rules of consensus for a transaction that is in no block yet: could the next block hold it?
//!
//! 1. *Alone*: form, amounts, size; not a coinbase; final at the next height and the median time of
//!    the tip.
//! 2. *With its coins*: coinbases mature, inputs worth as much as outputs, relative lock times over
//!    (BIP68; an unconfirmed parent counts as if it were in the next block), signature operations
//!    within the limit of a block.
//! 3. *Scripts*, with the flags of the next height.
//!
//! The names of the errors are those of the same rules for blocks.

use varve_consensus::lock_time::{has_relative, is_final, is_relatively_final};
use varve_consensus::sigops::{self, MAX_BLOCK_SIGOP_COST};
use varve_consensus::{
    Params, PreparedTx, ScriptFlags, ScriptVerifier, SpendError, SpendingTx, VerifyError,
    WITNESS_SCALE, check_transaction, median_time_past,
};
use varve_types::{Amount, Height, Tx, TxOut, Txid};

use super::chain::Chain;
use super::entry::CoinAt;
use super::reject::{MempoolError, Refusal, Reject};

/// Executes the scripts of one transaction.
pub trait LooseVerifier: Send {
    /// Checks all inputs. An error names the first that fails.
    fn verify(&self, tx: &SpendingTx<'_>, flags: ScriptFlags) -> Result<(), (usize, VerifyError)>;
}

impl<S: ScriptVerifier + Send> LooseVerifier for S {
    fn verify(&self, tx: &SpendingTx<'_>, flags: ScriptFlags) -> Result<(), (usize, VerifyError)> {
        let prepared = self.prepare(tx).map_err(|error| (0, error))?;
        (0..tx.spent.len())
            .try_for_each(|vin| prepared.verify(vin, flags).map_err(|error| (vin, error)))
    }
}

/// The place that a transaction would have: the block above the tip.
#[derive(Clone, Copy)]
pub(super) struct NextBlock<'a> {
    pub(super) params: &'a Params,
    pub(super) chain: &'a dyn Chain,
    pub(super) height: Height,
    pub(super) median_time: u32,
}

/// What a transaction comes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spending {
    pub(super) fee: Amount,
    pub(super) sigop_cost: u64,
}

impl<'a> NextBlock<'a> {
    pub(super) fn new(params: &'a Params, chain: &'a dyn Chain) -> Result<Self, MempoolError> {
        let tip = chain.tip().height;
        let height = tip.checked_add(1).unwrap_or(tip);
        Ok(Self { params, chain, height, median_time: median_time_past(chain, tip)? })
    }

    /// The flags of scripts in the next block. No block that is still to come is an exception.
    pub(super) fn flags(&self) -> ScriptFlags {
        ScriptFlags::at(self.params, self.height)
    }

    /// Rules that need no other transaction.
    pub(super) fn check_alone(&self, txid: Txid, tx: &Tx<'_>) -> Result<(), Reject> {
        if tx.is_coinbase() {
            return Err(Reject::Coinbase(txid));
        }
        check_transaction(self.params, self.height, tx)
            .map_err(|error| Reject::Transaction { txid, error })?;
        if !is_final(tx, self.height, self.median_time) {
            return Err(Reject::NotFinal(txid));
        }
        Ok(())
    }

    /// Rules that need the coins. `coins` says where each was confirmed.
    pub(super) fn check_spends(
        &self,
        txid: Txid,
        tx: &SpendingTx<'_>,
        coins: &[Option<CoinAt>],
    ) -> Result<Spending, Refusal> {
        let mut inputs = Amount::ZERO;
        let relative = self.params.has_relative_lock_times(self.height) && has_relative(tx.tx);
        let mut locked = None;
        for (vin, (input, (spent, coin))) in
            tx.tx.inputs().zip(tx.spent.iter().zip(coins)).enumerate()
        {
            let at = coin.map_or(self.height, |coin| coin.height);
            let depth = self.height.since(at).unwrap_or(0);
            let maturity = self.params.coinbase_maturity;
            if coin.is_some_and(|coin| coin.coinbase) && depth < maturity {
                let (spender, outpoint) = (txid, input.outpoint);
                let error = SpendError::ImmatureCoinbase { spender, outpoint, depth, maturity };
                return Err(error.into());
            }
            let sum = inputs.checked_add(spent.value).filter(|sum| sum.is_money());
            inputs = sum.ok_or(SpendError::InputsTooLarge { txid })?;
            let passed = !relative
                || is_relatively_final(input.sequence, at, self.height, self.chain)
                    .map_err(MempoolError::from)?;
            locked = locked.or((!passed).then_some(vin));
        }
        let sum = |sum: Amount, output: TxOut<'_>| sum.checked_add(output.value);
        let outputs = tx.tx.outputs().try_fold(Amount::ZERO, sum);
        let outputs = outputs.unwrap_or(Amount::from_sat(u64::MAX));
        let fee = inputs.checked_sub(outputs);
        let fee = fee.ok_or(SpendError::Overspent { txid, inputs, outputs })?;
        if let Some(vin) = locked {
            return Err(SpendError::RelativelyLocked { txid, vin }.into());
        }
        Ok(Spending { fee, sigop_cost: self.sigop_cost(tx)? })
    }

    /// Whether the height or time of the tip can decide about a transaction.
    pub(super) fn is_timed(tx: &Tx<'_>, coins: &[Option<CoinAt>]) -> bool {
        let waits = tx.lock_time() != 0 && tx.inputs().any(|input| input.sequence != FINAL);
        waits || has_relative_lock(tx) || coins.iter().flatten().any(|coin| coin.coinbase)
    }

    /// Whether a timed transaction may be invalid above this tip.
    pub(super) fn is_unsure(&self, tx: &Tx<'_>, coins: &[Option<CoinAt>]) -> bool {
        let immature = |coin: &CoinAt| {
            let depth = self.height.since(coin.height).unwrap_or(0);
            coin.coinbase && depth < self.params.coinbase_maturity
        };
        !is_final(tx, self.height, self.median_time)
            || has_relative_lock(tx)
            || coins.iter().flatten().any(immature)
    }

    fn sigop_cost(&self, tx: &SpendingTx<'_>) -> Result<u64, SpendError> {
        let flags = self.flags();
        let mut cost = WITNESS_SCALE * sigops::legacy(tx.tx);
        for ((input, witness), spent) in tx.tx.inputs().zip(tx.tx.witnesses()).zip(tx.spent) {
            cost += sigops::input_cost(input.script, &witness, spent.script, flags);
        }
        // BSV limits operations by the size of the block, and not at all since its Genesis upgrade.
        if !self.params.network.is_bsv() && cost > MAX_BLOCK_SIGOP_COST {
            return Err(SpendError::Sigops { cost, limit: MAX_BLOCK_SIGOP_COST });
        }
        Ok(cost)
    }
}

/// The sequence of an input that ignores all lock times.
const FINAL: u32 = u32::MAX;
/// The bit of a sequence that switches its relative lock time off.
const RELATIVE_OFF: u32 = 1 << 31;

fn has_relative_lock(tx: &Tx<'_>) -> bool {
    has_relative(tx) && tx.inputs().any(|input| input.sequence & RELATIVE_OFF == 0)
}

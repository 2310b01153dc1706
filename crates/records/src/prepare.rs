//! Turns a transaction into the unit that an engine applies.
//!
//! The expensive work that depends on the transaction alone happens here, before any lock: output
//! hashes, fee, sizes. An engine then only looks up and writes.
//!
//! 1. Spends need the outputs that they spend: the transaction is in extended form, or they are
//!    given apart. The height is above 0.
//! 2. A record needs outputs. It needs extended inputs too, unless it is a coinbase or has no
//!    inputs at all (an outputs-only import).
//! 3. The fee is what the inputs are worth beyond the outputs; 0 without inputs. Whether outputs
//!    may be worth more is a rule of the caller; here the fee is 0 then.
//! 4. Outputs that can never be spent get no slot, but keep their number.

use std::sync::Arc;

use bytes::Bytes;
use varve_types::{Amount, Height, Outpoint, Tx, TxOut, Txid};

use crate::error::RecordError;
use crate::extended::Transaction;
use crate::operation::{NewRecord, Operation, Spend, SpendPart, SpendRules, Unit};
use crate::record::{BlockRef, Body};
use crate::settings::Settings;
use crate::slot::is_stored;
use crate::utxo_hash::UtxoHash;
use crate::utxo_wrapper::UtxoWrapper;

/// The largest output number of an outputs-only import. It bounds the memory that a crafted number
/// can claim: a real transaction with that many outputs has at least 150 MB.
pub(crate) const MAX_IMPORTED_INDEX: u32 = (1 << 24) - 1;

/// What the caller knows about a new record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// The height of the block that the transaction is in or may be in.
    pub height: Height,
    /// When it is created, in milliseconds of the caller's clock.
    pub created_at: u64,
    /// The blocks that have it.
    pub blocks: Vec<BlockRef>,
    /// Whether it is a coinbase, when the transaction does not say.
    pub is_coinbase: Option<bool>,
    /// Every slot begins frozen.
    pub frozen: bool,
    /// It is the loser of a double spend.
    pub conflicting: bool,
    /// Its outputs cannot be spent before it is unlocked or mined.
    pub locked: bool,
}

impl Unit {
    /// Spends the inputs of a transaction.
    pub fn spend(tx: &Transaction, rules: SpendRules) -> Result<Self, RecordError> {
        Ok(Self { txid: tx.txid(), spend: Some(SpendPart::new(tx, rules)?), create: None })
    }

    /// Creates the record of a transaction.
    pub fn create(
        tx: &Transaction,
        options: &CreateOptions,
        settings: &Settings,
    ) -> Result<Self, RecordError> {
        let create = NewRecord::new(tx, options, settings)?;
        Ok(Self { txid: tx.txid(), spend: None, create: Some(create) })
    }

    /// Spends the inputs of a transaction and creates its record.
    pub fn spend_and_create(
        tx: &Transaction,
        rules: SpendRules,
        options: &CreateOptions,
        settings: &Settings,
    ) -> Result<Self, RecordError> {
        let spend = Some(SpendPart::new(tx, rules)?);
        Ok(Self { spend, ..Self::create(tx, options, settings)? })
    }
}

impl From<Unit> for Operation {
    fn from(unit: Unit) -> Self {
        Self::Unit(Box::new(unit))
    }
}

impl SpendPart {
    /// The spends of a transaction in extended form.
    pub fn new(tx: &Transaction, rules: SpendRules) -> Result<Self, RecordError> {
        let refuse = |reason| RecordError::Processing { txid: tx.txid(), reason };
        if rules.height == Height::GENESIS {
            return Err(refuse("the height must be above 0"));
        }
        let mut spends = Vec::new();
        for (vin, input) in (0_u32..).zip(tx.inputs()) {
            let spent = input.spent.ok_or_else(|| refuse("the locking script is not known"))?;
            let hash = UtxoHash::of(&input.outpoint, &spent);
            spends.push(Spend { outpoint: input.outpoint, hash, vin });
        }
        Ok(Self { spends, rules })
    }
}

impl NewRecord {
    /// The record of a transaction, kept in the record itself.
    pub fn new(
        tx: &Transaction,
        options: &CreateOptions,
        settings: &Settings,
    ) -> Result<Self, RecordError> {
        let refuse = |reason| RecordError::Processing { txid: tx.txid(), reason };
        let view = tx.view();
        let is_coinbase = options.is_coinbase.unwrap_or_else(|| view.is_coinbase());
        if view.outputs().len() == 0 {
            return Err(refuse("the transaction has no outputs"));
        }
        if !tx.is_extended() && !is_coinbase && view.inputs().len() > 0 {
            return Err(refuse("the transaction is not extended"));
        }
        let mut record = Self::empty(options, settings, is_coinbase);
        record.fee = if is_coinbase { Amount::ZERO } else { fee(tx, &view) };
        record.version = view.version();
        record.lock_time = view.lock_time();
        record.size = tx.size();
        record.extended_size = tx.extended_size();
        record.body = Body::Transaction(tx.clone());
        record.inputs = tx.outpoints();
        let outputs = (0_u32..).zip(view.outputs());
        let slots = outputs.map(|(vout, output)| slot(tx.txid(), vout, &output));
        record.utxos = Arc::new(slots.collect());
        Ok(record)
    }

    /// The record of a transaction of which only outputs are known, given as the bytes of a
    /// [`UtxoWrapper`]. Whether it is a coinbase is in the bytes.
    pub fn outputs_only(
        wrapper: Bytes,
        options: &CreateOptions,
        settings: &Settings,
    ) -> Result<(Txid, Self), RecordError> {
        let parsed = UtxoWrapper::parse(&wrapper).map_err(|_| RecordError::Processing {
            txid: Txid::ZERO,
            reason: "the outputs do not decode",
        })?;
        let txid = parsed.txid;
        let refuse = |reason| RecordError::Processing { txid, reason };
        let last = parsed.outputs().map(|output| output.index).max();
        let last = last.ok_or_else(|| refuse("the transaction has no outputs"))?;
        if last > MAX_IMPORTED_INDEX {
            return Err(refuse("an output number beyond those that can be imported"));
        }
        let is_coinbase = options.is_coinbase.unwrap_or(parsed.coinbase);
        let mut record = Self::empty(options, settings, is_coinbase);
        let mut utxos = vec![None; last as usize + 1];
        for wrapped in parsed.outputs() {
            let place = utxos.get_mut(wrapped.index as usize).expect("at most the last");
            *place = slot(txid, wrapped.index, &wrapped.output);
        }
        record.utxos = Arc::new(utxos);
        record.size = wrapper.len() as u64;
        record.extended_size = record.size;
        record.body = Body::Outputs(wrapper);
        Ok((txid, record))
    }

    /// Whether the transaction has to be kept as a blob: it is too long, its record has several
    /// parts and such go outside, or all transactions do.
    #[must_use]
    pub fn needs_blob(&self, settings: &Settings) -> bool {
        settings.externalize_all
            || self.extended_size > settings.external_limit
            || (settings.externalize_parts && self.utxos.len() > self.batch.get() as usize)
    }

    /// The bytes of the body; `None` when they are in a blob.
    #[must_use]
    pub fn body_bytes(&self) -> Option<&Bytes> {
        self.body.bytes()
    }

    /// What the caller says, and nothing of the transaction.
    fn empty(options: &CreateOptions, settings: &Settings, is_coinbase: bool) -> Self {
        let mature = options.height.to_u32().saturating_add(settings.coinbase_maturity);
        Self {
            version: 0,
            lock_time: 0,
            fee: Amount::ZERO,
            size: 0,
            extended_size: 0,
            is_coinbase,
            spending_height: (is_coinbase && mature > 0).then_some(Height::new(mature)),
            body: Body::External,
            inputs: Vec::new(),
            utxos: Arc::default(),
            batch: settings.batch,
            height: options.height,
            created_at: options.created_at,
            blocks: options.blocks.clone(),
            frozen: options.frozen,
            conflicting: options.conflicting,
            locked: options.locked,
            creating: false,
        }
    }
}

/// The hash of an output, unless it can never be spent.
fn slot(txid: Txid, vout: u32, output: &TxOut<'_>) -> Option<UtxoHash> {
    is_stored(output).then(|| UtxoHash::of(&Outpoint::new(txid, vout), output))
}

/// What the inputs are worth beyond the outputs; 0 when they are not.
fn fee<'a>(tx: &'a Transaction, view: &Tx<'a>) -> Amount {
    let spent = tx.inputs_of(*view).filter_map(|input| input.spent);
    let inputs = sum(spent.map(|output| output.value));
    let outputs = sum(view.outputs().map(|output| output.value));
    let fee = inputs.zip(outputs).and_then(|(inputs, outputs)| inputs.checked_sub(outputs));
    fee.unwrap_or(Amount::ZERO)
}

fn sum(mut values: impl Iterator<Item = Amount>) -> Option<Amount> {
    values.try_fold(Amount::ZERO, Amount::checked_add)
}

//! The record: all that is kept of one live transaction.
//!
//! ```text
//! Record ─┬─ head             what every read brings: size, flags, heights, blocks, counts
//!         ├─ body             the transaction itself, or where it is           Fields::TX
//!         ├─ inputs           the outpoints it spends, in order                Fields::INPOINTS
//!         ├─ utxos            one place an output: a slot, or nothing          Fields::UTXOS
//!         ├─ alerts           freezes and reassignments                        Fields::ALERTS
//!         └─ children         conflicting and pruned spenders                  Fields::CHILDREN
//! ```
//!
//! A record of many outputs is kept in *parts* of [`batch`](Record::batch) slots: part 0 is the
//! master, the others are its children. The counts of each part are in the head, so nothing has
//! to be signalled between parts: a record is all spent when every part is.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use varve_types::{Amount, Height, Outpoint, Txid};

use crate::extended::Transaction;
use crate::fields::Fields;
use crate::inpoints::TxInpoints;

pub use crate::freeze_window::{FreezeWindow, Tier};
pub use crate::key::{BatchSize, Place};
pub use crate::slot::{SPENT_LEN, Slot, SlotSizeError, SlotState};
pub use crate::spending_data::{PLACEHOLDER, ParseSpendingDataError, SpendingData};
pub use crate::utxo_hash::UtxoHash;

/// The number by which the caller knows a block, on whichever branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// A block that has the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// The block.
    pub id: BlockId,
    /// Its height.
    pub height: Height,
    /// The subtree of the block that has the transaction.
    pub subtree: u32,
}

/// The counts of one part of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartCounts {
    /// Slots, without the empty places (`recordUtxos`). A reassignment adds one, so that the
    /// record is kept for ever.
    pub utxos: u32,
    /// Slots that are spent; frozen ones are not (`spentUtxos`).
    pub spent: u32,
}

/// The transaction of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// In the record, extended unless it is a coinbase.
    Transaction(Transaction),
    /// In the record, as the bytes of an outputs-only import: see
    /// [`UtxoWrapper`](crate::utxo_wrapper::UtxoWrapper).
    Outputs(Bytes),
    /// In a blob outside.
    External,
}

impl Body {
    /// The bytes; `None` when they are in a blob.
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Transaction(tx) => Some(tx.bytes()),
            Self::Outputs(bytes) => Some(bytes),
            Self::External => None,
        }
    }
}

/// An output that was bound to another script by an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reassignment {
    /// The output.
    pub vout: u32,
    /// What its hash was.
    pub from: UtxoHash,
    /// What its hash is.
    pub to: UtxoHash,
    /// The height of the store at that moment.
    pub height: Height,
}

/// What alerts (freezes and reassignments ordered from outside) did to outputs, by output number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alerts {
    /// The first height at which an output can be spent (`utxoSpendableIn`).
    pub spendable_in: BTreeMap<u32, Height>,
    /// Freezes that begin and end at given heights.
    pub windows: BTreeMap<u32, FreezeWindow>,
    /// The history of reassignments.
    pub reassignments: Vec<Reassignment>,
}

/// Transactions that spend this one and need to be remembered apart from the slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Children {
    /// Those that are marked as conflicting, in the order in which they came, each once.
    pub conflicting: Vec<Txid>,
    /// Those whose records were pruned. Their spends stand and cannot be replayed.
    pub deleted: BTreeSet<Txid>,
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The transaction.
    pub txid: Txid,
    /// Its version; 0 when only its outputs are known.
    pub version: u32,
    /// Its lock time; 0 when only its outputs are known.
    pub lock_time: u32,
    /// What its inputs are worth beyond its outputs; 0 for a coinbase.
    pub fee: Amount,
    /// The length of its standard form.
    pub size: u64,
    /// The length of its extended form.
    pub extended_size: u64,
    /// Whether it is a coinbase.
    pub is_coinbase: bool,
    /// The first height at which the outputs of a coinbase can be spent.
    pub spending_height: Option<Height>,
    /// When the record was created, in milliseconds of the caller's clock.
    pub created_at: u64,
    /// Whether the transaction is in a blob outside.
    pub external: bool,
    /// Its outputs cannot be spent yet.
    pub locked: bool,
    /// It lost a double spend.
    pub conflicting: bool,
    /// The record is being written by more than one operation.
    pub creating: bool,
    /// The height since which it is in no block of the longest chain; `None` when it is in one.
    pub unmined_since: Option<Height>,
    /// The height to which the record must not be removed.
    pub preserve_until: Option<Height>,
    /// The height from which the pruner may remove the record.
    pub delete_at: Option<Height>,
    /// The blocks that have it, on any branch, in the order in which they were added.
    pub blocks: Vec<BlockRef>,
    /// The number of outputs, those without a slot included (`totalUtxos`).
    pub total_utxos: u32,
    /// The number of frozen slots.
    pub frozen_utxos: u32,
    /// How many slots a part has.
    pub batch: BatchSize,
    /// The counts of each part; the first is the master's.
    pub parts: Vec<PartCounts>,
    /// Which of the fields below were asked for. The others are empty here.
    pub fields: Fields,
    /// The transaction.
    pub body: Option<Body>,
    /// What it spends, in the order of its inputs.
    pub inputs: Vec<Outpoint>,
    /// One place an output.
    pub utxos: Vec<Option<Slot>>,
    /// Freezes and reassignments.
    pub alerts: Alerts,
    /// Spenders that need to be remembered.
    pub children: Children,
}

impl Record {
    /// Whether every slot of every part is spent. True of a record without slots.
    #[must_use]
    pub fn is_all_spent(&self) -> bool {
        self.parts.iter().all(|part| part.spent == part.utxos)
    }

    /// Whether some output bears the mark of a frozen one.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen_utxos > 0
    }

    /// The number of child records (`totalExtraRecs`).
    #[must_use]
    pub fn extra_parts(&self) -> usize {
        self.parts.len().saturating_sub(1)
    }

    /// The number of child records that are all spent (`spentExtraRecs`).
    #[must_use]
    pub fn spent_extra_parts(&self) -> usize {
        self.parts.iter().skip(1).filter(|part| part.spent == part.utxos).count()
    }

    /// The outpoints that it spends, by parent.
    #[must_use]
    pub fn inpoints(&self) -> TxInpoints {
        TxInpoints::from_outpoints(&self.inputs)
    }

    /// Who spent each output; `None` for unspent and frozen ones.
    #[must_use]
    pub fn spending_datas(&self) -> Vec<Option<SpendingData>> {
        self.utxos.iter().map(|slot| slot.as_ref().and_then(Slot::spender)).collect()
    }

    /// The ids of the blocks that have it.
    #[must_use]
    pub fn block_ids(&self) -> Vec<BlockId> {
        self.blocks.iter().map(|block| block.id).collect()
    }

    /// A copy with the head and the fields that are asked for.
    #[must_use]
    pub(crate) fn select(&self, fields: Fields) -> Self {
        let fields = fields.intersection(self.fields);
        Self {
            fields,
            body: fields.contains(Fields::TX).then(|| self.body.clone()).flatten(),
            inputs: self.part(fields, Fields::INPOINTS, |record| &record.inputs),
            utxos: self.part(fields, Fields::UTXOS, |record| &record.utxos),
            alerts: self.part(fields, Fields::ALERTS, |record| &record.alerts),
            children: self.part(fields, Fields::CHILDREN, |record| &record.children),
            blocks: self.blocks.clone(),
            parts: self.parts.clone(),
            ..*self
        }
    }

    fn part<T: Clone + Default>(
        &self,
        fields: Fields,
        field: Fields,
        get: impl FnOnce(&Self) -> &T,
    ) -> T {
        if fields.contains(field) { get(self).clone() } else { T::default() }
    }
}

//! What can be done to records: the unit of work, and everything smaller.
//!
//! An operation is whole or not at all, for every observer and across every crash. It carries all
//! that it needs from outside: heights, hashes, times. Nothing below reads a clock, parses a
//! transaction or computes a hash while others wait.
//!
//! | operation | touches | missing record |
//! |---|---|---|
//! | `Unit` | the parents it spends, and the record it creates | see below |
//! | `Unspend` | the parents named | `TX_NOT_FOUND`, nothing changes |
//! | `SetMined` | one record | `TX_NOT_FOUND`; when unsetting, done |
//! | `MarkOnLongestChain`, `SetLocked`, `PreserveUntil` | one record | `TX_NOT_FOUND` |
//! | `Freeze`, `FreezeWindow`, `Unfreeze`, `Reassign` | one slot | `TX_NOT_FOUND` |
//! | `SetConflicting` | one record, and the lists of its parents | `TX_NOT_FOUND` |
//! | `RemoveConflictingChild`, `RemoveBlocks`, `ExpirePreservation` | one record | done |
//! | `Delete` | one record | done |
//! | `Prune` | one record, and the lists of its parents | done |
//! | `Restore` | one record | created |
//! | `BeginIntent`, `CompleteIntent` | the list of intents | done |
//!
//! Heights in a record are never 0, for which the original has "not set": where 0 would be
//! written, 1 is.
//!
//! A unit of the placeholder txid or with a spend at height 0 is refused, then one whose body is
//! too long for the engine. A unit first spends, then creates. Each spend is judged in the order of
//! [`SlotError`](crate::SlotError), each seeing those before it in the unit. One exception: a
//! parent without a record is no fault when the spender has a record, because then the parent was
//! pruned after it had been spent. If a spend fails, nothing is written. If the spender has a
//! record already, the unit answers `TX_EXISTS` and its spends stand.

use std::sync::Arc;

use varve_types::{Amount, Height, Outpoint, Txid};

use crate::freeze_window::{FreezeWindow, Tier};
use crate::intent::{Intent, IntentId};
use crate::key::BatchSize;
use crate::record::{BlockId, BlockRef, Body, Record};
use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;

pub use crate::outcome::{Effect, Failure, Outcome, Pruned, Reply, Spent, SpentHow, Unknown};

/// One step that is done whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Spends the inputs of a transaction, creates its record, or both.
    Unit(Box<Unit>),
    /// Takes back spends, each only from the spender that is named.
    Unspend {
        /// The spends. One that cannot be looked at fails all.
        spends: Vec<Unspend>,
        /// Whether all the parents that are named become locked in the same step. Otherwise
        /// their locks stay as they are.
        lock_parents: bool,
    },
    /// Adds a block to a record or removes it.
    SetMined {
        /// The transaction.
        txid: Txid,
        /// The block.
        info: MinedBlockInfo,
    },
    /// Says whether a record is in a block of the longest chain.
    MarkOnLongestChain {
        /// The transaction.
        txid: Txid,
        /// Whether it is.
        on_longest_chain: bool,
    },
    /// Locks or unlocks a record.
    SetLocked {
        /// The transaction.
        txid: Txid,
        /// Whether its outputs cannot be spent.
        locked: bool,
    },
    /// Freezes an unspent output.
    Freeze(SlotRef),
    /// Gives an unspent output a window in which it is frozen, in place of the one it has.
    FreezeWindow {
        /// The output.
        slot: SlotRef,
        /// When it is frozen.
        window: FreezeWindow,
    },
    /// Takes the mark and the window from an output.
    Unfreeze(SlotRef),
    /// Binds a frozen output to another script. It can be spent after 1,000 blocks.
    Reassign {
        /// The output, with its hash so far.
        slot: SlotRef,
        /// Its hash from here on.
        to: UtxoHash,
    },
    /// Marks a transaction as the loser of a double spend, or unmarks it.
    SetConflicting {
        /// The transaction.
        txid: Txid,
        /// Whether it lost.
        conflicting: bool,
    },
    /// Takes a transaction from the conflicting children of another.
    RemoveConflictingChild {
        /// The parent.
        txid: Txid,
        /// The child.
        child: Txid,
    },
    /// Takes blocks from a record, as if each were unset.
    RemoveBlocks {
        /// The transaction.
        txid: Txid,
        /// The blocks.
        blocks: Vec<BlockId>,
    },
    /// Removes a record, whatever its state.
    Delete {
        /// The transaction.
        txid: Txid,
    },
    /// Keeps a record from being removed.
    PreserveUntil {
        /// The transaction.
        txid: Txid,
        /// The last height at which it must be there.
        height: Height,
    },
    /// Ends a preservation that is over at this height: the record may be removed after the
    /// retention.
    ExpirePreservation {
        /// The transaction.
        txid: Txid,
        /// The height.
        height: Height,
    },
    /// Removes a record that is due at this height and no longer needed.
    Prune {
        /// The transaction.
        txid: Txid,
        /// The height up to which removal is safe.
        height: Height,
    },
    /// Writes a record as another engine had it, in place of one that is there. All its fields
    /// must have been read. Nothing else changes: neither its parents nor its blob.
    Restore(Box<Record>),
    /// Journals what is about to be done.
    BeginIntent(Intent),
    /// Removes the intent: it is done.
    CompleteIntent(IntentId),
}

impl Operation {
    /// Whether it creates a record when it succeeds.
    pub(crate) fn creates(&self) -> bool {
        match self {
            Self::Unit(unit) => unit.create.is_some(),
            Self::Restore(_) => true,
            _ => false,
        }
    }
}

/// One transaction: what it spends and what it creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The transaction.
    pub txid: Txid,
    /// Its spends; `None` to create only.
    pub spend: Option<SpendPart>,
    /// Its record; `None` to spend only.
    pub create: Option<NewRecord>,
}

/// The spends of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendPart {
    /// The outputs, in the order of the inputs.
    pub spends: Vec<Spend>,
    /// How they are judged.
    pub rules: SpendRules,
}

/// One output to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spend {
    /// The output.
    pub outpoint: Outpoint,
    /// What the spender believes it to be.
    pub hash: UtxoHash,
    /// The input of the spender.
    pub vin: u32,
}

/// How spends are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendRules {
    /// The height of the block that the spender is in or may be in: above 0.
    pub height: Height,
    /// Whether outputs of conflicting transactions can be spent.
    pub ignore_conflicting: bool,
    /// Whether outputs of locked transactions can be spent.
    pub ignore_locked: bool,
    /// Whether freeze windows are judged as consensus or as policy.
    pub tier: Tier,
}

impl SpendRules {
    /// At this height, ignoring nothing, by policy.
    #[must_use]
    pub const fn at(height: Height) -> Self {
        Self { height, ignore_conflicting: false, ignore_locked: false, tier: Tier::Policy }
    }
}

/// A record to be created: [`NewRecord::new`] makes one from a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// The version of the transaction.
    pub version: u32,
    /// Its lock time.
    pub lock_time: u32,
    /// Its fee.
    pub fee: Amount,
    /// The length of its standard form.
    pub size: u64,
    /// The length of its extended form.
    pub extended_size: u64,
    /// Whether it is a coinbase.
    pub is_coinbase: bool,
    /// The first height at which the outputs of a coinbase can be spent.
    pub spending_height: Option<Height>,
    /// The transaction itself.
    pub body: Body,
    /// What it spends, in the order of its inputs; nothing for a coinbase.
    pub inputs: Vec<Outpoint>,
    /// One place an output; those that can never be spent are empty. Shared, because there may be
    /// millions.
    pub utxos: Arc<Vec<Option<UtxoHash>>>,
    /// How many slots a part of the record has.
    pub batch: BatchSize,
    /// The height of the block that the transaction may be in. A record that is in no block is
    /// unmined since then.
    pub height: Height,
    /// When it is created, in milliseconds of the caller's clock.
    pub created_at: u64,
    /// The blocks that have it.
    pub blocks: Vec<BlockRef>,
    /// Every slot begins frozen.
    pub frozen: bool,
    /// It is the loser of a double spend. Its parents note it as a conflicting child.
    pub conflicting: bool,
    /// Its outputs cannot be spent before it is unlocked or mined.
    pub locked: bool,
    /// More operations are needed until it is complete; until then it cannot be spent. It ends when
    /// the record is mined, and when the same record is created again.
    pub creating: bool,
}

/// A spend to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unspend {
    /// The output.
    pub slot: SlotRef,
    /// Who must have spent it. Otherwise the spend stays, which is no error.
    pub by: SpendingData,
}

/// One output, as the caller believes it to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRef {
    /// The output.
    pub outpoint: Outpoint,
    /// Its hash.
    pub hash: UtxoHash,
}

/// A block, and what it means for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinedBlockInfo {
    /// The block. To unset, its id alone counts.
    pub block: BlockRef,
    /// Whether the block is on the longest chain.
    pub on_longest_chain: bool,
    /// Whether the block is removed from the record.
    pub unset: bool,
}

//! The narrow seam between records and where they are kept.
//!
//! An engine has seven methods, those on records in batches. [`operation`](crate::operation) says
//! what the operations mean and `contract` checks it; `memory` is the plainest engine and the
//! oracle of the others.
//!
//! What an engine promises:
//!
//! - *Whole or not at all.* Each operation of a batch is atomic to every reader and across every
//!   crash. The batch is not: it is a list of operations, done in order, each seeing those before.
//! - *Durable on return.* When `apply` returns outcomes, a crash loses none of them.
//! - *Errors stay where they are.* A refused operation does not disturb its neighbours. Only a
//!   failure of the storage fails the batch, and then each operation may have happened or not.
//!   All operations are idempotent, so the caller retries.
//! - *Readers do not wait for writers* longer than for one short step.

use std::sync::Arc;

use varve_types::{Height, Outpoint, Txid};

use crate::fields::Fields;
use crate::freeze_window::FreezeWindow;
use crate::intent::Intent;
use crate::operation::Operation;
use crate::outcome::Outcome;
use crate::record::{BlockRef, Record};
use crate::slot::Slot;

/// What a batch of operations needs to know of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The height of the tip that the store follows.
    pub height: Height,
    /// Blocks from the moment when a record is no longer needed to its removal. 0: no record is
    /// scheduled for removal.
    pub retention: u32,
}

/// A place where records are kept.
pub trait Engine: Send + Sync {
    /// Does the operations in order and answers each of them.
    fn apply(
        &self,
        context: &Context,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, EngineError>;

    /// Reads records, in the order of the txids, each of one moment.
    fn read(&self, txids: &[Txid], fields: Fields) -> Result<Vec<Option<Record>>, EngineError>;

    /// Reads single slots, in the order of the outpoints; `None` where there is no record.
    fn slots(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<SlotView>>, EngineError>;

    /// Finds records by their state, in an order of the engine's own: at most `limit` of them,
    /// beginning behind the cursor of the page before. A record that matches and stays as it is
    /// during the whole scan is found exactly once; one that changes meanwhile may be found or
    /// not, or twice. A page costs what it returns.
    fn scan(
        &self,
        scan: Scan,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<ScanPage, EngineError>;

    /// The intents that were begun and not completed, in the order of their ids.
    fn intents(&self) -> Result<Vec<Intent>, EngineError>;

    /// What the engine refuses as too big.
    fn limits(&self) -> Limits;

    /// Size and condition, in constant time.
    fn status(&self) -> Result<EngineStatus, EngineError>;
}

/// Size and condition of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineStatus {
    /// Keys: records and, depending on the engine, parts of records.
    pub keys: u64,
    /// Conflict resolutions that are not finished.
    pub intents: u64,
    /// Bytes of memory that grow with the number of keys. The index of the embedded engine takes
    /// some 1.2 a key, 32 to 40 for what changed lately or is in a list, and 18 more for each list.
    pub memory: u64,
    /// Bytes of memory beyond which no records are created; `None` when there is no such limit.
    pub memory_limit: Option<u64>,
    /// Bytes in storage that are needed.
    pub live: u64,
    /// Bytes in storage.
    pub stored: u64,
    /// Why upkeep (checkpoints, cleaning) last failed; no data is lost by it.
    pub trouble: Option<String>,
}

/// What to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// Every record.
    All,
    /// Records that are in no block of the longest chain.
    Unmined,
    /// Those of them that are so since this height or longer.
    UnminedSince(Height),
    /// Records that may be removed at this height.
    DueAt(Height),
    /// Records whose preservation is over at this height.
    PreservedUntil(Height),
    /// Records that are marked as conflicting.
    Conflicting,
}

/// Where a scan resumes. Opaque to all but the engine that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub [u8; CURSOR_LEN]);

/// The length of a cursor: a height and a txid.
pub const CURSOR_LEN: usize = 36;

/// One page of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPage {
    /// The records found.
    pub txids: Vec<Txid>,
    /// Where to resume; `None` at the end.
    pub next: Option<Cursor>,
}

/// One slot with what its record says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotView {
    /// The slot; `None` when the output can never be spent or does not exist.
    pub slot: Option<Slot>,
    /// The first height at which a reassigned output can be spent.
    pub spendable_in: Option<Height>,
    /// When the output is frozen.
    pub window: Option<FreezeWindow>,
    /// The first height at which the outputs of a coinbase can be spent.
    pub spending_height: Option<Height>,
    /// The lock time of the transaction.
    pub lock_time: u32,
    /// Whether the transaction lost a double spend.
    pub conflicting: bool,
    /// Whether its outputs cannot be spent yet.
    pub locked: bool,
    /// Whether the record is being written.
    pub creating: bool,
    /// The blocks that have the transaction.
    pub blocks: Vec<BlockRef>,
}

/// Limits of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest body in a record, in bytes. A unit with a longer one is refused as
    /// [`TooBig`](crate::error::RecordError::TooBig).
    pub body: u64,
}

/// The storage failed, or cannot take more.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// An operation on the storage failed.
    #[error("the storage of the records failed: {0}")]
    Storage(Arc<dyn std::error::Error + Send + Sync>),
    /// The index has no room for more records. Nothing of the batch was done.
    #[error(
        "the index of the records takes {memory} bytes of memory and may take {limit}: prune \
         records that are due, or open the store with more memory"
    )]
    Full {
        /// Bytes that the index takes.
        memory: u64,
        /// Bytes that it may take.
        limit: u64,
    },
    /// An earlier failure left the storage in an unknown state.
    #[error("the records take no more writes since this failure: {cause}; reopen the store")]
    Poisoned {
        /// The first failure.
        cause: Arc<str>,
    },
}

impl EngineError {
    /// A failure of the storage.
    pub fn storage(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Storage(Arc::new(error))
    }
}

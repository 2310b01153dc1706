//! The narrow seam between records and where they are kept.
//!
//! Methods on records take batches. [`operation`](crate::operation) says what the operations mean
//! and `contract` checks it; `memory` is the plainest engine and the oracle of the others.
//!
//! What an engine promises:
//!
//! - *Whole or not at all.* Each operation of a batch is atomic to every reader and across every
//!   crash. The batch is not. Operations that touch a common record are done in their order, each
//!   seeing those before; the order of all others is the engine's.
//! - *Durable on return.* What `apply` reports as done or refused is so after any crash.
//! - *Every operation has its own outcome.* A refusal does not disturb its neighbours. An engine
//!   behind a network may also answer that it did not do an operation, or that it does not know:
//!   see [`Failure`](crate::outcome::Failure). [`Engine::fate`] resolves the latter.
//! - *An error of the whole call* leaves each operation done or not done. All operations are
//!   idempotent, so the caller retries.
//! - *Readers do not wait for writers* longer than for one short step.
//!
//! An engine that several processes share has *leases* for work that one of them must do alone.
//! A lease belongs to the thread that took it, and it fences: once it has passed to another
//! process, batches of that thread fail with [`EngineError::LeaseLost`] and change nothing. An
//! engine that only one process can open needs none of this and keeps the defaults.

use std::sync::Arc;

use varve_types::{Height, Outpoint, Txid};

use crate::fields::Fields;
use crate::freeze_window::FreezeWindow;
use crate::intent::{Intent, IntentId};
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
    /// Does the operations and answers each of them; those of one record in their order.
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

    /// Intents that were begun and not completed, in the order of their ids: at most `limit` of
    /// those behind an id.
    fn intents(&self, after: Option<IntentId>, limit: usize) -> Result<Vec<Intent>, EngineError>;

    /// What the engine takes at once.
    fn limits(&self) -> Limits;

    /// Size and condition, in constant time.
    fn status(&self) -> Result<EngineStatus, EngineError>;

    /// What became of operations that were answered as
    /// [`Unknown`](crate::outcome::Failure::Unknown). An engine that never answers so is never
    /// asked.
    fn fate(&self, _question: &Question) -> Result<Fate, EngineError> {
        Ok(Fate::Undecided)
    }

    /// Takes the lease of a task for this thread; `false` while another process has it. The store
    /// keeps threads of one process apart.
    fn take_lease(&self, _task: Task) -> Result<bool, EngineError> {
        Ok(true)
    }

    /// Gives the lease of a task back. One that was lost is no error.
    fn end_lease(&self, _task: Task) -> Result<(), EngineError> {
        Ok(())
    }
}

/// Names what an engine was doing when the answer was lost. Opaque to all but the engine that made
/// it; it can be written down and asked by another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question(pub Vec<u8>);

/// What became of operations whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They were done, and the answer that came with the question holds.
    Done,
    /// They were not done and will not be.
    NotDone,
    /// They are not finished, or nobody can say: ask again later.
    Undecided,
}

/// Work that one process at a time must do, however many share an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Conflict resolution: what it saw must hold until it has written.
    Resolve,
    /// Pruning: two would do everything twice.
    Prune,
    /// Removal of blobs that no record needs.
    CleanBlobs,
}

impl Task {
    /// The name under which engines keep the lease.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Prune => "prune",
            Self::CleanBlobs => "clean_blobs",
        }
    }
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub Vec<u8>);

impl Cursor {
    /// Behind a record in a list that is sorted by height and txid.
    pub(crate) fn behind(height: u32, txid: &Txid) -> Self {
        Self([&height.to_le_bytes(), txid.as_bytes().as_slice()].concat())
    }

    /// The height and the txid that [`behind`](Self::behind) was given.
    pub(crate) fn place(&self) -> Result<(u32, Txid), EngineError> {
        let (height, txid) = self.0.split_first_chunk::<4>().ok_or(EngineError::Cursor)?;
        let txid = txid.try_into().map_err(|_| EngineError::Cursor)?;
        Ok((u32::from_le_bytes(*height), Txid::from_bytes(txid)))
    }
}

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

/// Limits of an engine. The store keeps longer bodies as blobs and splits longer batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest body in a record, in bytes. A unit with a longer one is refused as
    /// [`TooBig`](crate::error::RecordError::TooBig).
    pub body: u64,
    /// The number of operations that one call should have. More are not refused; they make others
    /// wait.
    pub operations: usize,
}

impl Limits {
    /// No limits.
    pub const NONE: Self = Self { body: u64::MAX, operations: usize::MAX };
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
    /// The engine cannot be reached, or did not do what it was asked. Nothing was changed.
    #[error("the records cannot be reached: {cause}")]
    Unavailable {
        /// What happened.
        cause: Arc<str>,
    },
    /// Others kept the records busy for too long. Nothing was changed.
    #[error("other clients keep the records busy: {by}; try again")]
    Busy {
        /// Who, as far as the engine knows.
        by: Arc<str>,
    },
    /// The connection broke before the answer came, and the engine cannot say yet whether the
    /// operations were done. They can be repeated.
    #[error("it is not known whether the records were changed: {cause}; try again")]
    Unknown {
        /// What happened.
        cause: Arc<str>,
    },
    /// The lease under which this thread worked has passed to another process. Nothing of the
    /// batch was done.
    #[error("another process has taken over the task {task:?} of these records")]
    LeaseLost {
        /// The name of the task.
        task: &'static str,
    },
    /// A cursor that this engine did not make.
    #[error("the cursor is not one of this engine: begin the scan again")]
    Cursor,
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

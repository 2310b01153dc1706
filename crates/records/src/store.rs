//! The store: records, blobs and the tip, as one contract.
//!
//! ```text
//!             ┌──────────── Store ────────────┐
//!  callers ─► │ create · change · read · scan │ ─► Engine   one operation, whole or not at all
//!             │ settings, block state, cache  │ ─► Blobs    what is too large for a record
//!             └───────────────────────────────┘
//! ```
//!
//! A store adds to an engine what concerns more than one record: whether a transaction is kept in
//! a blob and the order of the two writes, the outputs that a transaction spends, the tip that
//! heights are counted from. All methods have a batch form; one call of an engine serves a batch.
//!
//! Two kinds of failure are kept apart. What is wrong with one item of a batch is in the answer
//! for that item. What is wrong with the store fails the call; each item may then have happened or
//! not, and every method can be retried.
//!
//! | file | methods |
//! |---|---|
//! | `create` | create, spend, both, many at once |
//! | `change` | everything else that writes |
//! | `read`, `previous`, `unmined` | everything that reads |
//! | `external` | what the changes of a record mean for its blob |
//! | `alone` | work that one process at a time does |
//!
//! [`prune`] and [`recover`] run over a whole store: after every persisted block, and at start.
//! [`copy`] moves all of it to another engine.

mod alone;
mod change;
mod copy;
mod create;
mod error;
mod external;
mod previous;
mod read;
#[cfg(test)]
mod tests;
mod unmined;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use varve_types::Height;

use crate::blob::{Blobs, CacheConfig, ExternalCache};
use crate::block_state::{BlockState, SharedBlockState};
use crate::engine::{Context, Engine, EngineError, Fate};
use crate::error::RecordError;
use crate::operation::Operation;
use crate::outcome::{Failure, Outcome, Reply};
use crate::settings::Settings;

pub use crate::pruner::{PruneAt, PruneReport, prune};
pub use crate::restart::{LeftOut, Recovery, RecoveryError, recover};
pub use crate::spend_response::{SpendResponse, SpendStatus};
use alone::Tasks;
pub use change::ConflictingParents;
pub use copy::{CopyError, CopyReport, copy};
pub use create::TxUnit;
pub use error::StoreError;
use error::list;
pub use external::CleanReport;
use external::CleanState;
pub use previous::SpentOutput;
pub use read::Health;
pub use unmined::{Unmined, UnminedTx};

/// The result of every method.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
/// The result of one item of a batch.
pub type Item<T> = std::result::Result<T, RecordError>;
/// The time in milliseconds, as the caller counts it.
pub type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// Live transactions: an engine, its blobs, and the tip.
pub struct Store {
    engine: Arc<dyn Engine>,
    blobs: Blobs,
    cache: ExternalCache,
    clock: Clock,
    settings: Settings,
    state: SharedBlockState,
    tasks: Tasks,
    /// Notes beside blobs that could not be written. They are hints; the cleaner corrects them.
    lost_hints: AtomicU64,
    cleaning: Mutex<CleanState>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Store {
    /// A store on this engine and these blobs. Only the cache of external transactions reads the
    /// clock.
    pub fn new(engine: Arc<dyn Engine>, blobs: Blobs, settings: Settings, clock: Clock) -> Self {
        Self {
            engine,
            blobs,
            cache: ExternalCache::new(CacheConfig::default()),
            clock,
            settings,
            state: SharedBlockState::default(),
            tasks: Tasks::default(),
            lost_hints: AtomicU64::new(0),
            cleaning: Mutex::default(),
        }
    }

    /// Retention, limits and batch sizes.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The engine below.
    #[must_use]
    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// The blobs of external records.
    #[cfg(any(test, feature = "test-suite"))]
    #[must_use]
    pub(crate) const fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// The tip: height and median time of one moment.
    #[must_use]
    pub fn block_state(&self) -> BlockState {
        self.state.get()
    }

    /// Sets the tip.
    pub fn set_block_state(&self, state: BlockState) -> Result<()> {
        Ok(self.state.set(state)?)
    }

    /// Sets the height of the tip.
    pub fn set_block_height(&self, height: Height) -> Result<()> {
        Ok(self.state.set_height(height)?)
    }

    /// Sets the median time of the tip.
    pub fn set_median_time(&self, median_time: u32) {
        self.state.set_median_time(median_time);
    }

    fn context(&self) -> Context {
        Context { height: self.state.get().height, retention: self.settings.retention }
    }

    /// Applies operations, in batches that the engine takes, and updates the blobs of the records
    /// they changed. An operation that the engine did not do, or of which it cannot say, fails the
    /// call; those around it keep their effects.
    pub(crate) fn apply(&self, operations: &[Operation]) -> Result<Vec<Item<Reply>>> {
        let context = self.context();
        let mut items = Vec::with_capacity(operations.len());
        for batch in operations.chunks(self.engine.limits().operations.max(1)) {
            let outcomes = self.engine.apply(&context, batch)?;
            assert_eq!(outcomes.len(), batch.len(), "an engine answers every operation");
            let settled: Vec<Result<Item<Reply>>> =
                outcomes.into_iter().map(|outcome| self.settle(outcome)).collect();
            items.extend(settled.into_iter().collect::<Result<Vec<_>>>()?);
        }
        Ok(items)
    }

    /// The answer of an operation after asking what became of it, where that is needed.
    fn settle(&self, outcome: Outcome) -> Result<Item<Reply>> {
        let (item, effects) = match outcome.result {
            Ok(reply) => (Ok(reply), outcome.effects),
            Err(Failure::Refused(error)) => (Err(error), outcome.effects),
            Err(Failure::Unavailable { cause }) => {
                return Err(EngineError::Unavailable { cause }.into());
            }
            Err(Failure::Busy { by }) => return Err(EngineError::Busy { by }.into()),
            Err(Failure::Unknown(unknown)) => match self.engine.fate(&unknown.question)? {
                Fate::Done => (unknown.answer, unknown.effects),
                Fate::NotDone => {
                    return Err(EngineError::Unavailable { cause: unknown.cause }.into());
                }
                Fate::Undecided => {
                    return Err(EngineError::Unknown { cause: unknown.cause }.into());
                }
            },
        };
        effects.iter().for_each(|effect| self.follow(effect));
        Ok(item)
    }

    /// Applies one operation.
    pub(crate) fn apply_one(&self, operation: Operation) -> Result<Reply> {
        let result = self.apply(std::slice::from_ref(&operation))?.pop();
        Ok(result.expect("an engine answers every operation")?)
    }
}

//! Blocks in, checked and published blocks out: a pool of workers and a state machine per block.
//!
//! ```text
//!              any worker, any order              in order       any worker      in order
//!  submit ─► Init ─► Parsed ─► Queried ─► Fetched ─► Appended ─────► Joined ─► published, retired
//!                 walk     resolve    read pages   make the step   the check
//!                                                  (unpublished)
//!             └────────────┴─────────┴──────────┴──────────────┴─► Failed, or Cancelled
//! ```
//!
//! Blocks are submitted in any order of height, at most `depth` above the last one that left, and
//! as long as they fit into the joiner's share of the set's memory: a block counts four times its
//! bytes, for itself and what is found for it, and then the pages that are read for it. The lowest
//! block is always taken, so one that is larger than the share goes through alone. A worker takes
//! the lowest block that can proceed:
//!
//! 1. **Init → Queried.** The block is walked and its keys are looked up at the latest version, as
//!    far as that goes without reading (`prepare`). If pages must be read, all reads are queued on
//!    the worker's ring, in one submission as far as its depth allows, and the worker turns to
//!    another block. It returns to this one when they have completed; each completion was checked
//!    for error and length. A block that was looked up long before its turn is looked up again on
//!    the way, for the outputs that the blocks below it have made since (`Prepared::refresh`).
//! 2. **Fetched → Appended**, by one worker at a time, from the lowest height up: the step is made,
//!    but not published. It comes after the fetch, because the death of a coin names its birth, so
//!    the coin must be known.
//! 3. **Appended → Joined.** The caller's check runs over the block and its view. The blocks above
//!    are appended meanwhile, on trust.
//! 4. A joined block whose parents have all been published is *published*, and retires with the
//!    result of the check.
//!
//! **A block fails** when the set refuses it, its check does, or a read fails. No further work
//! starts at its height or above. When all blocks below have retired, its step and those above it,
//! which were never published, are rewound; it retires with the error, those above as cancelled.
//! The set is then at the block below, and the caller may submit another one in its place.
//!
//! Work is chosen under one lock, which is held for microseconds; a job takes milliseconds. The set
//! has another, which is held while a step is made in memory. Whatever a step has to wait for
//! (pages, an undo record, a flush or a merge that it has run ahead of) is waited for without
//! either lock.

mod pool;
mod room;
mod slot;
mod state;
mod worker;

use std::num::NonZeroUsize;
use std::sync::Arc;

use varve_consensus::BlockAt;
use varve_types::Height;

use crate::budget::MemoryUse;
use crate::database::Database;
use crate::error::Error;
use crate::prepare::Repeats;
use crate::view::DatabaseView;
use pool::Pool;

#[cfg(feature = "test-suite")]
pub use slot::JoinState;

/// Holds a block and its height: the borrowed block itself, or an owner of its bytes.
pub trait AsBlock {
    /// The block.
    fn as_block(&self) -> &BlockAt<'_>;
}

impl AsBlock for BlockAt<'_> {
    fn as_block(&self) -> &BlockAt<'_> {
        self
    }
}

impl<T: AsBlock> AsBlock for &T {
    fn as_block(&self) -> &BlockAt<'_> {
        (**self).as_block()
    }
}

/// The size of a joiner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinerOptions {
    /// Worker threads.
    pub workers: NonZeroUsize,
    /// The maximum number of blocks in progress.
    pub depth: NonZeroUsize,
    /// Bytes of memory that the caller's check takes per byte of the block.
    pub check: usize,
}

impl JoinerOptions {
    /// The default depth with this number of workers: four blocks for each, so that none waits for
    /// another, but at least 8, and at most 64, because looking up more blocks before their turn
    /// gains nothing.
    #[must_use]
    pub const fn new(workers: NonZeroUsize) -> Self {
        let depth = match workers.get() {
            0..2 => 8,
            workers @ 2..16 => workers * 4,
            _ => 64,
        };
        Self { workers, depth: NonZeroUsize::MIN.saturating_add(depth - 1), check: 0 }
    }
}

/// A block that has left the joiner, in the order of heights.
#[derive(Debug)]
pub struct Retired<T, R, E> {
    /// The block.
    pub block: Arc<T>,
    /// The result of the check if the block is published, or why it is not.
    pub result: Result<R, JoinError<E>>,
}

/// Why a block was not joined to the set.
#[derive(Debug, thiserror::Error)]
pub enum JoinError<E> {
    /// The set refused it, or failed.
    #[error(transparent)]
    Set(Error),
    /// Its check refused it.
    #[error("{0}")]
    Check(E),
    /// A block below it failed, or the joiner ended before it was done.
    #[error("the block was given up, because the one at {below} failed; submit it again")]
    Cancelled {
        /// The height of the block that failed.
        below: Height,
    },
}

/// Why a block was not accepted. The block is returned.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError<T> {
    /// A block has failed. The submitter must retire it before submitting more.
    #[error("a block has failed; retire all blocks first")]
    Failed(T),
    /// It does not fit into the joiner's memory beside the blocks that are there. Retire one first.
    #[error("the blocks under way leave no memory for this one; retire some first")]
    Full(T),
    /// Its height is taken, below the next one, or too far above.
    #[error("a block at this height cannot be taken now; submit at {next} to {end}")]
    Height {
        /// The block.
        block: T,
        /// The lowest height that has not retired.
        next: Height,
        /// The highest that can be taken.
        end: Height,
    },
}

/// Joins blocks to a database, in a scope: see [`Joiner::scope`].
pub struct Joiner<'p, 'd, T, R, E> {
    pool: &'p Pool<'d, T, R, E>,
}

impl<T: AsBlock + Send + Sync, R: Send, E: Send> Joiner<'_, '_, T, R, E> {
    /// Starts the workers (fewer when the system refuses threads), runs `body`, which submits
    /// blocks and retires them, and ends the workers. Blocks that have not retired by then are
    /// given up, and the set is left at the last one that was published.
    ///
    /// `check` runs in the workers, once for each block that the set accepted. The blocks it sees
    /// extend one another, but lower ones may still turn out invalid. Readers in other threads take
    /// snapshots meanwhile ([`Database::reader`]).
    ///
    /// ```
    /// use std::num::NonZeroUsize;
    /// use std::sync::Arc;
    /// use varve_consensus::{BlockAt, UnspentOutputsView as _};
    /// use varve_io::{Disk, StoreId};
    /// use varve_types::{Block, Height, Network};
    /// use varve_utxo::{Database, Joiner, JoinerOptions, Options, Repeats, Secret, StoreKey};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// let key = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };
    /// let options = Options::new(Network::Regtest, key);
    /// let mut set = Database::open(Arc::new(Disk::open(dir.path())?), options)?;
    ///
    /// let bytes = Network::Regtest.genesis_block();
    /// let block = Block::parse(&bytes, Network::Regtest.format())?;
    /// let blocks = [BlockAt::new(Height::GENESIS, &block)]; // and many more, parsed before
    ///
    /// let options = JoinerOptions::new(NonZeroUsize::new(2).unwrap());
    /// let check = |block: &BlockAt<'_>, view: &_| {
    ///     // Here: varve_consensus::check_spends, check_scripts.
    ///     varve_utxo::DatabaseView::query_prevouts_unspent(view, block).map_err(|e| e.to_string())
    /// };
    /// let joined = Joiner::scope(&mut set, &options, check, |joiner| {
    ///     let mut joined = 0;
    ///     for block in &blocks {
    ///         // Make room first: retire what is done, and wait while the joiner is full.
    ///         while joiner.is_full() {
    ///             joined += usize::from(joiner.retire().is_some_and(|done| done.result.is_ok()));
    ///         }
    ///         joiner.submit(block, Repeats::Possible).map_err(|e| e.to_string())?;
    ///     }
    ///     while let Some(done) = joiner.retire() {
    ///         done.result.map_err(|e| e.to_string())?;
    ///         joined += 1;
    ///     }
    ///     Ok::<_, String>(joined)
    /// })?;
    /// assert_eq!(joined?, 1);
    /// assert_eq!(set.tip(), Some((Height::GENESIS, block.hash())));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Thread`] when the system has no thread for a single worker: `body` was not run. Any
    /// other error when unpublished steps could not be rewound. Readers have not seen them, but the
    /// database must be reopened.
    ///
    /// # Panics
    ///
    /// When `check` or `body` panics.
    pub fn scope<O>(
        database: &mut Database,
        options: &JoinerOptions,
        check: impl Fn(&BlockAt<'_>, &DatabaseView) -> Result<R, E> + Sync,
        body: impl FnOnce(&Joiner<'_, '_, T, R, E>) -> O,
    ) -> Result<O, Error> {
        let output = {
            let pool = Pool::new(&mut *database, options, &check);
            pool.run(options.workers, || body(&Joiner { pool: &pool }))
        };
        database.end_joining();
        database.rewind_unpublished()?;
        output
    }

    /// Takes a block that stands on the tip or above it, if there is room for it. Say
    /// [`Repeats::Impossible`] where `varve_consensus::can_repeat` says no.
    pub fn submit(&self, block: T, repeats: Repeats) -> Result<(), SubmitError<T>> {
        self.pool.submit(block, repeats)
    }

    /// Whether nothing can be submitted before something has retired.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.pool.is_full()
    }

    /// The next block in the order of heights that is done, waiting for it. `None` when there is
    /// none to wait for: nothing was submitted, or the lowest height is missing.
    #[must_use]
    pub fn retire(&self) -> Option<Retired<T, R, E>> {
        self.pool.retire()
    }

    /// The next block that is done, if there is one now.
    #[must_use]
    pub fn try_retire(&self) -> Option<Retired<T, R, E>> {
        self.pool.try_retire()
    }

    /// Starts to make the set durable up to the last step, in the background
    /// ([`Database::begin_flush`]).
    pub fn begin_flush(&self) -> Result<(), Error> {
        self.pool.with_database(Database::begin_flush)
    }

    /// How the set's memory is used now.
    #[must_use]
    pub fn memory(&self) -> MemoryUse {
        self.pool.with_database(|set| set.memory())
    }

    /// Changes the memory budget ([`Database::set_memory`]). The joiner keeps the share that it
    /// started with.
    pub fn set_memory(&self, memory: usize) -> Result<(), Error> {
        self.pool.with_database(|set| set.set_memory(memory))
    }

    /// The state of each block in progress, by height.
    #[cfg(feature = "test-suite")]
    #[must_use]
    pub fn states(&self) -> Vec<(Height, JoinState)> {
        self.pool.states()
    }
}

impl<T, R, E> std::fmt::Debug for Joiner<'_, '_, T, R, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Joiner")
    }
}

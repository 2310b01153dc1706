//! Records in PostgreSQL, shared by any number of processes.
//!
//! ```text
//!  apply ─► BEGIN · lock the records, in the order of their txids ─► rules ─► write · COMMIT
//!            one round trip                                    `remote`   one round trip
//! ```
//!
//! A batch is one transaction of the server, so each of its operations is whole or not at all and
//! durable when the commit is answered. The locks are those of the records' rows: whoever changes a
//! record, its chunks or its body holds the row of its state. Rows are locked in the order of
//! txids, so two batches that want the same records wait for one another and do not deadlock; only
//! what pruning finds while it follows inputs may be locked out of order. The server then ends one
//! of the two, and that one is done again.
//!
//! What can happen to a batch, and what the engine does:
//!
//! - *It meets others* (a deadlock, a record created by two at once, a lock that is not had in
//!   time): it is done again, after a pause that grows; at last every operation is `Busy`.
//! - *The connection breaks before COMMIT is sent*: nothing was done. The batch is done again on
//!   another connection, and at last every operation is `Unavailable`.
//! - *The connection breaks after COMMIT was sent*: the mark says whether it was done.
//!
//! The *mark*: every connection has a row that it writes in every transaction, with the number of
//! its batch. Nobody else writes it, so once the session of a broken connection has ended on the
//! server, the row holds the last batch that was committed. Whoever asks ends that session first.
//!
//! | table | key | holds |
//! |---|---|---|
//! | `records` | txid | the state with the first eight slots; what scans look for |
//! | `bodies` | txid | inputs, transaction: written once |
//! | `chunks` | txid, number | eight further slots each |
//! | `intents` | id | unfinished conflict resolutions |
//! | `leases` | task | who does what alone, and until when by the server's clock |
//! | `marks` | connection | its last committed batch |
//! | `about` | – | the version of this schema, and its id |
//!
//! Scans go through partial indexes. The bytes are those of the embedded engine,
//! `docs/format/records.md`. There is no thread and no runtime beside the callers': each connection
//! has a runtime for one thread, which whoever uses the connection drives.

mod address;
mod batch;
mod lease;
mod link;
mod load;
mod open;
mod pool;
mod read;
mod sql;
mod trouble;
mod write;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use varve_types::{Outpoint, Txid};

use crate::engine::{
    Context, Cursor, Engine, EngineError, EngineStatus, Fate, Limits, Question, Scan, ScanPage,
    SlotView, Task,
};
use crate::fields::Fields;
use crate::intent::{Intent, IntentId};
use crate::operation::Operation;
use crate::outcome::{Failure, Outcome, Unknown};
use crate::record::Record;
use lease::Leases;
use open::Opened;
pub use open::PostgresError;
use pool::Pool;
use trouble::Trouble;

/// The longest body in a record. A row of the server has at most a gigabyte.
const LONGEST_BODY: u64 = 64 << 20;
/// Operations in one transaction: each holds the rows that it touches until all are done.
const BATCH: usize = 4_096;
/// How often a batch is done that meets others.
const TRIES_BUSY: u32 = 60;
/// How often a server that is gone is tried. The pauses add up to some five seconds.
const TRIES_LOST: u32 = 32;
/// The first pause before a batch is done again, and the longest.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Records in a schema of a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresEngine {
    pool: Pool,
    leases: Leases,
    id: String,
    /// Decides how long pauses are, so that those who met do not meet again.
    jitter: AtomicU64,
}

impl PostgresEngine {
    /// Opens the records that a URL names, and makes the schema when it is missing:
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME&connections=N`.
    pub fn open(url: &str) -> Result<Self, PostgresError> {
        let Opened { pool, holder, id } = open::open(url)?;
        // The name is random, so processes that begin together pause differently.
        let seed = holder
            .bytes()
            .fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Ok(Self { pool, leases: Leases::new(holder), id, jitter: AtomicU64::new(seed) })
    }

    /// The name of the records: no others have it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits before a batch is done again.
    fn pause(&self, tries: u32) {
        let longest = PAUSE.saturating_mul(1 << tries.min(8)).min(LONGEST_PAUSE);
        let number = self.jitter.fetch_add(1, Ordering::Relaxed);
        // Half of the pause to all of it.
        let part = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        let part = u32::try_from(part).unwrap_or(0);
        thread::sleep(longest.saturating_mul(256 + part) / 512);
    }

    /// Does a batch, again and again where that helps.
    fn run(&self, context: &Context, operations: &[Operation]) -> Result<Vec<Outcome>, Trouble> {
        let (mut busy, mut lost) = (0, 0);
        loop {
            let trouble = match self.attempt(context, operations) {
                Ok(outcomes) => return Ok(outcomes),
                Err(trouble) => trouble,
            };
            match trouble {
                Trouble::Contended { .. } if busy < TRIES_BUSY => {
                    busy += 1;
                    self.pause(busy);
                }
                Trouble::Lost { .. } if lost < TRIES_LOST => {
                    lost += 1;
                    self.pause(lost);
                }
                Trouble::InDoubt { question, outcomes, cause } => match self.ask(&question) {
                    Fate::Done => return Ok(outcomes),
                    Fate::NotDone if lost < TRIES_LOST => {
                        lost += 1;
                        self.pause(lost);
                    }
                    Fate::NotDone => return Err(Trouble::Lost { cause }),
                    Fate::Undecided => {
                        return Err(Trouble::InDoubt { question, outcomes, cause });
                    }
                },
                trouble => return Err(trouble),
            }
        }
    }

    /// What became of a batch, asked as long as the server may need to come back.
    fn ask(&self, question: &Question) -> Fate {
        for tries in 0..TRIES_LOST {
            match self.fate(question) {
                Ok(Fate::Undecided) | Err(_) => self.pause(tries),
                Ok(fate) => return fate,
            }
        }
        Fate::Undecided
    }
}

impl Engine for PostgresEngine {
    fn apply(
        &self,
        context: &Context,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, EngineError> {
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        let all = |failure: Failure| {
            let outcome = Outcome { result: Err(failure), effects: Vec::new() };
            Ok(vec![outcome; operations.len()])
        };
        match self.run(context, operations) {
            Ok(outcomes) => Ok(outcomes),
            Err(Trouble::Contended { by }) => all(Failure::Busy { by }),
            Err(Trouble::Lost { cause }) => all(Failure::Unavailable { cause }),
            Err(Trouble::Engine(error)) => Err(error),
            Err(Trouble::InDoubt { question, outcomes, cause }) => {
                let unknown = |outcome: Outcome| {
                    let answer = match outcome.result {
                        Ok(reply) => Ok(reply),
                        Err(Failure::Refused(error)) => Err(error),
                        result => return Outcome { result, ..outcome },
                    };
                    let (question, cause) = (question.clone(), cause.clone());
                    let effects = outcome.effects;
                    let unknown = Box::new(Unknown { question, answer, effects, cause });
                    Outcome { result: Err(Failure::Unknown(unknown)), effects: Vec::new() }
                };
                Ok(outcomes.into_iter().map(unknown).collect())
            }
        }
    }

    fn read(&self, txids: &[Txid], fields: Fields) -> Result<Vec<Option<Record>>, EngineError> {
        self.patiently(|| self.read_records(txids, fields))
    }

    fn slots(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<SlotView>>, EngineError> {
        self.patiently(|| self.read_slots(outpoints))
    }

    fn scan(
        &self,
        scan: Scan,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<ScanPage, EngineError> {
        let after = after.map(|cursor| cursor.place()).transpose()?;
        self.patiently(|| self.scan_page(scan, after, limit))
    }

    fn intents(&self, after: Option<IntentId>, limit: usize) -> Result<Vec<Intent>, EngineError> {
        self.patiently(|| self.read_intents(after, limit))
    }

    fn limits(&self) -> Limits {
        Limits { body: LONGEST_BODY, operations: BATCH }
    }

    fn status(&self) -> Result<EngineStatus, EngineError> {
        self.read_status().map_err(Trouble::into_error)
    }

    fn fate(&self, question: &Question) -> Result<Fate, EngineError> {
        self.read_fate(question).map_err(Trouble::into_error)
    }

    fn take_lease(&self, task: Task) -> Result<bool, EngineError> {
        self.patiently(|| self.take(task))
    }

    fn end_lease(&self, task: Task) -> Result<(), EngineError> {
        self.give_back(task).map_err(Trouble::into_error)
    }
}

impl PostgresEngine {
    /// Does what can be repeated, on another connection when one breaks.
    fn patiently<T>(&self, act: impl Fn() -> Result<T, Trouble>) -> Result<T, EngineError> {
        let mut tries = 0;
        loop {
            match act() {
                Ok(done) => return Ok(done),
                Err(Trouble::Lost { .. } | Trouble::Contended { .. }) if tries < TRIES_LOST => {
                    tries += 1;
                    self.pause(tries);
                }
                Err(trouble) => return Err(trouble.into_error()),
            }
        }
    }
}

//! A worker: takes the lowest block that can proceed, and does the next step for it.
//!
//! Each worker has its own ring, so rings are never shared. Blocks whose pages are being read stay
//! with the worker that requested them; it collects completions between two jobs, and waits for
//! them when there is no job.

use std::sync::Arc;

use varve_consensus::BlockAt;
use varve_io::{BatchReader, Completion, PAGE_LEN};
use varve_runs::PageBuffers;

use super::pool::{Next, Pool};
use super::slot::{BlockId, JoinState};
use super::state::{Job, Task};
use super::{AsBlock, JoinError};
use crate::database::{Appended, Database, Pause};
use crate::error::Error;
use crate::prepare::{Parsed, Prepared, Queried};
use crate::run_error::RunError;
use crate::version::{READ_DEPTH, Version};
use crate::view::DatabaseView;

/// Tags of reads: the ticket above, the number of the read below.
const TICKET_SHIFT: u32 = 32;

/// One of the threads.
pub(super) struct Worker<'p, 'd, T, R, E> {
    pool: &'p Pool<'d, T, R, E>,
    /// Made when there is something to read.
    reader: Option<BatchReader>,
    buffers: PageBuffers,
    waiting: Vec<Waiting<T>>,
}

/// A block whose pages are being read.
struct Waiting<T> {
    id: BlockId,
    block: Arc<T>,
    queried: Queried,
    /// Reads that have not completed.
    left: usize,
    /// The first that failed.
    error: Option<RunError>,
}

impl<'p, 'd, T: AsBlock + Send + Sync, R: Send, E: Send> Worker<'p, 'd, T, R, E> {
    pub(super) fn new(pool: &'p Pool<'d, T, R, E>) -> Self {
        Self { pool, reader: None, buffers: PageBuffers::default(), waiting: Vec::new() }
    }

    /// Works until the joiner ends.
    pub(super) fn run(mut self) {
        loop {
            while let Some(done) = self.reader.as_mut().and_then(BatchReader::try_next) {
                self.accept(done);
            }
            match self.pool.next(!self.waiting.is_empty()) {
                Next::Work(job) => self.work(job),
                Next::Read => {
                    if let Some(done) = self.reader.as_mut().and_then(BatchReader::next) {
                        self.accept(done);
                    }
                }
                Next::End => return,
            }
        }
    }

    fn work(&mut self, job: Job<T>) {
        let Job { id, block, task } = job;
        let (pool, at) = (self.pool, block.as_block());
        match task {
            Task::Prepare(version, repeats) => {
                let parsed = Parsed::new(&version, pool.network, at, repeats);
                pool.note(|state| state.reached(id, JoinState::Parsed));
                self.query(id, &block, parsed, &version);
            }
            Task::Refresh(mut prepared, version) => {
                let refreshed = prepared.refresh(&version).map(|()| prepared);
                pool.update(|state| state.refreshed(id, refreshed));
            }
            Task::Append(prepared, version) => {
                let result = self.append(at, *prepared, &version);
                pool.update(|state| state.appended(id, result));
            }
            Task::Check(appended) => {
                let given = (pool.check)(at, &appended.view);
                let result = given.map(|given| (Arc::clone(&appended.version), given));
                // The coins are freed before the lock is taken.
                drop(appended);
                pool.update(|state| state.checked(id, result));
            }
            Task::Rewind => {
                let result = self.rewind();
                pool.update(|state| state.rewound(result));
            }
        }
    }

    /// Makes the step of the block whose turn it is; `version` is the set below it. Whatever may
    /// wait for the disk is done without holding the set.
    fn append(
        &self,
        block: &BlockAt<'_>,
        mut prepared: Prepared,
        version: &Version,
    ) -> Result<Appended, Error> {
        prepared.bring_up_to(version)?;
        let connect =
            |prepared: &mut Prepared| self.write_set(|set| set.append_current(block, prepared));
        let mut connected = connect(&mut prepared);
        if connected.as_ref().is_err_and(Error::is_moved) {
            prepared.find_again(version)?;
            connected = connect(&mut prepared);
        }
        match connected {
            Ok(()) => {
                let version = self.pool.with_database(|set| Arc::clone(set.latest()));
                Ok(Appended { version, view: DatabaseView::of(prepared, block) })
            }
            Err(error) => {
                let search = self.pool.with_database(|set| set.spender_search());
                Err(search.name_in(error))
            }
        }
    }

    /// Takes back what was appended and not published.
    fn rewind(&self) -> Result<Arc<Version>, Error> {
        self.pool.with_database(Database::retry_undo);
        self.write_set(Database::rewind_or_pause)?;
        Ok(self.pool.with_database(|set| Arc::clone(set.latest())))
    }

    /// Retries a write to the set until it is done, waiting for pauses in between without holding
    /// the set.
    fn write_set(
        &self,
        mut write: impl FnMut(&mut Database) -> Result<Option<Pause>, Error>,
    ) -> Result<(), Error> {
        while let Some(pause) = self.pool.with_database(&mut write)? {
            pause.finish()?;
        }
        Ok(())
    }

    /// Looks the block's keys up, and starts the reads that it takes.
    fn query(&mut self, id: BlockId, block: &Arc<T>, parsed: Parsed, version: &Version) {
        let queried = parsed.query(version);
        self.pool.note(|state| state.reached(id, JoinState::Queried));
        match queried.requests(&mut self.buffers) {
            Err(error) => self.fetched(id, Err(error)),
            Ok(requests) if requests.is_empty() => {
                let prepared = queried.finish(block.as_block(), &mut self.buffers);
                self.fetched(id, prepared);
            }
            Ok(mut requests) => {
                for request in &mut requests {
                    request.tag |= u64::from(id.ticket.0) << TICKET_SHIFT;
                }
                let (left, error) = (requests.len(), None);
                self.pool.note(|state| state.reads(id, left * PAGE_LEN));
                let block = Arc::clone(block);
                self.waiting.push(Waiting { id, block, queried, left, error });
                let reader = self.reader.get_or_insert_with(|| BatchReader::new(READ_DEPTH));
                reader.submit(requests);
            }
        }
    }

    /// Takes a read that has completed. With the last of a block its coins are unpacked.
    fn accept(&mut self, completion: Completion) {
        let Completion { tag, result } = completion;
        let of_ticket = |block: &Waiting<T>| u64::from(block.id.ticket.0) == tag >> TICKET_SHIFT;
        let place = self.waiting.iter().position(of_ticket);
        let Some(block) = place.and_then(|place| self.waiting.get_mut(place)) else { return };
        let tag = tag & ((1 << TICKET_SHIFT) - 1);
        if let Err(error) = block.queried.accept(Completion { tag, result }) {
            block.error.get_or_insert(error);
        }
        block.left -= 1;
        if let (0, Some(place)) = (block.left, place) {
            let waiting = self.waiting.swap_remove(place);
            let Waiting { id, block, queried, error, .. } = waiting;
            let prepared = match error {
                Some(error) => Err(error),
                None => queried.finish(block.as_block(), &mut self.buffers),
            };
            self.fetched(id, prepared);
        }
    }

    fn fetched(&self, id: BlockId, prepared: Result<Prepared, RunError>) {
        self.pool.update(|state| match prepared {
            Ok(prepared) => state.fetched(id, prepared),
            Err(error) => state.fail(id, JoinError::Set(error.into())),
        });
    }
}

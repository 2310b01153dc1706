//! Leases: rows with an end, by the server's clock.
//!
//! A lease is taken by raising its *fence*. It is prolonged by every batch of the thread that took
//! it, in the transaction of the batch: so a batch is committed only while its lease is held, and
//! one whose lease has run out and was taken by another process fails as a whole.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use tokio_postgres::types::ToSql;

use super::PostgresEngine;
use super::sql::Sql;
use super::trouble::Trouble;
use crate::engine::Task;

/// A lease that a thread of this process has.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) task: Task,
    pub(super) holder: String,
    pub(super) fence: i64,
}

/// The leases of this process.
#[derive(Debug)]
pub(super) struct Leases {
    /// The name of this process on the server.
    holder: String,
    held: Mutex<HashMap<(ThreadId, Task), i64>>,
}

impl Leases {
    pub(super) fn new(holder: String) -> Self {
        Self { holder, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<(ThreadId, Task), i64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this thread does alone.
    pub(super) fn of_this_thread(&self) -> Vec<Lease> {
        let (held, here) = (self.held(), thread::current().id());
        let mine = held.iter().filter(|((thread, _), _)| *thread == here);
        let lease = |((_, task), fence): (&(ThreadId, Task), &i64)| Lease {
            task: *task,
            holder: self.holder.clone(),
            fence: *fence,
        };
        mine.map(lease).collect()
    }

    /// The lease of this thread was lost.
    pub(super) fn forget(&self, name: &str) {
        let here = thread::current().id();
        self.held().retain(|(thread, task), _| *thread != here || task.name() != name);
    }
}

impl PostgresEngine {
    pub(super) fn take(&self, task: Task) -> Result<bool, Trouble> {
        let fence = self.pool.read(|link| {
            let name = task.name();
            let params: [&(dyn ToSql + Sync); 2] = [&name, &self.leases.holder];
            let taken = link.client.query_opt(link.statements.get(Sql::TakeLease), &params);
            let row = link.run(taken)?;
            Ok(row.map(|row| row.try_get::<_, i64>(0)).transpose()?)
        })?;
        let held = fence.map(|fence| {
            self.leases.held().insert((thread::current().id(), task), fence);
        });
        Ok(held.is_some())
    }

    pub(super) fn give_back(&self, task: Task) -> Result<(), Trouble> {
        let fence = self.leases.held().remove(&(thread::current().id(), task));
        let Some(fence) = fence else { return Ok(()) };
        self.pool.read(|link| {
            let name = task.name();
            let params: [&(dyn ToSql + Sync); 3] = [&name, &self.leases.holder, &fence];
            let end = link.client.execute(link.statements.get(Sql::EndLease), &params);
            link.run(end).map(drop)
        })
    }
}

//! A batch of operations as one transaction of the server.

use futures_util::future::{try_join, try_join_all, try_join3};
use tokio_postgres::types::ToSql;

use super::PostgresEngine;
use super::lease::Lease;
use super::link::Link;
use super::sql::Sql;
use super::trouble::Trouble;
use crate::engine::{Context, Engine as _, EngineError, Limits};
use crate::operation::Operation;
use crate::outcome::Outcome;
use crate::remote::{Missing, Set};
use crate::rules;

impl PostgresEngine {
    /// Does a batch once.
    pub(super) fn attempt(
        &self,
        context: &Context,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, Trouble> {
        let leases = self.leases.of_this_thread();
        let result = self.pool.with(|link| {
            link.batch += 1;
            let batch = Batch { context, operations, limits: self.limits(), leases: &leases };
            let result = batch.run(link);
            let sound = match &result {
                Ok(_) => true,
                Err(Trouble::Lost { .. } | Trouble::InDoubt { .. }) => false,
                Err(_) => link.roll_back(),
            };
            (result, sound)
        });
        if let Err(Trouble::Engine(EngineError::LeaseLost { task })) = &result {
            self.leases.forget(task);
        }
        result
    }
}

/// One transaction.
struct Batch<'a> {
    context: &'a Context,
    operations: &'a [Operation],
    limits: Limits,
    leases: &'a [Lease],
}

impl Batch<'_> {
    fn run(&self, link: &Link) -> Result<Vec<Outcome>, Trouble> {
        let (set, outcomes) = link.run(self.decide(link))?;
        if set.is_unchanged() {
            link.run(link.client.batch_execute("ROLLBACK"))?;
            return Ok(outcomes);
        }
        let changes = set.changes();
        link.run(link.make_room(&set, &changes.removed))?;
        match link.run(link.commit(&changes)) {
            Err(Trouble::Lost { cause }) => {
                Err(Trouble::InDoubt { question: link.question(), outcomes, cause })
            }
            Err(trouble) => Err(trouble),
            Ok(()) => Ok(outcomes),
        }
    }

    /// Begins the transaction, brings the records, and lets the rules decide.
    async fn decide(&self, link: &Link) -> Result<(Set, Vec<Outcome>), Trouble> {
        let mut set = Set::default();
        self.operations.iter().for_each(|operation| set.plan(operation));
        let wanted = set.wanted();
        let begin = async { Ok::<_, Trouble>(link.client.batch_execute("BEGIN").await?) };
        let claim = async { try_join(self.mark(link), self.keep_leases(link)).await };
        try_join3(begin, claim, link.load(&mut set, &wanted)).await?;
        loop {
            self.operations.iter().for_each(|operation| set.plan(operation));
            let wanted = set.wanted();
            if wanted.is_empty() {
                break;
            }
            link.load(&mut set, &wanted).await?;
        }
        let mut outcomes = Vec::with_capacity(self.operations.len());
        for operation in self.operations {
            let outcome = loop {
                match rules::apply(&mut set, self.context, self.limits, operation) {
                    Ok(outcome) => break outcome,
                    Err(Missing) => {
                        let wanted = set.wanted();
                        link.load(&mut set, &wanted).await?;
                    }
                }
            };
            outcomes.push(outcome);
        }
        Ok((set, outcomes))
    }

    /// Notes the number of the batch, so that its fate can be asked for.
    async fn mark(&self, link: &Link) -> Result<(), Trouble> {
        let params: [&(dyn ToSql + Sync); 2] = [&link.name, &link.batch];
        link.client.execute(link.statements.get(Sql::Mark), &params).await?;
        Ok(())
    }

    /// Prolongs the leases of this thread, which fails when one was lost.
    async fn keep_leases(&self, link: &Link) -> Result<(), Trouble> {
        let keep = async |lease: &Lease| {
            let task = lease.task.name();
            let params: [&(dyn ToSql + Sync); 3] = [&task, &lease.holder, &lease.fence];
            let kept = link.client.execute(link.statements.get(Sql::KeepLease), &params).await?;
            if kept == 0 { Err(Trouble::Engine(EngineError::LeaseLost { task })) } else { Ok(()) }
        };
        try_join_all(self.leases.iter().map(keep)).await.map(drop)
    }
}

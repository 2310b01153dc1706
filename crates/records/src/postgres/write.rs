//! From the changes of a batch to rows.

use std::pin::pin;

use futures_util::future::{try_join, try_join_all, try_join5};
use tokio_postgres::Error;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use varve_types::{Height, Outpoint, Txid};

use super::link::Link;
use super::load::{bytes, signed};
use super::sql::Sql;
use crate::embedded::body;
use crate::embedded::state::State;
use crate::record::Body;
use crate::remote::{Changes, Set};

/// States, a column each.
#[derive(Default)]
struct StateColumns<'a> {
    txids: Vec<&'a [u8]>,
    states: Vec<Vec<u8>>,
    unmined: Vec<Option<i64>>,
    due: Vec<Option<i64>>,
    preserved: Vec<Option<i64>>,
    conflicting: Vec<bool>,
}

impl<'a> StateColumns<'a> {
    fn of(rows: &'a [(Txid, &'a State)]) -> Self {
        let height = |height: Option<Height>| height.map(|height| i64::from(height.to_u32()));
        let mut columns = Self::default();
        for (txid, state) in rows {
            let mut encoded = Vec::with_capacity(160);
            state.encode(None, 0, &mut encoded);
            columns.txids.push(bytes(txid));
            columns.states.push(encoded);
            columns.unmined.push(height(state.head.unmined_since));
            columns.due.push(height(state.head.delete_at));
            columns.preserved.push(height(state.head.preserve_until));
            columns.conflicting.push(state.head.conflicting);
        }
        columns
    }
}

impl Link {
    /// Removes what goes, and then writes the chunks of new records: a COPY waits for the server,
    /// and a record that was removed may come again in the same batch. COMMIT was not sent when
    /// this fails.
    pub(super) async fn make_room(&self, set: &Set, removed: &[Txid]) -> Result<(), Error> {
        let mut rows = set.new_chunks().peekable();
        if rows.peek().is_none() {
            return self.delete(removed).await;
        }
        self.delete(removed).await?;
        let sink = self.client.copy_in(self.statements.get(Sql::CopyChunks)).await?;
        let types = [Type::BYTEA, Type::INT4, Type::BYTEA];
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        for row in rows {
            let number = signed(row.number);
            writer.as_mut().write(&[&bytes(&row.txid), &number, &row.bytes]).await?;
        }
        writer.finish().await.map(drop)
    }

    /// Writes everything else and commits, in one round trip. When this fails for want of an
    /// answer, it is not known whether the batch was done.
    pub(super) async fn commit(&self, changes: &Changes<'_>) -> Result<(), Error> {
        let created = StateColumns::of(&changes.created);
        let updated = StateColumns::of(&changes.updated);
        let bodies = BodyColumns::of(&changes.bodies);
        let chunk_txids: Vec<&[u8]> = changes.chunks.iter().map(|row| bytes(&row.txid)).collect();
        let numbers: Vec<i32> = changes.chunks.iter().map(|row| signed(row.number)).collect();
        let chunks: Vec<&[u8]> = changes.chunks.iter().map(|row| row.bytes.as_slice()).collect();
        let completed: Vec<&[u8]> = changes.completed.iter().map(|id| id.0.as_slice()).collect();
        let begun: Vec<&[u8]> = changes.begun.iter().map(|(id, _)| id.0.as_slice()).collect();
        let intents: Vec<&[u8]> = changes.begun.iter().map(|(_, bytes)| bytes.as_slice()).collect();
        // Statements are sent in this order, before the first answer is waited for.
        let states = try_join(
            self.write_states(Sql::InsertRecords, &created),
            self.write_states(Sql::UpdateRecords, &updated),
        );
        let body_params: [&(dyn ToSql + Sync); 3] = [&bodies.txids, &bodies.inputs, &bodies.bodies];
        let chunk_params: [&(dyn ToSql + Sync); 3] = [&chunk_txids, &numbers, &chunks];
        let begin_params: [&(dyn ToSql + Sync); 2] = [&begun, &intents];
        let complete_params: [&(dyn ToSql + Sync); 1] = [&completed];
        let rest = try_join5(
            self.rows(!bodies.txids.is_empty(), Sql::InsertBodies, &body_params),
            self.rows(!chunks.is_empty(), Sql::UpdateChunks, &chunk_params),
            self.rows(!completed.is_empty(), Sql::DeleteIntents, &complete_params),
            self.rows(!begun.is_empty(), Sql::InsertIntents, &begin_params),
            self.client.batch_execute("COMMIT"),
        );
        try_join(states, rest).await?;
        Ok(())
    }

    async fn write_states(&self, sql: Sql, columns: &StateColumns<'_>) -> Result<(), Error> {
        let StateColumns { txids, states, unmined, due, preserved, conflicting } = columns;
        let params: [&(dyn ToSql + Sync); 6] =
            [txids, states, unmined, due, preserved, conflicting];
        self.rows(!txids.is_empty(), sql, &params).await.map(drop)
    }

    /// Removes records with their bodies and chunks.
    async fn delete(&self, txids: &[Txid]) -> Result<(), Error> {
        let txids: Vec<&[u8]> = txids.iter().map(bytes).collect();
        let all = [Sql::DeleteRecords, Sql::DeleteBodies, Sql::DeleteChunks];
        let params: [&(dyn ToSql + Sync); 1] = [&txids];
        let delete = |sql| self.rows(!txids.is_empty(), sql, &params);
        try_join_all(all.map(delete)).await.map(drop)
    }
}

/// Bodies, a column each.
#[derive(Default)]
struct BodyColumns<'a> {
    txids: Vec<&'a [u8]>,
    inputs: Vec<Vec<u8>>,
    bodies: Vec<Vec<u8>>,
}

impl<'a> BodyColumns<'a> {
    fn of(rows: &'a [(Txid, &'a [Outpoint], &'a Body)]) -> Self {
        let mut columns = Self::default();
        for (txid, inputs, transaction) in rows {
            let mut encoded = Vec::with_capacity(body::encoded_len(&[], transaction));
            body::encode(&[], transaction, &mut encoded);
            columns.txids.push(bytes(txid));
            columns.inputs.push(inputs.iter().flat_map(Outpoint::to_bytes).collect());
            columns.bodies.push(encoded);
        }
        columns
    }
}

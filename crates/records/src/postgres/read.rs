//! Reading, each call at one moment of the server.

use std::collections::HashMap;

use futures_util::future::{try_join, try_join4};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use varve_types::{Outpoint, Txid};

use super::PostgresEngine;
use super::link::{Asked, Link};
use super::load::{bytes, chunk, damaged, outpoints, signed, state, txid, undecoded};
use super::sql::Sql;
use super::trouble::Trouble;
use crate::embedded::body;
use crate::embedded::chunk::{CHUNK, Chunk, chunks};
use crate::embedded::intent;
use crate::embedded::slots::{self, Slots};
use crate::embedded::state::State;
use crate::engine::{Cursor, EngineError, EngineStatus, Fate, Question, Scan, ScanPage, SlotView};
use crate::fields::Fields;
use crate::intent::{Intent, IntentId};
use crate::record::Record;

/// Rows of one moment: records, bodies, chunks.
type Rows = (Vec<Row>, Vec<Row>, Vec<Row>);

impl Link {
    /// Asks for rows of all kinds at one moment, in one round trip.
    async fn snapshot(
        &self,
        txids: &[&[u8]],
        bodies: Option<Sql>,
        chunks: impl Future<Output = Result<Vec<Row>, Error>>,
    ) -> Result<Rows, Error> {
        let params: [&(dyn ToSql + Sync); 1] = [&txids];
        let begin = self.client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
        let bodies = async {
            match bodies {
                Some(sql) => self.rows(true, sql, &params).await,
                None => Ok(Vec::new()),
            }
        };
        let rows = try_join4(begin, self.rows(true, Sql::Records, &params), bodies, chunks);
        let commit = self.client.batch_execute("COMMIT");
        let (((), records, bodies, chunks), ()) = try_join(rows, commit).await?;
        Ok((records, bodies, chunks))
    }
}

impl PostgresEngine {
    pub(super) fn read_records(
        &self,
        txids: &[Txid],
        fields: Fields,
    ) -> Result<Vec<Option<Record>>, Trouble> {
        if txids.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<&[u8]> = txids.iter().map(bytes).collect();
        let bodies = match (fields.contains(Fields::TX), fields.contains(Fields::INPOINTS)) {
            (true, _) => Some(Sql::Bodies),
            (false, true) => Some(Sql::Inputs),
            (false, false) => None,
        };
        let (records, bodies, chunks) = self.pool.read(|link| {
            let params: [&(dyn ToSql + Sync); 1] = [&wanted];
            let chunks = link.rows(slots::are_needed(fields), Sql::AllChunks, &params);
            link.run(link.snapshot(&wanted, bodies, chunks))
        })?;
        let mut found = HashMap::with_capacity(records.len());
        for row in &records {
            let txid = txid(row)?;
            found.insert(
                txid,
                Found { state: state(txid, row.try_get(1)?)?, body: None, chunks: Vec::new() },
            );
        }
        for row in &bodies {
            if let Some(found) = found.get_mut(&txid(row)?) {
                found.body = Some(row);
            }
        }
        for row in &chunks {
            let (txid, number, chunk) = chunk(row)?;
            if let Some(found) = found.get_mut(&txid) {
                found.chunks.push((number, chunk));
            }
        }
        let record = |txid: &Txid| found.get(txid).map(|one| one.record(*txid, fields)).transpose();
        txids.iter().map(record).collect()
    }

    pub(super) fn read_slots(&self, wanted: &[Outpoint]) -> Result<Vec<Option<SlotView>>, Trouble> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let txids: Vec<&[u8]> = wanted.iter().map(|outpoint| bytes(&outpoint.txid)).collect();
        let further = || wanted.iter().filter(|outpoint| outpoint.vout >= CHUNK);
        let owners: Vec<&[u8]> = further().map(|outpoint| bytes(&outpoint.txid)).collect();
        let numbers: Vec<i32> = further().map(|outpoint| signed(outpoint.vout / CHUNK)).collect();
        let (records, _, chunks) = self.pool.read(|link| {
            let params: [&(dyn ToSql + Sync); 2] = [&owners, &numbers];
            let chunks = link.rows(!owners.is_empty(), Sql::Chunks, &params);
            link.run(link.snapshot(&txids, None, chunks))
        })?;
        let mut states = HashMap::with_capacity(records.len());
        for row in &records {
            let txid = txid(row)?;
            states.insert(txid, state(txid, row.try_get(1)?)?);
        }
        let mut further = HashMap::with_capacity(chunks.len());
        for row in &chunks {
            let (txid, number, chunk) = chunk(row)?;
            further.insert((txid, number), chunk);
        }
        let view = |outpoint: &Outpoint| {
            let Some(state) = states.get(&outpoint.txid) else { return Ok(None) };
            let vout = outpoint.vout;
            let chunk = further.get(&(outpoint.txid, vout / CHUNK));
            if (CHUNK..state.head.total_utxos).contains(&vout) && chunk.is_none() {
                return Err(damaged(outpoint.txid, "slots are missing"));
            }
            Ok(Some(slots::view(state, chunk, vout)))
        };
        wanted.iter().map(view).collect()
    }

    pub(super) fn scan_page(
        &self,
        scan: Scan,
        after: Option<(u32, Txid)>,
        limit: usize,
    ) -> Result<ScanPage, Trouble> {
        let (sql, to) = match scan {
            Scan::All => (Sql::ScanAll, u32::MAX),
            Scan::Conflicting => (Sql::ScanConflicting, u32::MAX),
            Scan::Unmined => (Sql::ScanUnmined, u32::MAX),
            Scan::UnminedSince(height) => (Sql::ScanUnmined, height.to_u32()),
            Scan::DueAt(height) => (Sql::ScanDue, height.to_u32()),
            Scan::PreservedUntil(height) => (Sql::ScanPreserved, height.to_u32()),
        };
        let to = i64::from(to);
        let height = after.map_or(-1, |(height, _)| i64::from(height));
        let behind = after.as_ref().map_or(&[][..], |(_, txid)| bytes(txid));
        let wanted = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
        let rows = self.pool.read(|link| {
            let params: [&(dyn ToSql + Sync); 4] = [&to, &height, &behind, &wanted];
            link.run(link.rows(true, sql, &params))
        })?;
        let place = |row: &Row| {
            let height = u32::try_from(row.try_get::<_, i64>(1)?);
            let height = height.map_err(|_| Trouble::damaged("a height is out of range"))?;
            Ok((height, txid(row)?))
        };
        let mut found: Vec<(u32, Txid)> = rows.iter().map(place).collect::<Result<_, Trouble>>()?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more);
        let next = next.map(|(height, txid)| Cursor::behind(*height, txid));
        Ok(ScanPage { txids: found.into_iter().map(|(_, txid)| txid).collect(), next })
    }

    pub(super) fn read_intents(
        &self,
        after: Option<IntentId>,
        limit: usize,
    ) -> Result<Vec<Intent>, Trouble> {
        let behind = after.as_ref().map_or(&[][..], |id| id.0.as_slice());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.pool.read(|link| {
            let params: [&(dyn ToSql + Sync); 2] = [&behind, &limit];
            link.run(link.rows(true, Sql::Intents, &params))
        })?;
        let read = |row: &Row| {
            let decoded = intent::decode(row.try_get(0)?);
            decoded.map_err(|error| Trouble::damaged(format!("an intent is damaged: {error}")))
        };
        rows.iter().map(read).collect()
    }

    pub(super) fn read_status(&self) -> Result<EngineStatus, Trouble> {
        let row = self.pool.read(|link| {
            let status = link.client.query_one(link.statements.get(Sql::Status), &[]);
            link.run(status)
        })?;
        let number = |place: usize| -> Result<u64, Trouble> {
            Ok(u64::try_from(row.try_get::<_, i64>(place)?).unwrap_or(0))
        };
        let (keys, intents, stored) = (number(0)?, number(1)?, number(2)?);
        Ok(EngineStatus { keys, intents, live: stored, stored, ..EngineStatus::default() })
    }

    /// Ends the session that was asked for something, if it is still there, and looks at its mark.
    pub(super) fn read_fate(&self, question: &Question) -> Result<Fate, Trouble> {
        let foreign = "this question was not asked by PostgreSQL";
        let asked = Asked::read(question);
        let asked = asked
            .ok_or_else(|| Trouble::Engine(EngineError::Unavailable { cause: foreign.into() }))?;
        let (alive, done) = self.pool.read(|link| {
            let end: [&(dyn ToSql + Sync); 2] = [&asked.pid, &asked.started];
            let fate: [&(dyn ToSql + Sync); 2] = [&asked.link, &asked.batch];
            // Two statements, each with a newer view than the one before: a session that is gone in
            // the first has committed before the second, or never.
            let end = link.rows(true, Sql::End, &end);
            let fate = link.client.query_one(link.statements.get(Sql::Fate), &fate);
            let (ended, row) = link.run(try_join(end, fate))?;
            Ok((!ended.is_empty(), row.try_get::<_, bool>(0)?))
        })?;
        Ok(match (done, alive) {
            (true, _) => Fate::Done,
            (false, true) => Fate::Undecided,
            (false, false) => Fate::NotDone,
        })
    }
}

/// A record on its way from rows.
struct Found<'a> {
    state: State,
    body: Option<&'a Row>,
    /// In their order.
    chunks: Vec<(u32, Chunk)>,
}

impl Found<'_> {
    fn record(&self, txid: Txid, fields: Fields) -> Result<Record, Trouble> {
        let head = &self.state.head;
        let mut record = head.to_record(txid);
        record.fields = fields.intersection(Fields::ALL);
        let body = || self.body.ok_or_else(|| damaged(txid, "its transaction is missing"));
        if fields.contains(Fields::INPOINTS) {
            record.inputs = outpoints(txid, body()?.try_get(1)?)?;
        }
        if fields.contains(Fields::TX) {
            let decoded = body::decode(body()?.try_get(2)?, txid);
            record.body = Some(decoded.map_err(|error| undecoded(txid, &error))?.1);
        }
        if slots::are_needed(fields) {
            let mut slots = Slots::of(&mut record);
            slots.add(&self.state.first);
            let expected = 1..chunks(head.total_utxos);
            if !expected.eq(self.chunks.iter().map(|(number, _)| *number)) {
                return Err(damaged(txid, "slots are missing"));
            }
            self.chunks.iter().for_each(|(_, chunk)| slots.add(chunk));
            slots.finish();
            if fields.contains(Fields::CHILDREN) {
                record.children.conflicting.clone_from(&head.conflicting_children);
            }
        }
        Ok(record)
    }
}

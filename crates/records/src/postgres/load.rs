//! From rows to the working set of a batch.

use futures_util::future::try_join5;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use varve_io::GlobalOffset;
use varve_types::{DecodeError, Outpoint, Reader, Txid};

use super::link::Link;
use super::sql::Sql;
use super::trouble::Trouble;
use crate::embedded::chunk::Chunk;
use crate::embedded::state::State;
use crate::remote::{Set, Wanted};

pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Link {
    /// Asks for rows, unless nothing is wanted.
    pub(super) async fn rows(
        &self,
        wanted: bool,
        sql: Sql,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        if !wanted {
            return Ok(Vec::new());
        }
        self.client.query(self.statements.get(sql), params).await
    }

    /// Brings what is wanted, all in one round trip. The states are locked.
    pub(super) async fn load(&self, set: &mut Set, wanted: &Wanted) -> Result<(), Trouble> {
        let records: Vec<&[u8]> = wanted.records.iter().map(bytes).collect();
        let inputs: Vec<&[u8]> = wanted.inputs.iter().map(bytes).collect();
        let chunks: Vec<&[u8]> = wanted.chunks.iter().map(|(txid, _)| bytes(txid)).collect();
        let numbers: Vec<i32> = wanted.chunks.iter().map(|(_, number)| signed(*number)).collect();
        let whole: Vec<&[u8]> = wanted.whole.iter().map(bytes).collect();
        let unmined: Vec<&[u8]> = wanted.unmined.iter().map(bytes).collect();
        let (record_rows, input_rows, chunk_rows, whole_rows, unmined_rows) = try_join5(
            self.rows(!records.is_empty(), Sql::LockRecords, &[&records]),
            self.rows(!inputs.is_empty(), Sql::Inputs, &[&inputs]),
            self.rows(!chunks.is_empty(), Sql::Chunks, &[&chunks, &numbers]),
            self.rows(!whole.is_empty(), Sql::AllChunks, &[&whole]),
            self.rows(!unmined.is_empty(), Sql::Unmined, &[&unmined]),
        )
        .await?;
        for row in &record_rows {
            let txid = txid(row)?;
            set.add_record(txid, Some(state(txid, row.try_get(1)?)?));
        }
        wanted.records.iter().for_each(|txid| set.add_record(*txid, None));
        for row in &input_rows {
            set.add_inputs(txid(row)?, outpoints(txid(row)?, row.try_get(1)?)?);
        }
        for row in chunk_rows.iter().chain(&whole_rows) {
            let (txid, number, chunk) = chunk(row)?;
            set.add_chunk(txid, number, chunk);
        }
        for row in &unmined_rows {
            set.add_unmined(txid(row)?, true);
        }
        wanted.unmined.iter().for_each(|txid| set.add_unmined(*txid, false));
        set.check(wanted).map_err(|txid| damaged(txid, "parts of it are missing"))
    }
}

/// The bytes of a txid, as a parameter.
pub(super) const fn bytes(txid: &Txid) -> &[u8] {
    txid.as_bytes().as_slice()
}

/// A number of a chunk as the server counts.
pub(super) fn signed(number: u32) -> i32 {
    i32::try_from(number).expect("eight outputs a chunk: fewer than 2^29")
}

/// The txid in the first column.
pub(super) fn txid(row: &Row) -> Result<Txid, Trouble> {
    let bytes: &[u8] = row.try_get(0)?;
    let bytes = bytes.try_into().map_err(|_| Trouble::damaged("a txid has not 32 bytes"))?;
    Ok(Txid::from_bytes(bytes))
}

/// A state as it is stored.
pub(super) fn state(txid: Txid, bytes: &[u8]) -> Result<State, Trouble> {
    let decoded = State::decode(bytes, GlobalOffset::ZERO);
    decoded.map(|(state, _, _)| state).map_err(|error| undecoded(txid, &error))
}

/// What a record spends, as it is stored.
pub(super) fn outpoints(txid: Txid, bytes: &[u8]) -> Result<Vec<Outpoint>, Trouble> {
    let (outpoints, rest) = bytes.as_chunks::<{ Outpoint::LEN }>();
    if !rest.is_empty() {
        return Err(damaged(txid, "its inputs are cut off"));
    }
    Ok(outpoints.iter().map(Outpoint::from_bytes).collect())
}

/// A row of a chunk.
pub(super) fn chunk(row: &Row) -> Result<(Txid, u32, Chunk), Trouble> {
    let (txid, number): (Txid, i32) = (txid(row)?, row.try_get(1)?);
    let mut reader = Reader::new(row.try_get(2)?);
    let chunk = Chunk::read(&mut reader).and_then(|chunk| reader.end().map(|()| chunk));
    let chunk = chunk.map_err(|error| undecoded(txid, &error))?;
    let number = u32::try_from(number).map_err(|_| damaged(txid, "a chunk has no number"))?;
    Ok((txid, number, chunk))
}

pub(super) fn undecoded(txid: Txid, error: &DecodeError) -> Trouble {
    damaged(txid, &error.to_string())
}

pub(super) fn damaged(txid: Txid, what: &str) -> Trouble {
    Trouble::damaged(format!("the record of {txid} in PostgreSQL is damaged: {what}"))
}

//! The same contract on `SQLite`: one transaction a batch, in its write-ahead log.
//!
//! ```text
//!  records  id, txid (unique), flags, heights, sizes      what every spend looks at: small rows
//!  outputs  (record, vout), hash, spender, spendable_in   one row per slot
//!  bodies   id, inputs, tx                                written once
//! ```
//!
//! - `synchronous = FULL`: a commit is on the disk before it returns.
//! - Rows are numbered, so that new ones go to the end; only the index of txids is written at
//!   random places.
//! - No count of spent slots is kept: whether all are spent is queried from the neighbouring rows,
//!   on the same page. So a spend changes one row.
//! - A cache of a third of the memory, statements prepared once, the log folded back every 64 MiB,
//!   the file locked once for all.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use varve_records::Operation;
use varve_records::operation::{NewRecord, Spend, SpendPart, Unit};
use varve_records::record::{Slot, SpendingData, UtxoHash};
use varve_types::{Height, Outpoint, Txid};

use super::digest::RecordsDigest;
use super::plain::{self, Fields};
use super::side::{Memory, Side, units};
use super::work::CONTEXT;

const SCHEMA: &str = "
    PRAGMA page_size = 4096;
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 16384;
    PRAGMA temp_store = MEMORY;
    CREATE TABLE IF NOT EXISTS records (
        id INTEGER PRIMARY KEY, txid BLOB NOT NULL UNIQUE, flags INTEGER NOT NULL,
        spending_height INTEGER NOT NULL, unmined_since INTEGER NOT NULL,
        preserve_until INTEGER NOT NULL, delete_at INTEGER NOT NULL, created_at INTEGER NOT NULL,
        fee INTEGER NOT NULL, size INTEGER NOT NULL, extended_size INTEGER NOT NULL,
        version INTEGER NOT NULL, lock_time INTEGER NOT NULL, outputs INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS outputs (
        record INTEGER NOT NULL, vout INTEGER NOT NULL, hash BLOB NOT NULL, spender BLOB,
        spendable_in INTEGER, PRIMARY KEY (record, vout)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS bodies (
        id INTEGER PRIMARY KEY, inputs BLOB NOT NULL, tx BLOB NOT NULL);";

const FIND: &str = "SELECT id, flags, spending_height, unmined_since, preserve_until, delete_at, \
                    outputs FROM records WHERE txid = ?1";
const SLOT: &str =
    "SELECT hash, spender, spendable_in FROM outputs WHERE record = ?1 AND vout = ?2";
const SPEND: &str = "UPDATE outputs SET spender = ?3 WHERE record = ?1 AND vout = ?2";
const UNSPENT: &str = "SELECT EXISTS (SELECT 1 FROM outputs WHERE record = ?1 AND spender IS NULL)";
const SCHEDULE: &str = "UPDATE records SET delete_at = ?2 WHERE id = ?1";
const INSERT_RECORD: &str = "INSERT INTO records VALUES \
                             (NULL, ?1, ?2, ?3, ?4, 0, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
const INSERT_OUTPUT: &str = "INSERT INTO outputs VALUES (?1, ?2, ?3, NULL, NULL)";
const INSERT_BODY: &str = "INSERT INTO bodies VALUES (?1, ?2, ?3)";
const ALL: &str = "SELECT records.*, inputs, tx FROM records JOIN bodies USING (id) ORDER BY id";
const SLOTS: &str = "SELECT record, vout, hash, spender FROM outputs ORDER BY record, vout";

const CREATING: u8 = 16;
const CONFLICTING: u8 = 8;
const LOCKED: u8 = 4;

/// Records in `SQLite`.
pub(super) struct Sqlite(Mutex<Connection>);

/// The part of a record that a spend looks at.
#[derive(Clone, Copy, Debug)]
struct Head {
    id: i64,
    flags: u8,
    spending_height: u32,
    unmined_since: u32,
    preserve_until: u32,
    delete_at: u32,
    outputs: u32,
}

impl Sqlite {
    pub(super) fn open(folder: &Path, memory: Memory) -> Result<Self> {
        let connection = Connection::open(folder.join("sqlite"))?;
        connection.execute_batch(SCHEMA)?;
        let cache = i64::try_from(memory.share(3) >> 10)?;
        // In KiB when it is negative.
        connection.pragma_update(None, "cache_size", -cache)?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Self(Mutex::new(connection)))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Side for Sqlite {
    fn load(&mut self, operations: &[Operation]) -> Result<()> {
        let refused = self.apply(operations)?;
        ensure!(refused == 0, "{refused} records of the stock were refused");
        Ok(())
    }

    fn loaded(&mut self) -> Result<()> {
        self.connection().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    fn apply(&self, operations: &[Operation]) -> Result<usize> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let mut refused = 0;
        for unit in units(operations) {
            refused += usize::from(!apply(&transaction, unit?)?);
        }
        transaction.commit()?;
        Ok(refused)
    }

    fn digest(&self) -> Result<RecordsDigest> {
        let connection = self.connection();
        let mut records = connection.prepare(ALL)?;
        let mut outputs = connection.prepare(SLOTS)?;
        let (mut records, mut outputs) = (records.query([])?, outputs.query([])?);
        let mut digest = RecordsDigest::default();
        let mut output = outputs.next()?.map(slot_of).transpose()?;
        while let Some(row) = records.next()? {
            let (id, count): (i64, usize) = (row.get(0)?, row.get(13)?);
            let mut slots = vec![None; count];
            while let Some((record, vout, slot)) = output.filter(|(record, ..)| *record == id) {
                debug_assert_eq!(record, id, "filtered above");
                *slots.get_mut(vout).context("an output beyond the last")? = Some(slot);
                output = outputs.next()?.map(slot_of).transpose()?;
            }
            digest.add(&row.get::<_, Vec<u8>>(1)?, &value_of(row, &slots)?);
        }
        Ok(digest)
    }
}

/// Applies one unit; false when it was refused.
fn apply(db: &Transaction<'_>, unit: &Unit) -> Result<bool> {
    let known = find(db, &unit.txid)?.is_some();
    let mut passed = Vec::new();
    if let Some(part) = &unit.spend {
        for spend in &part.spends {
            match judge(db, unit.txid, known, part, spend)? {
                None => return Ok(false),
                Some(head) => passed.extend(head.map(|head| (spend, head))),
            }
        }
        for (spend, head) in passed {
            let by = SpendingData::new(unit.txid, spend.vin).to_bytes();
            let mut statement = db.prepare_cached(SPEND)?;
            statement.execute(params![head.id, spend.outpoint.vout, by])?;
            schedule(db, &head, part.rules.height)?;
        }
    }
    match &unit.create {
        Some(_) if known => Ok(false),
        Some(new) => create(db, &unit.txid, new).map(|()| true),
        None => Ok(true),
    }
}

fn find(db: &Transaction<'_>, txid: &Txid) -> Result<Option<Head>> {
    let head = |row: &Row<'_>| {
        Ok(Head {
            id: row.get(0)?,
            flags: row.get(1)?,
            spending_height: row.get(2)?,
            unmined_since: row.get(3)?,
            preserve_until: row.get(4)?,
            delete_at: row.get(5)?,
            outputs: row.get(6)?,
        })
    };
    Ok(db.prepare_cached(FIND)?.query_row([txid.as_bytes()], head).optional()?)
}

/// `None` when the spend is refused, otherwise the record whose slot is to be written, if it is not
/// written already. The order of the checks is that of the contract.
fn judge(
    db: &Transaction<'_>,
    txid: Txid,
    known: bool,
    part: &SpendPart,
    spend: &Spend,
) -> Result<Option<Option<Head>>> {
    let Some(head) = find(db, &spend.outpoint.txid)? else {
        return Ok(known.then_some(None));
    };
    let rules = part.rules;
    let refused = head.flags & CREATING != 0
        || (head.flags & CONFLICTING != 0 && !rules.ignore_conflicting)
        || (head.flags & LOCKED != 0 && !rules.ignore_locked)
        || head.spending_height > rules.height.to_u32()
        || head.outputs == 0;
    if refused {
        return Ok(None);
    }
    type Found = ([u8; 32], Option<[u8; 36]>, Option<u32>);
    let slot =
        |row: &Row<'_>| -> rusqlite::Result<Found> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
    let mut statement = db.prepare_cached(SLOT)?;
    let found = statement.query_row(params![head.id, spend.outpoint.vout], slot).optional()?;
    let Some((hash, spender, spendable_in)) = found else { return Ok(None) };
    let resting = spendable_in.is_some_and(|height| height > rules.height.to_u32());
    if hash != *spend.hash.as_bytes() || resting {
        return Ok(None);
    }
    let by = SpendingData::new(txid, spend.vin).to_bytes();
    Ok(match spender {
        None => Some(Some(head)),
        Some(spender) if spender == by => Some(None),
        Some(_) => None,
    })
}

/// Updates when the record may be deleted.
fn schedule(db: &Transaction<'_>, head: &Head, at: Height) -> Result<()> {
    if head.preserve_until > 0 {
        return Ok(());
    }
    let unspent: bool = db.prepare_cached(UNSPENT)?.query_row([head.id], |row| row.get(0))?;
    // A record in a block of the longest chain has no `unmined_since`.
    let over = !unspent && head.unmined_since == 0;
    let due = if over { at.to_u32() + CONTEXT.retention } else { 0 };
    if due != head.delete_at {
        db.prepare_cached(SCHEDULE)?.execute(params![head.id, due])?;
    }
    Ok(())
}

fn create(db: &Transaction<'_>, txid: &Txid, new: &NewRecord) -> Result<()> {
    ensure!(new.blocks.is_empty() && !new.frozen && !new.conflicting, "the race has no such units");
    db.prepare_cached(INSERT_RECORD)?.execute(params![
        txid.as_bytes(),
        plain::flags_of(new),
        new.spending_height.map_or(0, Height::to_u32),
        new.height.to_u32().max(1),
        new.created_at,
        new.fee.to_sat(),
        new.size,
        new.extended_size,
        new.version,
        new.lock_time,
        new.utxos.len(),
    ])?;
    let id = db.last_insert_rowid();
    let mut statement = db.prepare_cached(INSERT_OUTPUT)?;
    for (vout, hash) in new.utxos.iter().enumerate() {
        if let Some(hash) = hash {
            statement.execute(params![id, vout, hash.as_bytes()])?;
        }
    }
    let inputs: Vec<u8> = new.inputs.iter().flat_map(Outpoint::to_bytes).collect();
    let body = new.body_bytes().map_or(&[][..], |bytes| bytes);
    db.prepare_cached(INSERT_BODY)?.execute(params![id, inputs, body])?;
    Ok(())
}

fn slot_of(row: &Row<'_>) -> Result<(i64, usize, Slot)> {
    let spending = row.get::<_, Option<[u8; 36]>>(3)?.map(|bytes| SpendingData::from_bytes(&bytes));
    let slot = Slot { hash: UtxoHash::from_bytes(row.get(2)?), spending };
    Ok((row.get(0)?, row.get(1)?, slot))
}

/// The plain value of a row of everything.
fn value_of(row: &Row<'_>, slots: &[Option<Slot>]) -> Result<Vec<u8>> {
    let inputs: Vec<u8> = row.get(14)?;
    let (inputs, _) = inputs.as_chunks::<36>();
    let inputs: Vec<Outpoint> = inputs.iter().map(Outpoint::from_bytes).collect();
    let body: Vec<u8> = row.get(15)?;
    let fields = Fields {
        flags: row.get(2)?,
        spending_height: row.get(3)?,
        unmined_since: row.get(4)?,
        preserve_until: row.get(5)?,
        delete_at: row.get(6)?,
        created_at: row.get(7)?,
        fee: row.get(8)?,
        size: row.get(9)?,
        extended_size: row.get(10)?,
        version: row.get(11)?,
        lock_time: row.get(12)?,
        slots,
        inputs: &inputs,
        body: &body,
    };
    Ok(fields.encode())
}

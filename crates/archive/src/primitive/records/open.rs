//! Opening a table of records: the body is cut to its mark, the rest is linked again. At rest,
//! nothing is cut and nothing is left to link.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use varve_io::{LogReader, MappedLog, MappedLogConfig, Storage};

use super::{Link, ROWS_MAX, RecordHead, Records, RecordsOwner, Row, State};
use crate::primitive::cells::Cells;
use crate::primitive::error::{Error, Result};
use crate::primitive::head::Geometry;
use crate::primitive::mark::Mark;
use crate::primitive::stage::{Stage, UNLINKED};
use crate::primitive::table::TableConfig;

/// Rows that wait for the link they hold, by their cell and that link.
type Waiting = HashMap<(u64, u64), (u64, u64)>;

impl<const K: usize, const V: usize> Records<K, V> {
    /// Opens a table that nobody writes to, as it was at `mark`. Nothing is changed. `None` when
    /// the saved head does not know all rows.
    pub(crate) fn at_rest(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        mark: Mark,
    ) -> Result<Option<Self>> {
        let (rows, geometry) = check::<K, V>(config, mark)?;
        if mark.linked < rows {
            return Ok(None);
        }
        let log = LogReader::at_rest(Arc::clone(&storage), body::<K, V>(config), mark.log);
        let cells = Cells::at_rest(storage, config.identity(), mark.cells)?;
        let state = State { body: log.snapshot(), stage: Stage::new(rows) };
        let state = ArcSwap::from_pointee(state);
        Ok(Some(Self { name: config.name.clone(), cells, geometry, state }))
    }
}

impl<const K: usize, const V: usize> RecordsOwner<K, V> {
    /// Opens the table as it was at `mark`. `hash` is asked for the key of every row that the saved
    /// head does not know.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        mark: Mark,
        hash: impl Fn(&[u8; K]) -> u64,
    ) -> Result<Self> {
        let table = Self::open_unlinked(storage, config, mark)?;
        let mut waiting = Waiting::new();
        let shared = &*table.shared;
        for number in mark.linked..shared.rows() {
            let found = shared.row(Link::of(number))?;
            if found.next != UNLINKED {
                let hash = hash(&found.row.key);
                relink(shared.head(), &mut waiting, Unlinked { number, next: found.next, hash })?;
            }
        }
        if let Some((number, _)) = waiting.into_values().min() {
            return Err(shared.broken(number));
        }
        Ok(table)
    }

    fn open_unlinked(storage: Arc<dyn Storage>, config: &TableConfig, mark: Mark) -> Result<Self> {
        let (rows, geometry) = check::<K, V>(config, mark)?;
        let log = MappedLog::open(Arc::clone(&storage), body::<K, V>(config), mark.log)?;
        let (cells, saver) = Cells::open(storage, config.identity(), mark.cells)?;
        let state = State { body: log.reader().snapshot(), stage: Stage::new(rows) };
        let state = ArcSwap::from_pointee(state);
        let shared = Records { name: config.name.clone(), cells, geometry, state };
        let (shared, linked) = (Arc::new(shared), mark.linked);
        Ok(Self { shared, log, saver, linked, linked_next: linked })
    }
}

/// The rows and the geometry of the table, when its mark can be used.
fn check<const K: usize, const V: usize>(
    config: &TableConfig,
    mark: Mark,
) -> Result<(u64, Geometry)> {
    let bad = |what| Error::BadMark { table: config.name.clone(), what };
    let row_len = Row::<K, V>::LEN as u64;
    let end = mark.log.end.get();
    let rows = end / row_len;
    if !end.is_multiple_of(row_len) || rows > ROWS_MAX {
        return Err(bad("the body does not end with a row; restore the manifest"));
    }
    if mark.linked > rows {
        return Err(bad("the head knows rows that the body does not have; restore the manifest"));
    }
    let geometry = mark.geometry(config.geometry);
    if !geometry.is_sound() {
        return Err(bad("a head needs a bucket, and a bucket a row"));
    }
    Ok((rows, geometry))
}

/// The body's log: segments of whole rows.
fn body<const K: usize, const V: usize>(config: &TableConfig) -> MappedLogConfig {
    let row_len = u32::try_from(Row::<K, V>::LEN).expect("rows are small");
    let rows = (config.segment_len / row_len).max(1);
    config.log(rows.saturating_mul(row_len))
}

/// A committed row of the body that the head does not know yet.
struct Unlinked {
    number: u64,
    /// The link of the row below in its chain.
    next: u64,
    hash: u64,
}

/// Links a row, and those that were waiting for it.
fn relink(head: RecordHead<'_>, waiting: &mut Waiting, row: Unlinked) -> Result<()> {
    let Unlinked { number, next, hash } = row;
    let cell = head.cell(number, hash)?;
    let generation = head.geometry.generation(number);
    let place = head.geometry.cell(generation, hash);
    if RecordHead::link(cell.load()) != next {
        waiting.insert((place, next), (number, hash));
        return Ok(());
    }
    let (mut number, mut hash) = (number, hash);
    loop {
        RecordHead::push(cell, hash, number, |_| ());
        match waiting.remove(&(place, number)) {
            Some(above) => (number, hash) = above,
            None => return Ok(()),
        }
    }
}

//! The runs of the index at one moment.
//!
//! Cloning bumps a count: a lookup holds the runs of its moment, whatever is published meanwhile. A
//! lookup asks for many places at once: the filters say which runs may have them, the directories
//! which pages, and those that are not in memory are read in one submission.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use varve_io::{BatchReader, GlobalOffset, Storage};
use varve_runs::{PageBuffers, Query, Run, RunInfo, Runs, Source as _, StoreKey};

use super::leaf::Leaf;
use super::row::{Row, RowCodec, RowError};
use crate::embedded::key::Place;

/// Reads in flight at once.
const DEPTH: u16 = 256;

/// Counts the runs that were published beside those of merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct Epoch(u64);

/// The runs.
#[derive(Clone, Debug)]
pub(in crate::embedded) struct Cold {
    runs: Runs<RowCodec>,
    epoch: Epoch,
    /// Readers and buffers of finished lookups, for reuse.
    idle: Arc<Mutex<Vec<(BatchReader, PageBuffers)>>>,
}

/// The rows that were looked up, by place.
#[derive(Debug)]
pub(in crate::embedded) struct Found {
    /// In the order of the places.
    rows: Vec<Row>,
    no_runs: bool,
}

impl Found {
    /// Whether there were no runs to ask.
    pub(in crate::embedded) const fn is_of_no_runs(&self) -> bool {
        self.no_runs
    }

    /// The live rows of a place that was asked for.
    pub(in crate::embedded) fn at(&self, place: Place) -> impl Iterator<Item = Row> {
        let from = self.rows.partition_point(|row| row.place() < place);
        let rows = self.rows.get(from..).unwrap_or_default().iter().copied();
        rows.take_while(move |row| row.place() == place)
    }
}

impl Cold {
    /// Opens the runs that a manifest names, youngest first.
    pub(in crate::embedded) fn open(
        storage: &dyn Storage,
        key: StoreKey,
        infos: &[RunInfo],
    ) -> Result<Self, RowError> {
        let runs = Runs::open(storage, key, infos)?;
        Ok(Self { runs, epoch: Epoch(0), idle: Arc::default() })
    }

    pub(in crate::embedded) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(in crate::embedded) fn is_empty(&self) -> bool {
        self.runs.as_slice().is_empty()
    }

    /// Bytes of memory that filters and directories take.
    pub(in crate::embedded) fn memory(&self) -> u64 {
        self.runs.memory() as u64
    }

    pub(in crate::embedded) const fn runs(&self) -> &Runs<RowCodec> {
        &self.runs
    }

    /// These runs and a younger one, if there is one: the next epoch.
    pub(in crate::embedded) fn with_youngest(&self, run: Option<Arc<Run<RowCodec>>>) -> Self {
        let runs = self.runs.with_replaced(0..0, run);
        Self { runs, epoch: Epoch(self.epoch.0 + 1), idle: Arc::clone(&self.idle) }
    }

    /// These runs with some replaced by their merge.
    pub(in crate::embedded) fn with_merged(
        &self,
        range: Range<usize>,
        merged: Option<Arc<Run<RowCodec>>>,
    ) -> Self {
        Self { runs: self.runs.with_replaced(range, merged), ..self.clone() }
    }

    /// The live rows of these places, in any order.
    pub(in crate::embedded) fn find(&self, mut places: Vec<Place>) -> Result<Found, RowError> {
        if self.is_empty() {
            return Ok(Found { rows: Vec::new(), no_runs: true });
        }
        places.sort_unstable();
        places.dedup();
        let mut query = Query::new(&self.runs, places);
        let (mut reader, mut buffers) = self.take();
        let rows = query.fetch(&mut reader, &mut buffers).and_then(|()| join(&query));
        query.release(&mut buffers);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((reader, buffers));
        Ok(Found { rows: rows?, no_runs: false })
    }

    fn take(&self) -> (BatchReader, PageBuffers) {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| (BatchReader::new(DEPTH), PageBuffers::default()))
    }

    /// The live rows that are `wanted`, from a place on, in order, up to the end of its shard:
    /// those of this place, and of as many behind it as have `room` rows.
    pub(in crate::embedded) fn range(
        &self,
        from: Place,
        room: usize,
        wanted: impl Fn(&Row) -> bool,
    ) -> Result<Vec<Row>, RowError> {
        let mut merge = self.runs.rows_from(&from)?;
        let (mut rows, mut behind): (Vec<Row>, _) = (Vec::new(), 0);
        while let Some(row) = merge.head().filter(|row| row.place().shard() == from.shard()) {
            let is_next = rows.last().is_none_or(|last| last.place() != row.place());
            if behind >= room && is_next {
                break;
            }
            if wanted(&row) {
                rows.push(row);
                behind += usize::from(row.place() != from);
            }
            merge.advance()?;
        }
        Ok(rows)
    }
}

/// The live rows of a query, in the order of its keys.
fn join(query: &Query<RowCodec>) -> Result<Vec<Row>, RowError> {
    let mut rows = Vec::with_capacity(query.keys().len());
    let mut deleted: Vec<GlobalOffset> = Vec::new();
    for pages in query.by_key() {
        deleted.clear();
        // From the youngest run to the oldest: a version dies in a younger run than it is in.
        for page in pages {
            let leaf = Leaf::parse(query.payload(page)?);
            let leaf = leaf.map_err(|error| query.place(page).error(error))?;
            for row in leaf.at(*query.key(page)) {
                if row.is_delete() {
                    deleted.push(row.at());
                } else if !deleted.contains(&row.at()) {
                    rows.push(row);
                }
            }
        }
    }
    Ok(rows)
}

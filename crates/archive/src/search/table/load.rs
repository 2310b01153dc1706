//! Loading a table from its manifest.
//!
//! The runs of a manifest are of three kinds, distinguished by their steps:
//!
//! ```text
//!  youngest                                                              oldest
//!  ┌──────────────┬──────────────────────────────┬──────────────────────┐
//!  │ young rows   │ runs of the confirmed chain  │ runs of stale        │
//!  │ of a rest    │                              │ branches             │
//!  └──────────────┴──────────────────────────────┴──────────────────────┘
//!   step 2³² − 2   2³¹ + the number of the flush   the number of the flush
//!
//!  the owner's part   │ watermark u64 │ end u64 │ bytes of the table's owner │
//! ```
//!
//! `end` is the first link whose rows are neither in runs nor in the file of young rows.

use std::sync::Arc;

use varve_io::{FormatError, Kind, Storage};
use varve_runs::{
    Fields, Manifest, Run, RunInfo, RunNumber, Runs, Sequence, Source as _, StoreKey,
};

use crate::link::TxLink;
use crate::search::batch::{PART_LEN, PLACE_BITS};
use crate::search::codec::Search;
use crate::search::error::{Result, SearchError};
use crate::search::pane::Pane;

/// Kind and version of the manifest of a search table.
pub(super) const MANIFEST: (Kind, u32) = (Kind(*b"SEARCHMN"), 1);
/// The steps of runs of stale branches are below.
pub(super) const CHAIN: u32 = 1 << 31;
/// The step of the file of young rows.
pub(super) const RESTED: Sequence = Sequence::new(u32::MAX - 1);

/// What a manifest keeps for the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    /// All rows below are in runs.
    pub(super) watermark: TxLink,
    /// All rows below are in runs or in the file of young rows.
    pub(super) end: TxLink,
    /// What the table's owner keeps beside it.
    pub(super) owner: Vec<u8>,
}

impl Saved {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.watermark.to_u64().to_le_bytes());
        out.extend_from_slice(&self.end.to_u64().to_le_bytes());
        out.extend_from_slice(&self.owner);
        out
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Self, FormatError> {
        let mut fields = Fields::new(bytes);
        let (watermark, end) = (TxLink::new(fields.u64()?), TxLink::new(fields.u64()?));
        if watermark > end {
            let what = "the watermark is above the end";
            return Err(FormatError::Damaged { at: 0, what });
        }
        Ok(Self { watermark, end, owner: fields.rest().to_vec() })
    }
}

/// A table as its manifest says.
#[derive(Debug)]
pub(in crate::search) struct Loaded {
    pub(super) manifest: Manifest,
    pub(super) saved: Saved,
    pub(super) rested: Option<Arc<Run<Search>>>,
    pub(super) runs: Runs<Search>,
    pub(super) end: TxLink,
}

/// Loads the table in this directory, empty when there is none. Writes nothing.
pub(in crate::search) fn load(
    storage: &Arc<dyn Storage>,
    key: StoreKey,
    bound: TxLink,
) -> Result<Loaded> {
    let decode = |manifest: Manifest| {
        let saved = Saved::decode(&manifest.owner)?;
        Ok((manifest, saved))
    };
    let (manifest, saved) = Manifest::load(&**storage, MANIFEST, decode)?.unwrap_or_else(|| {
        let (next, runs, owner) = (RunNumber(1), Vec::new(), Vec::new());
        (Manifest { key, next, runs, owner }, Saved::default())
    });
    let path = || storage.path().to_path_buf();
    if manifest.key != key {
        return Err(SearchError::OtherStore { path: path() });
    }
    if saved.watermark > bound {
        let watermark = saved.watermark;
        return Err(SearchError::Ahead { path: path(), watermark, bound });
    }
    let is_rested = |info: &RunInfo| info.span.first == RESTED;
    let (rested, infos): (Vec<_>, Vec<_>) = manifest.runs.iter().copied().partition(is_rested);
    let runs = Runs::open(&**storage, key, &infos)?;
    let end = saved.end.min(bound);
    let rested = rested.first().map(|info| Run::open(&**storage, &key, info).map(Arc::new));
    let rested = rested.transpose()?;
    Ok(Loaded { manifest, saved, rested, runs, end })
}

impl Loaded {
    /// The young rows of the last rest.
    pub(super) fn panes(&self) -> Result<Vec<Pane>> {
        let links = self.saved.watermark.to_u64()..self.end.to_u64();
        self.rested.as_ref().map_or(Ok(Vec::new()), |run| young_panes(run, links))
    }

    /// All runs, with the young rows of the last rest as the youngest: readers need not load those
    /// into memory. Rows from the returned link on are invalid, and some may be in two runs.
    pub(in crate::search) fn all_runs(self) -> (Runs<Search>, TxLink) {
        let runs = match self.rested {
            Some(run) => self.runs.with_youngest(run),
            None => self.runs,
        };
        (runs, self.end)
    }
}

/// The rows of the file of young rows with links in this range, in panes.
fn young_panes(run: &Arc<Run<Search>>, links: std::ops::Range<u64>) -> Result<Vec<Pane>> {
    let start = |part: usize| links.start + part as u64 * PART_LEN;
    let parts = (links.end - links.start).div_ceil(PART_LEN);
    let mut rows: Vec<Vec<u64>> = Vec::new();
    let mut cursor = run.cursor()?;
    while let Some(row) = cursor.head() {
        cursor.advance()?;
        let link = row.link.to_u64();
        if !links.contains(&link) {
            continue;
        }
        let place = link - links.start;
        let part = usize::try_from(place / PART_LEN).unwrap_or(usize::MAX);
        if rows.len() <= part {
            rows.resize_with(part + 1, Vec::new);
        }
        if let Some(rows) = rows.get_mut(part) {
            rows.push((row.fingerprint.bits() << PLACE_BITS) | (place % PART_LEN));
        }
    }
    debug_assert!(rows.len() as u64 <= parts, "links are in the range");
    let pane = |(part, rows)| Pane::new(start(part)..links.end.min(start(part + 1)), rows);
    Ok(rows.into_iter().enumerate().map(pane).collect())
}

/// The first link whose rows the table in this directory lacks, and its owner's bytes.
pub(in crate::search) fn saved(
    storage: &Arc<dyn Storage>,
    key: StoreKey,
) -> Result<Option<(TxLink, Vec<u8>)>> {
    let decode = |manifest: Manifest| Ok((manifest.key, Saved::decode(&manifest.owner)?));
    let Some((found, saved)) = Manifest::load(&**storage, MANIFEST, decode)? else {
        return Ok(None);
    };
    if found != key {
        return Err(SearchError::OtherStore { path: storage.path().to_path_buf() });
    }
    Ok(Some((saved.end, saved.owner)))
}

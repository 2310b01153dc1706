//! Searching a table: many keys at once, beside the writer.
//!
//! 1. All keys are searched in the panes, one pane after the other.
//! 2. [`Query`] asks the filters, then the directories, for the pages that may have the keys, and
//!    reads those that are not in memory, in one submission.
//! 3. The pages are joined in groups: first the headers of all leaves of a group are touched, then
//!    the places where the keys should be, then they are searched. So the cache misses of a group
//!    overlap.
//! 4. The links are sorted by key, newest first.

use std::cmp::Reverse;
use std::sync::Arc;

use varve_io::Storage;
use varve_runs::{Candidate, Query, StoreKey};

use super::codec::Search;
use super::cursor::{Cursor, Order};
use super::error::Result;
use super::leaf::Leaf;
use super::row::Fingerprint;
use super::table;
use super::version::Version;
use crate::link::TxLink;
use crate::shared::{PageReads, Shared};

/// Pages that are joined together.
const GROUP: usize = 16;

/// Searches a table. Cheap to clone; any number of threads search while one writes.
#[derive(Clone, Debug)]
pub struct SearchReader {
    shared: Arc<Shared<Version>>,
}

impl SearchReader {
    pub(super) const fn new(shared: Arc<Shared<Version>>) -> Self {
        Self { shared }
    }

    /// Opens a table at rest, read-only: reads its directories and filters. It has the rows up to
    /// the link that [`SearchReader::saved`] returns, which is not above `bound`.
    pub fn at_rest(storage: &Arc<dyn Storage>, key: StoreKey, bound: TxLink) -> Result<Self> {
        let (runs, end) = table::load(storage, key, bound)?.all_runs();
        let version = Version { panes: Box::default(), runs, end };
        Ok(Self::new(Arc::new(Shared::new(version))))
    }

    /// The first link whose rows a table on disk lacks, and its owner's bytes, from the manifest
    /// alone. `None` when there is no table.
    pub fn saved(storage: &Arc<dyn Storage>, key: StoreKey) -> Result<Option<(TxLink, Vec<u8>)>> {
        table::saved(storage, key)
    }

    /// Adds all rows of each key to `out`, with the index of the key: keys in the given order,
    /// links descending.
    pub fn find(&self, keys: &[Fingerprint], out: &mut Vec<(usize, TxLink)>) -> Result<()> {
        if let [key] = keys {
            return self.find_one(*key, out);
        }
        let version = self.shared.version.load_full();
        let start = out.len();
        let mut sorted: Vec<(Fingerprint, usize)> =
            keys.iter().enumerate().map(|(place, key)| (*key, place)).collect();
        sorted.sort_unstable();
        for pane in version.panes.iter().rev() {
            for (key, place) in &sorted {
                out.extend(pane.find(*key).map(|link| (*place, link)));
            }
        }
        if !version.runs.as_slice().is_empty() {
            self.find_in_runs(&version, &sorted, out)?;
        }
        if let Some(found) = out.get_mut(start..) {
            found.sort_unstable_by_key(|(place, link)| (*place, Reverse(*link)));
            let kept = keep(found, version.end);
            out.truncate(start + kept);
        }
        Ok(())
    }

    /// The same for one key, without sorting keys.
    fn find_one(&self, key: Fingerprint, out: &mut Vec<(usize, TxLink)>) -> Result<()> {
        let version = self.shared.version.load();
        let start = out.len();
        for pane in version.panes.iter().rev() {
            out.extend(pane.find(key).rev().map(|link| (0, link)));
        }
        if !version.runs.as_slice().is_empty() {
            self.find_in_runs(&version, &[(key, 0)], out)?;
        }
        if let Some(found) = out.get_mut(start..) {
            if found.len() > 1 {
                found.sort_unstable_by_key(|(_, link)| Reverse(*link));
            }
            let kept = keep(found, version.end);
            out.truncate(start + kept);
        }
        Ok(())
    }

    fn find_in_runs(
        &self,
        version: &Version,
        sorted: &[(Fingerprint, usize)],
        out: &mut Vec<(usize, TxLink)>,
    ) -> Result<()> {
        let keys = sorted.iter().map(|(key, _)| *key).collect();
        let query = Query::<Search>::new(&version.runs, keys);
        let direct = query.unread() as u64;
        self.shared.fetch(query, |query| {
            let candidates: Vec<Candidate> = query.by_key().flatten().copied().collect();
            for group in candidates.chunks(GROUP) {
                join(query, group, |key, link| {
                    if let Some((_, place)) = sorted.get(key) {
                        out.push((*place, link));
                    }
                })?;
            }
            self.shared.count(PageReads { pages: candidates.len() as u64, direct });
            Ok(())
        })
    }

    /// Walks the rows of one key with links in this range, without collecting them.
    pub fn cursor(
        &self,
        key: Fingerprint,
        links: std::ops::Range<TxLink>,
        order: Order,
    ) -> Result<Cursor> {
        Cursor::new(self.shared.version.load_full(), key, links, order)
    }

    /// Pages of runs that [`SearchReader::find`] has read since the table was opened.
    #[must_use]
    pub fn page_reads(&self) -> PageReads {
        self.shared.reads()
    }
}

/// Moves the valid rows to the front and returns their number. Rows flushed since a rest are in its
/// file of young rows too, and that file may have rows of lost blocks.
fn keep(found: &mut [(usize, TxLink)], end: TxLink) -> usize {
    let (mut kept, mut last) = (0, None);
    for at in 0..found.len() {
        let row = found.get(at).copied();
        if row != last && row.is_some_and(|(_, link)| link < end) {
            found.swap(kept, at);
            kept += 1;
        }
        last = row;
    }
    kept
}

/// Reports the links in a group of pages, with the index of their key in the query.
fn join(
    query: &Query<Search>,
    group: &[Candidate],
    mut found: impl FnMut(usize, TxLink),
) -> Result<()> {
    let mut payloads: [&[u8]; GROUP] = [&[]; GROUP];
    let mut touched = 0;
    for (payload, candidate) in payloads.iter_mut().zip(group) {
        *payload = query.payload(candidate)?;
        touched ^= payload.first().copied().unwrap_or_default();
    }
    let mut leaves: [Option<Leaf<'_>>; GROUP] = [None; GROUP];
    for ((leaf, payload), candidate) in leaves.iter_mut().zip(payloads).zip(group) {
        let parsed = Leaf::parse(payload).map_err(|error| query.place(candidate).error(error))?;
        touched ^= parsed.touch(*query.key(candidate));
        *leaf = Some(parsed);
    }
    std::hint::black_box(touched);
    for (leaf, candidate) in leaves.iter().flatten().zip(group) {
        for link in leaf.find(*query.key(candidate)) {
            found(candidate.key(), link);
        }
    }
    Ok(())
}

//! Removal of records that are no longer needed.
//!
//! A record is due when all its outputs are spent, it is mined, and `retention` blocks have
//! passed; or when it lost a double spend that long ago. The pruner runs after a block was
//! persisted:
//!
//! ```text
//! phase 1   unmined transactions that have waited long: their parents are preserved
//!           to height + parent_preservation. A failure here ends the run.
//!           preservations that are over end.
//! phase 2   records due at the safe height: the child is noted in its parents, the record is
//!           removed, then its blob.
//!           safe = min(height, persisted height + retention)
//! phase 3   some blobs are cleaned, from where the last run stopped
//! ```
//!
//! A loser preserves no parent that lost as well: they go together, leaf first. Winners and losers
//! of a conflict resolution that is not finished stay: it may be retried, and the losers say which
//! records it has locked.
//!
//! Phase 2 is one operation a record: it looks again at everything, among it whether some unmined
//! transaction still refers to the record, and refuses if so. So a parent is never taken from a
//! child that waits, whatever phase 1 did or did not see.

use std::collections::{BTreeSet, HashMap, HashSet};

use varve_types::{Height, Txid};

use crate::engine::{Scan, Task};
use crate::fields::Fields;
use crate::operation::Operation;
use crate::outcome::{Pruned, Reply};
use crate::record::Record;
use crate::store::{CleanReport, Result, Store};

/// When the pruner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneAt {
    /// The height of the tip.
    pub height: Height,
    /// The last height whose block is persisted; `None` when blocks are not persisted.
    pub persisted: Option<Height>,
    /// Whether block assembly runs. While it does not, nothing is done: it may be reading
    /// records that look useless.
    pub assembly_running: bool,
}

/// What one run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Another process is pruning these records, so nothing was done.
    pub elsewhere: bool,
    /// Old unmined transactions.
    pub old_unmined: u64,
    /// Parents of them that are preserved.
    pub preserved: u64,
    /// Preservations that ended.
    pub expired: u64,
    /// Records that were removed.
    pub removed: u64,
    /// What the cleaner did with blobs.
    pub blobs: CleanReport,
    /// Records that were due and stay: the reason of each.
    pub kept: Vec<(Txid, Pruned)>,
}

/// Runs all phases.
pub fn prune(store: &Store, at: PruneAt) -> Result<PruneReport> {
    let mut report = PruneReport::default();
    if !at.assembly_running {
        return Ok(report);
    }
    let Some(_alone) = store.alone(Task::Prune)? else {
        return Ok(PruneReport { elsewhere: true, ..report });
    };
    preserve_parents(store, at.height, &mut report)?;
    report.expired = store.process_expired_preservations(at.height)?;
    let height = safe_height(store, at);
    remove_due(store, height, &mut report)?;
    report.blobs = store.clean_some_blobs(height)?;
    Ok(report)
}

/// Preserves the parents of unmined transactions that have waited long.
pub(crate) fn preserve_parents(
    store: &Store,
    height: Height,
    report: &mut PruneReport,
) -> Result<()> {
    let settings = store.settings();
    let cutoff = height.checked_sub(settings.unmined_retention);
    let Some(cutoff) = cutoff.filter(|cutoff| *cutoff > Height::GENESIS) else { return Ok(()) };
    let until = height.to_u32().saturating_add(settings.parent_preservation);
    store.scan(Scan::UnminedSince(cutoff), |txids| {
        let children = store.engine().read(txids, Fields::INPOINTS)?;
        report.old_unmined += txids.len() as u64;
        let parents = needed_parents(store, children.iter().flatten())?;
        let missing = store.preserve_until(&parents, Height::new(until))?;
        report.preserved += (parents.len() - missing.len()) as u64;
        Ok(())
    })
}

/// The parents that these unmined transactions need: all of them, but a loser needs no loser.
fn needed_parents<'a>(
    store: &Store,
    children: impl Iterator<Item = &'a Record>,
) -> Result<Vec<Txid>> {
    let (mut needed, mut of_losers) = (BTreeSet::new(), BTreeSet::new());
    for child in children {
        let parents = child.inputs.iter().map(|input| input.txid);
        if child.conflicting { of_losers.extend(parents) } else { needed.extend(parents) }
    }
    let of_losers: Vec<Txid> = of_losers.difference(&needed).copied().collect();
    let records = store.engine().read(&of_losers, Fields::HEAD)?;
    for (txid, record) in of_losers.iter().zip(records) {
        if !record.is_some_and(|record| record.conflicting) {
            needed.insert(*txid);
        }
    }
    Ok(needed.into_iter().collect())
}

/// The height up to which records may go: what is not persisted may have to be read again.
fn safe_height(store: &Store, at: PruneAt) -> Height {
    let persisted = at.persisted.filter(|height| *height > Height::GENESIS);
    let limit = persisted
        .map(|height| Height::new(height.to_u32().saturating_add(store.settings().retention)));
    limit.map_or(at.height, |limit| limit.min(at.height))
}

fn remove_due(store: &Store, height: Height, report: &mut PruneReport) -> Result<()> {
    let intents = store.intents()?;
    let pending = intents.iter().flat_map(|intent| &intent.txids);
    let pending: HashSet<Txid> = pending.copied().collect();
    let mut waiting = Waiting::default();
    store.scan(Scan::DueAt(height), |txids| {
        let (stay, mut next): (Vec<Txid>, Vec<Txid>) =
            txids.iter().partition(|txid| pending.contains(txid));
        report.kept.extend(stay.into_iter().map(|txid| (txid, Pruned::Pending)));
        while !next.is_empty() {
            let replies = store.each(&next, |txid| Operation::Prune { txid, height })?;
            let mut again = Vec::new();
            for (txid, reply) in next.into_iter().zip(replies) {
                match reply? {
                    Reply::Pruned(Pruned::Removed) => {
                        report.removed += 1;
                        again.extend(waiting.take(txid));
                    }
                    Reply::Pruned(Pruned::NeededBy(child)) => waiting.add(child, txid),
                    Reply::Pruned(Pruned::Missing) => {}
                    Reply::Pruned(kept) => report.kept.push((txid, kept)),
                    _ => {}
                }
            }
            next = again;
        }
        Ok(())
    })?;
    report.kept.extend(waiting.left());
    Ok(())
}

/// Records that were due and wait for a child. A chain of losers goes leaf first: when the child is
/// removed in the same run, its parent is asked again, so the chain goes in one run whatever the
/// order of the scan.
#[derive(Default)]
struct Waiting {
    by_child: HashMap<Txid, Vec<Txid>>,
}

impl Waiting {
    fn add(&mut self, child: Txid, parent: Txid) {
        self.by_child.entry(child).or_default().push(parent);
    }

    /// Those that waited for this child.
    fn take(&mut self, child: Txid) -> Vec<Txid> {
        self.by_child.remove(&child).unwrap_or_default()
    }

    /// Those that still wait, and for whom.
    fn left(self) -> impl Iterator<Item = (Txid, Pruned)> {
        self.by_child.into_iter().flat_map(|(child, parents)| {
            parents.into_iter().map(move |parent| (parent, Pruned::NeededBy(child)))
        })
    }
}

#[cfg(test)]
mod tests;

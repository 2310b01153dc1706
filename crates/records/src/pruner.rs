//! Removing records that nobody needs.
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
//! ```
//!
//! Phase 2 is one operation a record: it looks again at everything, among it whether some unmined
//! transaction still refers to the record, and refuses if so. So a parent is never taken from a
//! child that waits, whatever phase 1 did or did not see.

use std::collections::BTreeSet;

use varve_types::{Height, Txid};

use crate::engine::Scan;
use crate::fields::Fields;
use crate::operation::Operation;
use crate::outcome::{Pruned, Reply};
use crate::store::{Result, Store};

/// When the pruner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneAt {
    /// The height of the tip.
    pub height: Height,
    /// The last height whose block is persisted; `None` when nobody persists blocks.
    pub persisted: Option<Height>,
    /// Whether block assembly runs. While it does not, nothing is done: it may be reading
    /// records that look useless.
    pub assembly_running: bool,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Old unmined transactions.
    pub old_unmined: u64,
    /// Parents of them that are preserved.
    pub preserved: u64,
    /// Preservations that ended.
    pub expired: u64,
    /// Records that were removed.
    pub removed: u64,
    /// Records that were due and stay: the reason of each.
    pub kept: Vec<(Txid, Pruned)>,
}

/// Runs both phases.
pub fn prune(store: &Store, at: PruneAt) -> Result<PruneReport> {
    let mut report = PruneReport::default();
    if !at.assembly_running {
        return Ok(report);
    }
    preserve_parents(store, at.height, &mut report)?;
    report.expired = store.process_expired_preservations(at.height)?;
    remove_due(store, safe_height(store, at), &mut report)?;
    Ok(report)
}

/// Preserves the parents of unmined transactions that have waited long.
pub fn preserve_parents(store: &Store, height: Height, report: &mut PruneReport) -> Result<()> {
    let settings = store.settings();
    let cutoff = height.checked_sub(settings.unmined_retention);
    let Some(cutoff) = cutoff.filter(|cutoff| *cutoff > Height::GENESIS) else { return Ok(()) };
    let until = height.to_u32().saturating_add(settings.parent_preservation);
    store.scan(Scan::UnminedSince(cutoff), |txids| {
        let children = store.engine().read(txids, Fields::INPOINTS)?;
        report.old_unmined += txids.len() as u64;
        let inputs = children.iter().flatten().flat_map(|child| &child.inputs);
        let parents: BTreeSet<Txid> = inputs.map(|input| input.txid).collect();
        let parents: Vec<Txid> = parents.into_iter().collect();
        let missing = store.preserve_until(&parents, Height::new(until))?;
        report.preserved += (parents.len() - missing.len()) as u64;
        Ok(())
    })
}

/// The height up to which records may go: what is not persisted may have to be read again.
fn safe_height(store: &Store, at: PruneAt) -> Height {
    let persisted = at.persisted.filter(|height| *height > Height::GENESIS);
    let limit = persisted
        .map(|height| Height::new(height.to_u32().saturating_add(store.settings().retention)));
    limit.map_or(at.height, |limit| limit.min(at.height))
}

fn remove_due(store: &Store, height: Height, report: &mut PruneReport) -> Result<()> {
    store.scan(Scan::DueAt(height), |txids| {
        let replies = store.each(txids, |txid| Operation::Prune { txid, height })?;
        for (txid, reply) in txids.iter().zip(replies) {
            match reply? {
                Reply::Pruned(Pruned::Removed) => report.removed += 1,
                Reply::Pruned(Pruned::Missing) => {}
                Reply::Pruned(kept) => report.kept.push((*txid, kept)),
                _ => {}
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;

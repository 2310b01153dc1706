//! A step on its way: the next version, and what has to be written for it.
//!
//! A draft begins as a clone of the published version. Whatever goes wrong, it is dropped and
//! nothing has happened; a part that goes wrong is rolled back to a mark, which is a clone too.
//! What was added and removed is netted against the version that the draft began from, so that
//! records and events tell of the step as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use varve_types::{Height, Txid};

use super::entry::Body;
use super::event::{Event, Removal};
use super::version::{Ids, Version};

/// The next version and its changes.
pub(super) struct Draft {
    base: Arc<Version>,
    pub(super) version: Version,
    log: Vec<Change>,
    /// Blocks that left and joined, for the records.
    pub(super) blocks: BlockMarks,
}

/// What happened to a transaction.
enum Change {
    Added(Txid),
    Removed(Arc<Body>, Removal),
    Noted(Event),
}

/// What records have to be marked with.
#[derive(Default)]
pub(super) struct BlockMarks {
    /// Heights that left the chain, with their transactions.
    pub(super) unset: Vec<(Height, Vec<Txid>)>,
    /// Heights that joined it.
    pub(super) set: Vec<(Height, Vec<Txid>)>,
    /// Transactions of blocks that left which a joined block double spends.
    pub(super) losers: Vec<Txid>,
}

/// A place to return to.
pub(super) struct Mark {
    version: Version,
    log: usize,
}

/// A step in the end: what really changed.
pub(super) struct Net {
    /// In the order of arrival.
    pub(super) added: Vec<Arc<Body>>,
    pub(super) removed: Vec<(Arc<Body>, Removal)>,
    pub(super) events: Vec<Event>,
}

impl Draft {
    pub(super) fn new(base: &Arc<Version>) -> Self {
        Self {
            base: Arc::clone(base),
            version: Version::clone(base),
            log: Vec::new(),
            blocks: BlockMarks::default(),
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { version: self.version.clone(), log: self.log.len() }
    }

    pub(super) fn roll_back(&mut self, mark: Mark) {
        self.version = mark.version;
        self.log.truncate(mark.log);
    }

    pub(super) fn insert(&mut self, body: Arc<Body>) {
        self.log.push(Change::Added(body.txid()));
        self.version.insert(body);
    }

    pub(super) fn remove(&mut self, ids: &Ids, reason: Removal) -> Vec<Arc<Body>> {
        let bodies = self.version.remove(ids);
        self.log.extend(bodies.iter().map(|body| Change::Removed(Arc::clone(body), reason)));
        bodies
    }

    /// Notes the removal of a transaction that was taken out without one.
    pub(super) fn note_removed(&mut self, body: Arc<Body>, reason: Removal) {
        self.log.push(Change::Removed(body, reason));
    }

    pub(super) fn note(&mut self, event: Event) {
        self.log.push(Change::Noted(event));
    }

    /// What changed against the version that the draft began from. A transaction that is in both
    /// and was added again is among the added, so that its record is looked at, but has no event.
    pub(super) fn net(&self) -> Net {
        let mut net = Net { added: Vec::new(), removed: Vec::new(), events: Vec::new() };
        // The last word on a transaction counts.
        let mut last: HashMap<Txid, usize> = HashMap::new();
        for (place, change) in self.log.iter().enumerate() {
            match change {
                Change::Added(txid) => drop(last.insert(*txid, place)),
                Change::Removed(body, _) => drop(last.insert(body.txid(), place)),
                Change::Noted(_) => {}
            }
        }
        for (place, change) in self.log.iter().enumerate() {
            match change {
                Change::Noted(event) => net.events.push(event.clone()),
                Change::Added(txid) if last.get(txid) == Some(&place) => {
                    let Some(entry) = self.version.entry(txid) else { continue };
                    net.added.push(Arc::clone(&entry.body));
                    if !self.base.contains(txid) {
                        net.events.push(Event::Accepted { txid: *txid });
                    }
                }
                Change::Removed(body, reason) if last.get(&body.txid()) == Some(&place) => {
                    let txid = body.txid();
                    if self.base.contains(&txid) {
                        net.removed.push((Arc::clone(body), *reason));
                        net.events.push(Event::Removed { txid, reason: *reason });
                    }
                }
                Change::Added(_) | Change::Removed(..) => {}
            }
        }
        net.added.sort_by_key(|body| self.version.id(&body.txid()));
        net
    }
}

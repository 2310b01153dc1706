//! Statuses of scripts, computed once and extended as blocks come.
//!
//! The status is a hash over the whole history (`varve::types::status`). For a script with a long
//! history the hash state over its confirmed part is kept together with the block it ends at, the
//! *anchor*. At a later snapshot:
//!
//! 1. the newest anchor whose block is still in the chain is taken up, and only the transactions
//!    above it are read;
//! 2. the state at the snapshot's own tip becomes the new anchor. The one before stays as the
//!    second anchor once it is [`DEEP`] blocks below, so that a reorganisation does not cost the
//!    whole history;
//! 3. what is unconfirmed is hashed on top, and never kept.
//!
//! Short histories are read again each time, which takes microseconds. The states of at most
//! [`CAPACITY`] scripts are kept, some 400 bytes each; those that were not asked for go first.

use std::collections::HashMap;
use std::mem;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use varve::types::ScriptStatus;
use varve::types::status::{HistoryHash, Unconfirmed};
use varve::{Height, Script, ScriptHash, Snapshot, Tip};

use super::fault::Fault;

/// Histories up to this length are not kept.
const SHORT: usize = 32;
/// Blocks between the two anchors of a script.
const DEEP: u32 = 6;
/// Scripts whose states are kept, in two generations.
const CAPACITY: usize = 65_536;

/// The hash state over a history up to a block.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    at: Tip,
    hash: HistoryHash,
    /// Transactions in it.
    count: usize,
}

/// The anchors of a script, the newest first.
#[derive(Clone, Copy, Debug)]
struct Anchors {
    newest: Anchor,
    deep: Option<Anchor>,
}

/// Those that were asked for lately, and those that were not since the last turn.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<ScriptHash, Anchors>,
    old: HashMap<ScriptHash, Anchors>,
}

/// Computes statuses.
#[derive(Debug)]
pub(super) struct Statuses {
    kept: Mutex<Generations>,
    /// The longest history that has a status.
    max_history: usize,
}

impl Statuses {
    pub(super) fn new(max_history: usize) -> Self {
        Self { kept: Mutex::default(), max_history }
    }

    /// The status of a script; `None` when it has no transaction.
    pub(super) fn status(
        &self,
        snapshot: &Snapshot,
        hash: ScriptHash,
    ) -> Result<Option<ScriptStatus>, Fault> {
        let script = snapshot.script(hash)?;
        let kept = self.find(&hash);
        let start = kept.map(|kept| kept.start(snapshot, script.tip())).transpose()?.flatten();
        let anchor = self.extend(&script, start)?;
        if anchor.count > SHORT {
            self.keep(hash, anchor, kept);
        }
        let mempool = snapshot.mempool();
        let waiting = mempool.map(|mempool| mempool.history(hash)).unwrap_or_default();
        let unconfirmed = |item: &varve::HistoryItem| Unconfirmed {
            txid: item.txid,
            spends_unconfirmed: item.height < 0,
        };
        Ok(anchor.hash.status(&waiting.iter().map(unconfirmed).collect::<Vec<_>>()))
    }

    /// Adds what a script has above an anchor, or all it has.
    fn extend(&self, script: &Script, start: Option<Anchor>) -> Result<Anchor, Fault> {
        let from = start.and_then(|start| start.at.height.checked_add(1));
        let from = from.unwrap_or(Height::GENESIS);
        let (mut hash, mut count) =
            start.map_or((HistoryHash::new(), 0), |start| (start.hash, start.count));
        let mut all = Ok(None);
        script.txids(from, &mut |txid, height| {
            // Whoever has more than a few is asked how many it has, before all are read.
            if count == SHORT {
                all = script.summary().map(|summary| Some(summary.txs));
            }
            if !matches!(all, Ok(all) if all.is_none_or(|all| self.allows(all))) {
                return ControlFlow::Break(());
            }
            hash.confirm(&txid, height);
            count += 1;
            ControlFlow::Continue(())
        })?;
        match all? {
            Some(all) if !self.allows(all) => Err(Fault::history_too_long(self.max_history)),
            _ if count > self.max_history => Err(Fault::history_too_long(self.max_history)),
            _ => Ok(Anchor { at: script.tip(), hash, count }),
        }
    }

    fn allows(&self, count: u64) -> bool {
        usize::try_from(count).is_ok_and(|count| count <= self.max_history)
    }

    fn find(&self, hash: &ScriptHash) -> Option<Anchors> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.young.get(hash) {
            return Some(*found);
        }
        let found = kept.old.remove(hash)?;
        kept.insert(*hash, found);
        Some(found)
    }

    fn keep(&self, hash: ScriptHash, newest: Anchor, before: Option<Anchors>) {
        let is_below = |anchor: &Anchor| {
            newest.at.height.since(anchor.at.height).is_some_and(|blocks| blocks >= DEEP)
        };
        let deep = before.and_then(|before| {
            let newest = Some(before.newest).filter(is_below);
            newest.or(before.deep.filter(is_below))
        });
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(hash, Anchors { newest, deep });
    }
}

impl Anchors {
    /// The newest anchor that is in the chain of a snapshot, not above `tip`.
    fn start(&self, snapshot: &Snapshot, tip: Tip) -> Result<Option<Anchor>, Fault> {
        for anchor in [Some(self.newest), self.deep].into_iter().flatten() {
            let Tip { height, hash } = anchor.at;
            let there = snapshot.header(height)?.is_some_and(|header| header.hash == hash);
            if there && height <= tip.height {
                return Ok(Some(anchor));
            }
        }
        Ok(None)
    }
}

impl Generations {
    fn insert(&mut self, hash: ScriptHash, anchors: Anchors) {
        if self.young.len() >= CAPACITY / 2 {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(hash, anchors);
    }
}

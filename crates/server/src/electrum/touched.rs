//! What has changed between two snapshots, as far as anybody has subscribed to it.
//!
//! A subject can have changed only if a transaction names it that was confirmed, unconfirmed or
//! moved in between:
//!
//! 1. the blocks that left the chain and those that joined it, found by walking down from both tips
//!    to the fork;
//! 2. the transactions that came to the mempool or left it, and those that stayed but have other
//!    unconfirmed parents now, because their height in the history has changed.
//!
//! Of each such transaction: itself, its outputs, the outputs it spends, and the scripts of both.
//! No status is computed to find out. After a leap of more than [`MAX_BLOCKS`], or where a block
//! can no longer be read, everything that is subscribed to counts as changed.

use std::collections::HashSet;
use std::sync::Arc;

use varve::types::Tx;
use varve::{BlockHash, Error, Mempool, MempoolEntry, Outpoint, ScriptHash, Snapshot, Tip};

use super::subject::Subject;
use super::switchboard::Switchboard;

/// Blocks on either side of a fork that are read.
const MAX_BLOCKS: usize = 64;
/// Subjects that are collected before those that nobody has subscribed to are dropped.
const PIECE: usize = 1 << 16;

/// What states are computed from: enough of a snapshot to say what has changed since. A snapshot
/// itself is not held for longer than an answer takes.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    tip: Tip,
    /// The block that the index of scripts has reached; `None` where it is not kept.
    scripts: Option<Tip>,
    mempool: Option<Arc<Mempool>>,
}

impl Moment {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let scripts = snapshot.script(ScriptHash::ZERO).ok().map(|script| script.tip());
        Self { tip: snapshot.tip(), scripts, mempool: snapshot.mempool() }
    }
}

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        let mempool = match (&self.mempool, &other.mempool) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        mempool && self.tip == other.tip && self.scripts == other.scripts
    }
}

/// What may have changed from a moment to a snapshot.
pub(super) fn between(
    before: &Moment,
    now: &Snapshot,
    switchboard: &Switchboard,
) -> HashSet<Subject> {
    let mut touched = HashSet::new();
    if before.tip != now.tip() {
        touched.insert(Subject::Tip);
    }
    if switchboard.is_tip_alone() {
        return touched;
    }
    let walk = Walk { now, switchboard };
    if walk.blocks(before, &mut touched).is_none() {
        return switchboard.all().into_iter().collect();
    }
    walk.mempools(before, &mut touched);
    touched
}

struct Walk<'a> {
    now: &'a Snapshot,
    switchboard: &'a Switchboard,
}

impl Walk<'_> {
    /// The blocks in between; `None` when there are too many, or one cannot be read.
    fn blocks(&self, before: &Moment, touched: &mut HashSet<Subject>) -> Option<()> {
        // The index of scripts may lag behind the chain: what it has newly read counts as well.
        let now = Moment::of(self.now);
        let tips = [(Some(before.tip), Some(now.tip)), (before.scripts, now.scripts)];
        let mut done = HashSet::new();
        for (old, new) in tips {
            let (Some(old), Some(new)) = (old, new) else {
                if old == new { continue } else { return None }
            };
            for block in self.path(old, new)? {
                if done.insert(block) {
                    self.block(block, touched).ok()??;
                }
            }
        }
        Some(())
    }

    /// The blocks from two tips down to where they meet.
    fn path(&self, old: Tip, new: Tip) -> Option<Vec<BlockHash>> {
        let (mut sides, mut path) = ([old, new], Vec::new());
        while let [left, right] = sides
            && left.hash != right.hash
        {
            let higher = usize::from(right.height >= left.height);
            let side = sides.get_mut(higher)?;
            path.push(side.hash);
            if path.len() > 2 * MAX_BLOCKS {
                return None;
            }
            let hash = self.now.header(side.hash).ok()??.previous?;
            *side = Tip { height: side.height.checked_sub(1)?, hash };
        }
        Some(path)
    }

    /// The subjects of a block's transactions; `None` when the block is not known.
    fn block(&self, hash: BlockHash, touched: &mut HashSet<Subject>) -> Result<Option<()>, Error> {
        let Some(block) = self.now.block(hash)? else { return Ok(None) };
        let Ok(parsed) = block.parse() else { return Ok(None) };
        let mut subjects = Vec::new();
        for (tx, txid) in parsed.txs().iter().zip(&block.txids) {
            subjects.push(Subject::Transaction(*txid));
            of_outputs(tx, *txid, &mut subjects);
            for (input, spent) in tx.inputs().zip(self.now.spent_outputs(tx)?) {
                subjects.push(Subject::Outpoint(input.outpoint));
                match spent {
                    Some(spent) => {
                        subjects.push(Subject::Script(ScriptHash::of(&spent.script)));
                    }
                    None if tx.is_coinbase() => {}
                    None => return Ok(None),
                }
            }
            if subjects.len() > PIECE {
                self.keep_watched(&mut subjects, touched);
            }
        }
        self.keep_watched(&mut subjects, touched);
        Ok(Some(()))
    }

    /// Moves those that somebody has subscribed to.
    fn keep_watched(&self, subjects: &mut Vec<Subject>, touched: &mut HashSet<Subject>) {
        touched.extend(self.switchboard.watched(subjects.drain(..)));
    }

    fn mempools(&self, before: &Moment, touched: &mut HashSet<Subject>) {
        let (old, new) = (&before.mempool, &self.now.mempool());
        if let (Some(old), Some(new)) = (old, new)
            && Arc::ptr_eq(old, new)
        {
            return;
        }
        let mut subjects = Vec::new();
        let mut differing = |one: Option<&Mempool>, other: Option<&Mempool>| {
            for entry in one.into_iter().flat_map(Mempool::entries) {
                let same = other.and_then(|other| other.entry(&entry.txid()));
                if same.is_none_or(|same| same.electrum_height() != entry.electrum_height()) {
                    of_entry(entry, &mut subjects);
                }
                if subjects.len() > PIECE {
                    self.keep_watched(&mut subjects, touched);
                }
            }
        };
        differing(old.as_deref(), new.as_deref());
        differing(new.as_deref(), old.as_deref());
        self.keep_watched(&mut subjects, touched);
    }
}

/// The subjects of an unconfirmed transaction, which carries the outputs that it spends.
fn of_entry(entry: &MempoolEntry, subjects: &mut Vec<Subject>) {
    let tx = entry.transaction();
    subjects.push(Subject::Transaction(entry.txid()));
    of_outputs(&tx.view(), entry.txid(), subjects);
    for input in tx.inputs() {
        subjects.push(Subject::Outpoint(input.outpoint));
        let script = input.spent.map(|spent| ScriptHash::of(spent.script));
        subjects.extend(script.map(Subject::Script));
    }
}

fn of_outputs(tx: &Tx<'_>, txid: varve::Txid, subjects: &mut Vec<Subject>) {
    for (vout, output) in (0..).zip(tx.outputs()) {
        subjects.push(Subject::Outpoint(Outpoint::new(txid, vout)));
        subjects.push(Subject::Script(ScriptHash::of(output.script)));
    }
}

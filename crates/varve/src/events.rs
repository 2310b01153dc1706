//! What happens in the chain and in the mempool, one block at a time, from any point on.
//!
//! ```text
//!            cursor: the block last delivered
//!               │
//!  confirmed ─ a ─ b ─ c ─ d ─ e ─ tip         Connected c, d, e …
//!                  └─ c' ─ d'     cursor at d': Disconnected d', c', then Connected c …
//! ```
//!
//! **The chain is the log.** Nothing is queued for a subscriber and nothing is kept about it: a
//! cursor names the block it has seen last. The next step is computed from the stored chain:
//!
//! 1. If the cursor's block is confirmed, the confirmed block above it is connected.
//! 2. If it is not, it is disconnected, and its parent is next. Stale blocks are never removed, so
//!    that works after any reorganisation, however deep, and after a restart or a kill.
//! 3. At the tip, unconfirmed transactions follow: what has come or gone since the last step.
//!
//! A step is one [`EventBatch`]: what one block did, or one change of the mempool, with the cursor
//! behind it. A client that stores the cursor together with what it made of the batch resumes
//! without loss and without a duplicate, wherever it was interrupted.
//!
//! **The mempool is no log.** Its transactions come and go without a trace, so a cursor has only a
//! digest of the unconfirmed transactions that were reported. When a subscriber resumes and they
//! are still the same, nothing is said; if not, all of them are stated again, behind
//! [`Event::Restated`].
//!
//! **Memory.** A subscriber has its watch list, the unconfirmed transactions on it, and the batch
//! it is looking at. Rows of the last blocks are shared by all subscribers (`block_rows`).

mod block_rows;
mod cursor;
mod watch;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use varve_node::ArchiveView;
use varve_node::mempool::Version as Mempool;
use varve_types::{BlockHash, Height, Outpoint, ScriptHash, Txid};

use crate::answer::Tip;
use crate::error::Error;
use crate::node::Node;
use crate::snapshot::Snapshot;
use crate::tips::Changes;

pub(crate) use block_rows::RowCache;
pub use cursor::{EventCursor, ParseCursorError};
pub use watch::Watch;

/// Something that happened to the chain, or to what a subscriber watches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A block joined the confirmed chain. What it did to watched things follows, in block order.
    Connected {
        /// The block, which is the tip behind this batch.
        block: Tip,
        /// The block below, which was the tip; zero for genesis.
        previous: BlockHash,
    },
    /// The tip left the confirmed chain. What that takes back of watched things follows, the last
    /// first.
    Disconnected {
        /// The block.
        block: Tip,
        /// The block below, which is the tip behind this batch.
        previous: BlockHash,
    },
    /// A watched transaction.
    Transaction {
        /// The transaction.
        txid: Txid,
        /// What became of it.
        status: TxStatus,
    },
    /// A transaction that pays a watched script or spends from it.
    Script {
        /// The script.
        script: ScriptHash,
        /// The transaction.
        txid: Txid,
        /// What became of it.
        status: TxStatus,
    },
    /// An input that spends a watched output.
    Spend {
        /// The output.
        outpoint: Outpoint,
        /// The transaction that spends it.
        txid: Txid,
        /// Its input.
        vin: u32,
        /// What became of it.
        status: TxStatus,
    },
    /// The unconfirmed transactions that follow in this batch are all that there are: forget
    /// those that were reported before.
    Restated,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxStatus {
    /// A block that was connected holds it, at this position.
    Confirmed {
        /// The block.
        block: Tip,
        /// The place in the block.
        position: u32,
    },
    /// The block that held it, at this position, was disconnected.
    Disconnected {
        /// The block.
        block: Tip,
        /// The place in the block.
        position: u32,
    },
    /// It is in the mempool.
    Unconfirmed,
    /// It has left the mempool, and no block of the chain holds it.
    Dropped,
}

/// What one step did, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventBatch {
    /// In the order in which they happened; at least one.
    pub events: Vec<Event>,
    /// The place behind them: [`Node::events`] goes on from here.
    pub cursor: EventCursor,
}

/// What is watched and unconfirmed: who reports it, the transaction, and the input of a spend.
type Unconfirmed = BTreeMap<(Watched, Txid), u32>;

/// What a subscriber asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Watched {
    Tx,
    Script(ScriptHash),
    Outpoint(Outpoint),
}

/// A subscription: [`Node::events`].
///
/// As an iterator it blocks until something has happened, and ends when the node is closed by an
/// error. It holds a handle of the node.
#[derive(Debug)]
pub struct Events {
    node: Node,
    changes: Changes,
    watch: Watch,
    /// The block that was delivered last.
    at: Tip,
    /// What was reported as unconfirmed; `None` before the first statement.
    unconfirmed: Option<Unconfirmed>,
    digest: cursor::Digest,
}

impl Events {
    pub(crate) fn new(node: Node, cursor: Option<EventCursor>) -> Self {
        let changes = node.changes();
        let (at, digest) = match cursor {
            Some(cursor) => (cursor.block, cursor.digest),
            None => (node.snapshot().tip(), cursor::NOTHING),
        };
        Self { node, changes, watch: Watch::default(), at, unconfirmed: None, digest }
    }

    /// Watches these. A subscriber that watches nothing still gets every block. To watch other
    /// things, subscribe again from the cursor; what a script did before is asked of a snapshot.
    #[must_use]
    pub fn watching(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }

    /// Where the next batch begins.
    #[must_use]
    pub const fn cursor(&self) -> EventCursor {
        EventCursor { block: self.at, digest: self.digest }
    }

    /// The next batch, if there is one now. After an error the same batch is tried again.
    pub fn try_next(&mut self) -> Result<Option<EventBatch>, Error> {
        let snapshot = self.node.snapshot();
        if self.at == snapshot.tip() {
            return self.mempool_step(&snapshot);
        }
        let (events, at) = self.chain_step(&snapshot)?;
        self.at = at;
        Ok(Some(EventBatch { events, cursor: self.cursor() }))
    }

    /// Waits at most `timeout` for the next batch; `None` when there is none.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<EventBatch>, Error> {
        let end = Instant::now().checked_add(timeout);
        loop {
            let batch = self.try_next()?;
            let left = end.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
            if batch.is_some() || left.is_zero() {
                return Ok(batch);
            }
            self.changes.next_timeout(left);
        }
    }

    /// One block up or down the stored chain: what it did, and the tip behind it.
    fn chain_step(&self, snapshot: &Snapshot) -> Result<(Vec<Event>, Tip), Error> {
        let at = self.at;
        snapshot.ask(|view| {
            let unknown = Error::UnknownCursor { block: at.hash };
            let Some(link) = view.to_header(at.hash)? else { return Err(unknown) };
            let row = view.header(link)?;
            if row.height != at.height {
                return Err(unknown);
            }
            if view.to_confirmed(at.height) == Some(link) {
                let next = at.height.checked_add(1).and_then(|height| view.to_confirmed(height));
                let next = view.header(next.ok_or(unknown)?)?;
                let block = Tip { height: next.height, hash: next.hash };
                let connected = Event::Connected { block, previous: at.hash };
                let status = |position| TxStatus::Confirmed { block, position };
                let mut events = self.watched(view, block, status)?;
                events.insert(0, connected);
                return Ok((events, block));
            }
            let parent = row.parent.ok_or(unknown)?;
            let below = view.header(parent)?;
            let below = Tip { height: below.height, hash: below.hash };
            let status = |position| TxStatus::Disconnected { block: at, position };
            let mut events = self.watched(view, at, status)?;
            events.push(Event::Disconnected { block: at, previous: below.hash });
            events.reverse();
            Ok((events, below))
        })
    }

    /// What a block does to watched things, in block order.
    fn watched(
        &self,
        view: &ArchiveView,
        block: Tip,
        status: impl Fn(u32) -> TxStatus,
    ) -> Result<Vec<Event>, Error> {
        if self.watch.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.node.row_cache().rows(view, block, self.watch.has_scripts())?;
        let mut events = Vec::new();
        rows.each(&self.watch, |position, txid, watched, vin| {
            events.push(event(watched, txid, vin, status(position)));
        });
        Ok(events)
    }

    /// What has come to the mempool and left it since the last statement.
    fn mempool_step(&mut self, snapshot: &Snapshot) -> Result<Option<EventBatch>, Error> {
        let Some(mempool) = snapshot.mempool() else { return Ok(None) };
        let now = self.unconfirmed(&mempool);
        let digest = cursor::digest(&now);
        let arrivals = |before: &Unconfirmed| -> Vec<Event> {
            let new = now.iter().filter(|(key, _)| !before.contains_key(key));
            let of = |((watched, txid), vin): (&(Watched, Txid), &u32)| {
                event(*watched, *txid, *vin, TxStatus::Unconfirmed)
            };
            new.map(of).collect()
        };
        let events = match &self.unconfirmed {
            None if self.digest == digest => Vec::new(),
            None => {
                let mut events = vec![Event::Restated];
                events.extend(arrivals(&Unconfirmed::new()));
                events
            }
            Some(before) => {
                let mut events = self.departures(snapshot, before, &now)?;
                events.extend(arrivals(before));
                events
            }
        };
        (self.unconfirmed, self.digest) = (Some(now), digest);
        let cursor = self.cursor();
        Ok((!events.is_empty()).then_some(EventBatch { events, cursor }))
    }

    /// What left the mempool without being confirmed, and is still watched.
    fn departures(
        &self,
        snapshot: &Snapshot,
        before: &Unconfirmed,
        now: &Unconfirmed,
    ) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        for ((watched, txid), vin) in before.iter().filter(|(key, _)| !now.contains_key(key)) {
            if !self.watch.has(*watched, txid) || snapshot.is_confirmed(*txid)? {
                continue;
            }
            events.push(event(*watched, *txid, *vin, TxStatus::Dropped));
        }
        Ok(events)
    }

    /// Everything in the mempool that is watched.
    fn unconfirmed(&self, mempool: &Mempool) -> Unconfirmed {
        let mut found = Unconfirmed::new();
        for txid in self.watch.txids().filter(|txid| mempool.contains(txid)) {
            found.insert((Watched::Tx, *txid), 0);
        }
        for script in self.watch.scripts() {
            let history = mempool.history(*script).into_iter();
            found.extend(history.map(|item| ((Watched::Script(*script), item.txid), 0)));
        }
        for outpoint in self.watch.outpoints() {
            let spender = mempool.spender(outpoint);
            found.extend(spender.map(|by| ((Watched::Outpoint(*outpoint), by.txid), by.vin)));
        }
        found
    }
}

const fn event(watched: Watched, txid: Txid, vin: u32, status: TxStatus) -> Event {
    match watched {
        Watched::Tx => Event::Transaction { txid, status },
        Watched::Script(script) => Event::Script { script, txid, status },
        Watched::Outpoint(outpoint) => Event::Spend { outpoint, txid, vin, status },
    }
}

impl Iterator for Events {
    type Item = Result<EventBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.try_next() {
                Ok(Some(batch)) => return Some(Ok(batch)),
                Ok(None) => self.changes.next(),
                Err(error) => return Some(Err(error)),
            };
        }
    }
}

impl EventCursor {
    /// Behind this block: the one above it is delivered first, and all unconfirmed transactions at
    /// the tip.
    #[must_use]
    pub const fn behind(height: Height, hash: BlockHash) -> Self {
        Self { block: Tip { height, hash }, digest: cursor::NOTHING }
    }
}

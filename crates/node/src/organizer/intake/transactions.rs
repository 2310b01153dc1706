//! Unconfirmed transactions between the source, the threads that hand some in, and the mempool.
//!
//! 1. Peers *offer* transactions. Those that are not here and were not judged at this tip are asked
//!    for. What comes waits, within [`MAX_BYTES`], until there is no block to be joined; then up to
//!    [`BATCH`] are judged as one step, so that a flood costs blocks nothing but that.
//! 2. An orphan's parent is asked of its giver; one that pays too little is tried with its child.
//!    Whoever gives what no honest node relays is blamed.
//! 3. A node that decides *lists* what it has and sends *changes*; [`Feed`] says what to fetch and
//!    what to drop. What was dropped while it was being fetched does not come in.
//! 4. Orders at the desk are carried out between two batches. What our own mempool has taken is
//!    announced to peers.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use varve_types::{Txid, Wtxid};

use super::Intake;
use crate::desk::{DeskError, Order, Reply, Waiting};
use crate::live_mempool::{News, Opening};
use crate::mempool::{
    Event as MempoolEvent, Feed, FeedActions, Judge, MempoolError, Reject, Verdict,
};
use crate::organizer::{Report, Verify};
use crate::source::Giver;
use crate::source::transactions::{OwnTx, TxName, TxNews};
use crate::stores::Stores;

/// Transactions of one step.
const BATCH: usize = 256;
/// How long a transaction waits for others.
const LINGER: Duration = Duration::from_millis(50);
/// Transactions that wait, and their bytes. More are not taken.
const MAX_WAITING: usize = 4096;
const MAX_BYTES: usize = 8 << 20;
/// Orders that are carried out before the source is served again.
const ORDERS: usize = 32;
/// Children that are tried to pay for a parent.
const CHILDREN: usize = 4;
/// How often the mempool drops what has waited too long.
const EXPIRE: Duration = Duration::from_secs(60);
/// The least time between two listings that are asked for.
const LIST: Duration = Duration::from_secs(1);
/// Transactions that are remembered as judged.
const SEEN: usize = 50_000;

/// What is on its way to the mempool.
#[derive(Default)]
pub(crate) struct TxIntake {
    given: Vec<Given>,
    /// Bytes of those.
    bytes: usize,
    /// When the first of them came.
    since: Option<Duration>,
    /// What the node that decides has sent.
    fetched: Vec<Bytes>,
    /// What it was asked for.
    fetching: HashSet<Txid>,
    feed: Feed,
    /// What was judged at this tip.
    seen: Seen,
    /// Whether the source was told that transactions are taken.
    is_relaying: bool,
    /// Whether a listing is needed, and when one was asked for last.
    wants_listing: bool,
    listed: Duration,
    expired: Duration,
    /// What was last reported to be wrong.
    complaint: Option<String>,
    /// Whether nothing came when the source was last asked.
    pub(super) is_idle: bool,
}

struct Given {
    tx: Bytes,
    wtxid: Wtxid,
    giver: Giver,
}

/// The last transactions that were judged: two generations, of which the older is forgotten.
#[derive(Default)]
struct Seen {
    young: HashSet<Wtxid>,
    old: HashSet<Wtxid>,
}

impl Seen {
    fn contains(&self, wtxid: &Wtxid) -> bool {
        self.young.contains(wtxid) || self.old.contains(wtxid)
    }

    fn insert(&mut self, wtxid: Wtxid) {
        if self.young.len() >= SEEN / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(wtxid);
    }
}

impl TxIntake {
    /// What was refused may be good above another tip.
    pub(super) fn tip_moved(&mut self) {
        self.seen = Seen::default();
    }

    fn give(&mut self, given: Given, now: Duration) {
        let is_full = self.given.len() >= MAX_WAITING
            || self.bytes.saturating_add(given.tx.len()) > MAX_BYTES;
        if is_full || self.seen.contains(&given.wtxid) {
            return;
        }
        self.bytes += given.tx.len();
        self.since.get_or_insert(now);
        self.given.push(given);
    }

    /// Whether those that wait are judged now.
    fn is_ready(&self, now: Duration) -> bool {
        let is_late = self.since.is_some_and(|since| now.saturating_sub(since) >= LINGER);
        self.is_idle || is_late || self.given.len() >= BATCH
    }

    fn take_batch(&mut self) -> Vec<Given> {
        let count = self.given.len().min(BATCH);
        let batch: Vec<Given> = self.given.drain(..count).collect();
        self.bytes -= batch.iter().map(|given| given.tx.len()).sum::<usize>();
        if self.given.is_empty() {
            self.since = None;
        }
        batch
    }
}

impl Intake<'_> {
    /// Whether transactions wait to be judged.
    pub(crate) fn has_txs(&self) -> bool {
        self.txs.is_relaying && !(self.txs.given.is_empty() && self.txs.fetched.is_empty())
    }

    /// Opens the mempool within `memory` bytes.
    pub(crate) fn open_mempool(&mut self, stores: &mut Stores, memory: usize, now: Duration) {
        let push_rule = stores.archive.now().indexes().pushdata;
        let opening = Opening { memory, gateway: self.source.gateway(), push_rule };
        match stores.mempool.open(opening, now) {
            Ok(reloaded) => {
                self.txs.complaint = None;
                (self.report)(Report::MempoolOpened { kept: reloaded.kept });
                self.report_mempool(stores);
            }
            Err(error) => self.complain(&error.to_string()),
        }
    }

    /// Reports why there is no mempool, unless that was the last report of this kind.
    pub(crate) fn complain(&mut self, reason: &str) {
        if self.txs.complaint.as_deref() != Some(reason) {
            self.txs.complaint = Some(reason.to_owned());
            (self.report)(Report::MempoolClosed { reason });
        }
    }

    /// Serves the mempool: those who wait at the desk, what came, and what is due.
    pub(crate) fn tend(&mut self, stores: &mut Stores, now: Duration) {
        self.set_relay(stores);
        if !stores.mempool.is_open() {
            return;
        }
        for _ in 0..ORDERS {
            let Some(waiting) = stores.mempool.desk().take() else { break };
            self.carry_out(stores, &waiting, now);
        }
        if self.txs.is_ready(now) {
            self.judge_given(stores, now);
        }
        self.take_fetched(stores, now);
        if now.saturating_sub(self.txs.expired) >= EXPIRE {
            self.txs.expired = now;
            stores.mempool.expire(now);
        }
        if self.txs.wants_listing && now.saturating_sub(self.txs.listed) >= LIST {
            (self.txs.wants_listing, self.txs.listed) = (false, now);
            self.source.list_txs();
        }
        self.report_mempool(stores);
    }

    /// Tells the source whether transactions are taken.
    fn set_relay(&mut self, stores: &Stores) {
        let pool = stores.mempool.pool();
        if pool.is_some() == self.txs.is_relaying {
            return;
        }
        self.source.relay(pool.map(|pool| pool.version().totals().min_rate));
        let is_open = pool.is_some();
        (self.txs.is_relaying, self.txs.wants_listing) = (is_open, is_open);
        self.txs.feed = Feed::new();
        self.txs.fetched.clear();
        self.txs.fetching.clear();
        self.txs.seen = Seen::default();
    }

    /// Takes what the source says of transactions. Nobody listens while there is no mempool.
    pub(super) fn tx_news(&mut self, stores: &mut Stores, news: TxNews) {
        let now = (self.options.clock)();
        // A maker in this process does not wait until the mempool is open.
        if let TxNews::Given { tx, wtxid, giver } = news {
            if stores.mempool.is_wanted() {
                self.txs.give(Given { tx, wtxid, giver }, now);
            }
            return;
        }
        let Some(pool) = stores.mempool.pool().filter(|_| self.txs.is_relaying) else { return };
        match news {
            TxNews::Given { .. } => {}
            TxNews::Offered { mut names, giver } => {
                names.retain(|name| match name {
                    TxName::Txid(txid) => !pool.version().contains(txid) && !pool.is_orphan(txid),
                    TxName::Wtxid(wtxid) => !self.txs.seen.contains(wtxid),
                });
                if !names.is_empty() {
                    self.source.want_txs(giver, &names);
                }
            }
            TxNews::Listed(listing) => {
                let actions = self.txs.feed.listing(&listing, pool.version());
                self.follow_feed(stores, actions, now);
            }
            TxNews::Changed(event) => {
                let actions = self.txs.feed.event(event);
                self.follow_feed(stores, actions, now);
            }
            TxNews::Fetched(answers) => {
                for (txid, tx) in answers {
                    if self.txs.fetching.remove(&txid) {
                        self.txs.fetched.extend(tx);
                    }
                }
            }
        }
    }

    fn follow_feed(&mut self, stores: &mut Stores, actions: FeedActions, now: Duration) {
        let FeedActions { drop, mut fetch, list } = actions;
        if !drop.is_empty() {
            // What came before it was dropped comes in before, too.
            self.take_fetched(stores, now);
            for txid in &drop {
                self.txs.fetching.remove(txid);
            }
            stores.mempool.drop_txs(&drop, now);
        }
        fetch.retain(|txid| self.txs.fetching.insert(*txid));
        if !fetch.is_empty() {
            self.source.fetch_txs(&fetch);
        }
        self.txs.wants_listing |= list;
    }

    /// Takes in what the node that decides has sent.
    fn take_fetched(&mut self, stores: &mut Stores, now: Duration) {
        let fetched = std::mem::take(&mut self.txs.fetched);
        for batch in fetched.chunks(BATCH) {
            stores.mempool.accept(batch, Judge::Node, now);
        }
    }

    /// Judges a batch of what peers gave.
    fn judge_given(&mut self, stores: &mut Stores, now: Duration) {
        let batch = self.txs.take_batch();
        if batch.is_empty() {
            return;
        }
        let txs: Vec<Bytes> = batch.iter().map(|given| given.tx.clone()).collect();
        let is_trusted = self.source.is_trusted() && self.options.verify == Verify::Spends;
        let judge = if is_trusted { Judge::Spends } else { Judge::Ours };
        let Some(Ok(verdicts)) = stores.mempool.accept(&txs, judge, now) else { return };
        for (Given { tx, wtxid, giver }, verdict) in batch.into_iter().zip(verdicts) {
            self.txs.seen.insert(wtxid);
            match verdict {
                Err(Reject::Orphan { missing, .. }) => {
                    self.source.want_txs(giver, &[TxName::Txid(missing.txid)]);
                }
                Err(Reject::Fee { txid, .. }) => self.try_package(stores, &tx, txid, now),
                Err(reject) if reject.is_offence() => {
                    self.source.blame(giver, &reject.to_string());
                }
                _ => {}
            }
        }
    }

    /// A transaction pays too little; perhaps a child that waits for it pays for both.
    fn try_package(&mut self, stores: &mut Stores, parent: &Bytes, txid: Txid, now: Duration) {
        let pool = stores.mempool.pool();
        let children = pool.map(|pool| pool.waiting_for(&txid)).unwrap_or_default();
        for child in children.into_iter().take(CHILDREN) {
            let package = [parent.clone(), child];
            let done = stores.mempool.accept_package(&package, now);
            if done.is_some_and(|done| done.is_ok_and(|all| all.iter().all(Result::is_ok))) {
                return;
            }
        }
    }

    /// Carries out an order of another thread, and answers it.
    fn carry_out(&mut self, stores: &mut Stores, waiting: &Waiting, now: Duration) {
        let reply = match &waiting.order {
            Order::Accept(txs, judge) => {
                let done = stores.mempool.accept(txs, *judge, now);
                let is_ours = *judge == Judge::Ours;
                settled(done).map(|verdicts| self.handed_in(stores, (txs, is_ours), verdicts, now))
            }
            Order::Package(txs) => {
                let done = stores.mempool.accept_package(txs, now);
                settled(done).map(|verdicts| self.handed_in(stores, (txs, true), verdicts, now))
            }
            Order::Test(txs) => settled(stores.mempool.test(txs, now)).map(Reply::Tested),
        };
        waiting.reply(reply);
    }

    /// Announces what was taken. An orphan that was handed in does not stay: its giver is answered
    /// that it was refused.
    fn handed_in(
        &mut self,
        stores: &mut Stores,
        (txs, is_ours): (&[Bytes], bool),
        verdicts: Vec<Verdict>,
        now: Duration,
    ) -> Reply {
        let mut orphans = Vec::new();
        for (bytes, verdict) in txs.iter().zip(&verdicts) {
            match verdict {
                Ok(txid) | Err(Reject::Here(txid)) if is_ours => {
                    let entry = stores.mempool.pool().and_then(|pool| pool.version().entry(txid));
                    let wtxid = entry.map(|entry| entry.transaction().view().wtxid());
                    if let Some(wtxid) = wtxid {
                        let (txid, bytes) = (*txid, bytes.clone());
                        self.source.announce(OwnTx { txid, wtxid, bytes });
                    }
                }
                Err(Reject::Orphan { txid, .. }) => orphans.push(*txid),
                _ => {}
            }
        }
        if !orphans.is_empty() {
            stores.mempool.drop_txs(&orphans, now);
        }
        Reply::Verdicts(verdicts)
    }

    /// Reports what happened in the mempool since the last report.
    pub(crate) fn report_mempool(&mut self, stores: &mut Stores) {
        let News { events, is_published, closed } = stores.mempool.take_news();
        let left = |event: &MempoolEvent| match event {
            MempoolEvent::Removed { txid, .. } => Some(*txid),
            _ => None,
        };
        let left: Vec<Txid> = events.iter().filter_map(left).collect();
        if !left.is_empty() {
            self.source.withdraw(&left);
        }
        if is_published || !events.is_empty() {
            (self.report)(Report::MempoolChanged { events: &events });
        }
        if let Some(reason) = closed {
            self.complain(&reason);
        }
    }
}

/// The result of a step for whoever has asked for it.
fn settled<T>(done: Option<Result<T, MempoolError>>) -> Result<T, DeskError> {
    match done {
        Some(Ok(done)) => Ok(done),
        Some(Err(error)) => Err(DeskError::Failed(error.to_string())),
        None => Err(DeskError::Closed("the mempool was closed".to_owned())),
    }
}

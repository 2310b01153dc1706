//! What every protocol serves from: one node, a bounded number of questions at a time, and a
//! wake-up whenever the node has moved.
//!
//! ```text
//!  Electrum ─┐                        ┌─ thread 1 ─ snapshot ─ answer
//!  REST ─────┼─ Service::ask ─ turn ──┼─ …
//!  explorer ─┘                        └─ thread N ─ snapshot ─ answer
//!
//!  sync thread ─ Node::changes ─ thread `changes` ─ watch ─► every protocol's notifier
//! ```
//!
//! The library blocks: it reads mapped files, and a page that is not in memory comes from the disk.
//! So questions run on separate threads, `TURNS` at most, and a connection that asks waits for its
//! turn without holding a thread. One snapshot answers one question, however many parts it has: a
//! batch is one question.

use std::panic;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};
use varve::{Changes, Network, Node, Snapshot, Tip};

use crate::metrics::Metrics;
use crate::sync_state::SyncState;

/// Questions that are answered at the same time. More than there are cores, because some wait for
/// the disk; few enough that the answers under way fit in memory.
const TURNS: usize = 16;
/// Transactions that are handed to the node behind us at the same time.
const TURNS_OUTSIDE: usize = 8;

/// How long the waking thread waits before it looks whether the service still exists.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends a server when it becomes true, or when its sender is dropped.
pub type Shutdown = watch::Receiver<bool>;

/// Waits until a server is to end.
pub(crate) async fn stopping(shutdown: &mut Shutdown) {
    // An error is a sender that is gone, which means the same.
    let _ = shutdown.wait_for(|stop| *stop).await;
}

/// A node that is served.
#[derive(Debug)]
pub struct Service {
    pub(crate) node: Node,
    turns: Arc<Semaphore>,
    outside: Arc<Semaphore>,
    changes: watch::Receiver<u64>,
    started: Instant,
    metrics: Arc<Metrics>,
    sync_state: SyncState,
    /// What the waking thread knows the service by.
    _alive: Arc<()>,
}

impl Service {
    /// Serves a node. The thread that wakes the notifiers ends within a second of the service.
    #[must_use]
    pub fn new(node: Node) -> Arc<Self> {
        let (sender, changes) = watch::channel(0);
        let (news, alive) = (node.changes(), Arc::new(()));
        let service = Arc::downgrade(&alive);
        let wake = move || wake(news, &sender, &service);
        thread::Builder::new()
            .name("varve-changes".to_owned())
            .spawn(wake)
            .expect("the system has a thread left when a server starts");
        let [turns, outside] = [TURNS, TURNS_OUTSIDE].map(|turns| Arc::new(Semaphore::new(turns)));
        Arc::new(Self {
            node,
            turns,
            outside,
            changes,
            started: Instant::now(),
            metrics: Arc::default(),
            sync_state: SyncState::default(),
            _alive: alive,
        })
    }

    /// The network of the chain.
    #[must_use]
    pub fn network(&self) -> Network {
        self.node.network()
    }

    /// The last block of the confirmed chain.
    #[must_use]
    pub fn tip(&self) -> Tip {
        self.node.snapshot().tip()
    }

    /// How long the service has been there.
    #[must_use]
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// What the servers count.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// How the sync is doing, which whoever syncs the node sets.
    #[must_use]
    pub const fn sync_state(&self) -> &SyncState {
        &self.sync_state
    }

    /// Answers a question at one snapshot, in a thread where it may block. Waits for a turn first.
    /// The snapshot is taken when the turn has come, so an answer is as new as it can be.
    pub async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Snapshot) -> T + Send + 'static,
    ) -> T {
        let service = Arc::clone(self);
        self.act(move || question(&service.node.snapshot())).await
    }

    /// The same without a snapshot, for what takes its own.
    pub async fn act<T: Send + 'static>(&self, action: impl FnOnce() -> T + Send + 'static) -> T {
        take_turn(&self.turns, action).await
    }

    /// The same for what waits for somebody else, such as a transaction that is handed to a node:
    /// it takes no turn from those who only read.
    pub(crate) async fn act_outside<T: Send + 'static>(
        &self,
        action: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        take_turn(&self.outside, action).await
    }

    /// Wakes whenever readers can see something new: the tip has moved, or the mempool. The value
    /// counts the changes; a subscriber that is slow skips some and never misses the last.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }
}

/// Does something that may block, when there is a turn for it.
async fn take_turn<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    action: impl FnOnce() -> T + Send + 'static,
) -> T {
    let turn = Arc::clone(turns).acquire_owned().await.expect("nobody closes the turns");
    // The thread keeps the turn: a client that goes away makes no room before the work is done.
    let work = move || {
        let answer = action();
        drop(turn);
        answer
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
        // The runtime is being shut down, and with it the task that waits here.
        Err(_) => std::future::pending().await,
    }
}

/// Counts what the node announces, for as long as the service exists.
fn wake(mut news: Changes, sender: &watch::Sender<u64>, service: &Weak<()>) {
    while service.strong_count() > 0 {
        if news.next_timeout(PATIENCE).is_some() {
            sender.send_modify(|count| *count += 1);
        }
    }
}

//! Mines the rest of a simulated chain while it is served: transactions come first, then the block
//! that holds them, and now and then a branch that overtakes another.
//!
//! ```text
//!  the generator is a few blocks ahead:      B7   B8   S9   S10  W9   W10  W11 …
//!  transactions of blocks that will follow   ├────┴────┴────┘    (not of W9: its branch is not
//!  the tip one after another trickle in      │                    the tip's, so its transactions
//!  a block is released at every interval     ▼                    may be rivals of S9's)
//! ```
//!
//! A block of a losing branch looks like any other until the winning branch is released, one block
//! longer. What a lost block held and the winning branch does not comes back to the mempool.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;
use varve::types::Block;
use varve::{BlockHash, LiveItem, Network, Source};
use varve_sim::Chain;

/// Blocks that the generator is ahead, whose transactions wait in the mempool.
const AHEAD: usize = 2;
/// Blocks that are sent again to a sync that starts anew: more than a branch is deep.
const KEPT: usize = 16;
/// Items on their way to the sync.
const ITEMS: usize = 1_024;

/// What was mined so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mined {
    /// The block released last, which is the best once its branch has won.
    pub(super) tip: BlockHash,
    /// Its height.
    pub(super) height: u32,
    /// Blocks that were released.
    pub(super) blocks: u64,
    /// Branches that were overtaken.
    pub(super) reorgs: u64,
    /// Transactions that were sent ahead of their blocks.
    pub(super) transactions: u64,
    /// Whether the block released last belongs to a branch that will lose, or has not won yet.
    pub(super) is_contested: bool,
}

/// The mining thread.
pub(super) struct Miner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    network: Network,
    is_stopped: AtomicBool,
    line: Mutex<Line>,
}

/// The way to the sync that runs, and what it may have missed.
struct Line {
    sender: Option<SyncSender<LiveItem>>,
    kept: VecDeque<Vec<u8>>,
    mined: Mined,
    /// The height of the last block that loses.
    stale_height: u32,
}

/// A block that is not released yet.
struct Ahead {
    block: varve_sim::Block,
    previous: BlockHash,
    /// Its transactions that were not sent yet, parents first.
    waiting: VecDeque<Vec<u8>>,
}

impl Miner {
    /// A miner of the blocks that follow, which has not started.
    pub(super) fn new(network: Network, tip: (BlockHash, u32)) -> Self {
        let (tip, height) = tip;
        let mined =
            Mined { tip, height, blocks: 0, reorgs: 0, transactions: 0, is_contested: false };
        let line = Mutex::new(Line { sender: None, kept: VecDeque::new(), mined, stale_height: 0 });
        let shared = Arc::new(Shared { network, is_stopped: AtomicBool::new(false), line });
        Self { shared, thread: None }
    }

    /// What makes a source of everything that is mined from then on, and of the blocks before it
    /// that the last sync may have missed.
    pub(super) fn sources(&self) -> impl Fn() -> Option<Source> + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || Some(Source::live(shared.connect()))
    }

    /// Mines a block at every interval.
    pub(super) fn start(&mut self, chain: Chain, interval: Duration) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("varve-miner".to_owned());
        self.thread = Some(thread.spawn(move || shared.mine(chain, interval))?);
        Ok(())
    }

    /// What was mined so far.
    pub(super) fn mined(&self) -> Mined {
        self.shared.lock().mined
    }

    /// Mines no more, and closes the way to the sync.
    pub(super) fn stop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        // A sync that does not take anything any more lets the miner go on.
        self.shared.lock().sender = None;
        if let Some(thread) = self.thread.take() {
            // A panic has ended the process.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self) -> Receiver<LiveItem> {
        let (sender, receiver) = sync_channel(ITEMS);
        let mut line = self.lock();
        for block in &line.kept {
            // There is room for all of them.
            let _ = sender.try_send(LiveItem::Block(block.clone()));
        }
        line.sender = Some(sender);
        receiver
    }

    /// Sends something to the sync that runs. When none does, it is lost; blocks are kept.
    fn send(&self, item: LiveItem) {
        let sender = self.lock().sender.clone();
        if let Some(sender) = sender {
            let _ = sender.send(item);
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn mine(&self, mut chain: Chain, interval: Duration) {
        let mut ahead: VecDeque<Ahead> = VecDeque::new();
        while !self.is_stopped() {
            while ahead.len() <= AHEAD {
                let Some(block) = chain.next() else { return };
                ahead.push_back(self.look_at(block));
            }
            self.trickle(&mut ahead, interval);
            if let Some(next) = ahead.pop_front() {
                self.release(next);
            }
        }
    }

    fn look_at(&self, block: varve_sim::Block) -> Ahead {
        let parsed = Block::parse(&block.bytes, self.network.format())
            .expect("the simulator writes blocks that parse");
        let waiting = parsed.txs().iter().skip(1).map(|tx| tx.bytes().to_vec()).collect();
        let previous = parsed.header().previous();
        Ahead { block, previous, waiting }
    }

    /// Sends transactions of the blocks that follow the tip, evenly until the interval is over. The
    /// first block's are all sent by then, and half of the next one's.
    fn trickle(&self, ahead: &mut VecDeque<Ahead>, interval: Duration) {
        const STEPS: u32 = 20;
        let (begin, mut tip) = (Instant::now(), self.lock().mined.tip);
        let mut following = 0;
        for block in ahead.iter() {
            if block.previous != tip {
                break;
            }
            tip = block.block.hash;
            following += 1;
        }
        for step in 1..=STEPS {
            for (number, block) in ahead.iter_mut().take(following.min(2)).enumerate() {
                let left = block.waiting.len();
                let steps_left = (STEPS - step + 1) as usize * (number + 1);
                let now = left.div_ceil(steps_left.max(1));
                // A child must not come before its parents in the block before.
                let now = if number == 0 || step == STEPS { now } else { 0 };
                for tx in block.waiting.drain(..now.min(left)) {
                    self.send(LiveItem::Tx(tx));
                    self.lock().mined.transactions += 1;
                }
            }
            let end = begin + interval * step / STEPS;
            while Instant::now() < end && !self.is_stopped() {
                thread::sleep(end.saturating_duration_since(Instant::now()).min(SLEEP));
            }
        }
    }

    fn release(&self, next: Ahead) {
        let Ahead { block, previous, .. } = next;
        let mut line = self.lock();
        let left_the_tip = previous != line.mined.tip;
        line.kept.push_back(block.bytes.clone());
        if line.kept.len() > KEPT {
            line.kept.pop_front();
        }
        line.mined.reorgs += u64::from(left_the_tip);
        if block.stale {
            line.stale_height = block.height;
        }
        // The winning branch has won when it is higher than the losing one.
        line.mined.is_contested = block.height <= line.stale_height;
        line.mined.tip = block.hash;
        line.mined.height = block.height;
        line.mined.blocks += 1;
        drop(line);
        self.send(LiveItem::Block(block.bytes));
    }
}

/// How long the miner sleeps before it looks whether it is to stop.
const SLEEP: Duration = Duration::from_millis(50);

//! Headers and blocks as they come from the source, and what to ask it for.
//!
//! 1. A header goes into the tree and the archive; one of a peer when its branch is worth it
//!    ([`Vetting`]). One that breaks a rule is reported and its giver blamed.
//! 2. A branch is heard to its end, whatever the work of its first headers: the giver is asked for
//!    those above the last that it sent.
//! 3. Blocks are asked of each giver along its own branch ([`Fetch`]).
//! 4. A block that comes is checked by itself ([`Checkers`]) and then stored, in whatever order
//!    blocks come. Those that the chain needs next stay in memory ([`Kept`]).
//! 5. Unconfirmed transactions wait until there is no block to be joined (`transactions`).
//! 6. What is refused is reported once, however often and in whatever way it comes again.

mod headers;
mod transactions;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use varve_types::{BlockHash, Height};
use varve_utxo::AsBlock as _;

use self::transactions::TxIntake;
use super::checker::{Checked, Checkers, Job, Recent};
use super::fetch::{Aim, Fetch};
use super::judge::Refusal;
use super::kept::Kept;
use super::vetting::Vetting;
use super::{LeftOut, Report, SyncOptions};
use crate::error::Error;
use crate::header_tree::{HeaderId, HeaderTree};
use crate::owned_block::OwnedBlock;
use crate::source::{Event, Giver, Outlook, Source, SourceError, Warning};
use crate::stores::{ArchiveBlock, Stores};

/// Retry interval for blocks that a followed source did not have: at first, and at most. It doubles
/// with every retry. Peers are always asked at the longest interval.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_AT_MOST: Duration = Duration::from_secs(60);

/// The receiver of a source.
pub(crate) struct Intake<'a> {
    source: &'a mut dyn Source,
    pub(crate) options: &'a SyncOptions,
    pub(crate) report: &'a mut dyn FnMut(Report<'_>),
    checkers: Checkers,
    vetting: Vetting,
    fetch: Fetch,
    /// When missing blocks were last requested again, and the interval until the next retry.
    asked_again: Duration,
    pause: Duration,
    /// Who sent headers that link to nothing, and how often in a row.
    strays: HashMap<Giver, u32>,
    headers_done: bool,
    /// Some giver has answered.
    is_heard: bool,
    pub(crate) left_out: LeftOut,
    /// Givers, by name, that were reported for a branch with too little work.
    low: HashSet<String>,
    kept: Kept,
    txs: TxIntake,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(
        source: &'a mut dyn Source,
        options: &'a SyncOptions,
        report: &'a mut dyn FnMut(Report<'_>),
        checkers: Checkers,
        kept: Kept,
    ) -> Self {
        let is_trusted = source.is_trusted();
        let (left_out, fetch) =
            (LeftOut::new(is_trusted), Fetch::new(is_trusted && options.all_branches));
        let pause = if is_trusted { AGAIN } else { AGAIN_AT_MOST };
        Self {
            source,
            options,
            report,
            checkers,
            vetting: Vetting::default(),
            fetch,
            asked_again: Duration::ZERO,
            pause,
            strays: HashMap::new(),
            headers_done: false,
            is_heard: false,
            left_out,
            low: HashSet::new(),
            kept,
            txs: TxIntake::default(),
        }
    }

    /// Asks for headers above those that are known.
    pub(crate) fn begin(&mut self, stores: &Stores) -> Result<(), Error> {
        if self.fetches_all() {
            let tree = &stores.chain.read().tree;
            let unfetched = tree.ids().filter(|id| !tree.is_stored(*id));
            unfetched.for_each(|id| self.fetch.add_unfetched(tree.height(id), id));
        }
        self.seek(stores)
    }

    /// Bytes of memory that the source takes besides blocks on their way.
    pub(crate) fn source_memory(&self) -> u64 {
        self.source.memory()
    }

    /// Whether nothing more will come.
    pub(crate) fn is_done(&self, stores: &Stores) -> bool {
        let at_stop = self.options.stop_height.is_some_and(|stop| stores.tip_at().0 >= stop);
        let nothing_comes = match self.source.outlook() {
            Outlook::Settled => true,
            Outlook::Expecting => at_stop,
            Outlook::Unreachable { .. } => at_stop || is_at_best(stores),
        };
        !self.is_waiting() && nothing_comes && (!self.options.follow || at_stop)
    }

    /// Whether headers or blocks are on their way.
    pub(crate) fn is_waiting(&self) -> bool {
        self.fetch.is_waiting() || !self.headers_done
    }

    /// Where the chain should go.
    pub(crate) fn target(&self, stores: &Stores) -> HeaderId {
        // A source that the user vouches for gives the blocks of its headers; a peer may not.
        let comes = self.source.is_trusted() && self.is_waiting() && !self.fetch.is_missing_some();
        let coming = self.fetch.offer_of(Giver::ONLY).filter(|_| comes);
        stores.chain.read().target(stores.tip, self.options.stop_height, coming)
    }

    /// A block that is still in memory. It is given once.
    pub(crate) fn take_kept(&mut self, height: Height, id: HeaderId) -> Option<OwnedBlock> {
        self.kept.take(height, id)
    }

    /// The tip has moved to this height.
    pub(crate) fn passed(&mut self, height: Height) {
        self.kept.pass(height);
        self.txs.tip_moved();
    }

    /// Waits for something to happen and takes it.
    pub(crate) fn take(&mut self, stores: &mut Stores, wait: Duration) -> Result<(), Error> {
        if self.checkers.is_full() {
            self.checked(stores)?;
            return self.want(stores);
        }
        let wait = if self.checkers.is_idle() { wait } else { Duration::ZERO };
        let event = self.source.next_event(wait)?;
        self.txs.is_idle = matches!(event, Event::Idle);
        match event {
            Event::Headers { headers, giver } => self.headers(stores, headers, giver)?,
            Event::Parent { hash } => {
                if stores.chain.read().tree.find(&hash).is_some() {
                    self.source.root(hash);
                }
            }
            Event::HeadersDone => (self.headers_done, self.is_heard) = (true, true),
            Event::Block { hash, bytes, giver } => self.block(stores, hash, bytes, giver),
            Event::Missing { hash, giver } => {
                self.fetch.missed(&stores.chain.read().tree, &hash, giver);
            }
            Event::Warning(warning) => self.warn(stores, &warning),
            // Blocks are not kept waiting for what is asked of their givers.
            Event::Transactions(news) => {
                self.tx_news(stores, news);
                return Ok(());
            }
            Event::Idle if !self.checkers.is_idle() => self.checked(stores)?,
            Event::Idle => self.idle(stores)?,
        }
        self.want(stores)
    }

    fn warn(&mut self, stores: &Stores, warning: &Warning) {
        self.left_out.warned(&stores.chain.read().tree, warning);
        (self.report)(Report::Warning(warning));
    }

    /// Nothing happens. What is missing is reported, and asked for again; without hope of an answer
    /// a sync that does not follow ends.
    fn idle(&mut self, stores: &Stores) -> Result<(), Error> {
        if !self.options.follow {
            if let Outlook::Unreachable { peer, reason } = self.source.outlook() {
                if !self.is_heard || !is_at_best(stores) {
                    return Err(SourceError::Unreachable { peer, reason }.into());
                }
                self.headers_done = true;
            }
            return Ok(());
        }
        if !self.is_waiting() {
            self.report_missing(stores);
        }
        let now = (self.options.clock)();
        if now.saturating_sub(self.asked_again) >= self.pause {
            self.asked_again = now;
            if self.fetch.try_again() {
                self.pause = (self.pause * 2).min(AGAIN_AT_MOST);
            }
        }
        Ok(())
    }

    /// Reports the blocks that nobody has sent: of each branch the lowest, once.
    pub(crate) fn report_missing(&mut self, stores: &Stores) {
        let mut missing = self.fetch.missing(&stores.chain.read().tree);
        missing.retain(|hash| !self.left_out.is_refused(hash));
        for hash in missing {
            (self.report)(Report::Missing { hash });
        }
    }

    /// Reports a block that is refused, unless it was before.
    pub(crate) fn refuse(&mut self, hash: BlockHash, reason: &str) {
        if self.left_out.refuse(hash) {
            (self.report)(Report::Refused { hash, reason });
        }
    }

    /// A block was found invalid: those above it are not needed.
    pub(crate) fn drop_invalid(&mut self, stores: &Stores) {
        let tree = &stores.chain.read().tree;
        self.kept.retain(|_, id| tree.invalid(id).is_none());
    }

    fn fetches_all(&self) -> bool {
        self.options.all_branches && self.source.is_trusted()
    }

    fn seek(&mut self, stores: &Stores) -> Result<(), Error> {
        self.headers_done = false;
        Ok(self.source.seek(&locator(stores))?)
    }

    fn more(&mut self, giver: Giver, locator: &[BlockHash]) -> Result<(), Error> {
        self.headers_done = false;
        Ok(self.source.more(giver, locator)?)
    }

    /// Has a block checked, if it is wanted.
    fn block(&mut self, stores: &Stores, hash: BlockHash, bytes: Vec<u8>, giver: Giver) {
        self.fetch.arrived(&hash);
        let tree = &stores.chain.read().tree;
        let id = tree.find(&hash).filter(|id| is_wanted(tree, *id));
        let Some(id) = id.filter(|_| self.fetch.check(hash)) else { return };
        let (height, below) = (tree.height(id), Recent::below(tree, id));
        self.checkers.push(Job { id, hash, height, below, bytes, giver });
    }

    /// Waits for the verdict on a block and stores it, or refuses it.
    fn checked(&mut self, stores: &mut Stores) -> Result<(), Error> {
        let Some(Checked { id, hash, giver, result }) = self.checkers.next() else {
            return Ok(());
        };
        self.fetch.checked(&hash);
        // Meanwhile a block below it may have been found invalid.
        if !is_wanted(&stores.chain.read().tree, id) {
            return Ok(());
        }
        let refusal = match result {
            Ok((block, prepared)) => return self.keep(stores, id, block, prepared),
            Err(refusal) => refusal,
        };
        let reason = refusal.to_string();
        match refusal {
            Refusal::Failed(error) => return Err(error),
            Refusal::Invalid(_) => {
                stores.mark_invalid(id, &reason)?;
                stores.follow_best_header()?;
                self.drop_invalid(stores);
            }
            Refusal::Mutated(_) => {
                self.fetch.spoiled(&stores.chain.read().tree, &hash, giver);
            }
        }
        self.refuse(hash, &reason);
        self.source.blame(giver, &reason);
        Ok(())
    }

    fn keep(
        &mut self,
        stores: &mut Stores,
        id: HeaderId,
        block: OwnedBlock,
        prepared: ArchiveBlock,
    ) -> Result<(), Error> {
        stores.store(id, &block, prepared)?;
        let (hash, height, size) =
            (block.as_block().hash(), block.as_block().height(), block.size());
        (self.report)(Report::Stored { bytes: size });
        self.fetch.stored(&hash, height, id);
        if self.source.is_trusted() {
            self.pause = AGAIN;
        }
        let is_above = height > stores.tip_at().0;
        if is_above && self.options.stop_height.is_none_or(|stop| height <= stop) {
            let memory = block.memory();
            self.kept.insert(height, id, block, memory);
        }
        Ok(())
    }

    /// Asks for the blocks that are needed next.
    fn want(&mut self, stores: &Stores) -> Result<(), Error> {
        let is_trusted = self.source.is_trusted();
        let aim = Aim {
            tip: stores.tip,
            stop: self.options.stop_height.unwrap_or(Height::new(u32::MAX)),
            is_trusted,
            now: if is_trusted { Duration::ZERO } else { (self.options.clock)() },
        };
        for giver in self.vetting.givers() {
            if self.source.room(giver).is_none() {
                self.vetting.forget(giver);
            }
        }
        for giver in self.fetch.givers() {
            let Some(room) = self.source.room(giver) else {
                self.fetch.forget(giver);
                self.strays.remove(&giver);
                continue;
            };
            let hashes = {
                let tree = &stores.chain.read().tree;
                self.fetch.choose(tree, &aim, giver, room)
            };
            if !hashes.is_empty() {
                self.source.want(giver, &hashes)?;
            }
        }
        Ok(())
    }
}

/// Where a giver's headers are to begin: one below the best header, so that a giver that has it
/// says so.
fn locator(stores: &Stores) -> Vec<BlockHash> {
    let tree = &stores.chain.read().tree;
    let best = tree.best_header();
    tree.locator(tree.parent(best).unwrap_or(best))
}

/// Whether the confirmed chain is all that is known.
fn is_at_best(stores: &Stores) -> bool {
    stores.chain.read().tree.best_header() == stores.tip
}

/// Whether the block is not there yet and can be in the chain.
fn is_wanted(tree: &HeaderTree, id: HeaderId) -> bool {
    !tree.is_stored(id) && tree.invalid(id).is_none()
}

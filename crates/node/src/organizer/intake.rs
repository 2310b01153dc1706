//! Headers and blocks as they come from the source, and what to ask it for.
//!
//! 1. A header that is new goes into the tree and the archive. One that breaks a rule is told to
//!    the user and its giver is blamed.
//! 2. Blocks are asked for lowest first, at most [`WINDOW`] at a time: those of the best header's
//!    branch; of a source that has them at hand also those of branches that have lost. The best
//!    header may be one whose blocks nobody has, so those of the best that the source told of come
//!    before them, if they can move the tip.
//! 3. A block that comes is checked by itself ([`Checkers`]) and then stored, in whatever order
//!    blocks come. Those that the chain needs next are kept in memory, so that they are read and
//!    hashed once.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use varve_types::{BlockHash, Height};
use varve_utxo::AsBlock as _;

use super::checker::{Checked, Checkers, Job, Recent};
use super::judge::Refusal;
use super::{Report, SyncOptions};
use crate::error::Error;
use crate::header_tree::{HeaderId, HeaderTree, InsertError};
use crate::source::{Event, Giver, HeaderBytes, Source};
use crate::stored_block::StoredBlock;
use crate::stores::Stores;

/// How many blocks are asked for at a time.
const WINDOW: usize = 256;
/// How often a block is asked for again when its bytes were not those of its header.
const ATTEMPTS: u32 = 3;
/// How often one giver may send headers in a row that link to nothing.
const STRAYS: u32 = 10;
/// How long a source that is followed is not asked again for what nobody had.
const AGAIN: Duration = Duration::from_secs(1);
/// Bytes of blocks that are kept in memory until their turn.
const KEPT_BYTES: u64 = 64 << 20;

/// The receiver of a source.
pub(crate) struct Intake<'a> {
    source: &'a mut dyn Source,
    pub(crate) options: &'a SyncOptions,
    pub(crate) report: &'a mut dyn FnMut(Report<'_>),
    checkers: Checkers,
    /// Blocks that were asked for and have not come, and those that are being checked.
    owed: HashSet<BlockHash>,
    /// Blocks that nobody has, or whose bytes were bad too often.
    missing: HashMap<BlockHash, u32>,
    /// Those of them that were reported.
    reported: HashSet<BlockHash>,
    /// When they were last asked for again.
    asked_again: Duration,
    /// Who sent headers that link to nothing, and how often in a row.
    strays: HashMap<Giver, u32>,
    /// Headers whose blocks are to be asked for, when those of all branches are.
    unfetched: BTreeSet<(Height, HeaderId)>,
    headers_done: bool,
    /// The header with the most work that the source has told of.
    given: Option<HeaderId>,
    /// The blocks that were refused: each is told once.
    told: HashSet<BlockHash>,
    kept: HashMap<HeaderId, StoredBlock>,
    kept_bytes: u64,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(
        source: &'a mut dyn Source,
        options: &'a SyncOptions,
        report: &'a mut dyn FnMut(Report<'_>),
        checkers: Checkers,
    ) -> Self {
        Self {
            source,
            options,
            report,
            checkers,
            owed: HashSet::new(),
            missing: HashMap::new(),
            reported: HashSet::new(),
            asked_again: Duration::ZERO,
            strays: HashMap::new(),
            unfetched: BTreeSet::new(),
            headers_done: false,
            given: None,
            told: HashSet::new(),
            kept: HashMap::new(),
            kept_bytes: 0,
        }
    }

    /// Asks for headers above those that are known, and for blocks of those that are.
    pub(crate) fn begin(&mut self, stores: &Stores) -> Result<(), Error> {
        {
            let tree = &stores.chain.read().tree;
            let unfetched = tree.ids().filter(|id| !tree.is_stored(*id));
            self.unfetched.extend(unfetched.map(|id| (tree.height(id), id)));
        }
        self.seek(stores)
    }

    /// Whether nothing more will come.
    pub(crate) fn is_done(&self, stores: &Stores) -> bool {
        let at_stop = self.options.stop_height.is_some_and(|stop| stores.tip_at().0 >= stop);
        self.headers_done && self.owed.is_empty() && (!self.options.follow || at_stop)
    }

    /// Whether blocks are on their way.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.owed.is_empty() || !self.headers_done
    }

    /// Where the chain should go.
    pub(crate) fn target(&self, stores: &Stores) -> HeaderId {
        stores.chain.read().target(stores.tip, self.options.stop_height, self.is_waiting())
    }

    /// A block that is still in memory. It is given once.
    pub(crate) fn take_kept(&mut self, id: HeaderId) -> Option<StoredBlock> {
        let block = self.kept.remove(&id)?;
        self.kept_bytes -= block.size();
        Some(block)
    }

    /// Waits for something to happen and takes it.
    pub(crate) fn take(&mut self, stores: &mut Stores, wait: Duration) -> Result<(), Error> {
        if self.checkers.is_full() {
            self.checked(stores)?;
            return self.want(stores);
        }
        let wait = if self.checkers.is_idle() { wait } else { Duration::ZERO };
        match self.source.next_event(wait)? {
            Event::Headers { headers, giver } => self.headers(stores, &headers, giver)?,
            Event::HeadersDone => self.headers_done = true,
            Event::Block { hash, bytes, giver } => self.block(stores, hash, bytes, giver),
            Event::Missing { hash } => self.missed(stores, hash),
            Event::Warning(warning) => (self.report)(Report::Warning(&warning)),
            Event::Idle if !self.checkers.is_idle() => self.checked(stores)?,
            Event::Idle => self.ask_again(),
        }
        self.want(stores)
    }

    /// Nobody has a block, unless another copy of it has come meanwhile.
    fn missed(&mut self, stores: &Stores, hash: BlockHash) {
        self.owed.remove(&hash);
        let tree = &stores.chain.read().tree;
        if tree.find(&hash).is_some_and(|id| is_wanted(tree, id)) {
            self.missing.insert(hash, ATTEMPTS);
            if self.reported.insert(hash) {
                (self.report)(Report::Missing { hash });
            }
        }
    }

    /// Somebody may have what nobody had.
    fn ask_again(&mut self) {
        let now = (self.options.clock)();
        if self.options.follow && now.saturating_sub(self.asked_again) >= AGAIN {
            self.asked_again = now;
            self.missing.clear();
        }
    }

    fn seek(&mut self, stores: &Stores) -> Result<(), Error> {
        let locator = {
            let tree = &stores.chain.read().tree;
            tree.locator(tree.best_header())
        };
        self.headers_done = false;
        Ok(self.source.seek(&locator)?)
    }

    fn headers(
        &mut self,
        stores: &mut Stores,
        headers: &[HeaderBytes],
        giver: Giver,
    ) -> Result<(), Error> {
        let now = (self.options.now)();
        let (mut new, mut orphan, mut refused) = (false, false, false);
        for header in headers {
            match stores.add_header(header, now)? {
                Ok((id, is_new)) => {
                    let tree = &stores.chain.read().tree;
                    new |= is_new;
                    let given = self.given.filter(|given| tree.work(*given) >= tree.work(id));
                    self.given = given.or(Some(id));
                    if is_new && !tree.is_stored(id) {
                        self.unfetched.insert((tree.height(id), id));
                    }
                }
                Err(InsertError::Orphan { .. }) => orphan = true,
                Err(error) => {
                    let (hash, reason) = (error.culprit(), error.reason());
                    if !refused && error.is_blameworthy() {
                        self.source.blame(giver, &reason);
                    }
                    refused = true;
                    if self.told.insert(hash) {
                        (self.report)(Report::Refused { hash, reason: &reason });
                    }
                }
            }
        }
        let stray = orphan && !refused && !new;
        if !stray {
            self.strays.remove(&giver);
        }
        stores.follow_best_header()?;
        let height = {
            let tree = &stores.chain.read().tree;
            tree.height(tree.best_header())
        };
        (self.report)(Report::Headers { height });
        if new || (stray && self.may_stray(giver)) {
            return self.seek(stores);
        }
        Ok(())
    }

    /// Counts headers that link to nothing. A node that is asked for those between sends them; one
    /// that goes on without is not asked again.
    fn may_stray(&mut self, giver: Giver) -> bool {
        let strays = self.strays.entry(giver).or_default();
        *strays += 1;
        if *strays > STRAYS {
            self.source.blame(giver, "its headers link to none that are known");
        }
        *strays <= STRAYS
    }

    /// Has a block checked, if it is wanted.
    fn block(&mut self, stores: &Stores, hash: BlockHash, bytes: Vec<u8>, giver: Giver) {
        let tree = &stores.chain.read().tree;
        let id = tree.find(&hash).filter(|id| is_wanted(tree, *id));
        let Some(id) = id else {
            self.owed.remove(&hash);
            return;
        };
        // It may come unasked: nobody else is asked for it meanwhile.
        self.owed.insert(hash);
        let (height, below) = (tree.height(id), Recent::below(tree, id));
        self.checkers.push(Job { id, hash, height, below, bytes, giver });
    }

    /// Waits for the verdict on a block and stores it, or refuses it.
    fn checked(&mut self, stores: &mut Stores) -> Result<(), Error> {
        let Some(Checked { id, hash, giver, result }) = self.checkers.next() else {
            return Ok(());
        };
        self.owed.remove(&hash);
        // Meanwhile another copy may have been stored, or a block below it found invalid.
        if !is_wanted(&stores.chain.read().tree, id) {
            return Ok(());
        }
        let refusal = match result {
            Ok(block) => return self.keep(stores, id, block),
            Err(refusal) => refusal,
        };
        let reason = refusal.to_string();
        let is_news = match refusal {
            Refusal::Failed(error) => return Err(error),
            Refusal::Invalid(_) => {
                stores.mark_invalid(id, &reason)?;
                stores.follow_best_header()?;
                true
            }
            Refusal::Mutated(_) => {
                *self.missing.entry(hash).or_default() += 1;
                self.reported.insert(hash)
            }
        };
        if is_news {
            (self.report)(Report::Refused { hash, reason: &reason });
        }
        self.source.blame(giver, &reason);
        if self.told.insert(hash) {
            (self.report)(Report::Refused { hash, reason: &reason });
        }
        Ok(())
    }

    fn keep(&mut self, stores: &mut Stores, id: HeaderId, block: StoredBlock) -> Result<(), Error> {
        stores.store(id, &block)?;
        let size = block.size();
        (self.report)(Report::Stored { bytes: size });
        self.unfetched.remove(&(block.as_block().height(), id));
        if self.kept_bytes + size <= KEPT_BYTES {
            self.kept_bytes += size;
            self.kept.insert(id, block);
        }
        Ok(())
    }

    /// Asks for the blocks that are needed next.
    fn want(&mut self, stores: &Stores) -> Result<(), Error> {
        if self.owed.len() > WINDOW / 2 {
            return Ok(());
        }
        let stop = self.options.stop_height.unwrap_or(Height::new(u32::MAX));
        let hashes: Vec<BlockHash> = {
            let chain = stores.chain.read();
            let tree = &chain.tree;
            let wanted = |id: &HeaderId| {
                let hash = tree.hash(*id);
                tree.height(*id) <= stop
                    && !tree.is_stored(*id)
                    && tree.invalid(*id).is_none()
                    && !self.owed.contains(&hash)
                    && self.missing.get(&hash).is_none_or(|tries| *tries < ATTEMPTS)
            };
            let room = WINDOW - self.owed.len();
            let ids: Vec<HeaderId> = if self.options.all_branches {
                self.unfetched.iter().map(|(_, id)| *id).filter(wanted).take(room).collect()
            } else {
                let count = u32::try_from(2 * WINDOW).unwrap_or(u32::MAX);
                let best = tree.best_header();
                let other = self.given.filter(|given| {
                    !tree.is_on_branch(*given, best) && tree.work(*given) > tree.work(stores.tip)
                });
                let branches = other.into_iter().chain([best]);
                let mut seen = HashSet::new();
                let ids = branches.flat_map(|tip| tree.to_fetch(tip, count)).filter(wanted);
                ids.filter(|id| seen.insert(*id)).take(room).collect()
            };
            ids.into_iter().map(|id| tree.hash(id)).collect()
        };
        if hashes.is_empty() {
            return Ok(());
        }
        self.owed.extend(&hashes);
        Ok(self.source.want(&hashes)?)
    }
}

/// Whether the block is not there yet and can be in the chain.
fn is_wanted(tree: &HeaderTree, id: HeaderId) -> bool {
    !tree.is_stored(id) && tree.invalid(id).is_none()
}

//! Headers and blocks as they come from the source, and what to ask it for.
//!
//! 1. A header that is new goes into the tree and the archive. One that breaks a rule is told to
//!    the user and its giver is blamed.
//! 2. Blocks are asked for lowest first, at most [`WINDOW`] at a time: those of the best header's
//!    branch; of a source that has them at hand also those of branches that have lost.
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
    /// Headers whose blocks are to be asked for, when those of all branches are.
    unfetched: BTreeSet<(Height, HeaderId)>,
    headers_done: bool,
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
            unfetched: BTreeSet::new(),
            headers_done: false,
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
            Event::Missing { hash } => {
                self.owed.remove(&hash);
                self.missing.insert(hash, ATTEMPTS);
                (self.report)(Report::Missing { hash });
            }
            Event::Warning(warning) => (self.report)(Report::Warning(&warning.to_string())),
            Event::Idle if !self.checkers.is_idle() => self.checked(stores)?,
            // Somebody may have what nobody had.
            Event::Idle if self.options.follow => self.missing.clear(),
            Event::Idle => {}
        }
        self.want(stores)
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
                    if is_new && !tree.is_stored(id) {
                        self.unfetched.insert((tree.height(id), id));
                    }
                }
                Err(InsertError::Orphan { .. }) => orphan = true,
                Err(error) => {
                    if !refused {
                        let reason = error.to_string();
                        (self.report)(Report::Refused { hash: hash_of(&error), reason: &reason });
                        if error.is_blameworthy() {
                            self.source.blame(giver, &reason);
                        }
                    }
                    refused = true;
                }
            }
        }
        stores.follow_best_header()?;
        let height = {
            let tree = &stores.chain.read().tree;
            tree.height(tree.best_header())
        };
        (self.report)(Report::Headers { height });
        if new || (orphan && !refused) { self.seek(stores) } else { Ok(()) }
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
        match refusal {
            Refusal::Failed(error) => return Err(error),
            Refusal::Invalid(_) => {
                stores.mark_invalid(id, &reason)?;
                stores.follow_best_header()?;
            }
            Refusal::Mutated(_) => *self.missing.entry(hash).or_default() += 1,
        }
        (self.report)(Report::Refused { hash, reason: &reason });
        self.source.blame(giver, &reason);
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
                tree.to_fetch(count).into_iter().filter(wanted).take(room).collect()
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

fn hash_of(error: &InsertError) -> BlockHash {
    match error {
        InsertError::Orphan { hash, .. }
        | InsertError::Refused { hash, .. }
        | InsertError::Invalid { hash, .. } => *hash,
    }
}

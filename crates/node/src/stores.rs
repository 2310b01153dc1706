//! All stores of the node but the unspent set, and the commit that moves them together.
//!
//! The unspent set is separate because the joiner holds it while blocks are connected. The stores
//! here keep working meanwhile: headers arrive, blocks are stored and archived, commits are made.
//!
//! **A block is stored** once its header is known and its bytes are proved to belong to the header:
//! in the block store, and under the same number in the archive, on whatever branch.
//!
//! **A commit** makes the chain up to some block the confirmed one:
//!
//! 1. the block store is synced: the bytes of all blocks are there;
//! 2. the archive's confirmed heights change, in memory;
//! 3. the commit is appended to the commit log and synced: this is the acknowledgement;
//! 4. the script history follows;
//! 5. the mempool follows, if there is one;
//! 6. readers get the new [`NodeSnapshot`], with tip and mempool, by one atomic store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use varve_archive::history::HistoryView;
use varve_archive::{
    Archive, BlockState, Chain as ArchiveChain, HeaderLink, MmapBackend, MmapRows, PreparedBlock,
};
use varve_blocks::{BlockNumber, BlockStore, Synced};
use varve_types::{BlockHash, Header, Height};
use varve_utxo::{AsBlock as _, Version};

use crate::budget::{Budget, Measured};
use crate::chain::SharedChain;
use crate::chain_moment::ChainMoment;
use crate::checked::{Checked, CheckedHeights, CheckedSpan};
use crate::commit_log::{Archived, Commit, CommitLog, CommitSequence, LIST_MAX};
use crate::connected::Connected;
use crate::error::Error;
use crate::header_tree::{HeaderId, InsertError, Invalid};
use crate::live_mempool::{LiveMempool, MAX_MOVE};
use crate::ordinals::Ordinals;
use crate::owned_block::{Bytes, OwnedBlock};
use crate::pins::Pins;
use crate::rest::Rest;
use crate::script_index::ScriptIndex;
use crate::snapshot::NodeSnapshot;
use crate::source::HeaderBytes;
use crate::stats::Stats;

/// A block that is ready to be archived.
pub(crate) type ArchiveBlock = PreparedBlock<MmapRows>;

/// Blocks that left the confirmed chain, and blocks that joined it.
type Moved = (Vec<OwnedBlock>, Vec<OwnedBlock>);

/// A commit but for what is numbered and gathered when it is appended.
struct NewCommit {
    tip: HeaderId,
    /// Height and hash of the tip.
    at: (Height, BlockHash),
    fork: Height,
    checked: Vec<CheckedSpan>,
    synced: Synced,
}

/// The stores, as their one writer sees them.
pub(crate) struct Stores {
    pub(crate) chain: SharedChain,
    pub(crate) blocks: BlockStore,
    pub(crate) archive: Archive<MmapBackend>,
    pub(crate) log: CommitLog,
    /// The last commit.
    pub(crate) sequence: CommitSequence,
    /// The tip of the confirmed chain.
    pub(crate) tip: HeaderId,
    /// All blocks that are known to be invalid, whether or not their headers have come.
    pub(crate) marks: BTreeMap<BlockHash, Arc<str>>,
    /// Marks, and marks taken back, that no commit has yet.
    pub(crate) new_marks: Vec<(BlockHash, Option<Arc<str>>)>,
    /// How the scripts of the confirmed chain were settled, as the commits have it.
    pub(crate) checked: CheckedHeights,
    /// Confirmed heights whose scripts were settled in place, and which no commit has yet.
    pub(crate) new_checked: Vec<CheckedSpan>,
    /// Stored blocks whose headers were lost in a crash, and have not come again.
    pub(crate) orphans: HashMap<BlockHash, BlockNumber>,
    /// Those of them whose bytes were pruned since: nobody will archive them.
    pub(crate) lost: BTreeSet<BlockNumber>,
    pub(crate) published: Arc<ArcSwap<NodeSnapshot>>,
    /// Bytes of blocks that were stored since stores and set were last made durable together.
    pub(crate) since_checkpoint: u64,
    /// Blocks that were connected since then.
    pub(crate) connected_since: u32,
    /// The set's figures by height.
    pub(crate) stats: Stats,
    /// The script history, where it is kept.
    pub(crate) scripts: Option<ScriptIndex>,
    /// Blocks that readers want the bytes of.
    pub(crate) pins: Pins,
    /// Unconfirmed transactions, while a sync follows.
    pub(crate) mempool: LiveMempool,
}

impl Stores {
    /// Adds a header at the time `now`. Returns its id, and whether it is new.
    pub(crate) fn add_header(
        &mut self,
        bytes: &HeaderBytes,
        now: u32,
    ) -> Result<Result<(HeaderId, bool), InsertError>, Error> {
        let header = Header::new(bytes);
        let (id, is_new) = {
            let mut chain = self.chain.write();
            let before = chain.tree.len();
            match chain.tree.insert(header, now) {
                Ok(id) => (id, chain.tree.len() > before),
                Err(refused) => return Ok(Err(refused)),
            }
        };
        // One that is known to the tree alone came when the archive had no room.
        self.archive.set_header(header)?;
        if !is_new {
            return Ok(Ok((id, false)));
        }
        let hash = header.hash();
        if let Some(reason) = self.marks.get(&hash).cloned() {
            self.chain.write().tree.mark_invalid(id, &reason);
            let invalid = Invalid { block: hash, reason };
            return Ok(Err(InsertError::Invalid { hash, invalid }));
        }
        if let Some(number) = self.orphans.remove(&hash) {
            let block = self.read(id)?;
            self.archive.set_block(block.as_block(), number)?;
            self.chain.write().tree.mark_stored(id);
        }
        Ok(Ok((id, true)))
    }

    /// Lets the archive's candidate chain follow the best header.
    pub(crate) fn follow_best_header(&mut self) -> Result<(), Error> {
        let (best, hash) = {
            let chain = self.chain.read();
            let best = chain.tree.best_header();
            (chain.tree.height(best), chain.tree.hash(best))
        };
        let now = self.archive.now();
        let link = now.to_header(hash)?.ok_or_else(|| missing(hash))?;
        if now.at(ArchiveChain::Candidate, best) == Some(link)
            && now.top(ArchiveChain::Candidate).is_some_and(|(top, _)| top == best)
        {
            return Ok(());
        }
        self.set_chain(ArchiveChain::Candidate, link)?;
        Ok(())
    }

    /// Stores a block whose bytes are those of its header, and archives what was made of it.
    pub(crate) fn store(
        &mut self,
        id: HeaderId,
        block: &OwnedBlock,
        prepared: ArchiveBlock,
    ) -> Result<(), Error> {
        let number = self.blocks.append(block.as_block().block())?;
        self.archive.set_prepared(prepared, number)?;
        self.chain.write().tree.mark_stored(id);
        self.since_checkpoint += block.size();
        Ok(())
    }

    /// Reads a stored block.
    pub(crate) fn read(&self, id: HeaderId) -> Result<OwnedBlock, Error> {
        let (hash, height, format) = {
            let tree = &self.chain.read().tree;
            (tree.hash(id), tree.height(id), tree.params().network.format())
        };
        let reader = self.blocks.reader();
        let number = reader.number_of(&hash)?.ok_or(Error::NoBytes { hash, height })?;
        let bytes = Bytes::Stored(reader.raw(number).map_err(Error::of_block(height))?);
        OwnedBlock::parse(bytes, format, height)
            .map_err(|source| Error::Undecodable { hash, source })
    }

    /// Remembers that a block is invalid.
    pub(crate) fn mark_invalid(&mut self, id: HeaderId, reason: &str) -> Result<(), Error> {
        let hash = {
            let mut chain = self.chain.write();
            chain.tree.mark_invalid(id, reason);
            chain.tree.hash(id)
        };
        let reason: Arc<str> = Arc::from(reason);
        self.marks.insert(hash, Arc::clone(&reason));
        self.new_marks.push((hash, Some(reason)));
        let link = self.archive.now().to_header(hash)?.ok_or_else(|| missing(hash))?;
        Ok(self.archive.set_block_states(&[(link, BlockState::Unconfirmable)])?)
    }

    /// Takes the mark of a block back, whether or not its header is known.
    pub(crate) fn unmark(&mut self, hash: BlockHash) -> Result<(), Error> {
        {
            let mut chain = self.chain.write();
            if let Some(id) = chain.tree.find(&hash) {
                chain.tree.clear_invalid(id);
            }
        }
        if self.marks.remove(&hash).is_some() {
            self.new_marks.push((hash, None));
        }
        match self.archive.now().to_header(hash)? {
            Some(link) => Ok(self.archive.set_block_states(&[(link, BlockState::Unknown)])?),
            None => Ok(()),
        }
    }

    /// Notes how the scripts of a confirmed block were settled in place.
    pub(crate) fn record_checked(&mut self, id: HeaderId, checked: Checked) {
        let height = {
            let mut chain = self.chain.write();
            chain.set_checked(id, checked);
            chain.tree.height(id)
        };
        match self.new_checked.last_mut() {
            Some(span) if span.checked == checked && span.last.checked_add(1) == Some(height) => {
                span.last = height;
            }
            _ => self.new_checked.push(CheckedSpan { first: height, last: height, checked }),
        }
    }

    /// Makes the chain up to `tip` the confirmed one. `version` is the set at that block, `clock`
    /// the time since some fixed moment.
    pub(crate) fn commit(
        &mut self,
        tip: HeaderId,
        version: Arc<Version>,
        clock: Duration,
    ) -> Result<(), Error> {
        while self.new_marks.len() > LIST_MAX {
            self.commit_some_verdicts()?;
        }
        let synced = self.blocks.sync()?;
        let (height, hash, fork, checked) = {
            let chain = self.chain.read();
            let tree = &chain.tree;
            let fork = tree.height(tree.fork_point(tip, self.tip));
            let mut checked = chain.spans_above(fork, tip);
            // What does not fit is recorded as not checked.
            checked.truncate(LIST_MAX);
            (tree.height(tip), tree.hash(tip), fork, checked)
        };
        let link = self.archive.now().to_header(hash)?.ok_or_else(|| missing(hash))?;
        let confirmed = self.set_chain(ArchiveChain::Confirmed, link)?;
        let states: Vec<_> =
            confirmed.into_iter().map(|link| (link, BlockState::Confirmable)).collect();
        self.archive.set_block_states(&states)?;
        self.confirm_stats(fork, tip)?;
        let before = self.tip;
        self.append_commit(NewCommit { tip, at: (height, hash), fork, checked, synced })?;
        self.keep_up_scripts(fork)?;
        self.publish_commit(before, version, clock);
        Ok(())
    }

    /// Shows a commit to readers, with the mempool at its tip. `before` is the tip that it left.
    fn publish_commit(&mut self, before: HeaderId, version: Arc<Version>, clock: Duration) {
        let scripts = self.scripts.as_ref().map(ScriptIndex::view);
        let next = self.moment(self.tip_at(), version, scripts);
        match self.moved(before) {
            _ if !self.mempool.is_open() => self.published.store(Arc::new(next)),
            Ok(Some((left, joined))) => self.mempool.follow(next, (&left, &joined), clock),
            Ok(None) => {
                self.published.store(Arc::new(next));
                self.mempool.leave_behind();
            }
            Err(error) => {
                self.published.store(Arc::new(next));
                self.mempool.close(&error.to_string(), clock);
            }
        }
    }

    /// The blocks between the tip `before` and the tip now: those that left, the tip first, and
    /// those that joined, the lowest first. `None` when they are too many to be followed, or nobody
    /// follows.
    fn moved(&self, before: HeaderId) -> Result<Option<Moved>, Error> {
        if !self.mempool.is_open() {
            return Ok(None);
        }
        let (left, joined) = {
            let tree = &self.chain.read().tree;
            let fork = tree.fork_point(before, self.tip);
            let down = |from: HeaderId| {
                let branch = std::iter::successors(Some(from), |id| tree.parent(*id));
                branch.take_while(|id| *id != fork).take(MAX_MOVE + 1).collect::<Vec<_>>()
            };
            (down(before), down(self.tip))
        };
        if left.len().max(joined.len()) > MAX_MOVE {
            return Ok(None);
        }
        let read = |id: &HeaderId| self.read(*id);
        let left = left.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let joined = joined.iter().rev().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(Some((left, joined)))
    }

    /// Takes what a block connected into the indexes. Filters are kept by block; figures of the set
    /// wait for the commit that confirms the block.
    pub(crate) fn index(&mut self, connected: Connected) -> Result<(), Error> {
        let Connected { block, height, filter, change, scripts } = connected;
        if let Some(filter) = filter {
            self.add_filter(block, filter)?;
        }
        if let Some(change) = change {
            self.stats.connected(height, block, change);
        }
        if let Some((index, batch)) = self.scripts.as_mut().zip(scripts) {
            index.connected(height, block, batch);
        }
        Ok(())
    }

    /// Makes durable what no commit has yet of marks and of checks in place. The tip stays.
    pub(crate) fn commit_verdicts(&mut self) -> Result<(), Error> {
        while !self.new_marks.is_empty() || !self.new_checked.is_empty() {
            self.commit_some_verdicts()?;
        }
        // The set and the history may be on their way to another branch.
        let now = self.published.load_full();
        let (utxo, scripts) = (Arc::clone(&now.utxo), now.scripts.clone());
        self.publish_with(self.tip_at(), utxo, scripts);
        Ok(())
    }

    /// Makes as many of them durable as one commit holds.
    fn commit_some_verdicts(&mut self) -> Result<(), Error> {
        let synced = self.blocks.sync()?;
        let (height, hash) = self.tip_at();
        let count = self.new_checked.len().min(LIST_MAX);
        let checked = self.new_checked.get(..count).unwrap_or_default().to_vec();
        let (tip, at, fork) = (self.tip, (height, hash), height);
        self.append_commit(NewCommit { tip, at, fork, checked, synced })?;
        self.new_checked.drain(..count);
        Ok(())
    }

    fn append_commit(&mut self, new: NewCommit) -> Result<(), Error> {
        let NewCommit { tip, at: (height, hash), fork, checked, synced } = new;
        assert!(fork <= height, "a chain forks below its tip or at it");
        let number = self.blocks.reader().number_of(&hash)?;
        let number = number.ok_or(Error::NoBytes { hash, height })?;
        let sequence = CommitSequence(self.sequence.0 + 1);
        let count = self.new_marks.len().min(LIST_MAX);
        let marks = self.new_marks.get(..count).unwrap_or_default().to_vec();
        let tip_at = (height, hash);
        let commit = Commit { sequence, tip: tip_at, number, fork, synced, marks, checked };
        self.log.append(&commit)?;
        self.checked.cut_above(fork);
        commit.checked.iter().for_each(|span| self.checked.record(*span));
        (self.sequence, self.tip) = (sequence, tip);
        self.new_marks.drain(..count);
        Ok(())
    }

    /// Shows the confirmed chain to readers.
    pub(crate) fn publish(&self, tip: (Height, BlockHash), utxo: Arc<Version>) {
        self.publish_with(tip, utxo, self.scripts.as_ref().map(ScriptIndex::view));
    }

    fn publish_with(
        &self,
        tip: (Height, BlockHash),
        utxo: Arc<Version>,
        scripts: Option<(HistoryView, Ordinals)>,
    ) {
        let mempool = self.mempool.version_at(tip.1);
        let next = NodeSnapshot { mempool, ..self.moment(tip, utxo, scripts) };
        self.published.store(Arc::new(next));
    }

    /// The node at this tip, without a mempool.
    fn moment(
        &self,
        tip: (Height, BlockHash),
        utxo: Arc<Version>,
        scripts: Option<(HistoryView, Ordinals)>,
    ) -> NodeSnapshot {
        NodeSnapshot {
            sequence: self.sequence,
            tip,
            utxo,
            archive: self.archive.snapshot(),
            blocks: self.blocks.reader(),
            chain: ChainMoment::now(&self.chain, self.tip, self.checked.clone()),
            scripts,
            mempool: None,
        }
    }

    /// The tip of the confirmed chain.
    pub(crate) fn tip_at(&self) -> (Height, BlockHash) {
        let tree = &self.chain.read().tree;
        (tree.height(self.tip), tree.hash(self.tip))
    }

    /// Splits `memory`, given what the stores and the source use now.
    pub(crate) fn budget(&self, memory: usize, source: u64) -> Budget {
        Budget::new(memory, self.measured(source))
    }

    fn measured(&self, source: u64) -> Measured {
        let measured = Measured::of(&self.chain.read().tree, &self.blocks, &self.archive);
        let source = usize::try_from(source).unwrap_or(usize::MAX);
        let (history, mempool) = (self.scripts.is_some(), self.mempool.is_open());
        Measured { source, history, mempool, ..measured }
    }

    /// The same with a mempool, whether or not it is open.
    pub(crate) fn budget_with_mempool(&self, memory: usize, source: u64) -> Budget {
        let measured = self.measured(source);
        Budget::new(memory, Measured { mempool: true, ..measured })
    }

    /// Makes blocks and archive durable, so that a crash finds nothing to do.
    pub(crate) fn checkpoint(&mut self) -> Result<(), Error> {
        self.stats.sync()?;
        self.scripts.as_mut().map_or(Ok(()), ScriptIndex::settle)?;
        let synced = self.blocks.checkpoint()?;
        self.archive.checkpoint(self.sequence.0)?;
        let archived = self.archived(synced);
        Ok(self.log.checkpoint(&archived)?)
    }

    /// The last checkpoint of a writer: the next opening has nothing to do, and readers find what
    /// they need ([`Rest`]). `coins` is the number of coins at the tip.
    pub(crate) fn rest(&mut self, coins: u64, index: usize) -> Result<(), Error> {
        // A verdict that no commit has, or a tip that is to be left.
        let is_left = self.chain.read().tree.invalid(self.tip).is_some();
        if is_left || !self.new_marks.is_empty() || !self.new_checked.is_empty() {
            return self.checkpoint();
        }
        self.stats.sync()?;
        self.scripts.as_mut().map_or(Ok(()), ScriptIndex::rest)?;
        let synced = self.blocks.checkpoint()?;
        self.archive.rest(self.sequence.0)?;
        let archived = self.archived(synced);
        Ok(self.log.rest(&archived, &self.summary(coins, index))?)
    }

    /// What readers need to know. `coins` is the size of the set, `index` the bytes of its index.
    pub(crate) fn summary(&self, coins: u64, index: usize) -> Rest {
        let (marks, checked) = (self.marks.clone(), self.checked.clone());
        let (sequence, tip) = (self.sequence, self.tip_at());
        let tree = &self.chain.read().tree;
        let (headers, tips) = (tree.height(tree.best_header()), tree.chain_tips(self.tip));
        let arrays = self.archive.memory().heads;
        let measured = Measured::of(tree, &self.blocks, &self.archive).headers;
        let memory = [measured.saturating_sub(arrays), arrays, index].map(|bytes| bytes as u64);
        Rest { sequence, tip, headers, coins, memory, tips, marks, checked }
    }

    /// The archive has the rows of all blocks but those whose headers are not known.
    fn archived(&self, synced: Synced) -> Archived {
        let except = self.orphans.values().chain(&self.lost).copied().collect();
        Archived { below: synced.count, except }
    }

    /// Blocks below `first` have been pruned: an orphan among them is not waited for any more.
    pub(crate) fn forget_pruned(&mut self, first: BlockNumber) {
        let pruned = self.orphans.extract_if(|_, number| *number < first);
        self.lost.extend(pruned.map(|(_, number)| number));
    }

    /// Turns one of the archive's chains to the branch of `tip`. Gives the headers that were
    /// pushed.
    pub(crate) fn set_chain(
        &mut self,
        chain: ArchiveChain,
        tip: HeaderLink,
    ) -> Result<Vec<HeaderLink>, Error> {
        let (fork, above) = self.archive.now().fork_from(chain, tip)?;
        let keep = fork.map_or(0, |fork| fork.to_u32() + 1);
        self.archive.set_chain(chain, keep, &above)?;
        Ok(above)
    }
}

pub(crate) fn missing(hash: BlockHash) -> Error {
    Error::Disagree { what: format!("the archive does not have the header {hash}") }
}

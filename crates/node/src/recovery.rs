//! Opens a node and recovers it from a crash at any point.
//!
//! The commit log says which chain is confirmed, and the block store has its bytes. Everything else
//! is at some checkpoint, before or after that, and is brought to it:
//!
//! 1. The commit log gives the tip T and the marks of invalid blocks, and how many blocks were
//!    synced.
//! 2. The block store keeps its whole frames and cuts a torn end.
//! 3. The header tree is built from the archive's headers and those of the stored blocks.
//! 4. The archive's search tables get the rows of blocks that were young, then the archive gets all
//!    blocks that came after its checkpoint, and the confirmed heights of T.
//! 5. The unspent set may be behind T, on a branch that has lost, or ahead of T by blocks that were
//!    never acknowledged, whose bytes may even be lost. It is rewound, block by block, to one that
//!    is on the branch of T; then the blocks up to T are appended. They were checked before the
//!    commit.
//! 6. Filters and figures may be behind T. Where blocks are pruned they are restored with the help
//!    of the set; else the next sync brings them on.
//! 7. A tip that is marked as invalid was to be left when the process ended. The chain leaves it
//!    now.
//!
//! **What was replayed is made durable**, so the next opening does not repeat it: at the end, and
//! in between (`steps`). A process that is killed repeatedly while it replays advances each time,
//! if it lives long enough to write the set's window once.
//!
//! Nothing here acknowledges anything, so a crash in the middle is a crash before it began.

mod indexes;
mod rebuild;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use varve_archive::search::SearchOptions;
use varve_archive::{
    Archive, ArchiveConfig, BlockState, Chain as ArchiveChain, Indexes, MmapBackend, MmapConfig,
};
use varve_blocks::{BlockNumber, BlockStore, Synced};
use varve_consensus::BlockAt;
use varve_io::Storage;
use varve_types::{Block, BlockHash, Height};
use varve_utxo::{AsBlock as _, Compaction, Database, Secret, StoreKey};

use crate::budget::{Budget, Measured};
use crate::chain::{Chain, SharedChain};
use crate::chain_moment::ChainMoment;
use crate::commit_log::{Archived, CommitLog, CommitSequence, History};
use crate::connected::Wanted;
use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::header_tree::HeaderId;
use crate::live_mempool::LiveMempool;
use crate::ordinals::Ordinals;
use crate::organizer::{LeftOut, Options, Organizer, connect};
use crate::pins::Pins;
use crate::script_index::ScriptIndex;
use crate::settings::{Index, IndexSet, Prune, Settings};
use crate::snapshot::NodeSnapshot;
use crate::spent_coins::ArchivedCoins;
use crate::stats::Stats;
use crate::steps::Steps;
use crate::store_files::{SCRIPT, STATS};
use crate::stores::Stores;
use rebuild::{Rebuild, Rebuilt};

/// Files of blocks are at most this part of what is kept, but not below [`SMALL_SEGMENT`].
const PRUNED_SEGMENTS: u64 = 8;
const SMALL_SEGMENT: u64 = 16 << 20;

/// Gets how many blocks have been archived, and how many there are.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64, u64);

impl Organizer {
    /// Opens the node in a folder, or creates one.
    pub fn open(root: Arc<dyn Storage>, options: Options) -> Result<Self, Error> {
        Self::open_with(root, options, &mut |_, _| {})
    }

    /// Opens the node in a folder, or creates one. `progress` gets how many blocks have been
    /// archived and how many are to be, when the archive has to be rebuilt.
    pub fn open_with(
        root: Arc<dyn Storage>,
        options: Options,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        Budget::empty(options.memory)?;
        let directory = DataDirectory::open(root, options.params.network, &options.seed)?;
        Self::open_in(Arc::new(directory), options, progress)
    }

    /// Opens the node in a folder that is ours.
    pub(crate) fn open_in(
        directory: Arc<DataDirectory>,
        options: Options,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        let budget = Budget::empty(options.memory)?;
        let (mut log, mut history) = open_log(&directory)?;
        let before = Settings::load(directory.root())?;
        let settings = before.changed(options.settings);
        let mut blocks = open_blocks(&directory, &options, settings, &history)?;
        keep_settings(&directory, &blocks, before, settings)?;
        let backend = open_tables(&directory, &options, settings, &budget)?;
        let mut archive = open_archive(backend, &options, settings, &mut blocks, progress)?;
        check_followed(&archive, &history, &directory)?;
        note_lost(&archive, &mut history, &mut log)?;
        let parts = Rebuild {
            options: &options,
            lag: budget.lag(options.limits.lag),
            blocks: &blocks,
            archive: &mut archive,
            log: &mut log,
        };
        let Rebuilt { mut chain, orphans, lost, rows } = parts.run(&history, progress)?;
        let history_kept = settings.indexes.has(Index::Script);
        let measured = Measured::of(&chain.tree, &blocks, &archive);
        let measured = Measured { history: history_kept, ..measured };
        let budget = Budget::new(options.memory, measured).enough()?;
        let scripts = open_scripts(&directory, &options, &budget, &archive, history_kept)?;
        let utxo = open_utxo(&directory, &options, &budget)?;

        let (tip, sequence) = confirmed_tip(&chain, &history)?;
        chain.restore_checked(tip, &history.checked);
        let at = (chain.tree.height(tip), chain.tree.hash(tip));
        let chain = SharedChain::new(chain);
        let published = Arc::new(ArcSwap::from_pointee(NodeSnapshot {
            sequence,
            tip: at,
            utxo: Arc::clone(utxo.latest()),
            archive: archive.snapshot(),
            blocks: blocks.reader(),
            chain: ChainMoment::now(&chain, tip, history.checked.clone()),
            scripts: scripts.as_ref().map(ScriptIndex::view),
            mempool: None,
        }));
        let mempool = LiveMempool::of(&directory, &options, &published);
        let stores = Stores {
            chain,
            blocks,
            archive,
            log,
            sequence,
            tip,
            marks: history.marks,
            checked: history.checked,
            orphans,
            lost,
            published,
            new_marks: Vec::new(),
            new_checked: Vec::new(),
            since_checkpoint: 0,
            connected_since: 0,
            stats: Stats::default(),
            scripts,
            pins: Pins::default(),
            mempool,
        };
        let left_out = LeftOut::default();
        let organizer = Self { utxo, stores, options, settings, directory, left_out };
        organizer.finish_opening(at, history.last.is_none(), rows > 0)
    }

    /// Brings everything to the confirmed tip `at` and makes durable what that took.
    fn finish_opening(
        mut self,
        at: (Height, BlockHash),
        is_new: bool,
        is_rebuilt: bool,
    ) -> Result<Self, Error> {
        let is_behind = self.utxo.tip() != Some(at);
        let is_indexed = self.catch_up(is_new)?;
        if is_behind || is_indexed || is_rebuilt {
            self.rest()?;
        }
        self.leave_marked_tip()?;
        Ok(self)
    }

    /// Brings the set, the archive's chains and the indexes to the confirmed tip, and publishes it.
    /// Whether indexes were behind.
    fn catch_up(&mut self, is_new: bool) -> Result<bool, Error> {
        let tip = self.stores.tip;
        self.rewind_to_branch(tip)?;
        self.append_to(tip, Wanted::default())?;
        if is_new {
            // The first commit of all: the genesis block.
            self.stores.commit(tip, Arc::clone(self.utxo.latest()), Duration::ZERO)?;
            return Ok(false);
        }
        let (height, hash) = self.stores.tip_at();
        let link = self.stores.archive.now().to_header(hash)?;
        let link = link.ok_or_else(|| disagree(format!("block {hash} is not archived")))?;
        let above = self.stores.set_chain(ArchiveChain::Confirmed, link)?;
        let states: Vec<_> =
            above.into_iter().map(|link| (link, BlockState::Confirmable)).collect();
        self.stores.archive.set_block_states(&states)?;
        self.stores.follow_best_header()?;
        let is_indexed = self.restore_indexes()?;
        self.stores.restore_scripts()?;
        self.stores.publish((height, hash), Arc::clone(self.utxo.latest()));
        Ok(is_indexed)
    }

    /// The block that the unspent set stands at, when the tree knows it.
    pub(crate) fn utxo_tip(&self) -> Result<HeaderId, Error> {
        let (height, hash) = self.utxo.tip().ok_or_else(|| disagree("the set is empty".into()))?;
        let found = self.stores.chain.read().tree.find(&hash);
        found.ok_or_else(|| disagree(format!("the set stands at the unknown {hash} at {height}")))
    }

    /// Rewinds the set until it stands at a block of the branch that ends with `target`.
    pub(crate) fn rewind_to_branch(&mut self, target: HeaderId) -> Result<(), Error> {
        while let Some((_, hash)) = self.utxo.tip() {
            let is_there = {
                let tree = &self.stores.chain.read().tree;
                tree.find(&hash).is_some_and(|id| tree.is_on_branch(id, target))
            };
            if is_there {
                return Ok(());
            }
            self.utxo.rewind_with(&ArchivedCoins::new(&self.stores))?;
            self.disconnect_scripts(hash)?;
        }
        Ok(())
    }

    /// Appends blocks to the set up to `target`, which is on its branch. They are known to be
    /// valid. The indexes take what is wanted of them.
    fn append_to(&mut self, target: HeaderId, wanted: Wanted) -> Result<(), Error> {
        let last = self.stores.chain.read().tree.height(target).to_u32();
        let first = self.utxo.tip().map_or(0, |(height, _)| height.to_u32() + 1);
        let budget = self.stores.budget(self.options.memory, 0);
        let mut steps = Steps::new(budget.lag(self.options.limits.lag));
        for height in first..=last {
            let id = self.stores.chain.read().tree.ancestor(target, Height::new(height));
            let block = self.stores.read(id.expect("not above the target"))?;
            if !wanted.is_nothing() {
                let view = self.utxo.view(block.as_block())?;
                let params = &self.options.params;
                self.stores.index(connect(wanted, params, block.as_block(), &view)?)?;
            }
            self.utxo.append(block.as_block())?;
            if steps.is_due(block.size()) {
                self.utxo.begin_flush()?;
            }
        }
        Ok(())
    }
}

pub(crate) fn open_blocks(
    directory: &DataDirectory,
    options: &Options,
    settings: Settings,
    history: &History,
) -> Result<BlockStore, Error> {
    let synced = history.last.as_ref().map_or(Synced::NEW, |commit| commit.synced);
    let block_options = block_options(directory, options, settings);
    Ok(BlockStore::open(directory.store("blocks")?, block_options, synced)?)
}

/// How the block store of a folder is opened.
pub(crate) fn block_options(
    directory: &DataDirectory,
    options: &Options,
    settings: Settings,
) -> varve_blocks::Options {
    let identity = directory.identity();
    let format = options.params.network.format();
    // Whole files are dropped, so they are small where that happens.
    let segment_size = match settings.prune {
        Prune::Off => options.block_segment,
        Prune::To(bytes) => options.block_segment.min((bytes / PRUNED_SEGMENTS).max(SMALL_SEGMENT)),
    };
    varve_blocks::Options {
        segment_size,
        ..varve_blocks::Options::new(identity.store, identity.secret, format)
    }
}

/// Makes the settings those of the folder. What was left out is removed before, so that a crash in
/// between leaves it chosen. An index is added only where all blocks are there to make it from.
fn keep_settings(
    directory: &DataDirectory,
    blocks: &BlockStore,
    before: Settings,
    settings: Settings,
) -> Result<(), Error> {
    if settings == before {
        return Ok(());
    }
    let is_pruned = blocks.reader().first_held()? > BlockNumber::ZERO;
    if is_pruned && settings.added_to(before) != IndexSet::default() {
        return Err(Error::Pruned { height: Height::GENESIS });
    }
    if before.indexes.has(Index::Stats) && !settings.indexes.has(Index::Stats) {
        directory.clear(&STATS)?;
    }
    if before.indexes.has(Index::Script) && !settings.indexes.has(Index::Script) {
        directory.clear(&SCRIPT)?;
    }
    settings.store(directory.root())
}

/// With less memory than this the search tables flush and merge one after another, in the writing
/// thread: each background job takes some megabytes.
pub(crate) const SEARCH_BESIDE: usize = 64 << 20;

/// Opens the tables of the archive. Those that are not wanted any more are dropped.
fn open_tables(
    directory: &DataDirectory,
    options: &Options,
    settings: Settings,
    budget: &Budget,
) -> Result<MmapBackend, Error> {
    let identity = directory.identity();
    let config = MmapConfig::new(identity.store, identity.secret);
    let memory = budget.search();
    let compaction = if memory < SEARCH_BESIDE { Compaction::Inline } else { options.compaction };
    let search = SearchOptions { memory, compaction, ..config.search };
    let config = MmapConfig { indexes: table_indexes(settings), search, ..config };
    Ok(MmapBackend::open(directory.store("archive")?, config)?)
}

/// The optional tables of the archive. The script history and the figures are beside it.
pub(crate) fn table_indexes(settings: Settings) -> Indexes {
    Indexes { pushdata: settings.pushdata(), filters: settings.indexes.has(Index::Filter) }
}

/// Opens the archive, and gives its search tables what they lack. A new one gets the genesis block,
/// which is put into the block store if it is not there.
fn open_archive(
    backend: MmapBackend,
    options: &Options,
    settings: Settings,
    blocks: &mut BlockStore,
    progress: Progress<'_>,
) -> Result<Archive<MmapBackend>, Error> {
    let network = options.params.network;
    let config = ArchiveConfig { network, indexes: table_indexes(settings) };
    let bytes = network.genesis_block();
    let genesis = Block::parse(&bytes, network.format())
        .map_err(|source| Error::Undecodable { hash: network.genesis_hash(), source })?;
    let number = match blocks.reader().number_of(&network.genesis_hash())? {
        Some(number) => number,
        None => blocks.append(&genesis)?,
    };
    let mut archive = Archive::open(backend, config)?;
    archive.catch_up(blocks.reader(), options.workers, progress)?;
    if !archive.now().is_initialized() {
        archive.initialize(&BlockAt::new(Height::GENESIS, &genesis), number)?;
    }
    Ok(archive)
}

/// A commit that the archive has followed was synced before. When the log does not have it, the log
/// is damaged, and its end is not one that a crash has torn.
fn check_followed(
    archive: &Archive<MmapBackend>,
    history: &History,
    directory: &DataDirectory,
) -> Result<(), Error> {
    let last = history.last.as_ref().map_or(0, |commit| commit.sequence.0);
    if archive.sequence() <= last {
        return Ok(());
    }
    let path = directory.store("commit")?.path().join("commits");
    let followed = archive.sequence();
    Err(disagree(format!(
        "{} ends with commit {last}, but the archive has followed {followed}",
        path.display()
    )))
}

/// Notes that the archive was lost, before any row is written, in case that is interrupted.
fn note_lost(
    archive: &Archive<MmapBackend>,
    history: &mut History,
    log: &mut CommitLog,
) -> Result<(), Error> {
    if archive.now().bounds().headers <= 1 && history.archived != Archived::default() {
        history.archived = Archived::default();
        log.checkpoint(&history.archived)?;
    }
    Ok(())
}

/// Opens the script history, if it is kept.
fn open_log(directory: &DataDirectory) -> Result<(CommitLog, History), Error> {
    Ok(CommitLog::open(directory.store("commit")?, directory.identity().store)?)
}

fn open_scripts(
    directory: &DataDirectory,
    options: &Options,
    budget: &Budget,
    archive: &Archive<MmapBackend>,
    is_kept: bool,
) -> Result<Option<ScriptIndex>, Error> {
    if !is_kept {
        return Ok(None);
    }
    let ordinals = Ordinals::of(archive.now())?;
    let opened = ScriptIndex::open(directory, options.history, budget, ordinals, options.workers)?;
    Ok(Some(opened))
}

pub(crate) fn open_utxo(
    directory: &DataDirectory,
    options: &Options,
    budget: &Budget,
) -> Result<Database, Error> {
    let identity = directory.identity();
    let key = StoreKey { id: identity.store, secret: Secret::new(identity.secret) };
    let utxo_options = varve_utxo::Options {
        parameters: options.parameters,
        workers: options.workers,
        compaction: options.compaction,
        undo: options.undo,
        ..varve_utxo::Options::new(options.params.network, key)
    };
    let utxo_options = utxo_options.with_memory(budget.set)?;
    Database::open(directory.store("utxo")?, utxo_options).map_err(|error| budget.set_error(error))
}

/// The tip of the last commit, genesis before the first. All up to it is valid.
fn confirmed_tip(chain: &Chain, history: &History) -> Result<(HeaderId, CommitSequence), Error> {
    let Some(last) = &history.last else { return Ok((HeaderId::GENESIS, CommitSequence(0))) };
    let (height, hash) = last.tip;
    let found = chain.tree.find(&hash).filter(|id| chain.tree.height(*id) == height);
    let missing = || disagree(format!("the confirmed block {hash} at {height} is not stored"));
    Ok((found.ok_or_else(missing)?, last.sequence))
}

fn disagree(what: String) -> Error {
    Error::Disagree { what }
}

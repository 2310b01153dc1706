//! A read-only node, opened at a cost that does not grow with the chain.
//!
//! A node that ends in order leaves its folder *at rest*: every store stands at the last commit,
//! and the checkpoint says what readers need to know ([`Rest`]). Such a folder is opened without
//! its writers:
//!
//! | read when it is opened | read when a question touches it |
//! |---|---|
//! | `node`, `settings`, `commit/checkpoint`, six manifests | rows and heads of the archive |
//! | the header of every file of commits and blocks | rows of the block store, blocks |
//! | the first page of each of the archive's heads | a search table's directory, then its pages |
//! | the archive's heights and block states, 24 bytes a header | the unspent set, as a whole |
//! | | the figures by height |
//!
//! No header tree is built, no commit is read, and nothing is written but the folder's lock.
//!
//! If anything disagrees (after a crash, with a damaged file, after an interrupted change of
//! settings), the node is opened as for writing, which either replays and leaves the folder at rest
//! for the next reader, or reports what is wrong.

use std::sync::{Arc, Mutex, PoisonError};

use varve_archive::{ArchiveConfig, MmapConfig, MmapTables, Snapshot, View, stored_bytes};
use varve_blocks::BlockReader;
use varve_io::Storage;
use varve_types::{BlockHash, Height};
use varve_utxo::{Database, MemorySplit, Version};

use crate::budget::{Budget, Measured};
use crate::checked::ScriptsChecked;
use crate::commit_log::{CommitLog, CommitSequence};
use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::filters::filtered;
use crate::header_tree::{ChainTip, Invalid};
use crate::index_size::index_bytes;
use crate::live_mempool::stored::{self, RestingChain};
use crate::mempool;
use crate::ordinals::Ordinals;
use crate::organizer::{Options, Organizer};
use crate::prune::pruned_below;
use crate::recovery::{Progress, block_options, open_utxo, table_indexes};
use crate::rest::Rest;
use crate::script_index;
use crate::scripts::Scripts;
use crate::settings::{Index, Settings};
use crate::snapshot::ArchiveView;
use crate::stats::{SetRows, counted, set_rows};

/// The node at its last commit, for as long as this is held: nobody else opens the folder.
pub struct Reading {
    rest: Rest,
    archive: Snapshot<MmapTables>,
    blocks: BlockReader,
    settings: Settings,
    /// How many runs the unspent set has.
    runs: usize,
    directory: Arc<DataDirectory>,
    options: Box<Options>,
    recovered: Option<Recovered>,
}

/// A size that was written by a process with the same addresses.
fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The node that had something to do first, because the folder was not at rest.
struct Recovered {
    /// Shared with nobody: behind a lock so that a reading can be shared between threads.
    node: Mutex<Organizer>,
    set: Arc<Version>,
}

impl Reading {
    /// Opens the node in a folder that has one. `progress` gets how many blocks have been taken
    /// into the archive and how many are to be, when it has to be rebuilt.
    pub fn open(
        root: Arc<dyn Storage>,
        options: Options,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        let directory = DataDirectory::open(root, options.params.network, &options.seed)?;
        let directory = Arc::new(directory);
        match AtRest::open(&directory, &options) {
            Ok(Some(AtRest { rest, archive, blocks, settings, runs })) => {
                let (options, recovered) = (Box::new(options), None);
                Ok(Self { rest, archive, blocks, settings, runs, directory, options, recovered })
            }
            // What is wrong is for the writer to find out.
            Ok(None) | Err(_) => Self::of_node(Organizer::open_in(directory, options, progress)?),
        }
    }

    fn of_node(mut node: Organizer) -> Result<Self, Error> {
        node.rest()?;
        let snapshot = node.snapshot();
        Ok(Self {
            rest: node.stores.summary(snapshot.utxo.coin_count(), node.utxo.memory().index),
            archive: snapshot.archive.clone(),
            blocks: snapshot.blocks.clone(),
            settings: node.settings(),
            runs: snapshot.utxo.run_count(),
            directory: Arc::clone(&node.directory),
            options: Box::new(node.options.clone()),
            recovered: Some(Recovered { node: Mutex::new(node), set: Arc::clone(&snapshot.utxo) }),
        })
    }

    /// The node that had something to do when the folder was opened, or the reading itself when
    /// the folder was at rest.
    pub fn into_node(self) -> Result<Organizer, Box<Self>> {
        match self.recovered {
            Some(Recovered { node, .. }) => {
                Ok(node.into_inner().unwrap_or_else(PoisonError::into_inner))
            }
            None => Err(Box::new(self)),
        }
    }

    /// Opens the writers of a folder at rest, without releasing the folder in between. What was
    /// read before stays valid; the unspent set must not be opened by [`set`](Self::set) any more.
    /// `None` when a node has the folder already.
    pub fn open_writers(&self) -> Result<Option<Organizer>, Error> {
        if self.recovered.is_some() {
            return Ok(None);
        }
        let (directory, options) = (Arc::clone(&self.directory), Options::clone(&self.options));
        Organizer::open_in(directory, options, &mut |_, _| {}).map(Some)
    }

    /// The last commit.
    #[must_use]
    pub const fn sequence(&self) -> CommitSequence {
        self.rest.sequence
    }

    /// The tip of the confirmed chain.
    #[must_use]
    pub const fn tip(&self) -> (Height, BlockHash) {
        self.rest.tip
    }

    /// The history, with the bytes of the blocks.
    #[must_use]
    pub fn view(&self) -> ArchiveView {
        View::new(self.archive.clone(), self.blocks.clone())
    }

    /// The histories of scripts. Reads the directories of their table and, of the archive, how many
    /// transactions each block has.
    pub fn script_histories(&self) -> Result<Scripts, Error> {
        if !self.settings.indexes.has(Index::Script) {
            return Err(Error::NoHistory);
        }
        if let Some(Recovered { node, .. }) = &self.recovered {
            return node
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .snapshot()
                .script_histories();
        }
        let history = script_index::at_rest(&self.directory)?;
        Ok(Scripts::new(self.view(), history, Ordinals::of(&self.archive)?))
    }

    /// The raw blocks.
    #[must_use]
    pub const fn blocks(&self) -> &BlockReader {
        &self.blocks
    }

    /// The unspent set. Reads its window, and of each run the directory and the filter.
    pub fn set(&self) -> Result<Arc<Version>, Error> {
        if let Some(Recovered { set, .. }) = &self.recovered {
            return Ok(Arc::clone(set));
        }
        let budget = Budget::new(self.options.memory, self.measured()).enough()?;
        Ok(open_utxo(&self.directory, &self.options, &budget)?.snapshot())
    }

    /// The unconfirmed transactions that the last sync left, judged again at the tip and the time
    /// `now`; `None` where none were kept. `set` is the unspent set of this folder.
    pub fn mempool(
        &self,
        set: Arc<Version>,
        now: u32,
    ) -> Result<Option<Arc<mempool::Version>>, Error> {
        if self.recovered.is_some() || !self.keeps_mempool()? {
            return Ok(None);
        }
        let (sequence, tip, archive) = (self.rest.sequence, self.rest.tip, self.archive.clone());
        let chain = RestingChain { sequence, tip, archive, set };
        let Options { params, memory, .. } = &*self.options;
        stored::open(&self.directory, params, &chain, (*memory, now)).map(Some)
    }

    /// Whether a sync has kept unconfirmed transactions here.
    pub fn keeps_mempool(&self) -> Result<bool, Error> {
        stored::is_kept(&self.directory)
    }

    /// How the memory would be split by a node that works on this folder, and by its unspent set.
    #[must_use]
    pub fn memory(&self) -> (Budget, MemorySplit) {
        let options = &self.options;
        let budget = Budget::new(options.memory, self.measured());
        let [.., index] = self.rest.memory.map(in_memory);
        (budget, MemorySplit::new(budget.set, index, options.undo.cache))
    }

    fn measured(&self) -> Measured {
        let [tree, arrays, _] = self.rest.memory.map(in_memory);
        Measured {
            headers: tree.saturating_add(arrays),
            source: 0,
            history: self.settings.indexes.has(Index::Script),
            mempool: false,
        }
    }

    /// How many coins the unspent set has, and in how many runs beside its window.
    #[must_use]
    pub const fn coins(&self) -> (u64, usize) {
        (self.rest.coins, self.runs)
    }

    /// Every branch that is known, and the confirmed tip.
    #[must_use]
    pub fn chain_tips(&self) -> &[ChainTip] {
        &self.rest.tips
    }

    /// The height of the best header.
    #[must_use]
    pub const fn header_height(&self) -> Height {
        self.rest.headers
    }

    /// Whether and why a block cannot be in the chain: it was found invalid, or one below it was.
    pub fn invalid(&self, hash: &BlockHash) -> Result<Option<Invalid>, Error> {
        let marks = &self.rest.marks;
        let invalid = |block: BlockHash| {
            marks.get(&block).map(|reason| Invalid { block, reason: Arc::clone(reason) })
        };
        let mut at = self.archive.to_header(*hash)?;
        while let Some(link) = at.filter(|_| !marks.is_empty()) {
            let row = self.archive.header(link)?;
            if let Some(found) = invalid(row.hash) {
                return Ok(Some(found));
            }
            // All below a confirmed block is valid.
            let is_confirmed = self.archive.to_confirmed(row.height) == Some(link);
            at = row.parent.filter(|_| !is_confirmed);
        }
        Ok(invalid(*hash))
    }

    /// The blocks that are invalid themselves, and why, in the order of their hashes.
    pub fn invalid_blocks(&self) -> impl Iterator<Item = Invalid> {
        let marks = self.rest.marks.iter();
        marks.map(|(block, reason)| Invalid { block: *block, reason: Arc::clone(reason) })
    }

    /// How the scripts of the confirmed chain were settled.
    #[must_use]
    pub fn scripts(&self) -> ScriptsChecked {
        self.rest.checked.summary(self.rest.tip.0)
    }

    /// How the folder is kept.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// The height up to which an index goes; `None` when it has not begun.
    pub fn indexed(&self, index: Index) -> Result<Option<Height>, Error> {
        match index {
            Index::Filter => filtered(&self.archive),
            Index::Pushdata => Ok(Some(self.rest.tip.0)),
            Index::Script => {
                Ok(script_index::at_rest(&self.directory)?.tip().map(|tip| tip.height))
            }
            Index::Stats => counted(&self.directory, self.rest.tip.0),
        }
    }

    /// The lowest height from which on all blocks of the confirmed chain have their bytes; `None`
    /// when all have.
    pub fn pruned_below(&self) -> Result<Option<Height>, Error> {
        pruned_below(&self.archive, &self.blocks, self.rest.tip.0)
    }

    /// The bytes of an index's files.
    pub fn index_bytes(&self, index: Index) -> Result<u64, Error> {
        index_bytes(&self.directory, index)
    }

    /// The figures of the unspent set at these heights, as far as they were counted.
    pub fn set_rows(&self, heights: &[Height]) -> Result<SetRows, Error> {
        set_rows(&self.directory, heights)
    }

    /// The bytes of the archive's files.
    pub fn archive_bytes(&self) -> Result<u64, Error> {
        let storage = self.directory.store("archive")?;
        Ok(stored_bytes(storage.as_ref()).map_err(varve_archive::ArchiveError::from)?)
    }
}

/// The parts of a folder at rest.
struct AtRest {
    rest: Rest,
    archive: Snapshot<MmapTables>,
    blocks: BlockReader,
    settings: Settings,
    runs: usize,
}

impl AtRest {
    /// `None` when the folder is not at rest.
    fn open(directory: &DataDirectory, options: &Options) -> Result<Option<Self>, Error> {
        let identity = directory.identity();
        let commits = directory.store("commit")?;
        let Some(rest) = CommitLog::at_rest(commits.as_ref(), identity.store)? else {
            return Ok(None);
        };
        let (network, utxo) = (options.params.network, directory.store("utxo")?);
        let set = Database::at_rest(utxo.as_ref(), network)?;
        let set = set.filter(|set| set.checkpoint.tip == Some(rest.tip));
        let settings = Settings::load(directory.root())?;
        let indexes = table_indexes(settings);
        let files = MmapConfig { indexes, ..MmapConfig::new(identity.store, identity.secret) };
        let config = ArchiveConfig { network, indexes };
        let archive = Snapshot::at_rest(&directory.store("archive")?, files, config)
            .map_err(varve_archive::ArchiveError::from)?;
        let archive = archive.filter(|(_, sequence)| *sequence == rest.sequence.0);
        let block_options = block_options(directory, options, settings);
        let blocks = BlockReader::at_rest(&directory.store("blocks")?, &block_options)?;
        let (Some(set), Some((archive, _)), Some(blocks)) = (set, archive, blocks) else {
            return Ok(None);
        };
        Ok(Some(Self { rest, archive, blocks, settings, runs: set.runs }))
    }
}

//! The data directory: where it is, and how its stores are opened.
//!
//! ```text
//!  ~/.varve/NETWORK/        or what --datadir names, used as it is given
//!  ├── node, settings, commit/  what a sync has made it: docs/format/node.md
//!  ├── blocks/, archive/     raw blocks and the history
//!  ├── utxo/                 the unspent set: docs/format/utxo.md
//!  └── records/              live transactions: docs/format/records.md
//! ```
//!
//! A folder that `utxo import` has made has an unspent set alone.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs, thread};

use anyhow::{Context as _, Result, bail, ensure};
use varve_io::{Disk, LOCK_FILE, Storage, StoreId};
use varve_node::{
    Budget, DataDirectory, Options as NodeOptions, Organizer, Reading, SettingsChange,
};
use varve_types::Network;
use varve_utxo::{Database, Options, Secret, StoreKey, Version};

use crate::args::Global;
use crate::progress::Lazy;

/// The folders of the stores that need no chain.
const UTXO: &str = "utxo";
const RECORDS: &str = "records";
/// What an interrupted creation of one of them leaves, beside its lock.
const MANIFEST_FILE_TEMPORARY: &str = "manifest.tmp";

/// The folder of a database.
pub(crate) struct DataDir {
    root: PathBuf,
    network: Network,
    memory: u64,
}

impl DataDir {
    /// The one that the options name.
    pub(crate) fn new(global: &Global) -> Result<Self> {
        let network = global.network;
        let root = match &global.datadir {
            Some(folder) => folder.clone(),
            None => {
                let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
                let home = home.context("there is no home folder; pass --datadir DIR")?;
                home.join(".varve").join(network.name())
            }
        };
        Ok(Self { root, network, memory: global.memory })
    }

    /// The one in this folder.
    pub(crate) fn at(root: &Path, network: Network, memory: u64) -> Self {
        Self { root: root.to_owned(), network, memory }
    }

    /// Opens the node, which must be there.
    pub(crate) fn open_node(&self) -> Result<Organizer> {
        self.check_node()?;
        self.create_node(SettingsChange::default())
    }

    fn check_node(&self) -> Result<()> {
        if !self.has_node()? {
            bail!(
                "there is no chain in {}; make one with `varve sync`, or pass another --datadir or \
                 --network",
                self.root.display()
            );
        }
        Ok(())
    }

    /// Opens the node for questions, which must be there.
    pub(crate) fn read_node(&self) -> Result<Reading> {
        self.check_node()?;
        let mut progress = Lazy::new("archive");
        let report = &mut |done, all| progress.set(done, all);
        let node = Reading::open(self.storage()?, self.node_options()?, report)?;
        progress.finish();
        Ok(node)
    }

    /// Opens the node, or makes one, and keeps it as told.
    pub(crate) fn create_node(&self, settings: SettingsChange) -> Result<Organizer> {
        self.budget()?;
        if !self.has_node()? && self.utxo().join(Database::MANIFEST_FILE).exists() {
            bail!(
                "{} holds an imported set of unspent outputs alone; sync into another --datadir",
                self.root.display()
            );
        }
        let options = NodeOptions { settings, ..self.node_options()? };
        let mut progress = Lazy::new("archive");
        let node = Organizer::open_with(self.storage()?, options, &mut |done, all| {
            progress.set(done, all);
        })?;
        progress.finish();
        Ok(node)
    }

    /// Makes everything anew that derives from blocks.
    pub(crate) fn repair_node(&self) -> Result<Organizer> {
        if !self.has_node()? {
            bail!("there is no chain in {}; make one with `varve sync`", self.root.display());
        }
        let mut progress = Lazy::new("repair");
        let report = &mut |done, all| progress.set(done, all);
        let node = Organizer::repair(self.storage()?, self.node_options()?, report)?;
        progress.finish();
        Ok(node)
    }

    /// Refuses a folder that holds neither a chain nor one of the stores that a command makes
    /// without a chain, but something else.
    pub(crate) fn check_free(&self) -> Result<()> {
        if self.root.exists() && !self.has_node()? {
            DataDirectory::check_free(self.storage()?.as_ref(), &[UTXO])?;
        }
        Ok(())
    }

    fn has_node(&self) -> Result<bool> {
        Ok(self.root.exists() && DataDirectory::exists(self.storage()?.as_ref())?)
    }

    fn storage(&self) -> Result<Arc<dyn Storage>> {
        let root = &self.root;
        fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
        Ok(Arc::new(Disk::open(root)?))
    }

    fn node_options(&self) -> Result<NodeOptions> {
        let (memory, workers) = (self.memory(), threads());
        Ok(NodeOptions { memory, workers, ..NodeOptions::new(self.network, random()?) })
    }

    fn memory(&self) -> usize {
        usize::try_from(self.memory).unwrap_or(usize::MAX)
    }

    /// How the memory is split before a chain takes any. Too little is refused, and nothing has
    /// been made yet.
    fn budget(&self) -> Result<Budget> {
        Ok(Budget::empty(self.memory())?)
    }

    /// The unspent set as the node has it, or that of a folder without a node.
    pub(crate) fn open_set(&self) -> Result<OpenSet> {
        if self.has_node()? {
            let node = self.read_node()?;
            return Ok(OpenSet { version: node.set()?, _node: Some(node), _database: None });
        }
        let database = self.open_utxo()?;
        Ok(OpenSet { version: database.snapshot(), _node: None, _database: Some(database) })
    }

    /// Opens the unspent set of a folder without a node, which must be there. An import that was
    /// cut off leaves an empty one, which is none.
    fn open_utxo(&self) -> Result<Database> {
        let there = self.utxo().join(Database::MANIFEST_FILE).exists();
        let database = there.then(|| self.open()).transpose()?;
        database.filter(|database| database.tip().is_some()).with_context(|| {
            format!(
                "there is no unspent set in {}; make one with `varve sync` or `varve utxo import \
                 FILE`, or pass another --datadir or --network",
                self.root.display()
            )
        })
    }

    /// Fills the unspent set by `fill`, where there is nothing or an empty one. When that fails,
    /// nothing of it stays.
    pub(crate) fn fill_utxo<T>(&self, fill: impl FnOnce(&mut Database) -> Result<T>) -> Result<T> {
        let was_there = self.root.exists();
        let mut database = self.create_utxo()?;
        let filled = fill(&mut database);
        drop(database);
        if filled.is_err() {
            // What cannot be removed is an empty set, which is none.
            let _ = self.remove_utxo();
            let _ = if was_there { Ok(()) } else { fs::remove_dir(&self.root) };
        }
        filled
    }

    /// Removes the files of the unspent set, and its folder if that is empty then.
    fn remove_utxo(&self) -> Result<()> {
        let storage = Disk::open(&self.utxo())?;
        let files = storage.list()?;
        for file in files.iter().filter(|file| *file == LOCK_FILE || Database::is_store_file(file))
        {
            storage.remove(file)?;
        }
        Ok(fs::remove_dir(self.utxo())?)
    }

    /// Makes the unspent set, where there is nothing or an empty one.
    fn create_utxo(&self) -> Result<Database> {
        self.budget()?;
        if self.has_node()? {
            bail!("{} holds a chain already; import into another --datadir", self.root.display());
        }
        self.check_free()?;
        let folder = self.utxo();
        check_store_free(&folder)?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let database = self.open()?;
        if database.tip().is_some() {
            bail!("{} is not empty; pass a --datadir that is, or remove it", folder.display());
        }
        Ok(database)
    }

    /// The folder of the records of live transactions, if it is theirs or can become theirs. They
    /// touch nothing beside it, so the data directory may hold other things.
    pub(crate) fn records(&self) -> Result<PathBuf> {
        let folder = self.root.join(RECORDS);
        check_store_free(&folder)?;
        Ok(folder)
    }

    fn utxo(&self) -> PathBuf {
        self.root.join(UTXO)
    }

    fn open(&self) -> Result<Database> {
        let key = StoreKey { id: StoreId(random()?), secret: Secret::new(random()?) };
        let budget = self.budget()?;
        let options = Options { workers: threads(), ..Options::new(self.network, key) };
        let options = options.with_memory(budget.set)?;
        let opened = Database::open(Arc::new(Disk::open(&self.utxo())?), options);
        Ok(opened.map_err(|error| budget.set_error(error))?)
    }
}

/// Refuses the folder of a store that has no manifest, but other things than an interrupted
/// creation leaves.
fn check_store_free(folder: &Path) -> Result<()> {
    if folder.exists() && !folder.join(Database::MANIFEST_FILE).exists() {
        DataDirectory::check_free(&Disk::open(folder)?, &[MANIFEST_FILE_TEMPORARY])?;
    }
    Ok(())
}

/// An unspent set, and what holds its folder.
pub(crate) struct OpenSet {
    pub(crate) version: Arc<Version>,
    _node: Option<Reading>,
    _database: Option<Database>,
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    ensure!(
        getrandom::fill(&mut bytes).is_ok(),
        "the system gives no random numbers; nothing was opened"
    );
    Ok(bytes)
}

/// The threads that the machine has.
pub(crate) fn threads() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

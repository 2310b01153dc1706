//! How a folder is opened or made.
//!
//! ```text
//!  ~/.varve/NETWORK/        or the folder of `datadir`, used as it is given
//!  ├── node, settings, commit/  made by a sync: docs/format/node.md
//!  ├── blocks/, archive/     raw blocks and the history
//!  ├── utxo/                 the unspent set: docs/format/utxo.md
//!  └── records/              live transactions: docs/format/records.md
//! ```
//!
//! A folder that was filled by [`Builder::import_unspent`] has an unspent set alone.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fmt, fs};

use varve_io::{Disk, Storage};
use varve_node::{
    Budget, DataDirectory, IndexSet, Options, Organizer, Prune, Reading, SettingsChange,
};
use varve_types::Network;
use varve_types::pushdata::PushdataRule;
use varve_utxo::Database;

use crate::at_rest::AtRest;
use crate::error::Error;
use crate::lease::LEASE;
use crate::node::{Node, Place};
use crate::system;

/// The folder of the unspent set.
pub(crate) const UTXO: &str = "utxo";
/// The folder of the records.
const RECORDS: &str = "records";
/// Folders in it that belong to records in a database begin with this.
pub(crate) const SHARED_RECORDS: &str = "postgres-";
/// The file that an interrupted creation of one of these stores leaves, beside its lock.
const MANIFEST_FILE_TEMPORARY: &str = "manifest.tmp";

/// Settings to open or make a node with: [`Node::builder`].
///
/// | call | folder without a chain | folder with a chain |
/// |---|---|---|
/// | [`open`](Self::open) | [`Error::NoChain`] | opened |
/// | [`create`](Self::create) | made | [`Error::ChainExists`] |
/// | [`open_or_create`](Self::open_or_create) | made | opened |
///
/// ```no_run
/// use varve::{Network, Node, Prune};
///
/// let node = Node::builder()
///     .network(Network::Signet)
///     .datadir("chain")
///     .memory(4 << 30)
///     .prune(Prune::To(50 << 30))
///     .open_or_create()?;
/// # Ok::<(), varve::Error>(())
/// ```
pub struct Builder {
    network: Option<Network>,
    datadir: Option<PathBuf>,
    memory: u64,
    workers: NonZeroUsize,
    settings: SettingsChange,
    lease: Duration,
    on_rebuild: Option<Box<dyn FnMut(u64, u64) + Send>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            network: None,
            datadir: None,
            memory: Self::MEMORY,
            workers: system::threads(),
            settings: SettingsChange::default(),
            lease: LEASE,
            on_rebuild: None,
        }
    }
}

impl Builder {
    /// The memory of a node by default: 2 GiB.
    pub const MEMORY: u64 = 2 << 30;

    /// The network. By default that of the folder, and mainnet for a new one.
    #[must_use]
    pub const fn network(mut self, network: Network) -> Self {
        self.network = Some(network);
        self
    }

    /// The folder, used as it is given. By default `~/.varve/NETWORK`.
    #[must_use]
    pub fn datadir(mut self, path: impl Into<PathBuf>) -> Self {
        self.datadir = Some(path.into());
        self
    }

    /// Bytes of memory for the whole process, page cache aside.
    #[must_use]
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Threads. By default as many as the machine runs at once.
    #[must_use]
    pub const fn workers(mut self, workers: NonZeroUsize) -> Self {
        self.workers = workers;
        self
    }

    /// How much of the blocks to keep, from now on. By default as before, and all in a new folder.
    #[must_use]
    pub const fn prune(mut self, prune: Prune) -> Self {
        self.settings.prune = Some(prune);
        self
    }

    /// Which optional indexes to keep, from now on. By default as before, and none in a new folder.
    #[must_use]
    pub const fn indexes(mut self, indexes: IndexSet) -> Self {
        self.settings.indexes = Some(indexes);
        self
    }

    /// How long a snapshot of a running node may be held. By default ten minutes. What is read in
    /// one go from an [`UnspentSet`](crate::UnspentSet) that was taken before may last longer.
    #[must_use]
    pub const fn snapshot_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// By which rule the index `pushdata` is made, from now on. By default as before, and as
    /// documented in a new folder. Under another rule it is made of all blocks again.
    #[must_use]
    pub const fn pushdata_rule(mut self, rule: PushdataRule) -> Self {
        self.settings.pushdata_rule = Some(rule);
        self
    }

    /// Calls `progress` with the number of blocks that were taken into the archive and the number
    /// of all, while it is rebuilt: by [`repair`](Self::repair), or when it was lost.
    #[must_use]
    pub fn on_rebuild(mut self, progress: impl FnMut(u64, u64) + Send + 'static) -> Self {
        self.on_rebuild = Some(Box::new(progress));
        self
    }

    /// Opens the chain in the folder, which must be there.
    pub fn open(self) -> Result<Node, Error> {
        let path = self.path()?;
        if !holds_chain(&path)? {
            return Err(Error::NoChain { path });
        }
        self.open_at(path)
    }

    /// Makes a new chain in the folder, which must be empty or missing. It has the genesis block.
    pub fn create(self) -> Result<Node, Error> {
        let path = self.path()?;
        if holds_chain(&path)? {
            return Err(Error::ChainExists { path });
        }
        self.create_at(path)
    }

    /// Opens the chain in the folder, or makes one.
    pub fn open_or_create(self) -> Result<Node, Error> {
        let path = self.path()?;
        if holds_chain(&path)? { self.open_at(path) } else { self.create_at(path) }
    }

    /// Rebuilds everything that derives from blocks, and opens the chain. Refused where blocks are
    /// pruned, and where a store's folder holds a file that the store did not write.
    pub fn repair(mut self) -> Result<Node, Error> {
        let path = self.path()?;
        if !holds_chain(&path)? {
            return Err(Error::NoChain { path });
        }
        let (storage, network) = (storage(&path)?, self.network_at(&path)?);
        let options = self.options(network)?;
        let writers = Organizer::repair(storage, options, &mut self.rebuild())?;
        Ok(Node::live(self.place(path, network), writers))
    }

    /// Refuses a folder that something other than Varve has put files into, as `create` would.
    pub fn check_free(&self) -> Result<(), Error> {
        let path = self.path()?;
        if path.exists() && !holds_chain(&path)? {
            DataDirectory::check_free(storage(&path)?.as_ref(), &[UTXO])?;
        }
        Ok(())
    }

    /// Refuses a folder that holds the chain of another network than the one asked for, whoever has
    /// it open.
    pub fn check_network(&self) -> Result<(), Error> {
        let path = self.path()?;
        if !holds_chain(&path)? {
            return Ok(());
        }
        let found = DataDirectory::network(&Disk::open(&path)?)?;
        match (found, self.network) {
            (Some(found), Some(wanted)) if found != wanted => {
                let found = found.name().to_owned();
                Err(varve_node::Error::OtherNetwork { path, found, wanted }.into())
            }
            _ => Ok(()),
        }
    }

    /// The folder of the records of live transactions, if it is theirs or can become theirs. They
    /// touch nothing beside it, so the data directory may hold other things.
    pub fn records_path(&self) -> Result<PathBuf, Error> {
        let folder = self.path()?.join(RECORDS);
        check_store_free(&folder, |name| name.starts_with(SHARED_RECORDS))?;
        Ok(folder)
    }

    /// The folder.
    pub fn path(&self) -> Result<PathBuf, Error> {
        if let Some(folder) = &self.datadir {
            return Ok(folder.clone());
        }
        let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let home = home.ok_or(Error::NoHome)?;
        Ok(home.join(".varve").join(self.network.unwrap_or(Network::Mainnet).name()))
    }

    fn open_at(mut self, path: PathBuf) -> Result<Node, Error> {
        let (storage, network) = (storage(&path)?, self.network_at(&path)?);
        let options = self.options(network)?;
        if options.settings != SettingsChange::default() {
            let writers = Organizer::open_with(storage, options, &mut self.rebuild())?;
            return Ok(Node::live(self.place(path, network), writers));
        }
        let reading = Reading::open(storage, options, &mut self.rebuild())?;
        Ok(match reading.into_node() {
            Ok(writers) => Node::live(self.place(path, network), writers),
            Err(reading) => Node::at_rest(self.place(path, network), AtRest::new(*reading)),
        })
    }

    fn create_at(mut self, path: PathBuf) -> Result<Node, Error> {
        self.budget()?;
        if path.join(UTXO).join(Database::MANIFEST_FILE).exists() {
            return Err(Error::SetAlone { path });
        }
        let network = self.network.unwrap_or(Network::Mainnet);
        let (storage, options) = (storage(&path)?, self.options(network)?);
        let writers = Organizer::open_with(storage, options, &mut self.rebuild())?;
        Ok(Node::live(self.place(path, network), writers))
    }

    const fn place(&self, path: PathBuf, network: Network) -> Place {
        Place { path, network, lease: self.lease }
    }

    /// The network that was asked for, else that of the folder, which holds a chain.
    fn network_at(&self, path: &Path) -> Result<Network, Error> {
        let found = || DataDirectory::network(storage(path)?.as_ref()).map_err(Error::from);
        match self.network {
            Some(network) => Ok(network),
            None => found()?.ok_or_else(|| Error::NoChain { path: path.to_owned() }),
        }
    }

    fn options(&self, network: Network) -> Result<Options, Error> {
        Ok(Options {
            memory: self.memory_bytes(),
            workers: self.workers,
            settings: self.settings,
            ..Options::new(network, system::random()?)
        })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        usize::try_from(self.memory).unwrap_or(usize::MAX)
    }

    pub(crate) const fn worker_count(&self) -> NonZeroUsize {
        self.workers
    }

    pub(crate) fn network_or_mainnet(&self) -> Network {
        self.network.unwrap_or(Network::Mainnet)
    }

    /// How the memory is split before a chain takes any. Too little is refused, before anything is
    /// made.
    pub(crate) fn budget(&self) -> Result<Budget, Error> {
        Ok(Budget::empty(self.memory_bytes())?)
    }

    fn rebuild(&mut self) -> impl FnMut(u64, u64) {
        let mut on_rebuild = self.on_rebuild.take();
        move |done, all| {
            if let Some(progress) = &mut on_rebuild {
                progress(done, all);
            }
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { network, datadir, memory, workers, settings, .. } = self;
        f.debug_struct("Builder")
            .field("network", network)
            .field("datadir", datadir)
            .field("memory", memory)
            .field("workers", workers)
            .field("settings", settings)
            .finish_non_exhaustive()
    }
}

/// Whether a folder holds a chain.
pub(crate) fn holds_chain(path: &Path) -> Result<bool, Error> {
    Ok(path.exists() && DataDirectory::exists(&Disk::open(path)?)?)
}

/// The folder, which is made when it is missing.
fn storage(path: &Path) -> Result<Arc<dyn Storage>, Error> {
    make_folder(path)?;
    Ok(Arc::new(Disk::open(path)?))
}

pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    let failed = |source| Error::CreateFolder { path: path.to_owned(), source };
    fs::create_dir_all(path).map_err(failed)
}

/// Refuses the folder of a store that has no manifest, but other things than an interrupted
/// creation leaves.
///
/// `is_ours` says which folders in it belong there.
pub(crate) fn check_store_free(folder: &Path, is_ours: fn(&str) -> bool) -> Result<(), Error> {
    if folder.exists() && !folder.join(Database::MANIFEST_FILE).exists() {
        let disk = Disk::open(folder)?;
        let folders = disk.list_others()?;
        let mut allowed: Vec<&str> = folders.iter().map(String::as_str).collect();
        allowed.retain(|name| is_ours(name));
        allowed.push(MANIFEST_FILE_TEMPORARY);
        DataDirectory::check_free(&disk, &allowed)?;
    }
    Ok(())
}

//! The data directory: where it is, and how its stores are opened.
//!
//! ```text
//!  ~/.varve/NETWORK/        or what --datadir names, used as it is given
//!  └── utxo/                the unspent set: docs/format/utxo.md
//! ```

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs, thread};

use anyhow::{Context as _, Result, bail, ensure};
use varve_io::{Disk, StoreId};
use varve_types::Network;
use varve_utxo::{Database, MANIFEST_FILE, Options, Secret, StoreKey};

use crate::args::Global;

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

    /// Opens the unspent set, which must be there.
    pub(crate) fn open_utxo(&self) -> Result<Database> {
        let folder = self.utxo();
        if !folder.join(MANIFEST_FILE).exists() {
            bail!(
                "there is no unspent set in {}; make one with `varve utxo import FILE`, or pass \
                 another --datadir or --network",
                self.root.display()
            );
        }
        self.open()
    }

    /// Makes the unspent set, where there is nothing or an empty one.
    pub(crate) fn create_utxo(&self) -> Result<Database> {
        let folder = self.utxo();
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let is_empty = entries.next().is_none();
        let database =
            if is_empty || folder.join(MANIFEST_FILE).exists() { Some(self.open()?) } else { None };
        let fresh = database.filter(|database| database.tip().is_none());
        fresh.with_context(|| {
            format!("{} is not empty; pass a --datadir that is, or remove it", folder.display())
        })
    }

    fn utxo(&self) -> PathBuf {
        self.root.join("utxo")
    }

    fn open(&self) -> Result<Database> {
        let (mut id, mut secret) = ([0; 16], [0; 16]);
        let drawn = getrandom::fill(&mut id).and_then(|()| getrandom::fill(&mut secret));
        ensure!(drawn.is_ok(), "the system gives no random numbers; nothing was opened");
        let key = StoreKey { id: StoreId(id), secret: Secret::new(secret) };
        let memory = usize::try_from(self.memory).unwrap_or(usize::MAX);
        let options = Options { memory, workers: threads(), ..Options::new(self.network, key) };
        Ok(Database::open(Arc::new(Disk::open(&self.utxo())?), options)?)
    }
}

/// The threads that the machine has.
pub(crate) fn threads() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

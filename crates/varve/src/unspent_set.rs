//! The set of unspent outputs: that of a node at one moment, or one that was imported alone.

mod snapshot_base;

use std::fmt;
use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use varve_io::{Disk, LOCK_FILE, Storage as _, StoreId};
use varve_types::{BlockHash, Height, Network, Outpoint};
use varve_utxo::{
    Database, Options, Secret, SetHash, SnapshotError, SnapshotHeader, Statistics, StoreKey,
    Version,
};

use crate::answer::{Output, Tip};
use crate::builder::{Builder, UTXO, check_store_free, holds_chain, make_folder};
use crate::error::Error;
use crate::snapshot::Snapshot;
use crate::system;
use snapshot_base::SnapshotBase;

/// Bytes of a snapshot file that are read at once.
const BUFFER: usize = 1 << 20;

/// Unspent outputs at one moment.
#[derive(Clone)]
pub struct UnspentSet {
    version: Arc<Version>,
    network: Network,
    _held: Held,
}

/// What keeps the folder locked.
#[derive(Clone)]
enum Held {
    Node(#[expect(dead_code, reason = "held for its lock")] Snapshot),
    Set(#[expect(dead_code, reason = "held for its lock")] Arc<Mutex<Database>>),
}

/// What an import has filled a folder with: [`Builder::import_unspent`].
#[derive(Clone, Copy, Debug)]
pub struct Imported {
    /// The base block of the file.
    pub tip: Tip,
    /// How many outputs it has.
    pub coins: u64,
    /// Whether their hash is known for that block, and was compared. If not, compare what
    /// [`UnspentSet::stats`] says with a hash that you trust.
    pub checked: bool,
}

/// Why a set was not exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The output refused the bytes.
    #[error("the outputs cannot be written: {0}")]
    Write(#[source] std::io::Error),
    /// The set cannot be read.
    #[error(transparent)]
    Read(Error),
}

impl UnspentSet {
    pub(crate) fn of_node(version: Arc<Version>, snapshot: Snapshot) -> Self {
        Self { version, network: snapshot.network(), _held: Held::Node(snapshot) }
    }

    /// The block that the set stands at.
    #[must_use]
    pub fn tip(&self) -> Option<Tip> {
        self.version.tip().map(Tip::from)
    }

    /// The outputs at these outpoints, in their order; `None` for those that are spent or never
    /// were. All are looked up in one batch.
    pub fn get(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<Output>>, Error> {
        let coins = self.version.get(outpoints)?;
        let found = outpoints.iter().zip(coins.iter());
        Ok(found.map(|(point, coin)| coin.map(|coin| Output::unspent(*point, &coin))).collect())
    }

    /// How many outputs there are.
    #[must_use]
    pub fn coin_count(&self) -> u64 {
        self.version.coin_count()
    }

    /// Counts all outputs and hashes them, as Core's `gettxoutsetinfo` does. `progress` gets how
    /// many outputs are done and how many there are.
    pub fn stats(
        &self,
        hash: SetHash,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Statistics, Error> {
        Ok(self.version.statistics(hash, system::threads(), progress)?)
    }

    /// Writes all outputs in the format of Core's `dumptxoutset`, and returns how many there are.
    /// `progress` gets how many are done and how many there are.
    pub fn export(
        &self,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<u64, ExportError> {
        self.version.export(self.network, out, progress).map_err(|error| match error {
            varve_utxo::Error::Snapshot(SnapshotError::Write(error)) => ExportError::Write(error),
            other => ExportError::Read(other.into()),
        })
    }
}

impl fmt::Debug for UnspentSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnspentSet").field("tip", &self.tip()).finish_non_exhaustive()
    }
}

impl Builder {
    /// Opens the unspent set of a folder: that of its chain, or one that was imported alone.
    pub fn open_unspent(self) -> Result<UnspentSet, Error> {
        let path = self.path()?;
        if holds_chain(&path)? {
            return self.open()?.snapshot().unspent();
        }
        let there = path.join(UTXO).join(Database::MANIFEST_FILE).exists();
        let database = there.then(|| self.open_database(&path)).transpose()?;
        // An import that was cut off leaves an empty set, which is none.
        let database = database.filter(|database| database.tip().is_some());
        let database = database.ok_or(Error::NoSet { path })?;
        let (version, network) = (database.snapshot(), self.network_or_mainnet());
        Ok(UnspentSet { version, network, _held: Held::Set(Arc::new(Mutex::new(database))) })
    }

    /// Fills an empty folder with the outputs of a file that Core's `dumptxoutset` wrote. When that
    /// fails, nothing of it stays.
    ///
    /// The file names its base block by hash alone. Of the blocks that Core 31 accepts, height and
    /// set hash are built in, and the hash is compared; of any other, `height` must be given.
    /// `progress` gets how many outputs are done and how many there are, first while they are read
    /// and then while they are hashed.
    pub fn import_unspent(
        self,
        file: &Path,
        height: Option<Height>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Imported, Error> {
        let network = self.network_or_mainnet();
        let read = |source| Error::Read { path: file.to_owned(), source };
        let open = || File::open(file).map_err(read);
        let header = SnapshotHeader::read(open()?, network).map_err(varve_utxo::Error::from);
        let wrong = |error| Error::Import { path: file.to_owned(), source: Box::new(error) };
        let header = header.map_err(wrong)?;
        let base = SnapshotBase::find(network, header.base);
        let height = base_height(header.base, base, height)?;
        let root = self.path()?;
        let was_there = root.exists();
        let mut database = self.create_database(&root)?;
        let mut fill = || {
            let input = BufReader::with_capacity(BUFFER, open()?);
            let tip = database.import(input, height, progress).map_err(wrong)?;
            if let Some(base) = base {
                check_set(&database.snapshot(), base, (file, header.base), progress)?;
            }
            Ok(Imported { tip: tip.into(), coins: header.coins, checked: base.is_some() })
        };
        let filled = fill();
        drop(database);
        if filled.is_err() {
            // What cannot be removed is an empty set, which is none.
            let _ = remove_set(&root.join(UTXO));
            let _ = if was_there { Ok(()) } else { fs::remove_dir(&root) };
        }
        filled
    }

    /// Makes the unspent set, where there is nothing or an empty one.
    fn create_database(&self, root: &Path) -> Result<Database, Error> {
        self.budget()?;
        if holds_chain(root)? {
            return Err(Error::ChainExists { path: root.to_owned() });
        }
        self.check_free()?;
        let folder = root.join(UTXO);
        check_store_free(&folder, |_| false)?;
        make_folder(&folder)?;
        let database = self.open_database(root)?;
        if database.tip().is_some() {
            return Err(Error::SetExists { path: folder });
        }
        Ok(database)
    }

    fn open_database(&self, root: &Path) -> Result<Database, Error> {
        let key =
            StoreKey { id: StoreId(system::random()?), secret: Secret::new(system::random()?) };
        let budget = self.budget()?;
        let network = self.network_or_mainnet();
        let options = Options { workers: self.worker_count(), ..Options::new(network, key) };
        let options = options.with_memory(budget.set)?;
        let opened = Database::open(Arc::new(Disk::open(&root.join(UTXO))?), options);
        Ok(opened.map_err(|error| budget.set_error(error))?)
    }
}

/// The height of the base block: the known one, or the given one.
fn base_height(
    block: BlockHash,
    base: Option<&SnapshotBase>,
    given: Option<Height>,
) -> Result<Height, Error> {
    let known = base.map(|base| Height::new(base.height));
    match (given, known) {
        (Some(given), Some(height)) if given != height => {
            Err(Error::OtherBaseHeight { base: block, height, given })
        }
        (Some(height), _) | (None, Some(height)) => Ok(height),
        (None, None) => Err(Error::BaseHeight { base: block }),
    }
}

/// Compares the hash of the outputs with the one that is known for their base block.
fn check_set(
    version: &Version,
    base: &SnapshotBase,
    (file, block): (&Path, BlockHash),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
    let found = version.statistics(SetHash::HashSerialized3, system::threads(), progress)?;
    let found = found.hash.map(shown_hash).unwrap_or_default();
    if found == base.set_hash {
        return Ok(());
    }
    let path = PathBuf::from(file);
    Err(Error::WrongSet { path, base: block, found, expected: base.set_hash })
}

/// Removes the files of an unspent set, and its folder if that is empty then.
fn remove_set(folder: &Path) -> Result<(), Error> {
    let storage = Disk::open(folder)?;
    let files = storage.list()?;
    for file in files.iter().filter(|file| *file == LOCK_FILE || Database::is_store_file(file)) {
        storage.remove(file)?;
    }
    fs::remove_dir(folder).map_err(|source| Error::Read { path: folder.to_owned(), source })
}

/// A hash of the set as Core shows it: its bytes reversed, in hex.
#[must_use]
pub fn shown_hash(hash: [u8; 32]) -> String {
    BlockHash::from_bytes(hash).to_string()
}

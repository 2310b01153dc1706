//! The folder of a node: one opener, one network, one identity.
//!
//! ```text
//!  DATADIR/
//!    lock        held by the one opener, and names it to others
//!    node        envelope: network, identity, secret
//!    settings    envelope: how much is kept (`settings`)
//!    commit/     the commit log: which chain is confirmed
//!    blocks/     raw blocks: the journal
//!    utxo/       the unspent set       ┐
//!    stats/      its figures by height │ derived from blocks and commits,
//!    archive/    the history           ┘ rebuilt by `repair`
//! ```
//!
//! The payload of `node`:
//!
//! ```text
//!  0          16       32     33
//!  ┌──────────┬────────┬──────┬─────────┐
//!  │ store id │ secret │length│ network │     the name of the network in ASCII
//!  │ 16 B     │ 16 B   │ u8   │         │
//!  └──────────┴────────┴──────┴─────────┘
//! ```
//!
//! Its version is that of the whole folder: a program refuses a folder of another version, and one
//! of another network.
//!
//! A folder becomes a node's only when there is nothing in it that is not ours, so that nobody's
//! documents end up among the stores. Later, other things in the folder are left alone.

use std::sync::Arc;

use varve_io::{
    Access, Caching, Envelope, FileOffset, FormatError, Holder, Kind, LOCK_FILE, LockGuard,
    Storage, StoreId, is_envelope, load, replace,
};
use varve_types::Network;

use crate::error::{Error, Names};
use crate::store_files::StoreFiles;

const FILE: &str = "node";
const KIND: Kind = Kind(*b"NODE\0\0\0\0");
/// The version of the folder that this program makes and reads.
pub const FORMAT_VERSION: u32 = 2;

/// More than the text of a lock has.
const LOCK_MAX: usize = 512;

/// Folders that may be in a folder before it becomes a node's: the records, which need no chain,
/// and what a file system puts into its root.
const NEUTRAL: [&str; 2] = ["records", "lost+found"];
/// The file of options, which may be there before anything else.
const CONFIGURATION: &str = "varve.toml";

/// 32 random bytes that a new folder takes its identity and its secret from.
pub type Seed = [u8; 32];

/// Who a store is, and the key of its hash tables.
#[derive(Clone, Copy)]
pub struct Identity {
    /// The same in all files of the folder.
    pub store: StoreId,
    /// Nobody outside knows it.
    pub secret: [u8; 16],
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("store", &self.store).finish_non_exhaustive()
    }
}

/// A folder that is ours until this is dropped.
#[derive(Debug)]
pub struct DataDirectory {
    root: Arc<dyn Storage>,
    identity: Identity,
    _lock: LockGuard,
}

impl DataDirectory {
    /// Takes the folder. A new one becomes a folder of `network`, with an identity out of `seed`.
    pub fn open(root: Arc<dyn Storage>, network: Network, seed: &Seed) -> Result<Self, Error> {
        if !Self::exists(root.as_ref())? {
            Self::check_free(root.as_ref(), &[])?;
        }
        let lock = root.lock()?;
        // Names that a process before this one left, before anything is built on them.
        root.sync_dir()?;
        let identity = match load(root.as_ref(), FILE, KIND)? {
            Some(found) => identity_of(root.as_ref(), &found, network)?,
            None => create(root.as_ref(), network, seed)?,
        };
        Ok(Self { root, identity, _lock: lock })
    }

    /// Whether a folder has been made a node's.
    pub fn exists(root: &dyn Storage) -> Result<bool, Error> {
        Ok(root.list()?.iter().any(|name| name == FILE))
    }

    /// The network of a folder that has been made a node's; `None` when it has not.
    pub fn network(root: &dyn Storage) -> Result<Option<Network>, Error> {
        let Some(found) = load(root, FILE, KIND)? else { return Ok(None) };
        let (_, name) = fields_of(root, &found)?;
        name.parse().map(Some).map_err(|_| damaged(root))
    }

    /// Refuses a folder that is not a node's and holds other things than a new node's folder may:
    /// what an interrupted creation leaves, records, and the entries `allowed`.
    pub fn check_free(root: &dyn Storage, allowed: &[&str]) -> Result<(), Error> {
        let mut found = root.list()?;
        let is_locked = found.iter().any(|name| name == LOCK_FILE) && is_lock(root)?;
        let is_own = |name: &str| is_envelope(FILE, name) || (is_locked && name == LOCK_FILE);
        found.retain(|name| !is_own(name) && name != CONFIGURATION);
        found.extend(
            root.list_others()?.into_iter().filter(|name| !NEUTRAL.contains(&name.as_str())),
        );
        found.retain(|name| !allowed.contains(&name.as_str()));
        let path = root.path().to_path_buf();
        if found.is_empty() { Ok(()) } else { Err(Error::NotEmpty { path, found: Names(found) }) }
    }

    /// Refuses when a store's folder holds anything that the store did not write.
    pub(crate) fn check_stores<'a>(
        &self,
        stores: impl IntoIterator<Item = &'a StoreFiles>,
    ) -> Result<(), Error> {
        let mut found = Vec::new();
        let folders = self.root.list_others()?;
        for store in stores.into_iter().filter(|store| folders.iter().any(|f| f == store.folder)) {
            let foreign = self.foreign(store, self.store(store.folder)?.as_ref())?;
            found.extend(foreign.iter().map(|name| format!("{}/{name}", store.folder)));
        }
        let path = self.root.path().to_path_buf();
        if found.is_empty() { Ok(()) } else { Err(Error::Foreign { path, found: Names(found) }) }
    }

    /// What a store's folder holds that the store did not write.
    fn foreign(&self, store: &StoreFiles, storage: &dyn Storage) -> Result<Vec<String>, Error> {
        let mut foreign = Vec::new();
        for folder in storage.list_others()? {
            match store.inside.iter().find(|inside| inside.folder == folder) {
                Some(inside) => {
                    let found = self.foreign(inside, storage.directory(&folder)?.as_ref())?;
                    foreign.extend(found.iter().map(|name| format!("{folder}/{name}")));
                }
                None => foreign.push(folder),
            }
        }
        foreign.extend(store.foreign(storage, self.identity.store)?);
        Ok(foreign)
    }

    /// Who the store is.
    #[must_use]
    pub const fn identity(&self) -> Identity {
        self.identity
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &dyn Storage {
        self.root.as_ref()
    }

    /// The folder of one of the stores.
    pub fn store(&self, name: &str) -> Result<Arc<dyn Storage>, Error> {
        Ok(self.root.directory(name)?)
    }

    /// Removes all files of a store, durably. Where there are others, it removes nothing.
    pub(crate) fn clear(&self, store: &StoreFiles) -> Result<(), Error> {
        self.check_stores([store])?;
        clear(store, self.store(store.folder)?.as_ref())
    }
}

/// Removes all files in a store's folder, the manifest first.
fn clear(store: &StoreFiles, storage: &dyn Storage) -> Result<(), Error> {
    let files = storage.list()?;
    if files.iter().any(|file| file == store.manifest) {
        storage.remove(store.manifest)?;
        storage.sync_dir()?;
    }
    let kept = [LOCK_FILE, store.manifest];
    for file in files.iter().filter(|file| !kept.contains(&file.as_str())) {
        storage.remove(file)?;
    }
    let folders = storage.list_others()?;
    for inside in store.inside.iter().filter(|inside| folders.iter().any(|f| f == inside.folder)) {
        clear(inside, storage.directory(inside.folder)?.as_ref())?;
    }
    Ok(storage.sync_dir()?)
}

/// Whether the file `lock` is one that Varve wrote, or that it was about to write.
fn is_lock(root: &dyn Storage) -> Result<bool, Error> {
    let file = root.open(LOCK_FILE, Access::Read, Caching::Buffered)?;
    let mut text = vec![0; usize::try_from(file.size()?).unwrap_or(usize::MAX).min(LOCK_MAX)];
    file.read_at(FileOffset::ZERO, &mut text)?;
    Ok(text.is_empty() || std::str::from_utf8(&text).is_ok_and(|t| Holder::decode(t).is_some()))
}

fn create(root: &dyn Storage, network: Network, seed: &Seed) -> Result<Identity, Error> {
    let (store, secret) = seed.split_at(16);
    let store = StoreId(store.try_into().expect("half of 32 bytes"));
    let secret = secret.try_into().expect("half of 32 bytes");
    let name = network.name();
    let mut payload = seed.to_vec();
    payload.push(u8::try_from(name.len()).expect("names of networks are short"));
    payload.extend_from_slice(name.as_bytes());
    let envelope = Envelope { version: FORMAT_VERSION, payload: payload.as_slice() };
    replace(root, FILE, KIND, &envelope)?;
    Ok(Identity { store, secret })
}

fn identity_of(
    root: &dyn Storage,
    found: &Envelope<Vec<u8>>,
    network: Network,
) -> Result<Identity, Error> {
    let (identity, name) = fields_of(root, found)?;
    if name != network.name() {
        let (path, found) = (root.path().to_path_buf(), name.to_owned());
        return Err(Error::OtherNetwork { path, found, wanted: network });
    }
    Ok(identity)
}

/// The identity in the file `node`, and the name of its network.
fn fields_of<'a>(
    root: &dyn Storage,
    found: &'a Envelope<Vec<u8>>,
) -> Result<(Identity, &'a str), Error> {
    if found.version != FORMAT_VERSION {
        let (path, found) = (root.path().to_path_buf(), found.version);
        return Err(Error::OtherFormat { path, found, supported: FORMAT_VERSION });
    }
    let fields = || {
        let (store, rest) = found.payload.split_first_chunk::<16>()?;
        let (secret, rest) = rest.split_first_chunk::<16>()?;
        let (length, name) = rest.split_first()?;
        let name = std::str::from_utf8(name).ok().filter(|name| name.len() == usize::from(*length));
        Some((Identity { store: StoreId(*store), secret: *secret }, name?))
    };
    fields().ok_or_else(|| damaged(root))
}

fn damaged(root: &dyn Storage) -> Error {
    let damaged = FormatError::Damaged { at: 0, what: "it is no identity of a node" };
    damaged.in_file(&root.path().join(FILE), FileOffset::ZERO).into()
}

#[cfg(test)]
mod tests {
    use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};

    use super::*;

    fn open(root: &Arc<FaultyStorage>, network: Network, seed: u8) -> Result<Identity, Error> {
        let root: Arc<dyn Storage> = root.clone();
        DataDirectory::open(root, network, &[seed; 32]).map(|directory| directory.identity())
    }

    #[test]
    fn the_identity_stays_and_others_are_refused() {
        let root = Arc::new(FaultyStorage::new(1));
        assert!(!DataDirectory::exists(root.as_ref()).unwrap());
        assert_eq!(DataDirectory::network(root.as_ref()).unwrap(), None);
        let first = open(&root, Network::Regtest, 1).unwrap();
        assert!(DataDirectory::exists(root.as_ref()).unwrap());
        assert_eq!(DataDirectory::network(root.as_ref()).unwrap(), Some(Network::Regtest));
        assert_eq!(open(&root, Network::Regtest, 2).unwrap().store, first.store);
        let message = open(&root, Network::Mainnet, 2).unwrap_err().to_string();
        assert!(message.contains("regtest") && message.contains("mainnet"), "{message}");
        let held = DataDirectory::open(root.clone(), Network::Regtest, &[0; 32]).unwrap();
        let message = open(&root, Network::Regtest, 2).unwrap_err().to_string();
        assert!(message.contains("in use by"), "{message}");
        drop(held);
        let newer = Envelope { version: FORMAT_VERSION + 1, payload: &[][..] };
        replace(root.as_ref(), FILE, KIND, &newer).unwrap();
        let message = open(&root, Network::Regtest, 2).unwrap_err().to_string();
        assert!(message.contains("format 3"), "{message}");
        let older = Envelope { version: FORMAT_VERSION - 1, payload: &[][..] };
        replace(root.as_ref(), FILE, KIND, &older).unwrap();
        let message = open(&root, Network::Regtest, 2).unwrap_err().to_string();
        assert!(message.contains("format 1") && message.contains("sync into"), "{message}");
    }

    /// A process dies between the name of the identity's file and its sync. The next one builds on
    /// what it finds, so it makes that durable first: stores of a lost identity never open again.
    #[test]
    fn an_inherited_identity_survives_a_power_cut() {
        let root = Arc::new(FaultyStorage::new(1));
        root.inject(FaultRule::new(Operation::SyncDir, When::Nth(0), Fault::Io));
        open(&root, Network::Regtest, 1).unwrap_err();
        let root = Arc::new(root.reopen());
        let found = open(&root, Network::Regtest, 2).unwrap();
        let after = Arc::new(root.crash(root.operations(), Crash::LoseAll));
        assert_eq!(open(&after, Network::Regtest, 3).unwrap().store, found.store);
    }

    #[test]
    fn folders_of_stores_are_not_made_to_be_checked() {
        let root = Arc::new(FaultyStorage::new(1));
        let directory = DataDirectory::open(root.clone(), Network::Regtest, &[1; 32]).unwrap();
        directory.check_stores(crate::store_files::STORES).unwrap();
        assert_eq!(root.list_others().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn every_power_cut_leaves_a_folder_that_opens() {
        let root = Arc::new(FaultyStorage::new(1));
        open(&root, Network::Regtest, 1).unwrap();
        for n in 0..=root.operations() {
            for crash in Crash::ways(10) {
                open(&Arc::new(root.crash(n, crash)), Network::Regtest, 2).unwrap();
            }
        }
    }
}

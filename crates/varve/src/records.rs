//! Live transactions: records, their life cycle and their conflicts.
//!
//! Everything of `varve-records`, and [`RecordStore`], which opens the engine that an [`EngineUrl`]
//! names. The durable engine lies in a folder:
//!
//! ```text
//!  DATADIR/records/
//!  ├── lock             whoever has the store open
//!  ├── (the engine)     its log, its index: docs/format/records.md
//!  ├── blobs/           transactions that are kept outside their records
//!  └── tip              the tip that was set last
//! ```
//!
//! Of an engine that processes share, each has a folder with its lock, its blobs and its tip:
//! `DATADIR/records/postgres-ID`, after the id of the schema. Only transactions that the engine
//! does not take become blobs there.

mod address;
mod tip;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use varve_io::{Disk, LockGuard, Storage, StoreId};
use varve_records::blob::{Blobs, DiskBucket, Fanout, ObjectBucket};

#[doc(no_inline)]
pub use varve_records::*;

#[cfg(feature = "postgres")]
use crate::builder::SHARED_RECORDS;
use crate::builder::make_folder;
use crate::error::Error;
use crate::system;
pub use address::{EngineUrl, EngineUrlError};
use tip::TipFile;

/// A store of records that is open, on the tip that was set last.
///
/// It is a [`Store`]; conflict resolutions that were begun and cut off are not replayed by opening
/// (see [`conflicts`]).
pub struct RecordStore {
    store: Store,
    /// `None` for records in memory.
    tip: Option<TipFile>,
    /// Of the folder, when the engine has no lock of it.
    _lock: Option<LockGuard>,
}

impl RecordStore {
    /// Opens the records that a URL names. What belongs to this process alone is in `folder`.
    pub fn at(
        url: &EngineUrl,
        folder: &Path,
        settings: Settings,
        memory: u64,
    ) -> Result<Self, Error> {
        match url {
            EngineUrl::Memory => Ok(Self::in_memory(settings)),
            EngineUrl::Embedded(other) => {
                Self::open(other.as_deref().unwrap_or(folder), settings, memory)
            }
            EngineUrl::Postgres(url) => Self::postgres(url, folder, settings),
        }
    }

    #[cfg(feature = "postgres")]
    fn postgres(url: &str, folder: &Path, settings: Settings) -> Result<Self, Error> {
        let engine = PostgresEngine::open(url).map_err(Error::Postgres)?;
        let folder = folder.join(format!("{SHARED_RECORDS}{}", engine.id()));
        make_folder(&folder)?;
        let storage: Arc<dyn Storage> = Arc::new(Disk::open(&folder)?);
        let lock = storage.lock()?;
        // Other processes cannot read the blobs of this one, so what fits stays in the record.
        let settings = Settings {
            external_limit: settings.external_limit.max(engine.limits().body),
            externalize_parts: false,
            ..settings
        };
        Self::on(Arc::new(engine), storage, settings, Some(lock))
    }

    #[cfg(not(feature = "postgres"))]
    fn postgres(_: &str, _: &Path, _: Settings) -> Result<Self, Error> {
        Err(Error::NoPostgres)
    }

    /// Opens the records in a folder, which is made when it is missing, within `memory` bytes. A
    /// chain need not be there.
    pub fn open(folder: &Path, settings: Settings, memory: u64) -> Result<Self, Error> {
        let options = EmbeddedOptions::new(new_key()?).within(memory);
        check_memory(0, &options, memory)?;
        make_folder(folder)?;
        let storage: Arc<dyn Storage> = Arc::new(Disk::open(folder)?);
        let engine = EmbeddedEngine::open(Arc::clone(&storage), options).map_err(failed)?;
        check_memory(engine.status().map_err(failed)?.memory, &options, memory)?;
        Self::on(Arc::new(engine), storage, settings, None)
    }

    /// A store on an engine, with its blobs and its tip in a folder.
    fn on(
        engine: Arc<dyn Engine>,
        storage: Arc<dyn Storage>,
        settings: Settings,
        lock: Option<LockGuard>,
    ) -> Result<Self, Error> {
        let fanout = Fanout::default();
        let bucket = DiskBucket::open(storage.directory("blobs")?, fanout);
        let bucket = bucket.map_err(|error| failed(blob::BlobError::Bucket(error)))?;
        let blobs = Blobs::new(bucket, fanout);
        let clock = Box::new(system::unix_milliseconds);
        let store = Store::new(engine, blobs, settings, clock);
        let tip = TipFile::new(storage);
        if let Some(state) = tip.load()? {
            store.set_block_state(state).map_err(failed)?;
        }
        Ok(Self { store, tip: Some(tip), _lock: lock })
    }

    /// Records in memory, which are gone at the end.
    #[must_use]
    pub fn in_memory(settings: Settings) -> Self {
        let blobs = Blobs::new(ObjectBucket::memory(), Fanout::default());
        let engine = Arc::new(MemoryEngine::open(MemoryDisk::default()));
        let store = Store::new(engine, blobs, settings, Box::new(system::unix_milliseconds));
        Self { store, tip: None, _lock: None }
    }

    /// Sets the tip and writes it to the folder. A tip that the records refuse is
    /// [`Error::Records`].
    pub fn set_tip(&self, state: BlockState) -> Result<(), Error> {
        let before = self.store.block_state();
        self.store.set_block_state(state).map_err(failed)?;
        if let Some(tip) = self.tip.as_ref().filter(|_| state != before) {
            tip.save(state)?;
        }
        Ok(())
    }

    /// Bytes of memory that the index of the records in a folder takes; `None` when there are no
    /// records, or another process has them.
    #[must_use]
    pub fn index_memory(folder: &Path, memory: u64) -> Option<u64> {
        if !folder.join("manifest").exists() {
            return None;
        }
        let storage: Arc<dyn Storage> = Arc::new(Disk::open(folder).ok()?);
        let options = EmbeddedOptions::new(new_key().ok()?).within(memory);
        Some(EmbeddedEngine::open(storage, options).ok()?.status().ok()?.memory)
    }
}

impl Deref for RecordStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// The identity and secret of a store that does not exist yet.
fn new_key() -> Result<StoreKey, Error> {
    Ok(StoreKey { id: StoreId(system::random()?), secret: system::random()? })
}

/// Records in lists, and the filters that rule records out, are always in memory. So a store for
/// which that does not fit is refused.
fn check_memory(index: u64, options: &EmbeddedOptions, memory: u64) -> Result<(), Error> {
    let least = index + options.cache + options.segment_size;
    if least <= memory {
        return Ok(());
    }
    // Of more memory the log takes three sixteenths.
    let needed = least.max((index + (4 << 20)) / 13 * 16) + (1 << 20);
    Err(Error::RecordsMemory { given: memory, index, needed })
}

fn failed(error: impl Into<StoreError>) -> Error {
    Error::Records(Box::new(error.into()))
}

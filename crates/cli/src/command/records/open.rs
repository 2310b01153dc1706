//! Opening the records of a data directory.
//!
//! ```text
//!  DATADIR/records/
//!  ├── lock             whoever has the store open
//!  ├── (the engine)     its log, its index: docs/format/records.md
//!  ├── blobs/           transactions that are kept outside their records
//!  └── tip              the height told last
//! ```
//!
//! The folder is made when it is missing; a chain need not be there. Every opening first does
//! again what was begun and cut off.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use indicatif::HumanBytes;
use varve_io::{Disk, Storage, StoreId};
use varve_records::blob::{Blobs, DiskBucket, Fanout, ObjectBucket};
use varve_records::{
    EmbeddedEngine, EmbeddedOptions, Engine as _, MemoryDisk, MemoryEngine, Settings, Store,
    StoreKey,
};

use super::session::Session;
use super::tip::TipFile;
use crate::data_dir::random;

/// Where records can be kept.
const SCHEMES: &str = "embedded: or memory:";

/// Opens the store that a URL names, in this folder where it needs one, to be kept in so many bytes
/// of memory.
pub(super) fn open(url: &str, folder: &Path, settings: Settings, memory: u64) -> Result<Session> {
    let Some((scheme, rest)) = url.split_once(':') else {
        bail!("--engine {url} has no scheme; name {SCHEMES}");
    };
    if !["embedded", "memory"].contains(&scheme) {
        bail!("--engine {url}: there is no engine {scheme:?}; name {SCHEMES}");
    }
    if !rest.trim_matches('/').is_empty() {
        bail!("--engine {url}: nothing can follow {scheme}:; the folder is that of --datadir");
    }
    if scheme == "memory" { in_memory(settings) } else { embedded(folder, settings, memory) }
}

fn embedded(folder: &Path, settings: Settings, memory: u64) -> Result<Session> {
    let key = StoreKey { id: StoreId(random()?), secret: random()? };
    let options = EmbeddedOptions::new(key).within(memory);
    check_memory(0, &options, memory)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let storage: Arc<dyn Storage> = Arc::new(Disk::open(folder)?);
    let engine = EmbeddedEngine::open(Arc::clone(&storage), options)?;
    check_memory(engine.status()?.memory, &options, memory)?;
    let fanout = Fanout::default();
    let bucket = DiskBucket::open(storage.directory("blobs")?, fanout)?;
    let blobs = Blobs::new(bucket, fanout);
    let store = Store::new(Arc::new(engine), blobs, settings, Box::new(Session::now));
    Session::new(store, Some(TipFile::new(storage)))
}

/// Records in lists, and what says where others are not, are in memory always. So a store for which
/// that does not fit is refused.
fn check_memory(index: u64, options: &EmbeddedOptions, memory: u64) -> Result<()> {
    let needed = index + options.cache + options.segment_size;
    if needed > memory {
        // Of more memory the log takes three sixteenths.
        let enough = (needed.max((index + (4 << 20)) / 13 * 16) >> 20) + 1;
        let index = HumanBytes(index);
        bail!(
            "--memory {} is too little for the records, whose index takes {index}; pass --memory \
             {enough}M or more",
            HumanBytes(memory)
        );
    }
    Ok(())
}

/// Bytes of memory that the index of the records in a folder takes; `None` when there are none, or
/// another process has them.
pub(crate) fn index_memory(folder: &Path, memory: u64) -> Option<u64> {
    if !folder.join("manifest").exists() {
        return None;
    }
    let key = StoreKey { id: StoreId(random().ok()?), secret: random().ok()? };
    let storage: Arc<dyn Storage> = Arc::new(Disk::open(folder).ok()?);
    let engine = EmbeddedEngine::open(storage, EmbeddedOptions::new(key).within(memory)).ok()?;
    Some(engine.status().ok()?.memory)
}

fn in_memory(settings: Settings) -> Result<Session> {
    let blobs = Blobs::new(ObjectBucket::memory(), Fanout::default());
    let engine = Arc::new(MemoryEngine::open(MemoryDisk::default()));
    Session::new(Store::new(engine, blobs, settings, Box::new(Session::now)), None)
}

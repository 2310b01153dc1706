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
use varve_io::{Disk, Storage, StoreId};
use varve_records::blob::{Blobs, DiskBucket, Fanout, ObjectBucket};
use varve_records::embedded::{EmbeddedEngine, EmbeddedOptions, StoreKey};
use varve_records::store::Store;
use varve_records::{MemoryDisk, MemoryEngine, Settings};

use super::session::Session;
use super::tip::TipFile;
use crate::data_dir::random;

/// Where records can be kept.
const SCHEMES: &str = "embedded: or memory:";

/// Opens the store that a URL names, in this folder where it needs one.
pub(super) fn open(url: &str, folder: &Path, settings: Settings) -> Result<Session> {
    let Some((scheme, rest)) = url.split_once(':') else {
        bail!("--engine {url} has no scheme; name {SCHEMES}");
    };
    if !["embedded", "memory"].contains(&scheme) {
        bail!("--engine {url}: there is no engine {scheme:?}; name {SCHEMES}");
    }
    if !rest.trim_matches('/').is_empty() {
        bail!("--engine {url}: nothing can follow {scheme}:; the folder is that of --datadir");
    }
    if scheme == "memory" { memory(settings) } else { embedded(folder, settings) }
}

fn embedded(folder: &Path, settings: Settings) -> Result<Session> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let storage: Arc<dyn Storage> = Arc::new(Disk::open(folder)?);
    let key = StoreKey { id: StoreId(random()?), secret: random()? };
    let options = EmbeddedOptions::new(key);
    let engine = EmbeddedEngine::open(Arc::clone(&storage), options)?;
    let fanout = Fanout::default();
    let bucket = DiskBucket::open(storage.directory("blobs")?, fanout)?;
    let blobs = Blobs::new(bucket, fanout);
    let store = Store::new(Arc::new(engine), blobs, settings, Box::new(Session::now));
    Session::new(store, Some(TipFile::new(storage)))
}

fn memory(settings: Settings) -> Result<Session> {
    let blobs = Blobs::new(ObjectBucket::memory(), Fanout::default());
    let engine = Arc::new(MemoryEngine::open(MemoryDisk::default()));
    Session::new(Store::new(engine, blobs, settings, Box::new(Session::now)), None)
}

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
use varve_records::embedded::{EmbeddedEngine, EmbeddedOptions, StoreKey};
use varve_records::store::Store;
use varve_records::{Engine as _, MemoryDisk, MemoryEngine, Settings};

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
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let storage: Arc<dyn Storage> = Arc::new(Disk::open(folder)?);
    let key = StoreKey { id: StoreId(random()?), secret: random()? };
    let options = EmbeddedOptions::new(key).within(memory);
    let engine = EmbeddedEngine::open(Arc::clone(&storage), options)?;
    warn_of_index(&engine, &options, memory)?;
    let fanout = Fanout::default();
    let bucket = DiskBucket::open(storage.directory("blobs")?, fanout)?;
    let blobs = Blobs::new(bucket, fanout);
    let store = Store::new(Arc::new(engine), blobs, settings, Box::new(Session::now));
    Session::new(store, Some(TipFile::new(storage)))
}

/// The index is in memory whatever was asked for: without it no record is found. Whoever asked for
/// less is told.
fn warn_of_index(engine: &EmbeddedEngine, options: &EmbeddedOptions, memory: u64) -> Result<()> {
    let index = engine.status()?.memory;
    let needed = index + options.cache + options.segment_size;
    if needed > memory {
        let (index, needed, memory) = (HumanBytes(index), HumanBytes(needed), HumanBytes(memory));
        eprintln!(
            "the records need about {needed} of memory, {index} of it for their index; --memory \
             {memory} does not bound that. Prune records, or allow more"
        );
    }
    Ok(())
}

fn in_memory(settings: Settings) -> Result<Session> {
    let blobs = Blobs::new(ObjectBucket::memory(), Fanout::default());
    let engine = Arc::new(MemoryEngine::open(MemoryDisk::default()));
    Session::new(Store::new(engine, blobs, settings, Box::new(Session::now)), None)
}

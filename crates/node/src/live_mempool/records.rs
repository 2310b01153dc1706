//! The records of the mempool: `mempool/records` of the data directory.
//!
//! They have the form of every store of records (`docs/format/records.md`), but a folder beside
//! `records`, which is the user's: the mempool deletes records of transactions that the chain does
//! not need, and nobody expects that of records that he has made himself. An operator who freezes
//! an output for the mempool does it here, while no node runs, by `varve records` with this
//! `mempool` as its data directory.
//!
//! The tip that records are judged by is that of the chain, which the mempool gives them with every
//! step; it is not stored.

use std::sync::Arc;

use varve_consensus::Params;
use varve_records::blob::{BlobError, Blobs, DiskBucket, Fanout};
use varve_records::{
    EmbeddedEngine, EmbeddedOptions, EngineError, Settings, Store, StoreError, StoreKey,
};
use varve_utxo::Compaction;

use super::Now;
use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::mempool::MempoolError;

/// The folder of the mempool, and that of its records within.
pub(super) const FOLDER: &str = "mempool";
const RECORDS: &str = "records";

/// Blocks for which the record of a loser is kept. Each is a line in memory until then, and costs
/// its maker no more than the fee of one relay.
const RETENTION: u32 = 12;
/// The least that the engine works with.
const LEAST: u64 = 8 << 20;

/// Opens the records within `memory` bytes.
pub(super) fn open(
    directory: &DataDirectory,
    params: &Params,
    memory: u64,
    upkeep: Compaction,
    now: &Now,
) -> Result<Store, Error> {
    let storage = directory.store(FOLDER)?.directory(RECORDS)?;
    let identity = directory.identity();
    let key = StoreKey { id: identity.store, secret: identity.secret };
    let options = EmbeddedOptions { upkeep, ..EmbeddedOptions::new(key).within(memory.max(LEAST)) };
    let engine = EmbeddedEngine::open(Arc::clone(&storage), options).map_err(of_engine)?;
    let fanout = Fanout::default();
    let bucket = DiskBucket::open(storage.directory("blobs")?, fanout);
    let bucket = bucket.map_err(|error| failed(BlobError::Bucket(error).into()))?;
    let settings = Settings {
        coinbase_maturity: params.coinbase_maturity,
        retention: RETENTION,
        ..Settings::new(params.network)
    };
    let now = Arc::clone(now);
    let clock = Box::new(move || u64::from(now()).saturating_mul(1_000));
    Ok(Store::new(Arc::new(engine), Blobs::new(bucket, fanout), settings, clock))
}

fn of_engine(error: EngineError) -> Error {
    failed(error.into())
}

fn failed(error: StoreError) -> Error {
    MempoolError::from(error).into()
}

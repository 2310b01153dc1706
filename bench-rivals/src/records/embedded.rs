//! Our side: the embedded engine, and the memory engine that is the reference in the tests.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use varve_io::{Disk, StoreId};
use varve_records::engine::Scan;
use varve_records::{EmbeddedEngine, EmbeddedOptions, Engine, Fields, Operation, StoreKey};

use super::digest::RecordsDigest;
use super::plain;
use super::side::{Memory, Side};
use super::work::CONTEXT;

/// Records read at a time for the digest.
const PAGE: usize = 8_192;

/// An engine of ours.
#[derive(Debug)]
pub(super) struct Ours<E>(E);

/// Opens the store of a folder, or creates one, with the memory split as the command splits it.
pub(super) fn open(folder: &Path, memory: Memory) -> Result<Ours<EmbeddedEngine>> {
    let key = StoreKey { id: StoreId([1; 16]), secret: [2; 16] };
    let options = EmbeddedOptions::new(key).within(memory.0);
    Ok(Ours(EmbeddedEngine::open(Arc::new(Disk::open(folder)?), options)?))
}

impl<E> Ours<E> {
    #[cfg(test)]
    pub(super) const fn new(engine: E) -> Self {
        Self(engine)
    }
}

impl Ours<EmbeddedEngine> {
    /// Keys in the index.
    pub(super) fn keys(&self) -> Result<u64> {
        Ok(self.0.status()?.keys)
    }
}

impl<E: Engine> Side for Ours<E> {
    fn load(&mut self, units: &[Operation]) -> Result<()> {
        let refused = self.apply(units)?;
        ensure!(refused == 0, "{refused} records of the stock were refused");
        Ok(())
    }

    fn loaded(&mut self) -> Result<()> {
        Ok(())
    }

    fn apply(&self, units: &[Operation]) -> Result<usize> {
        let outcomes = self.0.apply(&CONTEXT, units)?;
        Ok(outcomes.iter().filter(|outcome| outcome.result.is_err()).count())
    }

    fn digest(&self) -> Result<RecordsDigest> {
        let mut digest = RecordsDigest::default();
        let mut after = None;
        loop {
            let page = self.0.scan(Scan::All, after, PAGE)?;
            for record in self.0.read(&page.txids, Fields::ALL)?.into_iter().flatten() {
                digest.add(record.txid.as_bytes(), &plain::encode_record(&record)?);
            }
            after = page.next;
            if after.is_none() {
                return Ok(digest);
            }
        }
    }
}

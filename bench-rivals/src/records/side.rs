//! The interface of all sides of the race.

use anyhow::{Result, bail};
use varve_records::Operation;
use varve_records::operation::Unit;

use super::digest::RecordsDigest;

/// The memory that a child has, in bytes. The caches of a side are shares of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory(pub(super) u64);

impl Memory {
    /// One of `parts` equal parts.
    pub(super) const fn share(self, parts: u64) -> u64 {
        self.0 / parts
    }
}

/// One side of the race.
pub(super) trait Side: Sync {
    /// Adds records, which come in the order of their txids. Not timed.
    fn load(&mut self, units: &[Operation]) -> Result<()>;

    /// The stock is complete. Not timed.
    fn loaded(&mut self) -> Result<()>;

    /// Does the units in order, each whole or not at all; durable on return. Called by several
    /// threads at once. Returns how many were refused.
    fn apply(&self, units: &[Operation]) -> Result<usize>;

    /// Reads all records.
    fn digest(&self) -> Result<RecordsDigest>;
}

/// The units of a batch. The race has no other operations.
pub(super) fn units(operations: &[Operation]) -> impl Iterator<Item = Result<&Unit>> {
    operations.iter().map(|operation| match operation {
        Operation::Unit(unit) => Ok(unit.as_ref()),
        other => bail!("the race has only units, not {other:?}"),
    })
}

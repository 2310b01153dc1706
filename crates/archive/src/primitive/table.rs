//! What all tables have in common: how they are named, and how they are saved together.
//!
//! A store has several tables and one [`Manifest`](super::Manifest). A checkpoint of the store:
//!
//! 1. [`Table::prepare`] every table: bodies and heads go to the disk, each table gives its
//!    [`Mark`]. What the last manifest names is not touched.
//! 2. Replace the manifest, with all marks in it. From here on the new checkpoint counts.
//! 3. [`Table::confirm`] every table: saved pages go to their places.
//!
//! An error in 1 or 2 leaves the store as it was, in memory and on disk; after a full disk the
//! checkpoint may be tried again when there is room. After an error in 3 the checkpoint counts, and
//! the rest is done by the next one or by opening.

use varve_io::{Kind, MappedLogConfig, StoreId, is_segment};

use super::cells::{Identity, head_name, redo_epoch};
use super::error::Result;
use super::head::Geometry;
use super::mark::Mark;

/// Bytes of memory of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// Its head or array at worst: every page touched, and twice the staged rows.
    pub heads: usize,
    /// Rows that wait for the next checkpoint.
    pub stage: usize,
}

impl std::ops::Add for TableMemory {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { heads: self.heads + other.heads, stage: self.stage + other.stage }
    }
}

/// Counts the checkpoints of a store; each has a greater one than those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub u64);

/// Whether a checkpoint saves the heads of hash tables.
///
/// A checkpoint without them writes only new rows; opening then links the rows since the last one
/// with them. Arrays and the heads of slab tables are small and always saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heads {
    /// Save them: a write for every page that has changed.
    Save,
    /// Leave them as they were last saved.
    Defer,
}

/// How a table is called and cut into files.
#[derive(Debug, Clone)]
pub struct TableConfig {
    /// The first part of all its files' names; different for every table of a store.
    pub name: String,
    /// What the table holds, different for every table of a store; checked when it is opened.
    pub kind: Kind,
    /// The store it belongs to.
    pub store: StoreId,
    /// The bytes in a file of the body, about.
    pub segment_len: u32,
    /// The head of a hash table. Fixed when the table is made; other tables have no use for it.
    pub geometry: Geometry,
}

impl TableConfig {
    pub(crate) fn identity(&self) -> Identity {
        Identity { table: self.name.clone(), kind: self.kind, store: self.store }
    }

    /// The log of the table's body.
    pub(crate) fn log(&self, capacity: u32) -> MappedLogConfig {
        let Self { ref name, kind, store, .. } = *self;
        MappedLogConfig { prefix: name.clone(), kind, store, capacity: capacity.max(1) }
    }
}

/// Whether a file of this name belongs to a table: a segment of its body, its head, or pages of
/// the head that are not in their places yet.
#[must_use]
pub fn is_table_file(table: &str, name: &str) -> bool {
    is_segment(table, name) || name == head_name(table) || redo_epoch(table, name).is_some()
}

/// A table that is saved together with others.
pub trait Table: Send {
    /// The name it was opened with.
    fn name(&self) -> &str;

    /// Writes what is new and gives the mark for the manifest. Nothing that the last manifest names
    /// is touched; after an error it may be called again.
    fn prepare(&mut self, epoch: Epoch, heads: Heads) -> Result<Mark>;

    /// To be called when the manifest with the last prepared mark is durable, and only then.
    fn confirm(&mut self) -> Result<()>;

    /// Compares everything that the last checkpoint has on disk with its checksums.
    fn verify(&self) -> Result<()>;
}

//! The back ends that every test runs on.

use std::sync::Arc;

use varve_archive::contract::{Disk, check};
use varve_archive::search::SearchOptions;
use varve_archive::{MemoryDisk, MmapBackend, MmapConfig};
use varve_io::faulty::FaultyStorage;
use varve_io::{Storage, StoreId};
use varve_runs::Compaction;

/// Runs a test, a function of a disk, on each.
macro_rules! on_every_back_end {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            #[test]
            fn memory() {
                super::$name(varve_archive::MemoryDisk::default());
            }

            #[test]
            fn mmap() {
                super::$name(crate::back_ends::MmapDisk::default());
            }
        }
    )*};
}

pub(crate) use on_every_back_end;

/// Files so small, heads so narrow, a window so short and so few rows to link again that short
/// chains see many of all, and runs.
pub(crate) const SMALL: MmapConfig = MmapConfig {
    segment_len: 4096,
    first_rows: 16,
    relink: 40,
    window: 4,
    indexes: crate::rig::ALL,
    search: SearchOptions {
        memory: 8 << 20,
        fan_in: 2,
        flush_rows: 20,
        flush_links: 8,
        compaction: Compaction::Inline,
    },
    ..MmapConfig::new(StoreId([3; 16]), [4; 16])
};

/// Files in memory.
pub(crate) struct MmapDisk(pub(crate) Arc<dyn Storage>);

impl Default for MmapDisk {
    fn default() -> Self {
        Self(Arc::new(FaultyStorage::new(1)))
    }
}

impl Disk for MmapDisk {
    type Backend = MmapBackend;

    fn open(&self) -> MmapBackend {
        MmapBackend::open(Arc::clone(&self.0), SMALL).unwrap()
    }
}

#[test]
fn memory_keeps_the_contract() {
    check(MemoryDisk::default);
}

#[test]
fn mmap_keeps_the_contract() {
    check(MmapDisk::default);
}

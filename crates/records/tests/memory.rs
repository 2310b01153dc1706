//! The memory engine keeps the contract.

use varve_records::contract::Disk;
use varve_records::{Limits, MemoryDisk, MemoryEngine};

varve_records::engine_contract!(MemoryDisk::default());

/// A disk whose engine takes small bodies only.
#[derive(Default)]
struct SmallDisk(MemoryDisk);

impl Disk for SmallDisk {
    type Engine = MemoryEngine;

    fn open(&self) -> MemoryEngine {
        MemoryEngine::with_limits(self.0.clone(), Limits { body: 1_000 })
    }
}

#[test]
fn a_small_engine_refuses_large_bodies() {
    varve_records::contract::create::a_body_above_the_limit_is_refused(&SmallDisk::default());
}

//! The memory of the tables: heads, which grow with the chain, and rows that are not settled.

use super::MmapBackend;
use crate::archive::Archive;
use crate::link::HeaderLink;
use crate::primitive::TableMemory;

/// Both chains by height and the state of each header, which the archive keeps for its snapshots.
const HEADER_LEN: usize = 2 * size_of::<HeaderLink>() + 1;

impl MmapBackend {
    fn memory(&self) -> TableMemory {
        let tables = &self.tables;
        let headers = usize::try_from(tables.header.rows()).unwrap_or(usize::MAX);
        let all = [
            TableMemory { heads: headers.saturating_mul(HEADER_LEN), stage: 0 },
            tables.header.memory(),
            tables.blocks.memory(),
            tables.tx.memory(),
            tables.spend.memory(),
            tables.script.memory(),
            tables.filters.memory(),
            tables.tx_state.memory(),
            self.candidate.reader().memory(),
            self.confirmed.reader().memory(),
            self.block_state.reader().memory(),
        ];
        all.into_iter().fold(TableMemory::default(), std::ops::Add::add)
    }
}

impl Archive<MmapBackend> {
    /// The memory of all tables.
    #[must_use]
    pub fn memory(&self) -> TableMemory {
        self.backend().memory()
    }
}

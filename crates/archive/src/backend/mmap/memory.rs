//! The memory of the tables.
//!
//! What grows with the number of headers is measured. What grows with the number of transactions is
//! in the search tables, which keep within their budget.

use super::MmapBackend;
use crate::archive::Archive;
use crate::backend::Result;
use crate::error::ArchiveError;
use crate::link::HeaderLink;
use crate::primitive::TableMemory;
use crate::source::BlockNumber;

/// Both chains by height and the state of each header, which the archive keeps for its snapshots.
const HEADER_LEN: usize = 2 * size_of::<HeaderLink>() + 1;

/// The memory of an archive, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveMemory {
    /// Heads and arrays, about 50 bytes a header when all of it has been touched.
    pub heads: usize,
    /// Rows waiting for the next checkpoint.
    pub stage: usize,
    /// Rows of young blocks in the search tables.
    pub young: usize,
    /// Directories and filters of the search tables.
    pub index: usize,
}

impl MmapBackend {
    fn memory(&self) -> ArchiveMemory {
        let tables = &self.tables;
        let headers = usize::try_from(tables.header.rows()).unwrap_or(usize::MAX);
        let all = [
            TableMemory { heads: headers.saturating_mul(HEADER_LEN), stage: 0 },
            tables.header.memory(),
            tables.blocks.memory(),
            tables.filters.memory(),
            tables.tx_state.memory(),
            self.candidate.reader().memory(),
            self.confirmed.reader().memory(),
            self.block_state.reader().memory(),
        ];
        let TableMemory { heads, stage } =
            all.into_iter().fold(TableMemory::default(), |a, b| a + b);
        let (mut young, mut index) = (0, 0);
        for table in self.searches.memory() {
            young += table.young;
            index += table.index;
        }
        ArchiveMemory { heads, stage, young, index }
    }
}

impl MmapBackend {
    /// The lowest number of a block whose search rows a crash would lose.
    fn unsaved_from(&self) -> Result<Option<BlockNumber>> {
        let blocks = &self.tables.blocks;
        let mut lowest: Option<BlockNumber> = None;
        for block in blocks.from(self.searches.saved_end())? {
            let number = blocks.block(block?.0)?.map(|row| row.number);
            lowest = lowest.into_iter().chain(number).min();
        }
        Ok(lowest)
    }
}

impl Archive<MmapBackend> {
    /// The lowest number of a block that must not be pruned: a crash would lose its search rows,
    /// and they are rebuilt from its bytes. `None` when all rows are on disk.
    pub fn needed_from(&self) -> std::result::Result<Option<BlockNumber>, ArchiveError> {
        Ok(self.backend().unsaved_from()?)
    }

    /// The memory of all tables.
    #[must_use]
    pub fn memory(&self) -> ArchiveMemory {
        self.backend().memory()
    }

    /// Whether the search tables wait for a checkpoint to make room.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.backend().searches.is_crowded()
    }

    /// Merges the runs of each search table into one, in the background: call it when a sync has
    /// caught up, until it returns `false`. A lookup then costs one page however large the table
    /// is. The next checkpoint that saves the tables keeps the result.
    pub fn tidy(&mut self) -> std::result::Result<bool, ArchiveError> {
        Ok(self.backend_mut().searches.tidy()?)
    }

    /// Bytes of the runs being merged: about how many are done, and all of them.
    #[must_use]
    pub fn merging(&self) -> (u64, u64) {
        self.backend().searches.merging()
    }
}

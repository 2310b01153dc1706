//! How the memory of the process is split.
//!
//! ```text
//!  ├─ program ─┬─ headers ─┬─ source ─┬─ archive ─┬─ history ─┬─ mempool ─┬─ blocks ─┬─ set ─┤
//!   16 MiB+1/8   measured    measured   3/16        3/16        1/8         1/16       the rest
//! ```
//!
//! - **program**: stacks, the ends of logs, and what the allocator holds beyond what is in use.
//! - **headers**: the header tree, the numbers of the stored blocks, and the archive's arrays and
//!   heads, which have a row for each header.
//! - **source**: what it knows of its blocks, and for a pipe the blocks that come before their
//!   parents, an eighth of the whole.
//! - **archive**: at most 512 MiB. Three quarters are for the search tables, which split it again:
//!   rows of young blocks, directories and filters of runs, and buffers of merges
//!   (`varve_archive::search`). A quarter is for other rows that wait for the next checkpoint. One
//!   is made when half of that is used, because a table of rows grows by doubling, and when the
//!   search tables have no more room.
//! - **history**: the script history, where it is kept, at most 512 MiB. Three quarters are the
//!   table's, which splits them again (`varve_archive::history`); a quarter is for the rows of
//!   blocks that no commit has yet.
//! - **mempool**: while it is open, at most 640 MiB. Half is for transactions with their rows: what
//!   exceeds it is evicted. A quarter is for their records, and a quarter for what readers hold of
//!   older versions and what waits for its turn.
//! - **blocks**: those on their way from the source to the set, at most 128 MiB: a quarter waits in
//!   the source, a quarter is being checked, half is stored and waits for its turn. A single block
//!   is let through whatever its length.
//! - **set**: the unspent set, which splits its part itself (`varve_utxo`).
//!
//! The measured parts grow with the chain, about 300 bytes a header, so the split is made again at
//! each checkpoint. The page cache is not counted: the system takes it back when memory is short.

use varve_archive::{Archive, MmapBackend};
use varve_blocks::BlockStore;
use varve_utxo::{Error as UtxoError, Options as SetOptions};

use crate::error::Error;
use crate::header_tree::HeaderTree;

const MIB: usize = 1 << 20;

/// The program itself, whatever it is given.
const PROGRAM: usize = 16 * MIB;
/// The parts of the whole that the shares are, in sixteenths.
const PROGRAM_SHARE: usize = 2;
const ARCHIVE_SHARE: usize = 3;
const HISTORY_SHARE: usize = 3;
const MEMPOOL_SHARE: usize = 2;
const BLOCKS_SHARE: usize = 1;
const SET_SHARE: usize = 16 - PROGRAM_SHARE - ARCHIVE_SHARE - BLOCKS_SHARE;
/// The most that a share is worth having.
const ARCHIVE_MAX: usize = 512 * MIB;
const HISTORY_MAX: usize = 512 * MIB;
const MEMPOOL_MAX: usize = 640 * MIB;
const BLOCKS_MAX: usize = 128 * MIB;

/// The number of a stored block, in the table by its hash.
const NUMBER_LEN: usize = 16;

/// What takes as much as it takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) headers: usize,
    pub(crate) source: usize,
    /// Whether the script history is kept.
    pub(crate) history: bool,
    /// Whether the mempool is open.
    pub(crate) mempool: bool,
}

impl Measured {
    /// What the stores take now.
    pub(crate) fn of(
        tree: &HeaderTree,
        blocks: &BlockStore,
        archive: &Archive<MmapBackend>,
    ) -> Self {
        let numbers = blocks.reader().count() as usize * NUMBER_LEN;
        Self {
            headers: tree.memory() + numbers + archive.memory().heads,
            source: 0,
            history: false,
            mempool: false,
        }
    }

    const fn total(self) -> usize {
        self.headers.saturating_add(self.source)
    }
}

/// How the memory of the process is split, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The whole.
    pub memory: usize,
    /// The program itself.
    pub program: usize,
    /// The header tree, and what else has a row for each header.
    pub headers: usize,
    /// What the source of a sync knows and holds back.
    pub source: usize,
    /// The archive: search tables, and rows that wait for a checkpoint.
    pub archive: usize,
    /// The script history; 0 where it is not kept.
    pub history: usize,
    /// Unconfirmed transactions; 0 while there is no mempool.
    pub mempool: usize,
    /// Blocks between the source and the set.
    pub blocks: usize,
    /// The unspent set.
    pub set: usize,
}

impl Budget {
    /// The split for a process that holds no chain, such as one that imports an unspent set. Too
    /// little memory is refused before anything is created.
    pub fn empty(memory: usize) -> Result<Self, Error> {
        Self::new(memory, Measured::default()).enough()
    }

    /// The split beside what is measured.
    pub(crate) fn new(memory: usize, measured: Measured) -> Self {
        let program = PROGRAM + memory / 16 * PROGRAM_SHARE;
        let archive = (memory / 16 * ARCHIVE_SHARE).min(ARCHIVE_MAX);
        let blocks = (memory / 16 * BLOCKS_SHARE).min(BLOCKS_MAX);
        let share = if measured.history { HISTORY_SHARE } else { 0 };
        let history = (memory / 16 * share).min(HISTORY_MAX);
        let mempool = if measured.mempool { Self::mempool_share(memory) } else { 0 };
        let taken =
            (program + archive + history + mempool + blocks).saturating_add(measured.total());
        let set = memory.saturating_sub(taken);
        let Measured { headers, source, .. } = measured;
        Self { memory, program, headers, source, archive, history, mempool, blocks, set }
    }

    /// The part of the mempool, while it is open.
    pub(crate) fn mempool_share(memory: usize) -> usize {
        (memory / 16 * MEMPOOL_SHARE).min(MEMPOOL_MAX)
    }

    /// Refuses a split that leaves too little for the set.
    pub(crate) fn enough(self) -> Result<Self, Error> {
        if self.set < SetOptions::MEMORY_MIN {
            return Err(self.too_little(SetOptions::MEMORY_MIN));
        }
        Ok(self)
    }

    /// The error of the unspent set. When it needs more than its part, the error says what the
    /// whole would have to be.
    pub fn set_error(&self, error: UtxoError) -> Error {
        match error {
            UtxoError::Memory { needed, .. } => self.too_little(needed),
            error => error.into(),
        }
    }

    /// The error when the set needs `set` bytes, which is more than its part.
    fn too_little(&self, set: usize) -> Error {
        let Self { memory: given, headers, source, .. } = *self;
        let fixed = headers.saturating_add(source);
        let history = if self.history > 0 { HISTORY_SHARE } else { 0 };
        let share = SET_SHARE - history - if self.mempool > 0 { MEMPOOL_SHARE } else { 0 };
        let needed = (PROGRAM.saturating_add(set).saturating_add(fixed) / share)
            .saturating_add(1)
            .saturating_mul(16);
        Error::Memory { given, needed, set, headers }
    }

    /// What the search tables have.
    pub(crate) const fn search(&self) -> usize {
        self.archive / 4 * 3
    }

    /// What the table of the script history has.
    pub(crate) const fn history_table(&self) -> usize {
        self.history / 4 * 3
    }

    /// The bytes of other rows at which a checkpoint is due.
    pub(crate) const fn stage_due(&self) -> usize {
        self.archive / 8
    }

    /// The lag of a replay whose steps fit the archive's part. Rows take up to half as many bytes
    /// as their blocks, and the largest step is an eighth of the lag.
    pub(crate) fn lag(&self, wanted: u64) -> u64 {
        wanted.min(self.archive as u64 * 4)
    }

    /// The bytes of blocks in a commit. Readers hold the set of the last commit, and with it what
    /// has left the window since: that is little as long as commits are small beside the window.
    pub(crate) fn group(&self, wanted: u64) -> u64 {
        wanted.min(self.memory as u64 / 32)
    }

    /// Bytes of blocks that wait in the source.
    pub(crate) const fn queued(&self) -> u64 {
        self.blocks as u64 / 4
    }

    /// Bytes of blocks that are being checked.
    pub(crate) const fn checked(&self) -> u64 {
        self.blocks as u64 / 4
    }

    /// Bytes of stored blocks that wait for their turn.
    pub(crate) const fn kept(&self) -> u64 {
        self.blocks as u64 / 2
    }

    /// Bytes of blocks that a source may hold back until their parents come.
    pub(crate) const fn unordered(memory: usize) -> u64 {
        memory as u64 / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Measured = Measured { headers: 0, source: 0, history: false, mempool: false };

    #[test]
    fn the_parts_are_the_whole() {
        for memory in [64 * MIB, 100_000_001, 256 * MIB, 2048 * MIB, 64 << 30] {
            for (history, mempool) in [(false, false), (true, false), (false, true)] {
                let measured = Measured { headers: 7 * MIB + 7, source: 11, history, mempool };
                let budget = Budget::new(memory, measured);
                let Budget { program, headers, source, archive, blocks, set, .. } = budget;
                let parts = program + headers + source + archive + blocks + set;
                assert_eq!(parts + budget.history + budget.mempool, memory);
            }
            let measured = Measured { headers: 7 * MIB + 7, source: 11, ..NOTHING };
            let budget = Budget::new(memory, measured).enough().unwrap();
            let Budget { archive, blocks, .. } = budget;
            assert!(budget.search() + 2 * budget.stage_due() <= archive);
            let parts = budget.queued() + budget.checked() + budget.kept();
            assert!(parts <= blocks as u64);
        }
    }

    /// With the usual memory a checkpoint comes after 256 MiB of blocks, as it always did.
    #[test]
    fn the_usual_memory_is_enough_for_the_usual_lag() {
        let budget = Budget::new(2048 * MIB, NOTHING);
        assert_eq!((budget.search(), budget.stage_due()), (288 * MIB, 48 * MIB));
        assert_eq!(budget.kept(), 64 << 20);
        assert_eq!((budget.lag(256 << 20), budget.group(64 << 20)), (256 << 20, 64 << 20));
        assert_eq!(budget.set, (2048 - 272 - 384 - 128) * MIB);
        let small = Budget::new(64 * MIB, NOTHING);
        assert_eq!((small.set, small.lag(256 << 20)), (24 * MIB, 48 << 20));
    }

    #[test]
    fn what_is_said_to_be_enough_is_enough() {
        for headers in [0, MIB, 100 * MIB, 5 << 30] {
            let history = headers > MIB;
            let measured = Measured { headers, source: headers / 3, history, mempool: history };
            let Err(Error::Memory { needed, .. }) = Budget::new(MIB, measured).enough() else {
                panic!("a megabyte is too little");
            };
            let enough = Budget::new(needed, measured).enough().unwrap();
            assert!(enough.set >= SetOptions::MEMORY_MIN);
            // Where shares have reached their most, somewhat less would do too.
            assert!(needed > 1024 * MIB || Budget::new(needed - 64, measured).enough().is_err());
        }
    }

    #[test]
    fn the_refusal_names_the_option_and_what_would_do() {
        let error = Budget::empty(MIB).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--memory 1M is too little: the unspent set needs 16M, and headers take 0M of it; pass \
             --memory 52M or more"
        );
    }
}

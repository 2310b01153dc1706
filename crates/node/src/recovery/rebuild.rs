//! Rebuilds the header tree from what is stored, and the rows that the archive lacks.
//!
//! 1. The archive's headers come first, in the order of their rows.
//! 2. The headers of stored blocks are linked to them, parents first, in whatever order blocks were
//!    stored.
//! 3. Now every height is known, and each block without rows is read and archived once, in the
//!    order in which blocks were stored. Several are prepared in parallel.
//!
//! A block that links to nothing is an *orphan*: its bytes are kept and its rows are not made.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroUsize;

use varve_archive::{Archive, HeaderLink, MmapBackend};
use varve_blocks::{BlockNumber, BlockReader, BlockStore};
use varve_consensus::BlockAt;
use varve_types::{Block, BlockHash, Header, Height};

use super::{Progress, disagree};
use crate::chain::Chain;
use crate::commit_log::{CommitLog, History};
use crate::error::Error;
use crate::header_tree::HeaderTree;
use crate::organizer::{Options, Preparer};
use crate::steps::Steps;

/// The header tree, and what the archive could not take.
pub(super) struct Rebuilt {
    pub(super) chain: Chain,
    /// Blocks whose headers do not link to any that is known.
    pub(super) orphans: HashMap<BlockHash, BlockNumber>,
    /// Blocks that the archive does not have and whose bytes were pruned.
    pub(super) lost: BTreeSet<BlockNumber>,
    /// How many blocks were archived.
    pub(super) rows: u64,
}

/// What it takes to rebuild them.
pub(super) struct Rebuild<'a> {
    pub(super) options: &'a Options,
    /// Bytes of blocks that a crash may leave to be archived again.
    pub(super) lag: u64,
    pub(super) blocks: &'a BlockStore,
    pub(super) archive: &'a mut Archive<MmapBackend>,
    pub(super) log: &'a mut CommitLog,
}

impl Rebuild<'_> {
    /// Builds the header tree, and archives the blocks that the archive lacks.
    pub(super) fn run(self, history: &History, progress: Progress<'_>) -> Result<Rebuilt, Error> {
        let Self { options, lag, blocks, archive, log } = self;
        let mut tree = HeaderTree::new(options.params.clone(), tree_key(&options.seed));
        for row in 0..archive.now().bounds().headers {
            let bytes = archive.now().raw_header(HeaderLink::new(row))?;
            let header = Header::new(&bytes);
            tree.restore(header, header.hash()).map_err(|error| disagree(error.to_string()))?;
        }
        let reader = blocks.reader();
        link_headers(&mut tree, archive, &reader)?;
        let (mut orphans, mut lost) = (HashMap::new(), BTreeSet::new());
        let held = reader.first_held()?;
        let mut again = Again {
            reader: &reader,
            threads: options.workers,
            steps: Steps::new(lag),
            queue: Vec::new(),
            rows: 0,
        };
        for number in (0..reader.count()).map(BlockNumber::new) {
            let row = reader.row(number)?;
            let is_archived = history.archived.has(number);
            if number < held && history.archived.except.contains(&number) {
                lost.insert(number);
                continue;
            }
            let Some(id) = tree.find(&row.hash) else {
                orphans.insert(row.hash, number);
                continue;
            };
            if !is_archived {
                again.queue.push((number, tree.height(id), row.length));
            }
            if again.is_full() {
                let left_out = || orphans.values().chain(&lost).copied();
                let save = |number| history.archived.up_to(number, left_out());
                again.archive(archive, progress, |number| log.checkpoint(&save(number)))?;
            }
            tree.mark_stored(id);
        }
        let save = |number| history.archived.up_to(number, orphans.values().chain(&lost).copied());
        again.archive(archive, progress, |number| log.checkpoint(&save(number)))?;
        let rows = again.rows;
        for (hash, reason) in &history.marks {
            if let Some(id) = tree.find(hash) {
                tree.mark_invalid(id, reason);
            }
        }
        Ok(Rebuilt { chain: Chain::new(tree), orphans, lost, rows })
    }
}

/// Adds the headers of all stored blocks that link to a known one, parents first, to the tree and
/// to the archive.
///
/// From each block the walk goes down, parent by parent, to a header that is known, and then comes
/// back up. A block is passed once on the way down and once on the way up, in whatever order they
/// were stored. The way is 4 bytes a block.
fn link_headers(
    tree: &mut HeaderTree,
    archive: &mut Archive<MmapBackend>,
    reader: &BlockReader,
) -> Result<(), Error> {
    let mut way = Vec::new();
    let mut unlinked = HashSet::new();
    for number in (0..reader.count()).map(BlockNumber::new) {
        let mut at = Some(number);
        let is_linked = loop {
            let Some(number) = at.filter(|number| !unlinked.contains(number)) else { break false };
            let row = reader.row(number)?;
            if tree.find(&row.hash).is_some() {
                break true;
            }
            way.push(number);
            let previous = Header::new(&row.header).previous();
            if tree.find(&previous).is_some() {
                break true;
            }
            at = reader.number_of(&previous)?;
        };
        while let Some(number) = way.pop() {
            if !is_linked {
                unlinked.insert(number);
                continue;
            }
            let row = reader.row(number)?;
            let header = Header::new(&row.header);
            tree.restore(header, row.hash).map_err(|error| disagree(error.to_string()))?;
            archive.set_header(header)?;
        }
    }
    Ok(())
}

/// Blocks for each thread that are prepared in parallel.
const BLOCKS_EACH: usize = 8;
/// And their bytes together, after which no more are waited for.
const BYTES: u64 = 32 << 20;

/// Archives stored blocks again.
struct Again<'a> {
    reader: &'a BlockReader,
    threads: NonZeroUsize,
    steps: Steps,
    /// Blocks to be archived, with their heights and lengths.
    queue: Vec<(BlockNumber, Height, u64)>,
    /// How many blocks were archived.
    rows: u64,
}

impl Again<'_> {
    fn is_full(&self) -> bool {
        let bytes: u64 = self.queue.iter().map(|(.., length)| length).sum();
        self.queue.len() >= BLOCKS_EACH * self.threads.get() || bytes >= BYTES
    }

    /// Archives the blocks in the queue. `save` notes that all blocks up to one are archived,
    /// durably.
    fn archive(
        &mut self,
        archive: &mut Archive<MmapBackend>,
        progress: Progress<'_>,
        mut save: impl FnMut(BlockNumber) -> varve_io::Result<()>,
    ) -> Result<(), Error> {
        let format = archive.now().network().format();
        let prepare = |preparer: &Preparer, (number, height, _): &(BlockNumber, Height, u64)| {
            let hash = self.reader.hash(*number)?;
            let bytes = self.reader.raw(*number).map_err(Error::of_block(*height))?;
            let block = Block::parse(&bytes, format)
                .map_err(|source| Error::Undecodable { hash, source })?;
            Ok::<_, Error>(preparer.prepare(&BlockAt::new(*height, &block))?)
        };
        let queue = std::mem::take(&mut self.queue);
        let prepared = archive.preparer().prepare_many(&queue, self.threads, prepare);
        for ((number, _, length), prepared) in queue.into_iter().zip(prepared) {
            archive.set_prepared(prepared?, number)?;
            progress(u64::from(number.get()) + 1, self.reader.count().into());
            self.rows += 1;
            if self.steps.is_due(length) || archive.is_crowded() {
                // New rows are in memory until they are saved. The blocks are durable.
                archive.checkpoint(archive.sequence())?;
                save(number)?;
            }
        }
        Ok(())
    }
}

/// A key for the tree's table, which lives as long as the process.
fn tree_key(seed: &[u8; 32]) -> [u8; 16] {
    let digest = varve_sha256::digest(seed);
    *digest.first_chunk().expect("a digest has 32 bytes")
}

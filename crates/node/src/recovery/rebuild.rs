//! The header tree out of what is stored, and the rows that the archive lacks.
//!
//! 1. The archive's headers come first, in the order of their rows.
//! 2. The headers of stored blocks are linked to them, parents first, in whatever order blocks were
//!    stored.
//! 3. Now every height is known, and each block without rows is read and archived once, in the
//!    order in which blocks were stored.
//!
//! A block that links to nothing is an *orphan*: its bytes are kept and its rows are not made.

use std::collections::{BTreeSet, HashMap, HashSet};

use varve_archive::{Archive, HeaderLink, MmapBackend};
use varve_blocks::{BlockNumber, BlockReader, BlockStore};
use varve_consensus::BlockAt;
use varve_types::{Block, BlockHash, Header, Height};

use super::{Progress, disagree};
use crate::chain::Chain;
use crate::commit_log::{CommitLog, History};
use crate::error::Error;
use crate::header_tree::HeaderTree;
use crate::organizer::Options;
use crate::steps::Steps;

/// What was made.
pub(super) struct Rebuilt {
    pub(super) chain: Chain,
    /// Blocks whose headers do not link to any that is known.
    pub(super) orphans: HashMap<BlockHash, BlockNumber>,
    /// Blocks that the archive does not have and whose bytes were pruned.
    pub(super) lost: BTreeSet<BlockNumber>,
    /// How many blocks were archived.
    pub(super) rows: u64,
}

/// Makes the header tree, and the rows that the archive lacks.
pub(super) fn rebuild(
    (options, lag): (&Options, u64),
    history: &History,
    (blocks, archive, log): (&BlockStore, &mut Archive<MmapBackend>, &mut CommitLog),
    progress: Progress<'_>,
) -> Result<Rebuilt, Error> {
    let mut tree = HeaderTree::new(options.params.clone(), tree_key(&options.seed));
    for row in 0..archive.now().bounds().headers {
        let bytes = archive.now().raw_header(HeaderLink::new(row))?;
        let header = Header::new(&bytes);
        tree.restore(header, header.hash()).map_err(|error| disagree(error.to_string()))?;
    }
    let reader = blocks.reader();
    link_headers(&mut tree, archive, &reader)?;
    let (mut orphans, mut lost) = (HashMap::new(), BTreeSet::new());
    let (held, mut rows) = (reader.first_held()?, 0);
    let mut steps = Steps::new(lag);
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
            archive_block(archive, &reader, number, tree.height(id))?;
            progress(u64::from(number.get()) + 1, reader.count().into());
            rows += 1;
            if steps.is_due(row.length) || archive.is_crowded() {
                // New rows are in memory until they are saved. The blocks are durable.
                archive.checkpoint(archive.sequence())?;
                let left_out = orphans.values().chain(&lost).copied();
                log.checkpoint(&history.archived.up_to(number, left_out))?;
            }
        }
        tree.mark_stored(id);
    }
    for (hash, reason) in &history.marks {
        if let Some(id) = tree.find(hash) {
            tree.mark_invalid(id, reason);
        }
    }
    Ok(Rebuilt { chain: Chain::new(tree), orphans, lost, rows })
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

fn archive_block(
    archive: &mut Archive<MmapBackend>,
    reader: &BlockReader,
    number: BlockNumber,
    height: Height,
) -> Result<(), Error> {
    let hash = reader.hash(number)?;
    let bytes = reader.raw(number).map_err(Error::of_block(height))?;
    let block = Block::parse(&bytes, archive.now().network().format())
        .map_err(|source| Error::Undecodable { hash, source })?;
    archive.set_block(&BlockAt::new(height, &block), number)?;
    Ok(())
}

/// A key for the tree's table, which lives as long as the process.
fn tree_key(seed: &[u8; 32]) -> [u8; 16] {
    let digest = varve_sha256::digest(seed);
    *digest.first_chunk().expect("a digest has 32 bytes")
}

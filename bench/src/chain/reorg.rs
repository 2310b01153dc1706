//! A reorganisation of six full blocks, in a child.
//!
//! ```text
//!            ┌─ S1 … S6              synced first: the tip
//!  … ─ fork ─┤
//!            └─ W1 … W6 ─ W7         then these arrive, timed
//! ```
//!
//! A simulated chain with branches goes through a pipe, in pieces. The piece with a winning branch
//! of seven blocks is timed, from its first byte to the commit that shows the new tip: blocks are
//! checked, stored and archived, the set is rewound by six blocks and takes seven.

use std::ffi::OsString;
use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use varve_bench::figures::Figures;
use varve_node::source::pipe::{Pipe, WAITING_LIMIT};
use varve_node::{Organizer, Report};
use varve_sim::{Block, Chain, Config, Profile};

use super::node::{NETWORK, open_with, sync_from};

const SEED: u64 = 11;
const DEPTH: u32 = 6;
/// Bytes of blocks that are synced at a time between reorganisations.
const PIECE: usize = 64 << 20;

/// Runs a child, which reports `reorg6`, the slowest in seconds, and `reorgs`: `DATA BLOCKS`, with
/// these indexes.
pub(super) fn run(words: &[OsString], indexes: &str) -> Result<()> {
    let [data, blocks] = words else { bail!("reorg wants DATA BLOCKS") };
    let blocks = blocks.to_str().and_then(|blocks| blocks.parse().ok()).context("no number")?;
    let config = Config { reorg_depth: Some(DEPTH), ..Config::new(Profile::Mainnet, blocks, SEED) };
    let mut node = open_with(Path::new(data), indexes)?;
    let mut times = Vec::new();
    let mut piece = Vec::new();
    let (mut stale, mut winning) = (0, 0);
    // The genesis block is there already.
    for block in Chain::new(&config)?.skip(1) {
        if block.stale {
            stale += 1;
        } else if stale > 0 {
            if winning == 0 {
                take(&mut node, &mut piece)?;
            }
            winning += 1;
        }
        let tip = block.hash;
        push(&block, &mut piece)?;
        if winning > stale && stale > 0 {
            let took = take(&mut node, &mut piece)?;
            ensure!(node.snapshot().tip.1 == tip, "the longer branch did not win");
            times.extend((stale == DEPTH).then_some(took));
            (stale, winning) = (0, 0);
        } else if stale == 0 && piece.len() > PIECE {
            take(&mut node, &mut piece)?;
        }
    }
    let slowest = times.iter().max().context("the chain has no reorganisation of six blocks")?;
    Figures::report("reorg6", slowest.as_secs_f64());
    Figures::report("reorgs", times.len());
    Ok(())
}

/// Adds the record of a block.
fn push(block: &Block, piece: &mut Vec<u8>) -> Result<()> {
    push_bytes(&block.bytes, piece)
}

/// Adds the record of a block with these bytes.
pub(crate) fn push_bytes(block: &[u8], piece: &mut Vec<u8>) -> Result<()> {
    piece.extend_from_slice(&NETWORK.disk_magic());
    piece.extend_from_slice(&u32::try_from(block.len())?.to_le_bytes());
    piece.extend_from_slice(block);
    Ok(())
}

/// Syncs a piece. Returns the time to its last commit.
pub(crate) fn take(node: &mut Organizer, piece: &mut Vec<u8>) -> Result<Duration> {
    let bytes = Cursor::new(std::mem::take(piece));
    let start = Instant::now();
    let mut took = Duration::ZERO;
    let mut source = Pipe::new(bytes, NETWORK, WAITING_LIMIT);
    sync_from(node, &mut source, None, &mut |report| {
        if let Report::Committed { .. } = report {
            took = start.elapsed();
        }
    })?;
    Ok(took)
}

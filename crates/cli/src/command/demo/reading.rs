//! Reads the simulated files back: every transaction is parsed and hashed, every merkle root and
//! link is checked.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use varve::types::Block;
use varve::types::blk::Records;
use varve::{BlockHash, Network};
use varve_sim::stats::{Meter, Stats};

use super::WARM_UP;
use crate::progress::Progress;

/// What reading the chain back has found.
pub(super) struct Reading {
    pub(super) tip: BlockHash,
    pub(super) blocks: u64,
    pub(super) bytes: u64,
    pub(super) transactions: u64,
    /// Time spent on parsing, hashing and merkle roots alone.
    pub(super) parsing: Duration,
    pub(super) stats: Stats,
}

/// Reads the files of a folder.
pub(super) fn read_back(folder: &Path, network: Network, blocks: u64) -> Result<Reading> {
    let mut progress = Progress::start("read back", blocks);
    let mut reading = Reading {
        tip: BlockHash::from_bytes([0; 32]),
        blocks: 0,
        bytes: 0,
        transactions: 0,
        parsing: Duration::ZERO,
        stats: Stats::default(),
    };
    let mut meter = Meter::new(network, WARM_UP);
    for number in 0.. {
        let path = folder.join(format!("blk{number:05}.dat"));
        if !path.exists() {
            break;
        }
        let file = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for record in Records::new(&file, network.disk_magic()) {
            read_block(record.block, network, &mut reading)
                .with_context(|| format!("{}, offset {}", path.display(), record.offset))?;
            meter.add(record.block)?;
            progress.set(reading.blocks, reading.bytes);
        }
    }
    progress.finish(reading.bytes);
    reading.stats = meter.stats().clone();
    Ok(reading)
}

fn read_block(bytes: &[u8], network: Network, reading: &mut Reading) -> Result<()> {
    let started = Instant::now();
    let block = Block::parse(bytes, network.format())?;
    let merkle_root = block.merkle_tree().root;
    reading.parsing += started.elapsed();

    let header = block.header();
    ensure!(merkle_root == header.merkle_root(), "the merkle root is wrong");
    ensure!(header.previous() == reading.tip, "the block does not follow the one before it");
    reading.tip = block.hash();
    reading.blocks += 1;
    reading.bytes += bytes.len() as u64;
    reading.transactions += block.txs().len() as u64;
    Ok(())
}

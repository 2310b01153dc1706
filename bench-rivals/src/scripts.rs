//! Blocks a second with script checks, on one processor and on two.
//!
//! A simulated chain with every input signed goes through the joiner, whose check is Core's own
//! verifier over all scripts of a block. The child is bound to its processors before it starts a
//! thread, and has a worker for each.
//!
//! The work is framed as in [`crate::work`], from the genesis block on.

use std::fs::File;
use std::io::{BufWriter, Read, Write as _};
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Result, anyhow};
use rustix::thread::{CpuSet, sched_setaffinity};
use varve_bench::clock::Clock;
use varve_bench::figures::Figures;
use varve_bench::profile::Profiler;
use varve_consensus::{BlockAt, CoreVerifier, Params, check_scripts};
use varve_sim::{Chain, Config, Profile};
use varve_types::{Block, Height};

use crate::command::RESIDENT;
use crate::side::Side as _;
use crate::stock::NETWORK;
use crate::varve::{Setting, Varve};
use crate::work::Work;

/// Blocks with nothing in them, and those that make coins for the others.
const START: u32 = 104;
/// Transactions a block.
const TRANSACTIONS: u32 = 2_000;
/// Coins made at the start.
const COINS: u32 = 50_000;

/// Writes a chain with `blocks` blocks to check.
pub(crate) fn write(path: &Path, blocks: u32) -> Result<()> {
    let height = START + blocks - 1;
    let config = Config {
        signed_percent: 100,
        transactions: Some(TRANSACTIONS),
        coins: Some(COINS),
        mempool: 0,
        ..Config::new(Profile::Dense, height, 5)
    };
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(&(height + 1).to_le_bytes())?;
    for block in Chain::new(&config)? {
        out.write_all(&u32::try_from(block.bytes.len())?.to_le_bytes())?;
        out.write_all(&block.bytes)?;
    }
    Ok(out.flush()?)
}

/// Reports `blocks_per_second` on `processors` processors; a profile goes to `profile`.
pub(crate) fn run<R: Read>(
    folder: &Path,
    work: &mut Work<R>,
    processors: usize,
    profile: Option<&Path>,
) -> Result<()> {
    bind(processors)?;
    let threads = NonZeroUsize::new(processors).unwrap_or(NonZeroUsize::MIN);
    let mut varve = Varve::open(folder, Setting { threads, ..RESIDENT })?;
    let params = Params::new(NETWORK);
    let count = work.count()?;
    let bytes: Vec<Vec<u8>> = (0..count).map(|_| work.block()).collect::<Result<_>>()?;
    let parsed: Vec<Block<'_>> = bytes
        .iter()
        .map(|bytes| Block::parse(bytes, NETWORK.format()))
        .collect::<Result<_, _>>()?;
    let blocks: Vec<BlockAt<'_>> = (0..)
        .zip(&parsed)
        .map(|(number, block)| BlockAt::new(Height::new(number), block))
        .collect();
    let (start, checked) = blocks.split_at(START as usize);
    varve.join(start, |_, _| Ok(()))?;
    let profiler = profile.map(Profiler::start).transpose()?;
    let mut clock = Clock::new();
    clock.start();
    varve.join(checked, |block, view| {
        // Blocks are checked beside one another, so one thread for each is enough.
        let checked = check_scripts(&params, block, view, &CoreVerifier, NonZeroUsize::MIN);
        checked.map_err(|error| anyhow!("block {}: {error:?}", block.height()))
    })?;
    varve.sync()?;
    clock.stop();
    profiler.map_or(Ok(()), Profiler::stop)?;
    let measured = clock.measured();
    Figures::report("blocks_per_second", f64::from(count - START) / measured.seconds());
    Figures::report("others", measured.others());
    Figures::report("disturbed", u8::from(measured.is_disturbed()));
    Ok(())
}

/// Binds this process to the first `processors` processors.
fn bind(processors: usize) -> Result<()> {
    let mut set = CpuSet::new();
    (0..processors).for_each(|processor| set.set(processor));
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_chain_passes_and_a_changed_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("work");
        write(&path, 1).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        run(&dir.path().join("right"), &mut Work::new(bytes.as_slice()), 1, None).unwrap();
        // The last bytes are a transaction's lock time, which every signature covers.
        let end = bytes.len() - 1;
        bytes[end] ^= 1;
        let wrong = run(&dir.path().join("wrong"), &mut Work::new(bytes.as_slice()), 1, None);
        assert!(wrong.is_err(), "the signatures are of another transaction");
    }
}

//! The work of a race as one file, which the parent pipes into each child.
//!
//! ```text
//! ┌──────────┬────────────────┬────────────┬─────┬───────┬─────┬────────────┬───────────┐
//! │ length 8 │ Core's snapshot│ blocks 4   │ len 4 block │  …  │ probes 4   │ outpoints │
//! └──────────┴────────────────┴────────────┴─────┴───────┴─────┴────────────┴───────────┘
//! ```
//!
//! The bytes come by a pipe, so that the file's pages are charged to the parent, not to the child
//! and its memory limit. The parent blocks on the pipe while the child works.
//!
//! The probes are coins of the stock that no block spends.

use std::fs::File;
use std::io::{BufWriter, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use varve_types::Outpoint;

use crate::block_maker::BlockMaker;
use crate::stock::Stock;

/// An upper bound of our blocks' length.
const BLOCK_MAX: u32 = 16 << 20;

/// How large a race is. Everything else follows from these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Coins there are before the first block.
    pub(crate) coins: u64,
    /// Blocks before the clock starts, so that there are young coins.
    pub(crate) warm_up: u32,
    /// Blocks by the clock.
    pub(crate) timed: u32,
    /// Outpoints to look up afterwards.
    pub(crate) probes: u32,
}

impl Plan {
    /// Blocks altogether.
    pub(crate) const fn blocks(&self) -> u32 {
        self.warm_up + self.timed
    }

    /// Writes the work; returns the bytes of the snapshot and of all blocks.
    pub(crate) fn write(&self, path: &Path, seed: u64) -> Result<(u64, u64)> {
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        let stock = Stock::new(self.coins, seed);
        out.write_all(&[0; 8])?;
        stock.write(&mut out)?;
        let snapshot = out.stream_position()? - 8;
        let mut maker = BlockMaker::new(stock, seed);
        let mut bytes = 0;
        out.write_all(&self.blocks().to_le_bytes())?;
        for _ in 0..self.blocks() {
            let block = maker.next_block();
            out.write_all(&u32::try_from(block.len())?.to_le_bytes())?;
            out.write_all(&block)?;
            bytes += block.len() as u64;
        }
        let mut stock = maker.into_stock();
        out.write_all(&self.probes.to_le_bytes())?;
        for _ in 0..self.probes {
            let probe = stock.take().context("the stock is too small for the blocks")?;
            out.write_all(&probe.to_bytes())?;
        }
        let mut file = out.into_inner().map_err(|error| error.into_error())?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&snapshot.to_le_bytes())?;
        file.sync_all()?;
        Ok((snapshot, bytes))
    }
}

/// Reads the work, in the order in which it was written.
#[derive(Debug)]
pub(crate) struct Work<R> {
    input: R,
}

impl<R: Read> Work<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input }
    }

    /// The snapshot, to be read to its end before anything else.
    pub(crate) fn snapshot(&mut self) -> Result<std::io::Take<&mut R>> {
        let len = u64::from_le_bytes(self.array()?);
        Ok((&mut self.input).take(len))
    }

    /// Skips the snapshot.
    pub(crate) fn skip_snapshot(&mut self) -> Result<()> {
        std::io::copy(&mut self.snapshot()?, &mut std::io::sink())?;
        Ok(())
    }

    /// A number: of the blocks or of the probes that follow.
    pub(crate) fn count(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// The next block.
    pub(crate) fn block(&mut self) -> Result<Vec<u8>> {
        let len = self.count()?;
        ensure!(len <= BLOCK_MAX, "a block of {len} bytes in the work");
        let mut block = vec![0; len as usize];
        self.input.read_exact(&mut block)?;
        Ok(block)
    }

    /// All probes.
    pub(crate) fn probes(&mut self) -> Result<Vec<Outpoint>> {
        let count = self.count()?;
        (0..count).map(|_| Ok(Outpoint::from_bytes(&self.array()?))).collect()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).context("the work ends too early")?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_read_as_it_was_written() {
        let plan = Plan { coins: 30_000, warm_up: 1, timed: 2, probes: 10 };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("work");
        let (snapshot, blocks) = plan.write(&path, 3).unwrap();
        let mut work = Work::new(File::open(&path).unwrap());
        let mut bytes = Vec::new();
        work.snapshot().unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, snapshot);
        assert!(bytes.starts_with(b"utxo\xff"));
        assert_eq!(work.count().unwrap(), 3);
        let read: u64 = (0..3).map(|_| work.block().unwrap().len() as u64).sum();
        assert_eq!(read, blocks);
        assert_eq!(work.probes().unwrap().len(), 10);
        assert!(work.count().is_err(), "and then it ends");
        let mut again = Work::new(File::open(&path).unwrap());
        again.skip_snapshot().unwrap();
        assert_eq!(again.count().unwrap(), 3);
    }
}

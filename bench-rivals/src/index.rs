//! `cargo xtask bench index`: the order of the runs.
//!
//! 1. Two search tables, `tx` and `spend`, are filled block by block at the full size, in a child
//!    with 2 GiB. A second child opens what is left and looks txids up from the disk.
//! 2. The sides race over fewer rows, each in a child with 2 GiB: ours, then one setting of
//!    RocksDB, both twice, then fjall. All must give the same answers, or the benchmark fails. Ours
//!    races twice and the faster time counts.
//! 3. Ours is filled with 5 million transactions, once so that they stay in memory as rows and once
//!    so that they go to runs, and txids are looked up, all from memory.
//! 4. Everything is printed; a missed bar of speed with a profile.
//!
//! A race that others disturbed is marked and run again, once, if it is short.

mod bars;
pub(crate) mod command;
mod fjall;
mod lookups;
mod race;
mod rocksdb;
mod rows;
mod side;
mod table;
#[cfg(test)]
mod tests;
mod varve;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use varve_bench::profile;

use crate::child::{Outcome, Task};
use bars::Results;
use rows::TXS;
use table::{is_disturbed, seconds};

/// The part a function belongs to, by words in its name; the first match wins.
const PARTS: [profile::Part; 8] = [
    ("making rows", &["index::rows", "random", "siphash", "Sip13", "prepare"]),
    ("sorting", &["sort", "radix"]),
    ("merging", &["merge", "cursor", "Cursor"]),
    ("leaves", &["leaf", "bits", "rice"]),
    ("pages, directory, filters", &["pages", "directory", "filter", "fuse", "run_writer", "crc32"]),
    ("young rows", &["young", "append", "batch"]),
    ("memory", &["alloc", "free", "memmove", "memcpy", "memset", "clear_page", "fault", "drop"]),
    ("disk and waiting", &["io_uring", "ext4", "blk", "sync", "write", "futex", "sched", "iomap"]),
];
/// The memory of every side, page cache included.
const MEMORY: u64 = 2 << 30;

/// How large everything is, in blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The large tables.
    built: u32,
    /// The race.
    race: u32,
    /// The tables from which txids are looked up in memory.
    warm: u32,
    /// Races of up to this many seconds are repeated when they were disturbed.
    again_max: f64,
}

impl Size {
    /// About three minutes: 200 million rows, and 20 million in the race.
    pub(crate) const SHORT: Self =
        Self { built: 24_000, race: 2_400, warm: 5_000_000 / TXS, again_max: 5.0 };
    /// 405.6 million transactions and 1,001.8 million spends; 100 million rows in the race.
    pub(crate) const FULL: Self =
        Self { built: 169_000, race: 12_010, warm: 5_000_000 / TXS, again_max: 30.0 };
    /// A smoke test.
    pub(crate) const TINY: Self = Self { built: 9_600, race: 300, warm: 600, again_max: 0.0 };
}

/// Runs the benchmark.
pub(crate) fn run(size: &Size) -> Result<()> {
    let exe = std::env::current_exe()?;
    let target = exe.parent().and_then(Path::parent).context("the program has no folder")?;
    let scratch = tempfile::Builder::new().prefix("bench-index-").tempdir_in(target)?;
    let stage = Stage { folder: scratch.path().to_owned(), size: *size };
    std::fs::write(stage.no_input(), [])?;
    let results = stage.measure()?;
    let bars = bars::of(&results)?;
    if bars.iter().any(|bar| bar.speed && !bar.ratio.is_met())
        && let Err(error) = stage.print_profile()
    {
        println!("no profile: {error:#}");
    }
    bars.iter().for_each(|bar| bar.ratio.print());
    Ok(())
}

/// Where the files are, and how large everything is.
#[derive(Debug)]
struct Stage {
    folder: PathBuf,
    size: Size,
}

impl Stage {
    fn measure(&self) -> Result<Results> {
        let Size { built, race, warm, .. } = self.size;
        table::print_head();
        let (built, cold) = self.race_and("varve", built, Some("index-cold"))?;
        let first = self.race("varve", race)?;
        let level = self.race("rocksdb", race)?;
        let second = self.race("varve", race)?;
        let universal = self.race("rocksdb-univ", race)?;
        let fjall = self.race("fjall", race)?;
        let ours = first.figures.text("answers")?;
        for (side, rival) in [("rocksdb", &level), ("rocksdb-univ", &universal), ("fjall", &fjall)]
        {
            let theirs = rival.figures.text("answers")?;
            ensure!(theirs == ours, "`{side}` answers {theirs}, we answer {ours}");
        }
        let varve = if seconds(&second)? < seconds(&first)? { second } else { first };
        let (_, young) = self.race_and("varve", warm, Some("index-warm"))?;
        let (_, runs) = self.race_and("varve-early", warm, Some("index-warm"))?;
        let cold = cold.context("looked up")?;
        let warm = [young.context("looked up")?, runs.context("looked up")?];
        Ok(Results { built, cold, varve, rocksdb: [level, universal], fjall, warm })
    }

    fn no_input(&self) -> PathBuf {
        self.folder.join("nothing")
    }

    fn side(&self) -> PathBuf {
        self.folder.join("side")
    }

    fn race(&self, side: &str, blocks: u32) -> Result<Outcome> {
        Ok(self.race_and(side, blocks, None)?.0)
    }

    /// Runs a race, a second time when the first was disturbed, and then `and` on the files that it
    /// left.
    fn race_and(
        &self,
        side: &str,
        blocks: u32,
        then: Option<&str>,
    ) -> Result<(Outcome, Option<Outcome>)> {
        let mut raced = self.race_once(side, blocks, then)?;
        let (first, _) = &raced;
        if is_disturbed(first)? && seconds(first)? < self.size.again_max {
            let again = self.race_once(side, blocks, then)?;
            if others(&again.0)? < others(first)? {
                raced = again;
            }
        }
        Ok(raced)
    }

    fn race_once(
        &self,
        side: &str,
        blocks: u32,
        then: Option<&str>,
    ) -> Result<(Outcome, Option<Outcome>)> {
        let raced = self.task("index-race", words(&[&blocks.to_string(), side]))?;
        table::print(side, &raced)?;
        let more = then.map(|then| self.task(then, words(&[&blocks.to_string()]))).transpose();
        std::fs::remove_dir_all(self.side())?;
        Ok((raced, more?))
    }

    fn task(&self, side: &str, more: Vec<OsString>) -> Result<Outcome> {
        let (folder, input) = (self.side(), self.no_input());
        let memory = Some(MEMORY);
        Task { side, folder: &folder, memory, more, input: &input, kill_at: None }.run()
    }

    fn print_profile(&self) -> Result<()> {
        let file = self.folder.join("perf.data");
        let mut more = words(&[&self.size.race.to_string(), "varve"]);
        more.push(file.clone().into());
        let raced = self.task("index-race", more);
        std::fs::remove_dir_all(self.side())?;
        raced?;
        println!("\nwhere the time of `varve` goes:");
        profile::print(&file, &PARTS)
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn others(outcome: &Outcome) -> Result<f64> {
    outcome.figures.number("others")
}

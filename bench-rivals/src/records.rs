//! `cargo xtask bench records`: the order of the runs, and the bars.
//!
//! 1. The work is written once: a stock of records, then batches of transactions that each spend
//!    one output and create a record of two.
//! 2. The sides race, each in a child with much less memory than its records take. Each is killed
//!    after its last batch, opened again and read in full: all must have the same records, or the
//!    benchmark fails.
//! 3. Ours spends in records of 2 and of 20,000 outputs.
//! 4. Ours races with ten times as many records in little more memory, all of them in blocks, and
//!    is opened after a kill: neither may be much slower for it.
//! 5. Everything is printed; a missed bar of speed with a profile.
//!
//! A race that others disturbed is marked and run again, once, if it is short.

pub(crate) mod command;
mod digest;
mod embedded;
mod fjall;
mod flat;
mod plain;
mod race;
mod rocksdb;
mod side;
mod sqlite;
mod step;
#[cfg(test)]
mod tests;
mod transaction;
mod work;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::child::{Outcome, Task};
use race::KILL;
use varve_bench::profile;
use varve_bench::ratio::Ratio;
use work::Plan;

/// The part a function belongs to, by words in its name; the first match wins.
const PARTS: [profile::Part; 7] = [
    ("checksums", &["crc32c"]),
    ("lookup", &["locate", "candidates", "warm", "index", "key::", "siphash", "hasher"]),
    ("encode", &["flush", "group", "encode", "varint::write"]),
    ("decode", &["decode", "Reader", "read_count", "varint::read"]),
    ("rules", &["rules", "working", "overlay", "hashbrown"]),
    ("memory", &["alloc", "free", "memmove", "memcpy", "memset", "clear_page", "fault", "drop"]),
    ("disk and waiting", &["io_uring", "ext4", "blk", "sync", "write", "futex", "sched", "iomap"]),
];
const MIB: u64 = 1 << 20;
/// For reading all records, which is not timed.
const ROOMY: u64 = 8 << 30;
/// The memory of the children that spend in records of few and many outputs.
const FLAT: u64 = 256 * MIB;
/// A large record, and a small one.
const FLAT_OUTPUTS: [u32; 2] = [20_000, 2];

/// How large everything is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The race, and the memory of each side.
    plan: Plan,
    memory: u64,
    /// A race of ours with many more records, and its memory. It is opened after a kill.
    large: Option<(Plan, u64)>,
    /// Races of up to this many seconds are repeated when they were disturbed.
    again_max: f64,
}

impl Size {
    /// Less than three minutes.
    pub(crate) const SHORT: Self = Self {
        plan: Plan { stock: 1_000_000, warm_up: 20, timed: 100 },
        memory: 192 * MIB,
        large: None,
        again_max: 4.0,
    };
    /// Less than forty minutes.
    pub(crate) const FULL: Self = Self {
        plan: Plan { stock: 3_000_000, warm_up: 40, timed: 300 },
        memory: 384 * MIB,
        large: Some((Plan { stock: 30_000_000, warm_up: 40, timed: 300 }, 512 * MIB)),
        again_max: 10.0,
    };
    /// A smoke test.
    pub(crate) const TINY: Self = Self {
        plan: Plan { stock: 100_000, warm_up: 4, timed: 20 },
        memory: 192 * MIB,
        large: None,
        again_max: 0.0,
    };
}

/// Runs the benchmark.
pub(crate) fn run(size: &Size) -> Result<()> {
    let exe = std::env::current_exe()?;
    let target = exe.parent().and_then(Path::parent).context("the program has no folder")?;
    let scratch = tempfile::Builder::new().prefix("bench-records-").tempdir_in(target)?;
    let stage = Stage { folder: scratch.path().to_owned(), size: *size };
    let bars = stage.measure()?;
    if bars.iter().any(|bar| bar.speed && !bar.ratio.is_met())
        && let Err(error) = stage.print_profile()
    {
        println!("no profile: {error:#}");
    }
    bars.iter().for_each(|bar| bar.ratio.print());
    Ok(())
}

/// A bar, and whether a profile of the race shows what limits it.
#[derive(Debug)]
struct Bar {
    ratio: Ratio,
    speed: bool,
}

/// The result of a side.
#[derive(Debug)]
struct Raced {
    race: Outcome,
    opened: Outcome,
}

/// Where the files are, and how large everything is.
#[derive(Debug)]
struct Stage {
    folder: PathBuf,
    size: Size,
}

impl Stage {
    fn measure(&self) -> Result<Vec<Bar>> {
        let Plan { stock, warm_up, timed } = self.size.plan;
        println!("{stock} records, then {timed} batches by the clock ({warm_up} before it)");
        self.size.plan.write(&self.work())?;
        print_head();
        let ours = self.raced("varve")?;
        let mut bars = Vec::new();
        let rivals = [
            ("rocksdb", "records.rocksdb", 1.5),
            ("fjall", "records.fjall", 1.0),
            ("sqlite", "records.sqlite", 5.0),
        ];
        for (side, name, goal) in rivals {
            let rival = self.raced(side)?;
            let (digest, own) = (rival.opened.figures.text("digest")?, ours.digest()?);
            ensure!(digest == own, "`{side}` has the records {digest}, we have {own}");
            let ratio = seconds(&rival.race)? / seconds(&ours.race)?;
            bars.push(Bar { ratio: Ratio::at_least(name, ratio, goal), speed: true });
        }
        bars.push(Bar { ratio: self.flat()?, speed: false });
        let reopen = match self.size.large {
            None => number(&ours.opened, "reopen")?,
            Some((plan, memory)) => {
                let (ratio, reopen) = self.large(&plan, memory)?;
                bars.push(Bar { ratio, speed: false });
                reopen
            }
        };
        bars.push(Bar { ratio: Ratio::at_most("records.recover", reopen, 5.0), speed: false });
        Ok(bars)
    }

    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Runs a race, a second time when the first was disturbed, and prints it.
    fn raced(&self, side: &str) -> Result<Raced> {
        let raced = self.raced_once(side)?;
        let disturbed = number(&raced.race, "disturbed")? != 0.0;
        if !disturbed || seconds(&raced.race)? > self.size.again_max {
            return Ok(raced);
        }
        let again = self.raced_once(side)?;
        let better = number(&again.race, "others")? < number(&raced.race, "others")?;
        Ok(if better { again } else { raced })
    }

    fn raced_once(&self, side: &str) -> Result<Raced> {
        let Size { plan, memory, .. } = self.size;
        let race = self.race(side, &plan, memory, None)?;
        let opened = self.open(side, memory, ROOMY, true);
        std::fs::remove_dir_all(self.side())?;
        let raced = Raced { race, opened: opened? };
        raced.print(side)?;
        Ok(raced)
    }

    fn side(&self) -> PathBuf {
        self.folder.join("side")
    }

    /// Races and kills.
    fn race(
        &self,
        side: &str,
        plan: &Plan,
        memory: u64,
        profile: Option<&Path>,
    ) -> Result<Outcome> {
        let mut more = words(&[&memory.to_string(), side, &plan.warm_up.to_string()]);
        more.extend(profile.map(Into::into));
        self.task("records-race", memory, more, Some(KILL))
    }

    /// Opens what a race left, with caches for `memory` bytes in a child limited to `limit`.
    fn open(&self, side: &str, memory: u64, limit: u64, digest: bool) -> Result<Outcome> {
        let mut more = words(&[&memory.to_string(), side]);
        more.extend(digest.then(|| "digest".into()));
        self.task("records-open", limit, more, None)
    }

    fn task(
        &self,
        side: &str,
        memory: u64,
        more: Vec<OsString>,
        kill_at: Option<&str>,
    ) -> Result<Outcome> {
        let (folder, input) = (self.side(), self.work());
        let memory = Some(memory);
        Task { side, folder: &folder, memory, more, input: &input, kill_at }.run()
    }

    /// The time of a spend in a large record over that in a small one.
    fn flat(&self) -> Result<Ratio> {
        let mut times = Vec::new();
        for outputs in FLAT_OUTPUTS {
            let more = words(&[&FLAT.to_string(), &outputs.to_string()]);
            let outcome = self.task("records-flat", FLAT, more, None);
            std::fs::remove_dir_all(self.side())?;
            let outcome = outcome?;
            let spend = seconds(&outcome)? / number(&outcome, "units")? * 1e6;
            let written = number(&outcome, "written")? / number(&outcome, "units")?;
            println!("a spend in a record of {outputs} outputs: {spend:.2} µs, {written:.0} bytes");
            times.push(spend);
        }
        let [large, small] = times.as_slice() else { anyhow::bail!("two sizes of records") };
        Ok(Ratio::at_most("records.flat", large / small, 2.0))
    }

    /// Units a second of a large store over those of the usual one, both of mined records, and the
    /// seconds to open the large one after a kill.
    fn large(&self, plan: &Plan, memory: u64) -> Result<(Ratio, f64)> {
        let usual = self.mined(&self.size.plan, self.size.memory)?;
        plan.write(&self.work())?;
        let large = self.mined(plan, memory)?;
        let ratio = seconds(&usual.race)? / number(&usual.race, "units")?
            * (number(&large.race, "units")? / seconds(&large.race)?);
        let reopen = number(&large.opened, "reopen")?;
        Ok((Ratio::at_least("records.small_memory", ratio, 0.7), reopen))
    }

    /// A race of ours with a stock of mined records, by the work that is written. It is opened in
    /// the memory of the race.
    fn mined(&self, plan: &Plan, memory: u64) -> Result<Raced> {
        let race = self.race("mined", plan, memory, None)?;
        let opened = self.open("varve", memory, memory, false);
        std::fs::remove_dir_all(self.side())?;
        let raced = Raced { race, opened: opened? };
        raced.print("mined")?;
        let keys = number(&raced.opened, "keys")?;
        println!("opened {keys} records after a kill");
        ensure!(keys == plan.records() as f64, "there should be {} records", plan.records());
        Ok(raced)
    }

    fn print_profile(&self) -> Result<()> {
        let Size { plan, memory, .. } = self.size;
        plan.write(&self.work())?;
        let file = self.folder.join("perf.data");
        self.race("varve", &plan, memory, Some(&file))?;
        std::fs::remove_dir_all(self.side())?;
        println!("\nwhere the time of `varve` goes:");
        profile::print(&file, &PARTS)
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn number(outcome: &Outcome, name: &str) -> Result<f64> {
    outcome.figures.number(name)
}

fn seconds(outcome: &Outcome) -> Result<f64> {
    number(outcome, "seconds")
}

fn print_head() {
    println!(
        "{:8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>9} {:>9} {:>8} {:>9}",
        "side",
        "units/s",
        "p50 ms",
        "p99 ms",
        "cpu s",
        "later s",
        "others",
        "written/u",
        "read/u",
        "reopen s",
        "memory"
    );
}

impl Raced {
    fn digest(&self) -> Result<&str> {
        self.opened.figures.text("digest")
    }

    fn print(&self, side: &str) -> Result<()> {
        let race = |name| number(&self.race, name);
        let memory = match (self.race.limited, self.race.peak) {
            (false, _) => "unlimited".to_owned(),
            (true, Some(peak)) => format!("{} MiB", peak >> 20),
            (true, None) => "limited".to_owned(),
        };
        let units = race("units")?;
        println!(
            "{side:8} {:8.0} {:8.1} {:8.1} {:8.2} {:8.2} {:6.0}% {:9.0} {:9.0} {:8.2} \
             {memory:>9}{}",
            units / race("seconds")?,
            race("p50")?,
            race("p99")?,
            race("cpu")?,
            race("background")?,
            race("others")? * 100.0,
            race("written")? / units,
            race("read")? / units,
            number(&self.opened, "reopen")?,
            if race("disturbed")? != 0.0 { "  disturbed" } else { "" },
        );
        Ok(())
    }
}

//! The tasks of children.

use std::ffi::OsString;
use std::io::{BufReader, Read};
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use varve_testdata::cgroup;

use crate::race::{self, Race};
use crate::rival::coin_cache::CoinCache;
use crate::rival::fjall::Fjall;
use crate::rival::lmdb::Lmdb;
use crate::rival::map::Map;
use crate::rival::rocksdb::{Memory, RocksDb};
use crate::varve::{Setting, Varve};
use crate::work::Work;
use crate::{hostile, index, lookups, records, recovery, scripts, size};

const MIB: usize = 1 << 20;
/// Ours, with 4 GiB.
pub(crate) const RESIDENT: Setting =
    Setting { threads: NonZeroUsize::new(2).expect("two"), memory: 1536 * MIB, cold: false };
/// Ours, with 512 MiB.
pub(crate) const COLD: Setting =
    Setting { threads: NonZeroUsize::new(2).expect("two"), memory: 128 * MIB, cold: true };
const ROCKSDB: Memory = Memory { block_cache: 2048 * MIB, memtable: 128 * MIB };
const ROCKSDB_COLD: Memory = Memory { block_cache: 64 * MIB, memtable: 16 * MIB };
const COIN_CACHE_COLD: usize = 112 * MIB;

/// Runs a child: `SIDE FOLDER GROUP|unlimited [MORE…]`.
pub(crate) fn run(words: &[OsString]) -> Result<()> {
    let [side, folder, group, more @ ..] = words else {
        bail!("a child wants SIDE FOLDER GROUP");
    };
    if group != "unlimited" {
        cgroup::enter(Path::new(group))?;
    }
    let folder = Path::new(folder);
    if let Some(what) = side.to_str().filter(|side| side.starts_with("records-")) {
        return records::command::run(what, folder, more);
    }
    if let Some(what) = side.to_str().filter(|side| side.starts_with("index-")) {
        return index::command::run(what, folder, more);
    }
    let number = more.first().and_then(|word| word.to_str()?.parse::<u32>().ok());
    let number = number.context("a number is missing on the child's command line")?;
    let race = Race { warm_up: number, profile: more.get(1).map(Path::new) };
    let mut work = Work::new(BufReader::with_capacity(MIB, std::io::stdin()));
    match side.to_str().unwrap_or_default() {
        "map" => race::run(&mut Map::default(), &mut work, race),
        "rocksdb" => race::run(&mut RocksDb::open(folder, ROCKSDB)?, &mut work, race),
        "rocksdb-cold" => {
            let below = RocksDb::open(folder, ROCKSDB_COLD)?;
            race::run(&mut CoinCache::new(below, COIN_CACHE_COLD), &mut work, race)
        }
        "lmdb" => race::run(&mut Lmdb::open(folder)?, &mut work, race),
        "fjall" => race::run(&mut Fjall::open(folder, 2048 << 20)?, &mut work, race),
        "varve" => race::run(&mut Varve::open(folder, RESIDENT)?, &mut work, race),
        "varve-more" => varve_and_more(folder, &mut work, race),
        "varve-cold" => {
            let mut varve = Varve::open(folder, COLD)?;
            race::run(&mut varve, &mut work, race)?;
            lookups::cold(varve.set(), &work.probes()?)
        }
        "varve-killed" => recovery::be_killed(folder, RESIDENT, &mut work, number),
        "varve-recover" => recovery::recover(folder, RESIDENT, &mut work, number),
        "scripts" => scripts::run(folder, &mut work, number as usize, race.profile),
        "hostile" => hostile::run(folder, number),
        other => bail!("there is no side `{other}`"),
    }
}

/// The race, and measurements on the set that it leaves.
fn varve_and_more<R: Read>(folder: &Path, work: &mut Work<R>, race: Race<'_>) -> Result<()> {
    let mut varve = Varve::open(folder, RESIDENT)?;
    race::run(&mut varve, work, race)?;
    let probes = work.probes()?;
    size::report(varve.set(), &folder.join("merged"))?;
    lookups::warm(varve.set(), &probes)?;
    let mut varve = recovery::reopen(varve)?;
    recovery::rewind(&mut varve)
}

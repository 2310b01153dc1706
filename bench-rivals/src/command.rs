//! What a child can be told to do.

use std::ffi::OsString;
use std::io::{BufReader, Stdin};
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::rival::coin_cache::CoinCache;
use crate::rival::fjall::Fjall;
use crate::rival::lmdb::Lmdb;
use crate::rival::map::Map;
use crate::rival::rocksdb::{Memory, RocksDb};
use crate::varve::{Setting, Varve};
use crate::work::Work;
use crate::{cgroup, race};

const MIB: usize = 1 << 20;
/// Ours, with 4 GiB.
pub(crate) const RESIDENT: Setting =
    Setting { threads: NonZeroUsize::new(2).expect("two"), window: 1024 * MIB, cold: false };
/// Ours, with 512 MiB.
pub(crate) const COLD: Setting =
    Setting { threads: NonZeroUsize::new(2).expect("two"), window: 160 * MIB, cold: true };
const ROCKSDB: Memory = Memory { block_cache: 2048 * MIB, memtable: 128 * MIB };
const ROCKSDB_COLD: Memory = Memory { block_cache: 64 * MIB, memtable: 32 * MIB };
const COIN_CACHE_COLD: usize = 204 * MIB;

/// The work, by our standard input.
pub(crate) type Input = Work<BufReader<Stdin>>;

/// Runs a child: `SIDE FOLDER GROUP|unlimited [MORE…]`.
pub(crate) fn run(words: &[OsString]) -> Result<()> {
    let [side, folder, group, more @ ..] = words else {
        bail!("a child wants SIDE FOLDER GROUP");
    };
    if group != "unlimited" {
        cgroup::enter(Path::new(group))?;
    }
    let folder = Path::new(folder);
    let number = more.first().and_then(|word| word.to_str()?.parse().ok());
    let number = || number.context("a number is missing on the child's command line");
    let mut work = Work::new(BufReader::with_capacity(MIB, std::io::stdin()));
    match side.to_str().unwrap_or_default() {
        "map" => race::run(&mut Map::default(), &mut work, number()?),
        "rocksdb" => race::run(&mut RocksDb::open(folder, ROCKSDB)?, &mut work, number()?),
        "rocksdb-cold" => {
            let below = RocksDb::open(folder, ROCKSDB_COLD)?;
            race::run(&mut CoinCache::new(below, COIN_CACHE_COLD), &mut work, number()?)
        }
        "lmdb" => race::run(&mut Lmdb::open(folder)?, &mut work, number()?),
        "fjall" => race::run(&mut Fjall::open(folder, 2048 << 20)?, &mut work, number()?),
        "varve" => race::run(&mut Varve::open(folder, RESIDENT)?, &mut work, number()?),
        "varve-cold" => race::run(&mut Varve::open(folder, COLD)?, &mut work, number()?),
        other => bail!("there is no side `{other}`"),
    }
}

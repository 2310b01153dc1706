//! The tasks of this benchmark's children.
//!
//! ```text
//! records-race FOLDER GROUP MEMORY SIDE WARM-UP [PROFILE]     races and is killed; the side
//!                                                             `mined` is ours, stock in a block
//! records-open FOLDER GROUP MEMORY SIDE [digest]              opens what was left
//! records-flat FOLDER GROUP MEMORY OUTPUTS                    spends in records of OUTPUTS outputs
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use super::embedded;
use super::fjall::Fjall;
use super::race::Race;
use super::rocksdb::RocksDb;
use super::side::{Memory, Side};
use super::sqlite::Sqlite;
use super::work::{Preparer, StockState, Work};
use super::{flat, race};
use varve_bench::figures::Figures;

/// Runs a child.
pub(crate) fn run(what: &str, folder: &Path, words: &[OsString]) -> Result<()> {
    let text = |place: usize| words.get(place).and_then(|word| word.to_str());
    let memory = text(0).and_then(|word| word.parse().ok()).context("the memory is missing")?;
    let memory = Memory(memory);
    match what {
        "records-race" => {
            let warm_up = text(2).and_then(|word| word.parse().ok()).context("no warm-up")?;
            let side = text(1).unwrap_or_default();
            let state = if side == "mined" { StockState::Mined } else { StockState::Unmined };
            let profile = words.get(3).map(Path::new);
            let race = Race { preparer: Preparer::new(state), warm_up, profile };
            let mut work = Work::new(BufReader::with_capacity(1 << 20, std::io::stdin()));
            match side {
                "varve" | "mined" => {
                    race::run(&mut embedded::open(folder, memory)?, &mut work, race)
                }
                "rocksdb" => race::run(&mut RocksDb::open(folder, memory)?, &mut work, race),
                "fjall" => race::run(&mut Fjall::open(folder, memory)?, &mut work, race),
                "sqlite" => race::run(&mut Sqlite::open(folder, memory)?, &mut work, race),
                other => bail!("there is no side `{other}`"),
            }
        }
        "records-open" => {
            let digest = text(2) == Some("digest");
            let begun = Instant::now();
            match text(1).unwrap_or_default() {
                "varve" => {
                    let side = embedded::open(folder, memory)?;
                    Figures::report("keys", side.keys()?);
                    opened(&side, folder, begun, digest)
                }
                "rocksdb" => opened(&RocksDb::open(folder, memory)?, folder, begun, digest),
                "fjall" => opened(&Fjall::open(folder, memory)?, folder, begun, digest),
                "sqlite" => opened(&Sqlite::open(folder, memory)?, folder, begun, digest),
                other => bail!("there is no side `{other}`"),
            }
        }
        "records-flat" => {
            let outputs = text(1).and_then(|word| word.parse().ok()).context("no outputs")?;
            flat::run(folder, memory, outputs)
        }
        other => bail!("there is no work `{other}`"),
    }
}

/// Reports how long opening took and, if requested, the digest of the content.
fn opened<S: Side>(side: &S, folder: &Path, begun: Instant, digest: bool) -> Result<()> {
    Figures::report("reopen", begun.elapsed().as_secs_f64());
    if digest {
        // Read the files first, so that walking by key does not seek on the disk.
        read_all(folder)?;
        Figures::report("digest", side.digest()?);
    }
    Ok(())
}

fn read_all(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path)?;
        } else if let Ok(mut file) = File::open(&path) {
            // A file that is gone was merged into others in the background.
            std::io::copy(&mut file, &mut std::io::sink())?;
        }
    }
    Ok(())
}

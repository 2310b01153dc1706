//! The tasks of this benchmark's children.
//!
//! ```text
//! index-race FOLDER GROUP BLOCKS SIDE [PROFILE]     appends the blocks, ends durable, answers
//! index-cold FOLDER GROUP BLOCKS                    looks up in what `varve` left, from the disk
//! index-warm FOLDER GROUP BLOCKS                    the same, from memory
//! ```

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::fjall::Fjall;
use super::rocksdb::{RocksDb, Style};
use super::varve::{Varve, flushed_early, options};
use super::{lookups, race};

/// Rows per flush of the side `varve-early`.
const EARLY: usize = 1 << 19;

/// Runs a child.
pub(crate) fn run(what: &str, folder: &Path, words: &[OsString]) -> Result<()> {
    let text = |place: usize| words.get(place).and_then(|word| word.to_str());
    let blocks = text(0).and_then(|word| word.parse().ok()).context("no number of blocks")?;
    let profile = words.get(2).map(Path::new);
    match (what, text(1).unwrap_or_default()) {
        ("index-race", side @ ("varve" | "varve-early")) => {
            let early = side == "varve-early";
            let options = if early { flushed_early(EARLY) } else { options() };
            let mut varve = Varve::open(folder, options)?;
            race::run(&mut varve, folder, blocks, profile)?;
            varve.report(folder)
        }
        ("index-race", "rocksdb") => {
            race::run(&mut RocksDb::open(folder, Style::Level)?, folder, blocks, profile)
        }
        ("index-race", "rocksdb-univ") => {
            race::run(&mut RocksDb::open(folder, Style::Universal)?, folder, blocks, profile)
        }
        ("index-race", "fjall") => {
            let mut fjall = Fjall::open(folder)?;
            race::run(&mut fjall, &Fjall::tables(folder), blocks, profile)
        }
        ("index-cold", _) => lookups::cold(folder, blocks),
        ("index-warm", _) => lookups::warm(folder, blocks),
        (what, side) => bail!("there is no work `{what} {side}`"),
    }
}

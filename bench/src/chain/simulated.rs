//! The chain that is synced: simulated once, and kept below the target folder.
//!
//! ```text
//! TARGET/bench-chain/
//!   mainnet-BLOCKS-SEED-SIGNED/    a folder for each description
//!     blocks/blk*.dat
//!     expected.json                the answers of the simulator's model
//! ```
//!
//! A folder is filled under another name and renamed when it is whole, so an interrupted run leaves
//! nothing that is used. Remove the folder after a change to the simulator.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;
use varve_sim::{Config, Profile, write_chain};

const SEED: u64 = 7;

/// A chain on disk, and the expected results.
#[derive(Debug)]
pub(crate) struct Simulated {
    /// The folder with `blocks/`.
    pub(crate) folder: PathBuf,
    /// The height of its tip.
    pub(crate) height: u32,
    /// The hash of its tip.
    pub(crate) tip: String,
    /// The hash of the unspent outputs.
    pub(crate) muhash: String,
    /// The bytes of its block files.
    pub(crate) bytes: u64,
}

impl Simulated {
    /// The chain with this many blocks above genesis and signed inputs in a hundred, from the
    /// folder, or simulated now.
    pub(crate) fn provide(target: &Path, blocks: u32, signed_percent: u32) -> Result<Self> {
        let config = Config { signed_percent, ..Config::new(Profile::Mainnet, blocks, SEED) };
        let name = format!("mainnet-{blocks}-{SEED}-{signed_percent}");
        let folder = target.join("bench-chain").join(name);
        if !folder.exists() {
            println!("simulating {blocks} blocks; they stay in {}", folder.display());
            let making = folder.with_extension("making");
            if making.exists() {
                fs::remove_dir_all(&making)?;
            }
            write_chain(&config, &making, |_| ())?;
            fs::rename(&making, &folder)?;
        }
        Self::read(folder)
    }

    fn read(folder: PathBuf) -> Result<Self> {
        let expected: Value = serde_json::from_slice(&fs::read(folder.join("expected.json"))?)?;
        let text = |name: &str| -> Result<String> {
            let text = expected.get(name).and_then(Value::as_str);
            Ok(text.with_context(|| format!("expected.json has no `{name}`"))?.to_owned())
        };
        let height = expected.get("height").and_then(Value::as_u64);
        let height = u32::try_from(height.context("expected.json has no `height`")?)?;
        let (tip, muhash) = (text("tip")?, text("muhash")?);
        let bytes = folder_bytes(&folder.join("blocks"))?;
        Ok(Self { folder, height, tip, muhash, bytes })
    }

    /// The height below the half that is timed.
    pub(crate) const fn half(&self) -> u32 {
        self.height / 2
    }
}

/// The bytes of all files below a folder.
pub(crate) fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { folder_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

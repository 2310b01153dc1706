//! Our side of the race.
//!
//! Blocks go through the joiner, as those of a node do, and the check that a node would make reads
//! the amount and the script of every spend.

use std::convert::Infallible;
use std::io::Read;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use varve_consensus::{BlockAt, UnspentOutputsView as _};
use varve_io::{Disk, StoreId};
use varve_utxo::parts::Access;
use varve_utxo::{
    Database, DatabaseView, Joiner, JoinerOptions, Options, Repeats, Secret, StoreKey, SubmitError,
};

use crate::digest::{Found, SetDigest};
use crate::side::Side;
use crate::stock::{BASE_HEIGHT, NETWORK};

/// How the set is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) threads: NonZeroUsize,
    /// Bytes for the whole set, without what the page cache holds of it.
    pub(crate) memory: usize,
    /// Whether the set is too large for memory, so that its pages are read past the page cache.
    pub(crate) cold: bool,
}

/// The set.
#[derive(Debug)]
pub(crate) struct Varve {
    set: Database,
    folder: PathBuf,
    setting: Setting,
}

impl Varve {
    /// Opens the set of a folder, or makes one.
    pub(crate) fn open(folder: &Path, setting: Setting) -> Result<Self> {
        let set = open(folder, setting)?;
        let varve = Self { set, folder: folder.to_owned(), setting };
        varve.choose_access();
        Ok(varve)
    }

    /// Closes the set and opens it again.
    pub(crate) fn reopen(self) -> Result<Self> {
        let Self { set, folder, setting } = self;
        drop(set);
        Self::open(&folder, setting)
    }

    pub(crate) const fn set(&self) -> &Database {
        &self.set
    }

    pub(crate) const fn set_mut(&mut self) -> &mut Database {
        &mut self.set
    }

    /// Connects blocks with the joiner, and returns the results of `check`.
    pub(crate) fn join<R: Send>(
        &mut self,
        blocks: &[BlockAt<'_>],
        check: impl Fn(&BlockAt<'_>, &DatabaseView) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let options = JoinerOptions::new(self.setting.threads);
        let mut results = Vec::with_capacity(blocks.len());
        Joiner::scope(&mut self.set, &options, check, |joiner| {
            let mut take = |retired: Option<varve_utxo::Retired<_, R, _>>| -> Result<bool> {
                let Some(retired) = retired else { return Ok(false) };
                results.push(retired.result.map_err(|error| anyhow!("{error:#}"))?);
                Ok(true)
            };
            for block in blocks {
                while joiner.is_full() {
                    take(joiner.retire())?;
                }
                // Mainnet cannot repeat a transaction at these heights.
                while let Err(error) = joiner.submit(block, Repeats::Impossible) {
                    // With little memory fewer blocks fit than the joiner has places.
                    ensure!(matches!(error, SubmitError::Full(_)), "{error}");
                    ensure!(take(joiner.retire())?, "an empty joiner refuses a block");
                }
            }
            while take(joiner.retire())? {}
            Ok::<_, anyhow::Error>(())
        })??;
        ensure!(results.len() == blocks.len(), "the joiner lost a block");
        Ok(results)
    }

    fn choose_access(&self) {
        if self.setting.cold {
            let version = self.set.snapshot();
            version.runs().as_slice().iter().for_each(|run| run.set_access(Access::Direct));
        }
    }
}

/// Reads the spends of a block.
fn spent_by(block: &BlockAt<'_>, view: &DatabaseView) -> Result<Found> {
    let mut found = Found::default();
    let walked = view.for_each_spend(block, |spend| {
        found.add(spend.coin.value.to_sat(), spend.coin.script);
        ControlFlow::<Infallible>::Continue(())
    });
    walked.map_err(|error| anyhow!("{error:?}"))?;
    Ok(found)
}

fn open(folder: &Path, setting: Setting) -> Result<Database> {
    let key = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };
    let mut options = Options::new(NETWORK, key);
    options.workers = setting.threads;
    options.memory = setting.memory;
    Ok(Database::open(Arc::new(Disk::open(folder)?), options)?)
}

impl Side for Varve {
    type Ready<'b> = BlockAt<'b>;

    fn load(&mut self, mut snapshot: &mut dyn Read) -> Result<()> {
        self.set.import(&mut snapshot, BASE_HEIGHT, &mut |_, _| ())?;
        self.choose_access();
        Ok(())
    }

    fn prepare<'b>(&self, block: BlockAt<'b>) -> BlockAt<'b> {
        block
    }

    fn connect(&mut self, blocks: &[BlockAt<'_>]) -> Result<Found> {
        let mut found = Found::default();
        self.join(blocks, spent_by)?.iter().for_each(|part| found.join(part));
        self.choose_access();
        Ok(found)
    }

    fn sync(&mut self) -> Result<()> {
        self.set.flush()?;
        Ok(())
    }

    fn digest(&mut self) -> Result<SetDigest> {
        let mut digest = SetDigest::default();
        let mut walk = self.set.snapshot().coins()?;
        while let Some((outpoint, coin)) = walk.next_coin()? {
            digest.add(&outpoint, &coin);
        }
        Ok(digest)
    }
}

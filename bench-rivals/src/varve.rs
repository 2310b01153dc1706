//! Our side of the race.

use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use varve_consensus::BlockAt;
use varve_io::{Disk, StoreId};
use varve_utxo::{Access, Database, Options, Secret, StoreKey};

use crate::digest::{Found, SetDigest};
use crate::side::Side;
use crate::stock::{BASE_HEIGHT, NETWORK};

/// How the set is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) threads: NonZeroUsize,
    /// Bytes for the window.
    pub(crate) window: usize,
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

    fn choose_access(&self) {
        if self.setting.cold {
            let version = self.set.snapshot();
            version.runs().as_slice().iter().for_each(|run| run.set_access(Access::Direct));
        }
    }
}

fn open(folder: &Path, setting: Setting) -> Result<Database> {
    let key = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };
    let mut options = Options::new(NETWORK, key);
    options.workers = setting.threads;
    options.window_memory = setting.window;
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
        for block in blocks {
            self.set.append(block)?;
            self.choose_access();
        }
        Ok(Found::default())
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

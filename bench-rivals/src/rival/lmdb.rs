//! LMDB: a writable map, no sync until the end, one transaction for a batch of blocks.
//!
//! Keys are visited in order, so that neighbours share the way down the tree. The stock is appended
//! in order, which fills the pages.

use std::io::Read;
use std::path::Path;

use anyhow::{Context as _, Result};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags};
use varve_consensus::BlockAt;

use crate::digest::{Found, SetDigest};
use crate::key::Key;
use crate::side::{Net, Side, each_coin, packed, unpacked};

/// Room in the file's map; the file is sparse.
const MAP_LEN: usize = 32 << 30;

/// The set in LMDB.
pub(crate) struct Lmdb {
    env: &'static Env,
    coins: Database<'static, Bytes, Bytes>,
}

impl Lmdb {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_LEN);
        // The handle of a database borrows its environment; both live as long as the child.
        let env: &'static Env = Box::leak(Box::new(open_env(&mut options, path)?));
        let created = env.create_databases_and_commit(env.write_txn()?, |databases, txn| {
            let coins = databases.create_database::<Bytes, Bytes>(txn, None)?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(coins))
        })?;
        Ok(Self { env, coins: created.unwrap_commit() })
    }
}

#[expect(unsafe_code, reason = "heed has no other way to open an environment")]
fn open_env(options: &mut EnvOpenOptions, path: &Path) -> Result<Env> {
    let flags = EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD;
    // SAFETY: the folder was made for this child alone and nobody else opens or changes the file,
    // so the map is what LMDB thinks it is; a crash before the sync invalidates only the
    // measurement.
    let opened = unsafe { options.flags(flags).open(path) };
    opened.with_context(|| format!("cannot open LMDB in {}", path.display()))
}

impl Side for Lmdb {
    type Ready<'b> = Net;

    fn load(&mut self, snapshot: &mut dyn Read) -> Result<()> {
        let mut txn = self.env.write_txn()?;
        each_coin(snapshot, |outpoint, coin| {
            let (key, value) = (Key::of(outpoint), packed(coin));
            let append = PutFlags::APPEND;
            Ok(self.coins.put_with_flags(&mut txn, append, key.as_bytes(), &value)?)
        })?;
        txn.commit()?;
        Ok(self.env.force_sync()?)
    }

    fn prepare<'b>(&self, block: BlockAt<'b>) -> Net {
        Net::of(&block)
    }

    fn connect(&mut self, blocks: &[Net]) -> Result<Found> {
        let mut found = Found::default();
        let mut script = Vec::new();
        let mut txn = self.env.write_txn()?;
        for block in blocks {
            found.join(&block.inner);
            for key in &block.spent {
                let value = self.coins.get(&txn, key.as_bytes())?;
                let value = value.context("a prevout is not in LMDB")?;
                let coin = unpacked(value, &mut script)?;
                found.add(coin.value.to_sat(), coin.script);
                self.coins.delete(&mut txn, key.as_bytes())?;
            }
            for (key, coin) in &block.made {
                self.coins.put(&mut txn, key.as_bytes(), coin)?;
            }
        }
        txn.commit()?;
        Ok(found)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    fn digest(&mut self) -> Result<SetDigest> {
        let mut digest = SetDigest::default();
        let mut script = Vec::new();
        let txn = self.env.read_txn()?;
        for entry in self.coins.iter(&txn)? {
            let (key, value) = entry?;
            digest.add(&Key::outpoint(key)?, &unpacked(value, &mut script)?);
        }
        Ok(digest)
    }
}

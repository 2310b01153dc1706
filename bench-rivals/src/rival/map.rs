//! A plain map in memory, which keeps whole coins inline and is not durable.
//!
//! hashbrown with foldhash, one thread. It inserts all outputs of a block, then removes all inputs,
//! in the order of the block.

use std::io::Read;

use anyhow::{Context as _, Result};
use hashbrown::HashMap;
use varve_consensus::BlockAt;
use varve_types::Outpoint;

use crate::digest::{Found, SetDigest};
use crate::rival::inline_coin::InlineCoin;
use crate::side::{Flat, Side, each_coin};

/// The whole set in a map.
#[derive(Debug, Default)]
pub(crate) struct Map(HashMap<Outpoint, InlineCoin, foldhash::fast::RandomState>);

impl Side for Map {
    type Ready<'b> = Flat<'b>;

    fn load(&mut self, snapshot: &mut dyn Read) -> Result<()> {
        each_coin(snapshot, |outpoint, coin| {
            self.0.insert(*outpoint, InlineCoin::of(coin)?);
            Ok(())
        })
    }

    fn prepare<'b>(&self, block: BlockAt<'b>) -> Flat<'b> {
        Flat::of(&block)
    }

    fn connect(&mut self, blocks: &[Flat<'_>]) -> Result<Found> {
        let mut found = Found::default();
        for block in blocks {
            for (outpoint, coin) in &block.outputs {
                self.0.insert(*outpoint, InlineCoin::of(coin)?);
            }
            for outpoint in &block.inputs {
                let coin = self.0.remove(outpoint).context("a prevout is not in the map")?;
                found.add(coin.satoshi(), coin.script());
            }
        }
        Ok(found)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn digest(&mut self) -> Result<SetDigest> {
        let mut digest = SetDigest::default();
        self.0.iter().for_each(|(outpoint, coin)| digest.add(outpoint, &coin.as_coin()));
        Ok(digest)
    }
}

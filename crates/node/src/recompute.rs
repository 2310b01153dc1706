//! What confirmed blocks connected, computed again out of archive and block store.
//!
//! An index that is chosen later, or that a crash has set back, lacks blocks that were connected
//! long ago. One function computes what such a block connected, from its height: its bytes come
//! from the block store, and the outputs that it spends are searched for in the archive. Blocks do
//! not depend on each other, so several threads compute a batch of them, and the batch is handed
//! over in the order of heights.
//!
//! It takes the bytes of all blocks below. Where they are pruned the answer is
//! [`Error::Pruned`].

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::thread::Builder;

use varve_archive::history::BlockChanges;
use varve_archive::{HeaderLink, Output, coins_on_branch};
use varve_consensus::{BlockAt, OwnedCoin, Params};
use varve_types::{Block, Coin, Height, Outpoint};

use crate::connected::{Connected, Spent, Wanted, script_changes};
use crate::error::Error;
use crate::snapshot::ArchiveView;
use crate::stores::Stores;

/// Blocks of a batch for each thread.
const BLOCKS_EACH: usize = 8;
/// And their bytes together, after which a batch takes no more.
const BATCH_BYTES: u64 = 32 << 20;

/// Computes confirmed blocks again.
pub(crate) struct Recompute {
    pub(crate) params: Params,
    pub(crate) view: ArchiveView,
    pub(crate) wanted: Wanted,
    pub(crate) threads: NonZeroUsize,
}

impl Recompute {
    /// Hands over what the blocks at these heights connected, lowest first.
    pub(crate) fn each(
        &self,
        heights: RangeInclusive<u32>,
        take: &mut dyn FnMut(Connected) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut next, last) = heights.into_inner();
        while next <= last {
            let batch = self.batch(next, last)?;
            next = batch.last().map_or(last, |height| height.to_u32()).saturating_add(1);
            for connected in self.in_threads(&batch) {
                take(connected?)?;
            }
        }
        Ok(())
    }

    /// The heights of the next batch.
    fn batch(&self, first: u32, last: u32) -> Result<Vec<Height>, Error> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for height in (first..=last).map(Height::new) {
            let link = self.view.to_confirmed(height);
            let row = link.map(|link| self.view.block(link)).transpose()?.flatten();
            bytes += row.map_or(0, |row| u64::from(row.size));
            batch.push(height);
            if batch.len() >= BLOCKS_EACH * self.threads.get() || bytes >= BATCH_BYTES {
                break;
            }
        }
        Ok(batch)
    }

    /// Computes a batch, thread `n` its blocks n, n + threads and so on. The work of a thread that
    /// the system refuses is done here.
    fn in_threads(&self, batch: &[Height]) -> Vec<Result<Connected, Error>> {
        let threads = self.threads.get().min(batch.len());
        let lane = |lane: usize| -> Vec<_> {
            batch.iter().skip(lane).step_by(threads).map(|height| self.at(*height)).collect()
        };
        let lanes: Vec<Vec<_>> = std::thread::scope(|scope| {
            let spawn = |number: usize| {
                let thread = Builder::new().name(format!("recompute-{number}"));
                thread.spawn_scoped(scope, move || lane(number)).map_err(|_| number)
            };
            let others: Vec<_> = (1..threads).map(spawn).collect();
            let mut lanes = vec![lane(0)];
            lanes.extend(others.into_iter().map(|other| match other {
                Ok(other) => other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(number) => lane(number),
            }));
            lanes
        });
        let mut lanes: Vec<_> = lanes.into_iter().map(Vec::into_iter).collect();
        let turns = (0..lanes.len()).cycle().take(batch.len()).collect::<Vec<_>>();
        turns.into_iter().filter_map(|turn| lanes.get_mut(turn)?.next()).collect()
    }

    /// What the confirmed block at this height connected.
    pub(crate) fn at(&self, height: Height) -> Result<Connected, Error> {
        let view = &self.view;
        let missing = || Error::Disagree { what: format!("block {height} is not archived") };
        let link = view.to_confirmed(height).ok_or_else(missing)?;
        self.with(link, |block, spent, replaced| {
            Connected::of(self.wanted, view.network(), block, spent, replaced)
        })
    }

    /// What a block, on any branch, changed for scripts.
    pub(crate) fn script_changes(&self, link: HeaderLink) -> Result<BlockChanges, Error> {
        self.with(link, script_changes)
    }

    /// Runs `run` on a block, what it spends and what its outputs overwrite.
    fn with<R>(
        &self,
        link: HeaderLink,
        run: impl FnOnce(&BlockAt<'_>, &[Spent<'_>], &[Spent<'_>]) -> R,
    ) -> Result<R, Error> {
        let view = &self.view;
        let row = view.header(link)?;
        let (hash, height) = (row.hash, row.height);
        let missing = || Error::Disagree { what: format!("block {height} is not archived") };
        let bytes = view.raw_block(link)?.ok_or_else(missing)?;
        let block = Block::parse(&bytes, view.network().format())
            .map_err(|source| Error::Undecodable { hash, source })?;
        let block = BlockAt::new(height, &block);
        let outputs = view.block_prevouts(link)?.unwrap_or_default();
        let outputs: Option<Vec<Output>> = outputs.into_iter().collect();
        let outputs = outputs.ok_or_else(|| Error::Disagree {
            what: format!("the archive does not have what block {height} spends"),
        })?;
        let spent: Vec<Spent<'_>> = outputs.iter().map(spent).collect();
        let replaced = self.replaced(&block)?;
        let replaced: Vec<Spent<'_>> = replaced
            .iter()
            .map(|(point, coin)| Spent { point: *point, coin: coin.as_coin() })
            .collect();
        Ok(run(&block, &spent, &replaced))
    }

    /// The coins that the block's outputs overwrite: of two blocks, before BIP30 was enforced.
    fn replaced(&self, block: &BlockAt<'_>) -> Result<Vec<(Outpoint, OwnedCoin)>, Error> {
        if !self.params.bip30_exceptions.contains(&(block.height(), block.hash())) {
            return Ok(Vec::new());
        }
        let Some(parent) = self.view.to_header(block.block().header().previous())? else {
            return Ok(Vec::new());
        };
        let points: Vec<Outpoint> = block
            .txs()
            .flat_map(|(txid, tx)| (0..).zip(tx.outputs()).map(move |(vout, _)| (txid, vout)))
            .map(|(txid, vout)| Outpoint::new(txid, vout))
            .collect();
        let coins = coins_on_branch(&self.view, parent, &points)?;
        Ok(points.into_iter().zip(coins).filter_map(|(p, coin)| Some((p, coin?))).collect())
    }
}

impl Stores {
    /// Recomputes blocks of the confirmed chain, on `threads` threads.
    pub(crate) fn recompute(
        &self,
        view: ArchiveView,
        wanted: Wanted,
        threads: NonZeroUsize,
    ) -> Recompute {
        let params = self.chain.read().tree.params().clone();
        Recompute { params, view, wanted, threads }
    }
}

fn spent(output: &Output) -> Spent<'_> {
    let (height, coinbase) = (output.tx.height, output.tx.is_coinbase());
    let (value, script) = (output.value, output.script.as_slice());
    Spent { point: output.point(), coin: Coin { height, coinbase, value, script } }
}

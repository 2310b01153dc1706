//! What a block connects, computed once for every index.
//!
//! When the check of a block runs, the joiner has looked up every output that the block spends.
//! That is the one moment at which the indexes can have it for nothing: filters need the spent
//! scripts, figures of the set the spent coins, histories both sides of every payment. So the check
//! returns a [`Connected`], made in the worker's thread, with what the chosen indexes asked for
//! ([`Wanted`]) and nothing else. The organizer stores it and searches for nothing.
//!
//! ```text
//!  worker      check ─► spends of the block ─► Connected ─┐
//!  organizer                                    retired ◄─┘─► filter of the block, at once
//!                                               commit ─────► figures, when the block is confirmed
//! ```
//!
//! A block that is on disk already is connected again by [`Recompute`](crate::recompute): same
//! struct, spends out of the archive. After a crash in a folder with pruned blocks the spends come
//! from the unspent set, which is rewound by its undo records and appended to again
//! ([`recovery`](crate::recovery)).
//!
//! **Memory.** A filter takes about 1.5 % of its block and the change of the figures 792 bytes.
//! Both are below the bytes that [`Wanted::memory`] has the joiner set aside for a block under way.

use std::collections::HashSet;

use varve_archive::bip158;
use varve_consensus::BlockAt;
use varve_types::{BlockHash, Coin, Height, Network, Outpoint, sha256d, unspendable};

use crate::settings::{Index, Settings};
use crate::stats::SetChange;

/// What the chosen indexes want to know of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The BIP158 filter.
    pub(crate) filter: bool,
    /// How the figures of the unspent set change.
    pub(crate) change: bool,
}

impl Wanted {
    pub(crate) const fn of(settings: Settings) -> Self {
        let indexes = settings.indexes;
        Self { filter: indexes.has(Index::Filter), change: indexes.has(Index::Stats) }
    }

    pub(crate) const fn is_nothing(self) -> bool {
        !self.filter && !self.change
    }

    /// Bytes of memory for each byte of a block while this is computed: the spends are listed, 72
    /// bytes an input of about 150, and the items of a filter sorted, 16 bytes a script.
    pub(crate) const fn memory(self) -> usize {
        if self.is_nothing() { 0 } else { 1 }
    }
}

/// An output that a block spends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent<'a> {
    pub(crate) point: Outpoint,
    pub(crate) coin: Coin<'a>,
}

/// What the indexes take of one block.
#[derive(Clone, Debug)]
pub(crate) struct Connected {
    pub(crate) block: BlockHash,
    pub(crate) height: Height,
    pub(crate) filter: Option<BlockFilter>,
    pub(crate) change: Option<SetChange>,
}

/// The BIP158 filter of a block, before it is chained to those below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockFilter {
    pub(crate) body: Vec<u8>,
    hash: [u8; 32],
}

impl BlockFilter {
    /// The filter header above this one (BIP157).
    pub(crate) fn header(&self, previous: [u8; 32]) -> [u8; 32] {
        sha256d([self.hash, previous].as_flattened())
    }
}

impl Connected {
    /// Computes what is wanted of a block. `spent` are the outputs that its inputs spend, in block
    /// order and without the coinbase; `replaced` are unspent coins that its outputs overwrite,
    /// which happened twice before BIP30 was enforced.
    pub(crate) fn of(
        wanted: Wanted,
        network: Network,
        block: &BlockAt<'_>,
        spent: &[Spent<'_>],
        replaced: &[Spent<'_>],
    ) -> Self {
        let filter = wanted.filter.then(|| {
            let scripts = spent.iter().map(|spent| spent.coin.script);
            let body = bip158::basic_filter(block.block(), scripts);
            BlockFilter { hash: sha256d(&body), body }
        });
        let change = wanted.change.then(|| change_of(network, block, spent, replaced));
        Self { block: block.hash(), height: block.height(), filter, change }
    }
}

/// How a block changes the figures of the set. Coins that it makes and spends itself are left out:
/// they would be multiplied into the hash and divided out again.
fn change_of(
    network: Network,
    block: &BlockAt<'_>,
    spent: &[Spent<'_>],
    replaced: &[Spent<'_>],
) -> SetChange {
    let (height, mut change, mut buffer) = (block.height(), SetChange::default(), Vec::new());
    if height == Height::GENESIS {
        return change;
    }
    // Only a coin of this block has its height.
    let is_own = |spent: &&Spent<'_>| spent.coin.height == height;
    let own: HashSet<Outpoint> = spent.iter().filter(is_own).map(|spent| spent.point).collect();
    for (txid, tx) in block.txs() {
        let coinbase = tx.is_coinbase();
        for (vout, output) in (0..).zip(tx.outputs()) {
            let point = Outpoint::new(txid, vout);
            if unspendable(network, height, output.script) || own.contains(&point) {
                continue;
            }
            let (value, script) = (output.value, output.script);
            change.add(&point, &Coin { height, coinbase, value, script }, &mut buffer);
        }
    }
    for Spent { point, coin } in spent.iter().filter(|spent| !is_own(spent)).chain(replaced) {
        change.remove(point, coin, &mut buffer);
    }
    change
}

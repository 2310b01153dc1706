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
//!                                               commit ─────► figures and script history, when
//!                                                             the block is confirmed
//! ```
//!
//! A block that is on disk already is connected again by [`Recompute`](crate::recompute): same
//! struct, spends out of the archive. After a crash in a folder with pruned blocks the spends come
//! from the unspent set, which is rewound by its undo records and appended to again
//! ([`recovery`](crate::recovery)).
//!
//! **Memory.** A filter takes about 1.5 % of its block, the change of the figures 792 bytes, and
//! the rows of the script history a fifth of the block. They are below the bytes that
//! [`Wanted::memory`] has the joiner set aside for a block under way.

use std::collections::HashSet;

use varve_archive::bip158;
use varve_archive::history::{self, Batch, BlockChanges, Funded, HistoryKeys, is_indexed};
use varve_consensus::BlockAt;
use varve_types::{BlockHash, Coin, Height, Network, Outpoint, ScriptHash, sha256d, unspendable};

use crate::settings::{Index, Settings};
use crate::stats::SetChange;

/// What the chosen indexes want to know of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// The BIP158 filter.
    pub(crate) filter: bool,
    /// How the figures of the unspent set change.
    pub(crate) change: bool,
    /// The rows of the script history, under these keys.
    pub(crate) scripts: Option<HistoryKeys>,
}

impl Wanted {
    pub(crate) fn of(settings: Settings, keys: HistoryKeys) -> Self {
        let indexes = settings.indexes;
        Self {
            filter: indexes.has(Index::Filter),
            change: indexes.has(Index::Stats),
            scripts: indexes.has(Index::Script).then_some(keys),
        }
    }

    pub(crate) const fn is_nothing(self) -> bool {
        !self.filter && !self.change && self.scripts.is_none()
    }

    /// Bytes of memory for each byte of a block while this is computed: the spends are listed, 72
    /// bytes an input of about 150, and the items of a filter sorted, 16 bytes a script. The script
    /// history lists both sides of every payment, 100 bytes each, and sorts them.
    pub(crate) const fn memory(self) -> usize {
        let listed = if self.is_nothing() { 0 } else { 1 };
        if self.scripts.is_some() { listed + 2 } else { listed }
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
    pub(crate) scripts: Option<Batch>,
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
        let scripts = wanted.scripts;
        let scripts =
            scripts.map(|keys| Batch::new(&keys, &script_changes(block, spent, replaced)));
        Self { block: block.hash(), height: block.height(), filter, change, scripts }
    }
}

/// What a block changes for scripts. A coin that one of its outputs overwrites counts as spent by
/// the transaction that overwrites it, so that the history agrees with the unspent set.
pub(crate) fn script_changes(
    block: &BlockAt<'_>,
    spent: &[Spent<'_>],
    replaced: &[Spent<'_>],
) -> BlockChanges {
    let mut changes = BlockChanges { height: block.height(), ..BlockChanges::default() };
    for (position, (txid, tx)) in (0..).zip(block.txs()) {
        for (vout, output) in
            (0..).zip(tx.outputs()).filter(|(_, output)| is_indexed(output.script))
        {
            let (outpoint, value) = (Outpoint::new(txid, vout), output.value);
            let script = ScriptHash::of(output.script);
            changes.funded.push(Funded { position, outpoint, value, script });
        }
    }
    let spenders = (0..).zip(block.block().txs()).filter(|(_, tx)| !tx.is_coinbase());
    let positions = spenders.flat_map(|(position, tx)| tx.inputs().map(move |_| position));
    let overwriters = replaced.iter().map(|replaced| {
        let same = |txid: &_| *txid == replaced.point.txid;
        let position = block.txids().iter().position(same).unwrap_or_default();
        (u32::try_from(position).unwrap_or_default(), replaced)
    });
    let spends = positions.zip(spent).chain(overwriters);
    for (position, Spent { point, coin }) in
        spends.filter(|(_, spent)| is_indexed(spent.coin.script))
    {
        let (outpoint, height, value) = (*point, coin.height, coin.value);
        let script = ScriptHash::of(coin.script);
        changes.spent.push(history::Spent { position, outpoint, height, value, script });
    }
    changes
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

//! The archive as a set of unspent outputs.
//!
//! An output is unspent below a block when its transaction is in a block of the same branch, and no
//! input of that branch at or above that block spends it. Both are searches: the rows of the
//! txid, the spenders of the point. So the archive answers for any block, on any branch, what the
//! unspent set answers for the next one, and the same rules run over both.
//!
//! [`BlockCoins`] runs all searches of one block as batches, then answers from memory:
//!
//! ```text
//! points of the block ──search──► rows ──on the branch──► coin, with script
//!                     └─search──► spenders ──on the branch, not below the coin──► spent by
//! ```

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use varve_consensus::{
    Below, BlockAt, CheckError, OwnedCoin, PrevoutError, Spend, UnspentOutputsView, is_in_set,
    walk_block,
};
use varve_types::{Amount, Coin, Height, Outpoint, Txid};

use crate::backend::Tables;
use crate::error::Result;
use crate::link::{HeaderLink, TxLink};
use crate::query::{Branch, RowPlace, Spender, TxPlace};
use crate::source::BlockSource;
use crate::view::View;

/// The output at a point, as the branch has it.
#[derive(Clone, Debug)]
struct Found {
    height: Height,
    coinbase: bool,
    value: Amount,
    script: Vec<u8>,
    spent_by: Option<Txid>,
}

/// The outputs that a block spends or creates again, as they are below it.
#[derive(Clone, Debug)]
pub struct BlockCoins {
    network: varve_types::Network,
    found: HashMap<Outpoint, Found>,
    repeated: Option<Outpoint>,
}

impl BlockCoins {
    /// Looks up everything that the block spends or creates again, on the branch that ends with
    /// `parent`.
    pub fn load<T: Tables, S: BlockSource>(
        view: &View<T, S>,
        parent: Option<HeaderLink>,
        block: &BlockAt<'_>,
    ) -> Result<Self> {
        let mut coins = Self::load_spent(view, parent, block)?;
        let Some(parent) = parent else { return Ok(coins) };
        let branch = view.branch(parent)?;
        let made = block.txs().flat_map(|(txid, tx)| {
            (0..).zip(tx.outputs()).map(move |(vout, _)| Outpoint::new(txid, vout))
        });
        coins.repeated = repeated(view, &branch, &made.collect::<Vec<_>>())?;
        Ok(coins)
    }

    /// Looks up only what the block spends. That is enough to check its scripts, but not its
    /// spends: it does not find outputs that are created again.
    pub fn load_spent<T: Tables, S: BlockSource>(
        view: &View<T, S>,
        parent: Option<HeaderLink>,
        block: &BlockAt<'_>,
    ) -> Result<Self> {
        let network = view.network();
        let mut coins = Self { network, found: HashMap::new(), repeated: None };
        let Some(parent) = parent else { return Ok(coins) };
        let branch = view.branch(parent)?;
        let inputs = block.block().txs().iter().filter(|tx| !tx.is_coinbase());
        let points: Vec<_> = inputs.flat_map(|tx| tx.inputs()).map(|i| i.outpoint).collect();
        let found = search(view, &branch, &points)?;
        coins.found.extend(points.into_iter().zip(found).filter_map(|(p, f)| Some((p, f?))));
        Ok(coins)
    }

    /// What the branch holds at a point.
    fn below(&self, point: &Outpoint) -> Below<'_> {
        match self.found.get(point) {
            Some(Found { height, coinbase, value, script, spent_by: None }) => {
                let (height, coinbase, value) = (*height, *coinbase, *value);
                Below::Unspent(Coin { height, coinbase, value, script })
            }
            found => Below::Missing { spent_by: found.and_then(|found| found.spent_by) },
        }
    }

    fn walk<'v>(
        &'v self,
        block: &BlockAt<'v>,
        each: impl FnMut(Spend<'v>),
    ) -> std::result::Result<(), PrevoutError> {
        walk_block(self.network, block, |point| self.below(point), each).map(drop)
    }
}

/// The coins at these points on the branch that ends with `parent`; `None` where the branch has no
/// such output, spends it, or the output can never be spent.
pub fn coins_on_branch<T: Tables, S: BlockSource>(
    view: &View<T, S>,
    parent: HeaderLink,
    points: &[Outpoint],
) -> Result<Vec<Option<OwnedCoin>>> {
    let found = search(view, &view.branch(parent)?, points)?;
    let unspent = found.into_iter().map(|found| found.filter(|found| found.spent_by.is_none()));
    let coin = |Found { height, coinbase, value, script, .. }| OwnedCoin {
        height,
        coinbase,
        value,
        script,
    };
    Ok(unspent.map(|found| found.map(coin)).collect())
}

/// The outputs of the branch at these points.
fn search<T: Tables, S: BlockSource>(
    view: &View<T, S>,
    branch: &Branch<'_, T>,
    points: &[Outpoint],
) -> Result<Vec<Option<Found>>> {
    let outputs = view.prevouts(branch, points)?;
    let made: Vec<_> = outputs.iter().flatten().map(|out| (out.point(), out.tx.height)).collect();
    let asked: Vec<Outpoint> = made.iter().map(|(point, _)| *point).collect();
    let from = |key: usize| made.get(key).map(|(_, height)| *height);
    let spends = |key, row: &RowPlace| row.is_on(branch) && Some(row.height) >= from(key);
    let mut spenders = view.spenders_where(&asked, spends)?.into_iter();
    let network = view.network();
    // Hashed once, however many of these outputs a transaction spends.
    let mut txids: HashMap<TxLink, Txid> = HashMap::new();
    let found = outputs.into_iter().map(|output| {
        let Some(output) = output else { return Ok(None) };
        let spenders = spenders.next().unwrap_or_default();
        let TxPlace { height, .. } = output.tx;
        if !is_in_set(network, height, &output.script) {
            return Ok(None);
        }
        let spent_by = match spenders.first() {
            None => None,
            Some(Spender { tx, .. }) => Some(match txids.entry(tx.link) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => *new.insert(view.txid(tx)?),
            }),
        };
        let (coinbase, value) = (output.tx.is_coinbase(), output.value);
        Ok(Some(Found { height, coinbase, value, script: output.script, spent_by }))
    });
    found.collect()
}

/// The first of these points that is unspent on the branch already.
fn repeated<T: Tables, S: BlockSource>(
    view: &View<T, S>,
    branch: &Branch<'_, T>,
    made: &[Outpoint],
) -> Result<Option<Outpoint>> {
    let mut txids: Vec<_> = made.iter().map(|point| point.txid).collect();
    txids.dedup();
    let mut known = HashSet::new();
    let on_branch = view.are_on(branch, &txids)?;
    known.extend(txids.iter().zip(on_branch).filter(|(_, is_on)| *is_on).map(|(txid, _)| *txid));
    let again: Vec<_> = made.iter().filter(|point| known.contains(&point.txid)).copied().collect();
    let found = search(view, branch, &again)?;
    let unspent = |found: &Found| found.spent_by.is_none();
    Ok(again.into_iter().zip(found).find(|(_, f)| f.as_ref().is_some_and(unspent)).map(|(p, _)| p))
}

impl UnspentOutputsView for BlockCoins {
    type Error = Infallible;

    fn query_prevouts_unspent(
        &self,
        block: &BlockAt<'_>,
    ) -> std::result::Result<(), CheckError<PrevoutError, Infallible>> {
        self.walk(block, |_| {}).map_err(CheckError::Invalid)
    }

    fn for_each_spend<'v, B, F>(
        &'v self,
        block: &'v BlockAt<'v>,
        each: F,
    ) -> std::result::Result<ControlFlow<B>, CheckError<PrevoutError, Infallible>>
    where
        F: FnMut(Spend<'v>) -> ControlFlow<B>,
    {
        let mut spends = Vec::new();
        self.walk(block, |spend| spends.push(spend)).map_err(CheckError::Invalid)?;
        Ok(spends.into_iter().try_for_each(each))
    }

    fn find_repeated_output(
        &self,
        _block: &BlockAt<'_>,
    ) -> std::result::Result<Option<Outpoint>, Infallible> {
        Ok(self.repeated)
    }
}

//! The walk through a block that every view over looked-up coins shares.
//!
//! ```text
//! for each transaction, in block order
//!   for each input      refuse what the block has spent already; take the coin from what the block
//!                       created, else from the set below; report the spend
//!   for each output     create a coin, unless the set never holds it
//! ```
//!
//! The walk keeps what the block spends and creates beside the set, so it changes nothing. It needs
//! random access to the coins below; `utxo` joins sorted batches instead and has its own walk.

use std::collections::BTreeMap;

use varve_types::{Coin, Height, Network, Outpoint, Tx, Txid, unspendable};

use crate::block_at::BlockAt;
use crate::view::{PrevoutError, Spend};

/// What the set below a block holds at an outpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below<'a> {
    /// An unspent output.
    Unspent(Coin<'a>),
    /// No coin: it never existed, or was spent, by this transaction if known.
    Missing {
        /// The transaction that spent it.
        spent_by: Option<Txid>,
    },
}

/// What a block does to the set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked<'a> {
    /// What it spends, and by which transaction.
    pub spent: BTreeMap<Outpoint, Txid>,
    /// What it creates and does not spend itself.
    pub created: BTreeMap<Outpoint, Coin<'a>>,
}

/// Walks a block over the set below it and calls `each` with every spend, in block order. `'b` is
/// the block's lifetime, `'v` that of the coins below.
pub fn walk_block<'v, 'b: 'v>(
    network: Network,
    block: &BlockAt<'b>,
    below: impl Fn(&Outpoint) -> Below<'v>,
    mut each: impl FnMut(Spend<'v>),
) -> Result<Walked<'b>, PrevoutError> {
    let mut walked = Walked::default();
    for (index, (txid, tx)) in block.txs().enumerate() {
        let inputs = tx.inputs().take(if tx.is_coinbase() { 0 } else { usize::MAX });
        for (vin, input) in inputs.enumerate() {
            let outpoint = input.outpoint;
            if let Some(first) = walked.spent.insert(outpoint, txid) {
                return Err(PrevoutError::SpentTwice { outpoint, first, second: txid });
            }
            let created = walked.created.remove(&outpoint).map(Below::Unspent);
            match created.unwrap_or_else(|| below(&outpoint)) {
                Below::Unspent(coin) => each(Spend { tx: index, vin, input, coin }),
                Below::Missing { spent_by } => {
                    return Err(PrevoutError::Missing { outpoint, spender: txid, spent_by });
                }
            }
        }
        walked.created.extend(outputs(network, block.height(), txid, tx));
    }
    Ok(walked)
}

/// Whether the set holds an output of a block at this height: never the genesis block's, nor what
/// cannot be spent.
#[must_use]
pub fn is_in_set(network: Network, height: Height, script: &[u8]) -> bool {
    height != Height::GENESIS && !unspendable(network, height, script)
}

/// The coins that a transaction of the block adds to the set.
fn outputs<'b>(
    network: Network,
    height: Height,
    txid: Txid,
    tx: &Tx<'b>,
) -> impl Iterator<Item = (Outpoint, Coin<'b>)> {
    let coinbase = tx.is_coinbase();
    (0..).zip(tx.outputs()).filter_map(move |(vout, output)| {
        let coin = Coin { height, coinbase, value: output.value, script: output.script };
        is_in_set(network, height, coin.script).then_some((Outpoint::new(txid, vout), coin))
    })
}

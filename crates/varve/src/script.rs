//! What a script was paid, has spent and still holds.
//!
//! [`Snapshot::script`](crate::Snapshot::script) names the script by its hash. Answers are those of
//! the block that the index `script` has reached ([`Script::tip`]), which is the snapshot's tip
//! unless the index was just added and lags.

use std::ops::ControlFlow;

use varve_node::{ScriptPage, ScriptTxs, ScriptUnspent, Scripts};
use varve_types::{Amount, Height, ScriptHash, Txid};

use crate::answer::Tip;
use crate::error::Error;

pub use varve_archive::search::Order;

/// A script at one moment.
pub struct Script {
    scripts: Scripts,
    hash: ScriptHash,
    at: Option<Height>,
    tip: Tip,
}

/// Balance and counts of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptSummary {
    /// What the script holds.
    pub balance: Amount,
    /// Outputs that pay it.
    pub funded: u64,
    /// Those of them that are spent.
    pub spent: u64,
    /// Transactions that do either.
    pub txs: u64,
    /// The value of the outputs that pay it.
    pub received: Amount,
    /// The value of those that are spent.
    pub sent: Amount,
}

impl Script {
    pub(crate) fn new(scripts: Scripts, hash: ScriptHash) -> Result<Self, Error> {
        let tip = scripts.tip().ok_or(Error::ScriptsNotBegun)?.into();
        Ok(Self { scripts, hash, at: None, tip })
    }

    /// The script as it was when the confirmed block at this height was the tip. Above the tip it
    /// is [`Error::AboveTip`].
    pub fn at(self, height: Height) -> Result<Self, Error> {
        if height > self.tip.height {
            return Err(Error::AboveTip { height, tip: self.tip.height });
        }
        Ok(Self { at: Some(height), ..self })
    }

    /// The hash of the script.
    #[must_use]
    pub const fn hash(&self) -> ScriptHash {
        self.hash
    }

    /// The block that the index has reached.
    #[must_use]
    pub const fn tip(&self) -> Tip {
        self.tip
    }

    /// Balance and counts: a page of each sorted file that has the script. As of an old height, the
    /// transactions on the nearer side of it are read.
    pub fn summary(&self) -> Result<ScriptSummary, Error> {
        let sums = self.scripts.sums(&self.hash, self.at)?;
        let count = |count: i64| u64::try_from(count).unwrap_or_default();
        Ok(ScriptSummary {
            balance: Amount::from_sat(sums.balance()),
            funded: count(sums.funded),
            spent: count(sums.spent),
            txs: count(sums.txs),
            received: Amount::from_sat(sums.received),
            sent: Amount::from_sat(sums.sent),
        })
    }

    /// A page of its confirmed transactions. `cursor` is that of the page before, in the same
    /// order; blocks that come between two pages neither repeat nor hide a transaction.
    pub fn history(
        &self,
        order: Order,
        cursor: Option<u64>,
        limit: usize,
    ) -> Result<ScriptTxs, Error> {
        Ok(self.scripts.history(&self.hash, self.at, ScriptPage { order, cursor, limit })?)
    }

    /// The txid and height of each of its confirmed transactions from a height up, in chain order;
    /// `each` may end the walk. Cheaper than [`history`](Self::history), which also reads what
    /// every transaction spends.
    pub fn txids(
        &self,
        from: Height,
        each: &mut dyn FnMut(Txid, Height) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        Ok(self.scripts.txids(&self.hash, (from, self.at), each)?)
    }

    /// The cursor of the descending page that begins below the transaction at a place of the
    /// confirmed chain. It reads nothing of the history.
    pub fn cursor_below(&self, height: Height, position: u32) -> Result<u64, Error> {
        Ok(self.scripts.cursor_below(height, position)?)
    }

    /// Its unspent outputs in chain order.
    pub fn unspent(&self) -> Result<Vec<ScriptUnspent>, Error> {
        Ok(self.scripts.unspent(&self.hash, self.at)?)
    }
}

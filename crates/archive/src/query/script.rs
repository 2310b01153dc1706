//! The history of a script (an address), where scripts are indexed.
//!
//! ```text
//! script hash ──search──► rows that may pay it ──bytes──► outputs ──spenders──► rows that spend
//! ```
//!
//! Only paying is indexed, once a transaction; spending is found from the outputs. Mempool
//! transactions have no rows and do not appear; rows in unconfirmed blocks do.

use varve_types::{Amount, Height};

use super::{Output, Spender, TxPlace};
use crate::backend::Tables;
use crate::error::{ArchiveError, Result};
use crate::source::BlockSource;
use crate::view::View;
use varve_types::ScriptHash;

/// Which rows a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those in confirmed blocks.
    Confirmed,
    /// Those in other blocks.
    Unconfirmed,
    /// All.
    Both,
}

impl Scope {
    const fn has(self, confirmed: bool) -> bool {
        match self {
            Self::Confirmed => confirmed,
            Self::Unconfirmed => !confirmed,
            Self::Both => true,
        }
    }
}

/// A part of a long answer, which is ordered by height, then by position in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Begin behind this place: that of the last answer of the page before.
    pub after: Option<(Height, u32)>,
    /// The most answers to return.
    pub limit: usize,
}

impl Page {
    /// Everything.
    pub const ALL: Self = Self { after: None, limit: usize::MAX };

    /// Sorts the answers and keeps those of the page.
    fn cut<A>(&self, mut answers: Vec<A>, place: impl Fn(&A) -> (Height, u32)) -> Vec<A> {
        answers.retain(|answer| self.after.is_none_or(|after| place(answer) > after));
        answers.sort_by_key(|answer| place(answer));
        answers.truncate(self.limit);
        answers
    }
}

/// What a script has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// The worth of its unspent outputs.
    pub value: Amount,
    /// How many there are.
    pub outputs: usize,
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// Every output that pays the script, in no order.
    fn paid(&self, script: ScriptHash, scope: Scope) -> Result<Vec<Output>> {
        if !self.indexes().scripts {
            return Err(ArchiveError::NoIndex { index: "script" });
        }
        if let Some(height) = self.base() {
            return Err(ArchiveError::BelowBase { height });
        }
        let mut found = Vec::new();
        self.tables.find_payers(&[script], &mut found)?;
        found.dedup();
        let mut outputs = Vec::new();
        for (_, link) in found {
            let Some(_) = self.row_place(link)?.filter(|row| scope.has(row.confirmed)) else {
                continue;
            };
            let made = self.outputs(link)?.into_iter();
            outputs.extend(made.filter(|output| ScriptHash::of(&output.script) == script));
        }
        Ok(outputs)
    }

    /// The outputs that pay the script.
    pub fn script_outputs(
        &self,
        script: ScriptHash,
        scope: Scope,
        page: Page,
    ) -> Result<Vec<Output>> {
        Ok(page.cut(self.paid(script, scope)?, |output| (output.tx.height, output.tx.position)))
    }

    /// The inputs that spend outputs of the script.
    pub fn script_spenders(
        &self,
        script: ScriptHash,
        scope: Scope,
        page: Page,
    ) -> Result<Vec<Spender>> {
        let points: Vec<_> = self.paid(script, Scope::Both)?.iter().map(Output::point).collect();
        let spenders = self.spenders_where(&unique(points), |_, row| scope.has(row.confirmed))?;
        Ok(page.cut(spenders.into_iter().flatten().collect(), |spender| {
            (spender.tx.height, spender.tx.position)
        }))
    }

    /// The transactions that pay the script or spend from it, each row once.
    pub fn script_history(
        &self,
        script: ScriptHash,
        scope: Scope,
        page: Page,
    ) -> Result<Vec<TxPlace>> {
        let paying = self.paid(script, scope)?.into_iter().map(|output| output.tx);
        let spending = self.script_spenders(script, scope, Page::ALL)?;
        let mut all: Vec<_> = paying.collect();
        for spender in spending {
            all.push(spender.tx.with(self.txid(&spender.tx)?));
        }
        all.sort_by_key(|tx| tx.link);
        all.dedup();
        Ok(page.cut(all, |tx| (tx.height, tx.position)))
    }

    /// The outputs of the confirmed chain that pay the script at least `minimum` and that no input
    /// of it spends.
    pub fn script_unspent(
        &self,
        script: ScriptHash,
        minimum: Amount,
        page: Page,
    ) -> Result<Vec<Output>> {
        let mut outputs = self.paid(script, Scope::Confirmed)?;
        outputs.retain(|output| output.value >= minimum);
        let points: Vec<_> = outputs.iter().map(Output::point).collect();
        // A transaction that was made again is another coin: its spenders come after it.
        let after = |key, height| {
            outputs.get(key).is_some_and(|output: &Output| height >= output.tx.height)
        };
        let spenders =
            self.spenders_where(&points, |key, row| row.confirmed && after(key, row.height))?;
        let mut spenders = spenders.into_iter();
        outputs.retain(|_| spenders.next().is_none_or(|spenders| spenders.is_empty()));
        Ok(page.cut(outputs, |output| (output.tx.height, output.tx.position)))
    }

    /// What the script has on the confirmed chain.
    pub fn script_balance(&self, script: ScriptHash) -> Result<Balance> {
        let unspent = self.script_unspent(script, Amount::ZERO, Page::ALL)?;
        let value = unspent.iter().try_fold(Amount::ZERO, |sum, out| sum.checked_add(out.value));
        let value = value.ok_or(ArchiveError::Damaged { what: "a balance beyond all money" })?;
        Ok(Balance { value, outputs: unspent.len() })
    }
}

fn unique<K: Ord>(mut keys: Vec<K>) -> Vec<K> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

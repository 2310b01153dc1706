//! What a subscriber watches.

use std::collections::BTreeSet;

use varve_types::{Outpoint, ScriptHash, Txid};

use super::Watched;

/// Transactions, scripts and outputs that a subscriber wants to hear about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    txids: BTreeSet<Txid>,
    scripts: BTreeSet<ScriptHash>,
    outpoints: BTreeSet<Outpoint>,
}

impl Watch {
    /// Adds a transaction: its confirmation, and what else becomes of it.
    pub fn tx(&mut self, txid: Txid) -> &mut Self {
        self.txids.insert(txid);
        self
    }

    /// Adds a script: transactions that pay it or spend from it. Which outputs a block spends is
    /// read from the blocks that made them; where those are pruned the stream ends with
    /// [`Error::Pruned`](crate::Error::Pruned).
    pub fn script(&mut self, script: ScriptHash) -> &mut Self {
        self.scripts.insert(script);
        self
    }

    /// Adds an output: the input that spends it.
    pub fn outpoint(&mut self, outpoint: Outpoint) -> &mut Self {
        self.outpoints.insert(outpoint);
        self
    }

    /// How many things are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.txids.len() + self.scripts.len() + self.outpoints.len()
    }

    /// Whether nothing is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn has_scripts(&self) -> bool {
        !self.scripts.is_empty()
    }

    /// Whether this is watched; for a transaction, whether its txid is.
    pub(super) fn has(&self, watched: Watched, txid: &Txid) -> bool {
        match watched {
            Watched::Tx => self.txids.contains(txid),
            Watched::Script(script) => self.scripts.contains(&script),
            Watched::Outpoint(outpoint) => self.outpoints.contains(&outpoint),
        }
    }

    pub(super) fn txids(&self) -> impl Iterator<Item = &Txid> {
        self.txids.iter()
    }

    pub(super) fn scripts(&self) -> impl Iterator<Item = &ScriptHash> {
        self.scripts.iter()
    }

    pub(super) fn outpoints(&self) -> impl Iterator<Item = &Outpoint> {
        self.outpoints.iter()
    }
}

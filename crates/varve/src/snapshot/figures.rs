//! Figures of the unspent set and where its coins lie, and the spends of an output on every branch.

use varve_node::{SetRows, SetStats};
use varve_types::{Height, Outpoint};
use varve_utxo::Layers;

use super::{Moment, Snapshot};
use crate::answer::{BranchSpend, Spender};
use crate::at_rest::State;
use crate::error::Error;

impl Snapshot {
    /// Every input that spends an output, on every branch and in every block, newest first.
    pub fn spends(&self, outpoint: Outpoint) -> Result<Vec<BranchSpend>, Error> {
        self.ask(|view| {
            let spend = |found: &varve_archive::Spender| -> Result<BranchSpend, Error> {
                let (txid, vin, height) = (view.txid(&found.tx)?, found.vin, found.tx.height);
                let block = view.header(found.tx.block)?.hash;
                let spender = Spender { txid, vin, height, block };
                Ok(BranchSpend { spender, confirmed: found.tx.confirmed })
            };
            view.spenders(outpoint)?.iter().map(spend).collect()
        })
    }

    /// The figures of the unspent set at these heights of the confirmed chain, as far as the index
    /// `stats` or earlier questions have counted them. Waits for nobody.
    pub fn set_rows(&self, heights: &[Height]) -> Result<SetRows, Error> {
        let mut found = match &self.moment {
            Moment::AtRest(at_rest) => at_rest.ask(|state| match state {
                State::Asleep(at_rest) => at_rest.reading.set_rows(heights),
                State::Woken(woken) => woken.reader.set_rows(heights),
            })?,
            Moment::Live(live) => live.reader.set_rows(heights)?,
        };
        let is_confirmed = |row: &SetStats| -> Result<bool, Error> {
            Ok(self.header(row.height)?.is_some_and(|header| header.hash == row.block))
        };
        let mut rows = Vec::with_capacity(found.rows.len());
        for row in found.rows {
            if is_confirmed(&row)? {
                rows.push(row);
            }
        }
        found.rows = rows;
        found.counted = found.counted.map(|height| height.min(self.tip().height));
        Ok(found)
    }

    /// How the coins of the unspent set are laid down, and what was being done about it. On a
    /// folder at rest it opens the set.
    pub fn layers(&self) -> Result<Layers, Error> {
        Ok(match &self.moment {
            Moment::AtRest(at_rest) => at_rest.set()?.layers(),
            Moment::Live(live) => live.lease.held()?.snapshot.utxo.layers(),
        })
    }
}

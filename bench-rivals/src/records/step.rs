//! A batch on the plain mapping: read all, apply the units in order, write what changed.

use anyhow::{Context as _, Result};
use hashbrown::HashMap;
use varve_records::Operation;
use varve_records::record::SpendingData;
use varve_types::Txid;

use super::plain;
use super::side::units;

/// The records that a batch touches; `None` for missing ones.
#[derive(Debug, Default)]
pub(super) struct Step {
    records: HashMap<Txid, Held>,
}

#[derive(Debug, Default)]
struct Held {
    value: Option<Vec<u8>>,
    changed: bool,
}

impl Step {
    /// The txids that a batch touches, sorted: those of its parents and its own.
    pub(super) fn keys(operations: &[Operation]) -> Result<Vec<Txid>> {
        let mut keys = Vec::with_capacity(2 * operations.len());
        for unit in units(operations) {
            let unit = unit?;
            keys.push(unit.txid);
            let spends = unit.spend.iter().flat_map(|part| &part.spends);
            keys.extend(spends.map(|spend| spend.outpoint.txid));
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// Takes what was read.
    pub(super) fn hold(&mut self, txid: Txid, value: Option<Vec<u8>>) {
        self.records.insert(txid, Held { value, changed: false });
    }

    /// Applies the units; returns how many were refused.
    pub(super) fn apply(&mut self, operations: &[Operation]) -> Result<usize> {
        let mut refused = 0;
        for unit in units(operations) {
            let unit = unit?;
            let known = self.records.get(&unit.txid).is_some_and(|held| held.value.is_some());
            let mut passed = Vec::new();
            let spends = unit.spend.iter().flat_map(|part| &part.spends);
            for spend in spends.clone() {
                let by = SpendingData::new(unit.txid, spend.vin);
                let rules = unit.spend.as_ref().context("it has spends")?.rules;
                let held = self.records.get(&spend.outpoint.txid).context("all were read")?;
                passed.push(match &held.value {
                    Some(value) => plain::judge(value, spend, by, rules)?,
                    None => known.then_some(true),
                });
            }
            if passed.iter().any(Option::is_none) {
                refused += 1;
                continue;
            }
            for (spend, _) in spends.zip(&passed).filter(|(_, passed)| **passed == Some(false)) {
                let by = SpendingData::new(unit.txid, spend.vin);
                let height = unit.spend.as_ref().context("it has spends")?.rules.height;
                let held = self.records.get_mut(&spend.outpoint.txid).context("all were read")?;
                held.changed = true;
                let value = held.value.as_mut().context("it passed")?;
                plain::write_spend(value, spend.outpoint.vout, by, height)?;
            }
            let Some(new) = &unit.create else { continue };
            if known {
                refused += 1;
                continue;
            }
            let value = Some(plain::encode_new(new)?);
            self.records.insert(unit.txid, Held { value, changed: true });
        }
        Ok(refused)
    }

    /// What is to be written.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&Txid, &Vec<u8>)> {
        let changed = self.records.iter().filter(|(_, held)| held.changed);
        changed.filter_map(|(txid, held)| Some((txid, held.value.as_ref()?)))
    }
}

//! Comparing a whole table with a set of unspent outputs, in constant memory.
//!
//! A table is a sum, so numbers that add up over its rows can be compared with the same numbers
//! added up over the coins, in whatever order either is read:
//!
//! | number | over the table | over the coins |
//! |---|---|---|
//! | outputs | weights of the rows of outputs | 1 |
//! | held | funded less spent | 1 |
//! | balance | received less sent | value |
//! | places | weight · hash of script, height and outpoint | the same hash |
//! | balances | balance · hash of the script | value · the same hash |
//!
//! The last two tell apart which script holds what: two different tables have equal sums with
//! probability 2⁻⁶⁴. All numbers are modulo 2⁶⁴.

use varve_runs::{Run, Source as _};
use varve_types::{Coin, Outpoint, ScriptHash};

use super::codec::History;
use super::error::Result;
use super::identity::{HistoryKeys, Identity};
use super::pane::PaneSource;
use super::row::{Body, Place, Row};
use super::view::HistoryView;

/// Numbers of a table, or of a set of coins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    outputs: u64,
    held: u64,
    balance: u64,
    places: u64,
    balances: u64,
}

impl Audit {
    /// Adds a coin whose script is [indexed](super::is_indexed).
    pub fn add_coin(&mut self, keys: &HistoryKeys, outpoint: &Outpoint, coin: &Coin<'_>) {
        let identity = keys.identity(&ScriptHash::of(coin.script));
        let place = Place::output(coin.height.to_u32(), keys.output(outpoint));
        self.outputs = self.outputs.wrapping_add(1);
        self.held = self.held.wrapping_add(1);
        self.places = self.places.wrapping_add(hash(identity, place));
        self.add_balance(identity, coin.value.to_sat());
    }

    fn add_row(&mut self, row: &Row) {
        match row.body {
            Body::Sums(sums) => {
                let held = sums.funded.wrapping_sub(sums.spent);
                self.held = self.held.wrapping_add_signed(held);
                self.add_balance(row.key.identity, sums.balance());
            }
            Body::Output(_) => {
                let weight = i64::from(row.weight());
                let hash = hash(row.key.identity, row.key.place);
                self.outputs = self.outputs.wrapping_add_signed(weight);
                let signed = if weight < 0 { hash.wrapping_neg() } else { hash };
                self.places = self.places.wrapping_add(signed);
            }
            Body::Tx(_) => {}
        }
    }

    fn add_balance(&mut self, identity: Identity, satoshi: u64) {
        self.balance = self.balance.wrapping_add(satoshi);
        let weighted = hash(identity, Place::SUMS).wrapping_mul(satoshi);
        self.balances = self.balances.wrapping_add(weighted);
    }
}

/// Mixes what is keyed already.
fn hash(identity: Identity, place: Place) -> u64 {
    let mut mixed = 0_u64;
    let [low, high] = [identity.bits(), place.0].map(halves);
    for part in [low, high].as_flattened() {
        mixed = (mixed ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^= mixed >> 29;
    }
    mixed | 1
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
const fn halves(bits: u128) -> [u64; 2] {
    [bits as u64, (bits >> u64::BITS) as u64]
}

impl HistoryView {
    /// The numbers of the table. Reads all of it.
    pub fn audit(&self) -> Result<Audit> {
        let mut audit = Audit::default();
        let (panes, runs) = self.shelves();
        for pane in panes {
            let mut rows = PaneSource::new(std::sync::Arc::clone(pane));
            while let Some(row) = rows.head() {
                audit.add_row(row);
                rows.advance()?;
            }
        }
        for run in runs {
            let mut rows = Run::<History>::cursor(run)?;
            while let Some(row) = rows.head() {
                audit.add_row(row);
                rows.advance()?;
            }
        }
        Ok(audit)
    }
}

//! Who is paid: fresh scripts, hot ones, and those the simulator can sign for.
//!
//! The `signed` share of outputs goes to the pool of keys, and so, since spends draw coins at
//! random, does that share of inputs. Of the rest, two thirds go to a script never seen before and
//! one third to one of 65,535 known ones per kind, by a Zipf-like rank: the hottest script of a
//! chain of 500 blocks has tens of thousands of entries.

use crate::keys::LEVELS;
use crate::rng::Rng;
use crate::script::{Kind, Script};

const HOT_LEVELS: u32 = 16;
const HOT: u32 = 1 << HOT_LEVELS;

/// Draws the scripts of outputs.
pub(crate) struct Addresses {
    signed_percent: u32,
    /// The last number of a fresh script; numbers below `HOT` are the hot ones.
    last: u32,
}

impl Addresses {
    pub(crate) const fn new(signed_percent: u32) -> Self {
        Self { signed_percent, last: HOT }
    }

    pub(crate) fn draw(&mut self, kind: Kind, rng: &mut Rng) -> Script {
        if rng.chance(self.signed_percent, 100) {
            Script::signed(kind, rng.rank(LEVELS))
        } else if rng.chance(1, 3) {
            Script::dummy(kind, rng.rank(HOT_LEVELS))
        } else {
            self.fresh(kind)
        }
    }

    /// A script that was never paid before; numbers repeat after 134 million of them.
    pub(crate) fn fresh(&mut self, kind: Kind) -> Script {
        self.last = if self.last == Script::MAX_ID { HOT } else { self.last + 1 };
        Script::dummy(kind, self.last)
    }

    /// The scripts that are paid most often: of each of these kinds three low ranks, signed
    /// and not.
    pub(crate) fn hottest(kinds: &[Kind]) -> Vec<Script> {
        let ranks = |kind| {
            [0, 5, 40]
                .into_iter()
                .flat_map(move |rank| [Script::dummy(kind, rank), Script::signed(kind, rank)])
        };
        kinds.iter().flat_map(|kind| ranks(*kind)).collect()
    }
}

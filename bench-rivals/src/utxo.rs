//! `cargo xtask bench utxo`.

use anyhow::Result;

use crate::work::Plan;

/// How large everything is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The race.
    plan: Plan,
}

impl Size {
    pub(crate) const SHORT: Self =
        Self { plan: Plan { coins: 2_000_000, warm_up: 160, timed: 400, probes: 200_000 } };
    pub(crate) const FULL: Self =
        Self { plan: Plan { coins: 20_000_000, warm_up: 160, timed: 1_000, probes: 400_000 } };
}

pub(crate) fn run(size: &Size) -> Result<()> {
    println!("{size:?}");
    Ok(())
}

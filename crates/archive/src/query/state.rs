//! Results of validation.
//!
//! A verdict on a transaction row holds under the same rules, at a height and median time not below
//! those it was found at: rules only tighten with both.

use varve_types::Height;

use crate::backend::Tables;
use crate::error::Result;
use crate::link::TxLink;
use crate::row::TxState;
use crate::snapshot::Snapshot;

impl<T: Tables> Snapshot<T> {
    /// The last verdict on a transaction row, under whatever rules.
    pub fn tx_state(&self, tx: TxLink) -> Result<Option<TxState>> {
        let mut states = Vec::with_capacity(1);
        self.tables.tx_states(&[tx], &mut states)?;
        Ok(states.pop().flatten())
    }

    /// The verdict on a transaction row, if it holds under these rules at this height and time.
    pub fn tx_state_under(
        &self,
        tx: TxLink,
        flags: u32,
        height: Height,
        median_time: u32,
    ) -> Result<Option<TxState>> {
        let holds = |state: &TxState| {
            state.flags == flags && state.height <= height && state.median_time <= median_time
        };
        Ok(self.tx_state(tx)?.filter(holds))
    }
}

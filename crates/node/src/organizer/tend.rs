//! What the feeder does for the mempool, when there is no block to be joined.
//!
//! The mempool is opened once the sync has *caught up with its source*: the source has no more
//! headers, every block that it can send is joined, and the commit is made. The time of the tip
//! does not matter, so a chain of tests or a simulated one has a mempool too. A first sync has none
//! until it is through.

use std::time::Duration;

use super::feeder::Feeder;
use super::set_memory;
use crate::error::Error;
use crate::header_tree::HeaderId;

impl Feeder<'_, '_, '_, '_> {
    /// Opens the mempool when it is time, and serves those who want something of it.
    pub(super) fn tend(&mut self, target: HeaderId) -> Result<(), Error> {
        let now = (self.intake.options.clock)();
        // Records know no height below the first block.
        let has_chain = target != HeaderId::GENESIS;
        let has_caught_up = has_chain && self.stores.tip == target && !self.intake.is_waiting();
        if has_caught_up && self.stores.mempool.is_due(now) {
            self.open_mempool(now)?;
        }
        self.intake.tend(self.stores, now);
        Ok(())
    }

    /// Takes the share of the memory from the unspent set and opens the mempool in it. Where that
    /// is too much, there is no mempool.
    fn open_mempool(&mut self, now: Duration) -> Result<(), Error> {
        let source = self.intake.source_memory();
        let budget = self.stores.budget_with_mempool(self.budget.memory, source);
        match set_memory(budget, |memory| self.joiner.set_memory(memory)) {
            Ok(budget) => self.budget = budget,
            Err(error @ Error::Memory { .. }) => {
                self.stores.mempool.postpone(now);
                self.intake.complain(&error.to_string());
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.intake.open_mempool(self.stores, budget.mempool, now);
        Ok(())
    }
}

//! What a script was paid and has spent, in five numbers that add up.
//!
//! The sums of a script are those of its groups in all runs and panes added up. A group that takes
//! blocks back has negative ones, so counts are signed. Values are kept modulo 2⁶⁴: a rich owner
//! can pay itself more often than 64 bits count, but received less sent, the balance, is below the
//! 21 million coins there are and therefore exact.

/// Counts and values of one script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Outputs that pay the script.
    pub funded: i64,
    /// Those of them that are spent.
    pub spent: i64,
    /// Transactions that do either.
    pub txs: i64,
    /// Value of the funded outputs in satoshi, modulo 2⁶⁴.
    pub received: u64,
    /// Value of the spent outputs in satoshi, modulo 2⁶⁴.
    pub sent: u64,
}

impl Sums {
    /// What the script holds, in satoshi.
    #[must_use]
    pub const fn balance(&self) -> u64 {
        self.received.wrapping_sub(self.sent)
    }

    /// Adds what another group has.
    pub(super) const fn add(&mut self, other: &Self) {
        self.funded = self.funded.wrapping_add(other.funded);
        self.spent = self.spent.wrapping_add(other.spent);
        self.txs = self.txs.wrapping_add(other.txs);
        self.received = self.received.wrapping_add(other.received);
        self.sent = self.sent.wrapping_add(other.sent);
    }

    /// What takes these back.
    pub(super) const fn negated(&self) -> Self {
        Self {
            funded: self.funded.wrapping_neg(),
            spent: self.spent.wrapping_neg(),
            txs: self.txs.wrapping_neg(),
            received: self.received.wrapping_neg(),
            sent: self.sent.wrapping_neg(),
        }
    }
}

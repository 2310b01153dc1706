//! What still fits into a block by the rules of its network.
//!
//! * Bitcoin: a block weighs at most 4,000,000, and its signature operations cost at most 80,000.
//! * BSV before its Genesis upgrade: a transaction has at most 1 MB and 20,000 signature
//!   operations, a block 20,000 for every million bytes begun.
//! * BSV since then: nothing that a simulated chain could exceed.
//!
//! Signature operations are counted in BIP141's cost everywhere: 4 for one of the old kind. The
//! limits here are a little below those of the rules, which leaves room for the coinbase.

use varve_types::{Height, Network};

use crate::transaction::Transaction;

const MAX_WEIGHT: u32 = 3_980_000;
const MAX_SIGOPS: u32 = 79_000;
/// The most bytes of a BSV transaction before Genesis.
const BSV_TRANSACTION: u32 = 1_000_000;
/// The cost of signature operations for a million bytes of a BSV block before Genesis, and of one
/// transaction.
const BSV_SIGOPS: u32 = 4 * 20_000 - 400;
const MILLION: u32 = 1_000_000;

#[derive(Clone, Copy)]
enum Rules {
    Bitcoin,
    BsvBeforeGenesis,
    Unlimited,
}

/// The room in one block.
pub(crate) struct Room {
    rules: Rules,
    weight: u32,
    bytes: u32,
    sigops: u32,
}

impl Room {
    /// The room in an empty block of this height.
    pub(crate) fn new(network: Network, height: u32) -> Self {
        let rules = match network.genesis_upgrade() {
            None => Rules::Bitcoin,
            Some(upgrade) if Height::new(height) < upgrade => Rules::BsvBeforeGenesis,
            Some(_) => Rules::Unlimited,
        };
        Self { rules, weight: 0, bytes: 0, sigops: 0 }
    }

    /// Takes the room of a transaction, if there is as much.
    pub(crate) fn take(&mut self, transaction: &Transaction) -> bool {
        let weight = self.weight.saturating_add(transaction.weight);
        let bytes = self.bytes.saturating_add(transaction.base_len);
        let sigops = self.sigops.saturating_add(transaction.sigops);
        let fits = match self.rules {
            Rules::Bitcoin => weight <= MAX_WEIGHT && sigops <= MAX_SIGOPS,
            Rules::BsvBeforeGenesis => {
                let limit = BSV_SIGOPS.saturating_mul(bytes.div_ceil(MILLION));
                transaction.base_len <= BSV_TRANSACTION
                    && transaction.sigops <= BSV_SIGOPS
                    && sigops <= limit
            }
            Rules::Unlimited => true,
        };
        if fits {
            (self.weight, self.bytes, self.sigops) = (weight, bytes, sigops);
        }
        fits
    }
}

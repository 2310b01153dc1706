//! The decoders of `varve-types`, against the `bitcoin` crate where it has the same.

mod block;
mod number;
mod script;
mod transaction;

use crate::Target;

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "compact_size",
        run: number::compact_size,
        seeds: |_| number::compact_size_seeds(),
    },
    Target { name: "script", run: script::script, seeds: script::seeds },
    Target {
        name: "transaction",
        run: transaction::transaction,
        seeds: |examples| examples.transactions.clone(),
    },
    Target {
        name: "legacy_transaction",
        run: transaction::legacy,
        seeds: |examples| examples.transactions.clone(),
    },
    Target {
        name: "extended_transaction",
        run: transaction::extended,
        seeds: transaction::extended_seeds,
    },
    Target { name: "block", run: block::block, seeds: |examples| examples.blocks.clone() },
];

//! The decoders of `varve-types`, against the `bitcoin` crate where it has the same.

mod blk;
mod block;
mod compress;
mod number;
mod proof;
mod script;
mod text;
mod transaction;

use crate::Target;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "compact_size", run: number::compact_size, seeds: |_| number::seeds() },
    Target { name: "varint", run: number::varint, seeds: |_| number::seeds() },
    Target { name: "text", run: text::text, seeds: |_| text::seeds() },
    Target { name: "script", run: script::script, seeds: script::seeds },
    Target { name: "compressed_script", run: compress::script, seeds: script::seeds },
    Target { name: "compressed_output", run: compress::output, seeds: compress::output_seeds },
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
    Target { name: "proof", run: proof::proof, seeds: proof::seeds },
    Target { name: "block_file", run: blk::records, seeds: blk::seeds },
];

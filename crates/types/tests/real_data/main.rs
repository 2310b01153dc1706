//! Real blocks, and the answers of real nodes about them.
//!
//! | file | what is compared |
//! |---|---|
//! | `load.rs` | reads every block of the data, whatever its container |
//! | `address.rs` | Core's lists of valid and invalid addresses |
//! | `blocks.rs` | parse, round trip and hashes of every block, against the `bitcoin` crate |
//! | `sets.rs` | the set of unspent outputs: `muhash`, `hash_serialized_3`, counts, amounts |
//! | `spent.rs` | compression of the outputs that real blocks spend |
//! | `snapshot.rs` | compressed outputs in a Core snapshot, byte for byte |
//! | `pushdata.rs` | the pushdata hashes and TSC proofs of block 413567 |
//! | `vectors.rs` | the transactions of Core's JSON vectors |

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]
#![expect(clippy::cast_possible_truncation, reason = "numbers in test data are small")]

mod address;
mod blocks;
mod load;
mod pushdata;
mod sets;
mod snapshot;
mod spent;
mod vectors;

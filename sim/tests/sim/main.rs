//! The simulator from outside, as one program.
//!
//! | file | what is tested |
//! |---|---|
//! | `answers.rs` | the answers of `expected.json`, computed again from the block files |
//! | `bitcoind.rs` | a real node accepts a signed chain and gives the same answers |
//! | `determinism.rs` | a description gives the same bytes, with any number of threads |
//! | `reorgs.rs` | branches: order, moved, doubled and dropped transactions |
//! | `rules.rs` | the blocks as the `bitcoin` crate sees them |
//! | `signatures.rs` | every signature verifies over the digest of the `bitcoin` crate |
//! | `statistics.rs` | a chain has the figures of its profile, within a tenth |

mod answers;
mod bitcoind;
mod determinism;
mod reorgs;
mod rules;
mod signatures;
mod statistics;

//! The whole node: real chains, a real node beside it, reorganisations, bad blocks, crashes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed test may panic")]

mod answers;
mod bad_blocks;
mod bad_sources;
mod bit_flips;
mod checked;
mod compact;
mod conduit;
mod crash;
mod indexes;
mod mempool;
mod miner;
mod peers;
mod prune;
mod reading;
mod real_node;
mod reorganisations;
mod replay;
mod retries;
mod rig;
mod rpc;
mod scan;
mod script_history;
mod script_peer;
mod second_opinion;
mod verdicts;
#[path = "../peer/wire.rs"]
mod wire;

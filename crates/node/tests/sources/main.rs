//! Every source gives every block, to a receiver that does what an organizer does.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]
#![forbid(unsafe_code)]

mod bad_peers;
mod files;
mod real_node;
mod receiver;
#[path = "../peer/wire.rs"]
mod wire;

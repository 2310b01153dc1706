//! The servers as their clients see them.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]
#![expect(clippy::indexing_slicing, reason = "a test stops where it fails")]

mod conduit;
mod electrum;
mod esplora;
mod explorer;
mod http;
mod http_limits;
mod model;
mod own;

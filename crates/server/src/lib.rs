//! The servers' crate: the one library crate that knows JSON.
//!
//! - [`service`]: a node that is served, and what all protocols share;
//! - [`serve`]: all servers of a node, started and stopped together;
//! - [`electrum`]: the Electrum protocol; [`http`]: REST and the explorer;
//! - [`json`]: the shapes of JSON answers, which the servers share with the command;
//! - [`local`]: commands that run in the process that holds a folder;
//! - [`metrics`], [`sync_state`], [`log`]: what the servers report of themselves.
//!
//! Must not know: file formats, any engine below the library `varve`. Layer 4.

#![forbid(unsafe_code)]

pub mod electrum;
mod explorer;
pub mod http;
pub mod json;
pub mod local;
pub mod log;
pub mod metrics;
pub mod serve;
pub mod service;
pub mod sync_state;

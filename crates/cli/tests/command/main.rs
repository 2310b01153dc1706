//! The `varve` command as a user types it: answers, refusals, exit codes, files, signals.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

mod address;
mod chain;
mod config;
mod demo;
mod electrum_wallet;
mod exit_codes;
mod foreign;
mod keep;
mod killed;
mod limits;
mod local_socket;
mod maintain;
mod memory;
mod opening;
mod output;
mod peer;
mod peer_scripts;
mod peers;
mod profiles;
mod proofs;
mod readable;
mod real_node;
mod refused;
mod reorganisations;
mod serve;
mod served;
mod set;
mod sim;
mod sources;
mod stop;
mod varve;
mod verdicts;
#[path = "../../../node/tests/peer/wire.rs"]
mod wire;

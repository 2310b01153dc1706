//! The `varve` command as a user types it: answers, refusals, exit codes, files, signals.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

mod chain;
mod exit_codes;
mod keep;
mod killed;
mod output;
mod real_node;
mod refused;
mod set;
mod sim;
mod stop;
mod varve;
mod verdicts;

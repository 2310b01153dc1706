//! Fuzz targets for every decoder: what comes off a disk or a wire may be anything, and must give
//! an answer or an error, never a panic, and never a wrong answer.
//!
//! A [`Target`] is a plain function over bytes that panics when a claim does not hold. The claims
//! are of three kinds:
//!
//! - *round trip*: what was decoded and is encoded again gives the same bytes;
//! - *agreement*: another implementation (the `bitcoin` crate, a simpler way) accepts and refuses
//!   the same inputs and gives the same answer;
//! - *no panic*, no endless loop and no great allocation, which every target claims by running.
//!
//! The same targets run in two ways:
//!
//! - `cargo test -p varve-fuzz`: each for about a second on mutated examples, the same every time;
//!   so every `cargo xtask test` exercises them all;
//! - `cargo xtask fuzz`: each for a minute or more under libFuzzer, which looks for inputs that
//!   reach new code.
//!
//! One file for each crate under test. To add a target, add it to the list in that file, and its
//! name to `tests/short.rs`.

#![forbid(unsafe_code)]

mod archive;
mod blocks;
pub mod examples;
mod io;
pub mod mutate;
mod node;
mod records;
mod script_core;
mod server;
mod sha256;
mod types;
mod utxo;
mod utxo_files;

use examples::Examples;

/// A function to fuzz.
pub struct Target {
    /// How it is called on the command line.
    pub name: &'static str,
    /// Runs it once. It panics when a claim does not hold.
    pub run: fn(&[u8]),
    /// Inputs that get through, for mutations to begin with.
    pub seeds: fn(&Examples) -> Vec<Vec<u8>>,
}

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    let crates = [
        sha256::TARGETS,
        types::TARGETS,
        script_core::TARGETS,
        io::TARGETS,
        blocks::TARGETS,
        utxo::TARGETS,
        utxo_files::TARGETS,
        archive::TARGETS,
        records::TARGETS,
        node::TARGETS,
        server::TARGETS,
    ];
    crates.into_iter().flatten()
}

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    targets().find(|target| target.name == name)
}

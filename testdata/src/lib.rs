//! Where tests find real chain data and a real node, and how a test reports that it was skipped.
//!
//! The data is not part of the project. It is looked for in the folder that `VARVE_DATA` names,
//! else in `shared/data` beside the checkout. A test that cannot run without it calls
//! [`data`] and returns when the answer is `None`:
//!
//! ```
//! let Some(data) = varve_testdata::data("chains/mainnet-0-4312.blk.dat") else { return };
//! assert!(data.exists());
//! ```
//!
//! Rust's test harness has no "skipped", so the reason is written where `cargo xtask test` looks:
//! one line `PACKAGE TEST<TAB>REASON` appended to the file named by `VARVE_SKIP_LOG`, and to
//! standard error. With `VARVE_REQUIRE_DATA=1` missing data is a panic instead, so that a checkout
//! that should have the data cannot pass without it.
//!
//! [`chains`] reads the chains of the data, [`bitcoind`] runs a real node, [`rpc_server`] answers
//! as one does, [`cgroup`] limits the memory of a child, [`Random`] draws numbers that a seed
//! repeats.

#![forbid(unsafe_code)]

pub mod bitcoind;
pub mod cgroup;
pub mod chains;
mod random;
pub mod rpc_server;

pub use random::Random;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The path of one file or folder of the data, or `None` after recording the skip.
///
/// # Panics
///
/// When the data is missing and `VARVE_REQUIRE_DATA=1` is set.
#[must_use]
pub fn data(relative: &str) -> Option<PathBuf> {
    let path = root().join(relative);
    if path.exists() {
        return Some(path);
    }
    let reason = format!("{relative} not found; set VARVE_DATA to the folder that holds it");
    let required = std::env::var_os("VARVE_REQUIRE_DATA").is_some_and(|value| value == "1");
    assert!(!required, "VARVE_REQUIRE_DATA=1, but {reason}");
    skip(&reason);
    None
}

/// Records that the running test was skipped, and why. The test returns after calling this.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    // Cargo passes the package's name in the environment; the harness names the thread after the
    // test.
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let test = format!("{package} {}", thread.name().unwrap_or("a test"));
    eprintln!("{test}: skipped: {reason}");
    if let Some(log) = std::env::var_os("VARVE_SKIP_LOG") {
        let line = format!("{test}\t{reason}\n");
        // One write of one line to a file opened for appending: lines of tests that run at the
        // same time do not mix.
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("VARVE_SKIP_LOG names a file that can be appended to");
    }
}

fn root() -> PathBuf {
    std::env::var_os("VARVE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        PathBuf::from,
    )
}

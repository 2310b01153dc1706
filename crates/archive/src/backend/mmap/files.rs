//! Which files belong to an archive: those of its tables, and its manifest.
//!
//! ```text
//!  archive                     the manifest
//!  TABLE-000000000000 …        the body of a table, in segments
//!  TABLE.head                  its head
//!  TABLE.redo-0000000000000000 pages of the head that are not in their places yet
//!  tx/ spend/ pushdata/        the search tables, each with
//!      manifest                  its manifest
//!      0000000000.run …          its runs
//! ```
//!
//! Emptying the folder removes these files and no others.

use varve_io::is_envelope;
use varve_runs::{MANIFEST_FILE, RunNumber};

use super::MANIFEST;
use crate::primitive::{is_manifest_file, is_table_file};

/// Every table that an archive may have.
const TABLES: [&str; 10] = [
    "header",
    "block",
    "block_tx",
    "tx_len",
    "filter",
    "filter_at",
    "tx_state",
    "candidate",
    "confirmed",
    "block_state",
];

/// The folders of the search tables.
pub const SEARCH_TABLES: [&str; 3] = ["tx", "spend", "pushdata"];

/// Whether a search table writes files of this name.
#[must_use]
pub fn is_search_file(name: &str) -> bool {
    let number = name.strip_suffix(".run").and_then(|number| number.parse().ok());
    is_envelope(MANIFEST_FILE, name)
        || number.is_some_and(|number| RunNumber(number).file_name() == name)
}

/// Whether an archive writes files of this name.
#[must_use]
pub fn is_store_file(name: &str) -> bool {
    is_manifest_file(MANIFEST, name) || TABLES.iter().any(|table| is_table_file(table, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_ours_to_the_last_letter() {
        for name in
            ["archive", "archive.tmp", "archive.restoring", "header-000000000012", "header.head"]
        {
            assert!(is_store_file(name), "{name}");
        }
        assert!(is_store_file("block_state.redo-0000000000000007"));
        for name in [
            "2019.tar",
            "archive.bak",
            "header",
            "header-1",
            "header-old",
            "header-000000000012.bak",
            "header.head.bak",
            "header.redo-7",
            "header.redo-mine",
            "wallet.head",
        ] {
            assert!(!is_store_file(name), "{name}");
        }
        assert!(is_search_file("manifest") && is_search_file("0000000012.run"));
        for name in ["12.run", "0000000012.run.bak", "mine.run", "manifest.bak"] {
            assert!(!is_search_file(name), "{name}");
        }
    }
}

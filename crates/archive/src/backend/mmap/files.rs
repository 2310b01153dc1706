//! Which files belong to an archive: those of its tables, and its manifest.
//!
//! ```text
//!  archive                     the manifest
//!  TABLE-000000000000 …        the body of a table, in segments
//!  TABLE.head                  its head
//!  TABLE.redo-0000000000000000 pages of the head that are not in their places yet
//! ```
//!
//! Whoever empties the folder removes these and nothing else.

use super::MANIFEST;
use crate::primitive::{is_manifest_file, is_table_file};

/// Every table that an archive may have.
const TABLES: [&str; 13] = [
    "header",
    "block",
    "block_tx",
    "tx_len",
    "tx",
    "spend",
    "script",
    "filter",
    "filter_at",
    "tx_state",
    "candidate",
    "confirmed",
    "block_state",
];

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
        for name in ["archive", "archive.tmp", "archive.restoring", "tx-000000000012", "tx.head"] {
            assert!(is_store_file(name), "{name}");
        }
        assert!(is_store_file("block_state.redo-0000000000000007"));
        for name in [
            "2019.tar",
            "archive.bak",
            "tx",
            "tx-1",
            "tx-old",
            "tx-000000000012.bak",
            "tx.head.bak",
            "tx.redo-7",
            "tx.redo-mine",
            "wallet.head",
        ] {
            assert!(!is_store_file(name), "{name}");
        }
    }
}

//! The decoders of `varve-archive`: the leaves of its search tables.

use varve_archive::TxLink;
use varve_archive::search::suite::{decode_leaf, encode_leaf, find_in_leaf};
use varve_archive::search::{Fingerprint, Row};

use crate::Target;

pub(crate) const TARGETS: &[Target] =
    &[Target { name: "search_leaf", run: search_leaf, seeds: |_| leaves() }];

/// What decodes is in order, is found by its key, and encodes to leaves with the same rows. What
/// does not decode can still be searched without harm.
fn search_leaf(bytes: &[u8]) {
    let keys = bytes.chunks(8).take(8).map(|bytes| {
        Fingerprint::new(bytes.iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte)))
    });
    for key in keys {
        let found = find_in_leaf(bytes, key).unwrap_or_default();
        assert!(found.len() <= bytes.len() * 8, "a row takes a bit at least");
    }
    let Some(rows) = decode_leaf(bytes) else { return };
    assert!(rows.is_sorted_by(|a, b| a < b));
    for key in rows.chunk_by(|a, b| a.fingerprint == b.fingerprint) {
        let found = key.first().and_then(|row| find_in_leaf(bytes, row.fingerprint));
        assert!(found.is_some_and(|found| found.iter().eq(key.iter().map(|row| &row.link))));
    }
    let mut rest = rows.as_slice();
    while !rest.is_empty() {
        let (payload, count) = encode_leaf(rest);
        let (here, behind) = rest.split_at(count);
        assert_eq!(decode_leaf(&payload).as_deref(), Some(here));
        rest = behind;
    }
}

/// Leaves whose fingerprints all differ, repeat a little, and repeat much.
fn leaves() -> Vec<Vec<u8>> {
    let leaf = |shift: u32| {
        let row = |row: u64| Row {
            fingerprint: Fingerprint::new((row >> shift).wrapping_mul(0x3c6e_f372_fe94)),
            link: TxLink::new(row.wrapping_mul(77) % 1_000_003),
        };
        let mut rows: Vec<Row> = (0..300).map(row).collect();
        rows.sort_unstable();
        rows.dedup();
        encode_leaf(&rows).0
    };
    vec![leaf(0), leaf(1), leaf(6)]
}

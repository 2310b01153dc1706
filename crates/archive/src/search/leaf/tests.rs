//! What is encoded decodes, whatever the rows; what is not a leaf is an error.

use std::collections::BTreeSet;

use proptest::prelude::*;
use varve_io::PAGE_PAYLOAD_LEN;

use super::*;

fn row(fingerprint: u64, link: u64) -> Row {
    let fingerprint = Fingerprint::from_bits(fingerprint & Fingerprint::MAX.bits()).unwrap();
    Row { fingerprint, link: TxLink::new(link & bits::mask(LINK_BITS)) }
}

/// Numbers that follow one another in no order: a multiplicative generator.
fn random(seed: u64) -> impl Iterator<Item = u64> {
    let next = |state: &u64| Some(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405));
    let mix = |state: u64| (state ^ state >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
    std::iter::successors(Some(seed | 1), next).skip(1).map(mix)
}

/// `rows` rows with fingerprints that are `gap` apart on average, and links below `links`.
fn spread(rows: usize, gap: u64, links: u64) -> Vec<Row> {
    let mut numbers = random(7);
    let mut next = move || numbers.next().unwrap();
    let mut at = 0;
    let rows = (0..rows).map(|_| {
        at += next() % (2 * gap + 1);
        row(at, next() % links)
    });
    rows.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Encodes all rows, checks the leaves, and returns how many bytes of pages a row takes.
fn check(rows: &[Row]) -> f64 {
    let (mut rest, mut leaves, mut decoded) = (rows, 0, Vec::new());
    while !rest.is_empty() {
        let mut payload = Vec::new();
        let taken = encode(rest, &mut payload);
        assert!(taken > 0 && payload.len() <= PAGE_PAYLOAD_LEN);
        payload.resize(PAGE_PAYLOAD_LEN, 0);
        let (here, behind) = rest.split_at(taken);
        let leaf = Leaf::parse(&payload).unwrap();
        leaf.decode(&mut decoded).unwrap();
        assert!(decoded == here, "{} rows", here.len());
        for rows in here.chunk_by(|a, b| a.fingerprint == b.fingerprint) {
            let found = leaf.find(rows[0].fingerprint);
            assert!(found.eq(rows.iter().map(|row| row.link)));
            assert!(found.rev().eq(rows.iter().rev().map(|row| row.link)));
            for near in [rows[0].fingerprint.bits().wrapping_sub(1), rows[0].fingerprint.bits() + 1]
            {
                let Some(near) = Fingerprint::from_bits(near) else { continue };
                let here = here.iter().filter(|row| row.fingerprint == near);
                assert!(leaf.find(near).eq(here.map(|row| row.link)));
            }
        }
        (rest, leaves) = (behind, leaves + 1);
    }
    f64::from(leaves) * 4096.0 / rows.len() as f64
}

#[test]
fn rows_take_few_bytes() {
    // The gaps of 1.4 and 3.4 billion rows, links of 30, 31 and 40 bits.
    for (gap, links, most) in [
        (785, 1 << 30, 5.25),
        (785, 1 << 31, 5.38),
        (327, 1 << 30, 5.10),
        (327, 1 << 31, 5.22),
        (327, 1 << 40, 6.35),
        // A busy script: one fingerprint, links that ascend.
        (0, 1 << 24, 2.45),
    ] {
        let bytes = check(&spread(200_000, gap, links));
        assert!(bytes <= most && bytes > most - 0.4, "{bytes:.3} with {gap} and {links}");
    }
}

#[test]
fn scripts_of_five_rows_each_pay_once_for_the_fingerprint() {
    let mut numbers = random(3);
    let mut next = || numbers.next().unwrap();
    let rows = (0..8_000).flat_map(|index| {
        let fingerprint = index * 1_600 + next() % 1_600;
        [next(), next(), next(), next(), next()].map(|link| row(fingerprint, link % (1 << 31)))
    });
    let rows: BTreeSet<Row> = rows.collect();
    let bytes = check(&rows.into_iter().collect::<Vec<_>>());
    assert!(bytes < 4.42, "{bytes:.3}");
}

#[test]
fn the_widest_rows_fit() {
    let (top, last) = (Fingerprint::MAX.bits(), bits::mask(LINK_BITS));
    check(&[row(0, 0)]);
    check(&[row(top, last)]);
    check(&[row(0, 0), row(0, last), row(top, 0), row(top, last)]);
    check(&spread(3_000, 1 << 28, u64::MAX));
}

#[test]
fn every_changed_byte_is_an_error_or_other_rows_in_order() {
    let rows = [spread(600, 300, 1 << 31), spread(600, 1, 1 << 12)].concat();
    let rows: BTreeSet<Row> = rows.into_iter().collect();
    let mut payload = Vec::new();
    encode(&rows.into_iter().collect::<Vec<_>>(), &mut payload);
    payload.resize(PAGE_PAYLOAD_LEN, 0);
    for at in 0..payload.len() {
        for change in [1, 0x80, 0xff] {
            payload[at] ^= change;
            hostile(&payload);
            payload[at] ^= change;
        }
    }
}

/// Looks at bytes that may be no leaf: they are one in every way, or in none.
fn hostile(payload: &[u8]) {
    let Ok(leaf) = Leaf::parse(payload) else { return };
    for key in [0, 1, 77, 1 << 20, Fingerprint::MAX.bits()] {
        assert!(leaf.find(Fingerprint::from_bits(key).unwrap()).count() <= leaf.rows());
    }
    let mut rows = Vec::new();
    if leaf.decode(&mut rows).is_ok() {
        assert_eq!(rows.len(), leaf.rows());
        assert!(rows.is_sorted_by(|a, b| a < b));
        for row in rows {
            assert!(leaf.find(row.fingerprint).any(|link| link == row.link), "{row}");
        }
    }
}

proptest! {
    #[test]
    fn any_rows(
        rows in prop::collection::btree_set(
            (0..64_u32, any::<u64>(), 0..64_u32, any::<u64>()),
            1..1_500,
        ),
    ) {
        let rows = rows.into_iter().map(|(narrow, fingerprint, thin, link)| {
            row(fingerprint >> narrow, link >> thin)
        });
        check(&rows.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn hostile_bytes(
        mut bytes in prop::collection::vec(any::<u8>(), 0..PAGE_PAYLOAD_LEN),
        counts in (1..200_u16, 1..200_u16, 0..200_u16, 0..12_u8, 0..40_u8),
    ) {
        hostile(&bytes);
        let (rows, coded, steps, low, width) = counts;
        if bytes.len() >= HEADER_LEN {
            bytes[ROWS_AT..][..2].copy_from_slice(&rows.to_le_bytes());
            bytes[CODED_AT..][..2].copy_from_slice(&coded.min(rows).to_le_bytes());
            bytes[STEPS_AT..][..2].copy_from_slice(&steps.to_le_bytes());
            (bytes[LOW_AT], bytes[WIDTH_AT]) = (low, width);
            hostile(&bytes);
        }
    }
}

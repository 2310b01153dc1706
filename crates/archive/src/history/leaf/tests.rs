//! Leaves against the rows they were made of, and hostile bytes.

use proptest::prelude::*;
use varve_io::PAGE_PAYLOAD_LEN;

use super::*;
use crate::history::combine::Total;

/// What is made of numbers: rows of few scripts, many of one of them.
fn rows(numbers: &[(u64, u64, u32)], scripts: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (script, number, salt) in numbers {
        let script = if number % 3 == 0 { 0 } else { script % scripts };
        let identity = Identity::new(script.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24, script + 1);
        let removed = salt % 7 == 0;
        let sums = match salt % 3 {
            0 => Sums { funded: 1, txs: 1, received: *number, ..Sums::default() },
            1 => Sums { funded: 1, spent: 1, txs: 2, received: *number, sent: *number },
            _ => Sums { funded: -5, spent: 70_000, txs: 3, received: 1, sent: *number },
        };
        rows.push(Row::new(identity, Place::SUMS, Body::Sums(sums)));
        let link = TxLink::new(number >> (8 + salt % 40));
        if salt % 5 > 0 {
            let weight = if removed { Weight::Remove } else { Weight::Add };
            rows.push(Row::new(identity, Place::tx(link), Body::Tx(weight)));
        }
        if salt % 4 > 1 {
            let place = Place::output(salt >> 8, *number);
            let added = (!removed).then_some((link, salt % 300));
            rows.push(Row::new(identity, place, Body::Output(added)));
        }
    }
    rows.sort_unstable_by_key(|row| row.key);
    rows.dedup_by_key(|row| row.key);
    rows
}

fn numbers(most: usize) -> impl Strategy<Value = Vec<(u64, u64, u32)>> {
    prop::collection::vec((any::<u64>(), any::<u64>(), any::<u32>()), 1..most)
}

/// The rows of leaves of at most `limit` bytes, and what a search finds in each.
fn round_trip(mut rows: &[Row], limit: usize, base: u64) {
    let mut decoded = Vec::new();
    while !rows.is_empty() {
        let mut payload = Vec::new();
        let taken = encode(rows, limit, &mut payload);
        assert!(taken > 0 && payload.len() <= limit, "{taken} rows, {} bytes", payload.len());
        payload.resize(limit, 0);
        let leaf = Leaf::parse(&payload, base).unwrap();
        leaf.decode(&mut decoded).unwrap();
        let shift = |row: &Row| {
            let lifted = |link: TxLink| TxLink::new(link.to_u64() + base);
            let mut row = *row;
            if row.key.place.is_tx() {
                row.key.place = Place::tx(lifted(TxLink::new(row.key.place.low())));
            }
            if let Body::Output(Some((link, _))) = &mut row.body {
                *link = lifted(*link);
            }
            row
        };
        let wanted: Vec<Row> = rows[..taken].iter().map(shift).collect();
        assert_eq!(decoded, wanted);
        for group in wanted.chunk_by(|a, b| a.key.identity == b.key.identity) {
            let identity = group[0].key.identity;
            let mut found = Vec::new();
            let place = leaf.find(identity, |row| found.push(row)).unwrap().unwrap();
            assert_eq!(found, group);
            assert_eq!(place.continues, group[0].key.place != Place::SUMS);
            assert_eq!(place.is_last, wanted.last() == group.last());
            let absent = Identity::from_bits(identity.bits() + 1).unwrap();
            assert_eq!(leaf.find(absent, |_| ()).unwrap(), None);
        }
        rows = &rows[taken..];
    }
}

proptest! {
    #[test]
    fn leaves_have_the_rows_they_were_made_of(
        (many, few) in (numbers(700), 1..200_u64),
        base in prop_oneof![Just(0), 0..1_u64 << 40],
    ) {
        let rows = rows(&many, few);
        round_trip(&rows, PAGE_PAYLOAD_LEN, base);
        round_trip(&rows, 512, base);
    }

    #[test]
    fn damaged_bytes_are_an_error_or_other_rows_but_never_a_panic(
        many in numbers(200),
        flips in prop::collection::vec((any::<u16>(), any::<u8>()), 1..6),
        cut in any::<u16>(),
    ) {
        let rows = rows(&many, 20);
        let mut payload = Vec::new();
        encode(&rows, PAGE_PAYLOAD_LEN, &mut payload);
        for (at, byte) in flips {
            let at = usize::from(at) % payload.len();
            payload[at] ^= byte;
        }
        payload.truncate(payload.len() - usize::from(cut) % (payload.len() / 4 + 1));
        let mut decoded = Vec::new();
        if let Ok(leaf) = Leaf::parse(&payload, 0) {
            let _ = leaf.decode(&mut decoded);
            let _ = leaf.find(rows[0].key.identity, |_| ());
        }
        prop_assert!(decoded.len() <= 2 * payload.len());
    }

    #[test]
    fn any_bytes_are_an_error_or_rows(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut decoded = Vec::new();
        if let Ok(leaf) = Leaf::parse(&bytes, 0) {
            let _ = leaf.decode(&mut decoded);
        }
    }
}

#[test]
fn a_script_funded_once_and_spent_once_takes_19_bytes() {
    let row = |script: u64| {
        let identity = Identity::new(script * 850, script);
        let value = 30_000_000;
        let sums = Sums { funded: 1, spent: 1, txs: 2, received: value, sent: value };
        let tx = |link| Row::new(identity, Place::tx(TxLink::new(link)), Body::Tx(Weight::Add));
        let first = 1_000_000_000 + script * 77_777;
        [Row::new(identity, Place::SUMS, Body::Sums(sums)), tx(first), tx(first + 300_000)]
    };
    let rows: Vec<Row> = (0..1_000).flat_map(row).collect();
    let mut payload = Vec::new();
    let taken = encode(&rows, PAGE_PAYLOAD_LEN, &mut payload);
    assert_eq!((payload.len() - HEADER_LEN + 1) / (taken / 3), 19, "{} {taken}", payload.len());
}

#[test]
fn small_groups_are_not_cut() {
    let mut rows = Vec::new();
    for script in 0..400_u64 {
        let identity = Identity::new(script, 1);
        rows.push(Row::new(identity, Place::SUMS, Body::Sums(Sums::default())));
        for link in 0..script % 90 {
            let place = Place::tx(TxLink::new(script * 1_000 + link));
            rows.push(Row::new(identity, place, Body::Tx(Weight::Add)));
        }
    }
    let mut rest = rows.as_slice();
    while !rest.is_empty() {
        assert_eq!(rest[0].key.place, Place::SUMS, "a leaf begins with a group");
        let taken = encode(rest, PAGE_PAYLOAD_LEN, &mut Vec::new());
        rest = &rest[taken..];
    }
}

#[test]
fn weights_add_up() {
    let identity = Identity::new(1, 2);
    let tx = |weight| Row::new(identity, Place::tx(TxLink::new(7)), Body::Tx(weight));
    let mut total = Total::of(&tx(Weight::Remove));
    assert_eq!(total.row(), Some(tx(Weight::Remove)));
    total.add(&tx(Weight::Add));
    assert_eq!(total.row(), None);
    total.add(&tx(Weight::Add));
    assert_eq!(total.row(), Some(tx(Weight::Add)));
    let output = |added| Row::new(identity, Place::output(3, 9), Body::Output(added));
    let mut total = Total::of(&output(None));
    total.add(&output(Some((TxLink::new(4), 1))));
    assert_eq!(total.row(), None);
    total.add(&output(Some((TxLink::new(4), 1))));
    assert_eq!(total.row(), Some(output(Some((TxLink::new(4), 1)))));
}

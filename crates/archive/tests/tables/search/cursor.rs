//! Cursors over a key with rows in many leaves of several runs and panes.

use std::sync::Arc;

use varve_archive::TxLink;
use varve_archive::search::{Batch, Order, SearchOptions, SearchTable, Settled};
use varve_io::faulty::FaultyStorage;

use super::rig::{KEY, TINY, check_cursor, fingerprint};

#[test]
fn a_busy_key_is_paged_through_in_both_directions() {
    let storage = Arc::new(FaultyStorage::new(1));
    let options = SearchOptions { flush_rows: 30_000, fan_in: 4, ..TINY };
    let mut table = SearchTable::open(storage, KEY, options, TxLink::new(0)).unwrap();
    let (busy, mut links) = (fingerprint(1, false), Vec::new());
    // Every second transaction has the busy key, and every one a key that nothing else has.
    for block in 0..400_u64 {
        let (first, count) = (block * 500, 500);
        let rows = (0..count).flat_map(|at| {
            let tx = first + u64::from(at);
            let own = (fingerprint(1_000 + tx, false), at);
            [Some(own), (tx % 2 == 0).then_some((busy, at))].into_iter().flatten()
        });
        table.append(TxLink::new(first), count, Batch::new(rows)).unwrap();
        links.extend((first..first + 500).step_by(2));
        let (deep, durable) = (TxLink::new(first), TxLink::new(first + 500));
        table.settle(&Settled { durable, deep, stale: &[], owner: &[] }).unwrap();
    }
    assert!(table.size().runs > 2 && table.size().young > 0, "{:?}", table.size());
    let reader = table.reader();
    let end = 200_000;
    for range in [0..end, 0..0, 77..78, 77..79, 1..199_999, 50_000..150_001, end..end + 9] {
        check_cursor(&reader, busy, &links, range).unwrap();
    }
    check_cursor(&reader, fingerprint(1_000 + 777, false), &[777], 0..end).unwrap();
    check_cursor(&reader, fingerprint(1_000 + 777, false), &[777], 0..777).unwrap();
    check_cursor(&reader, fingerprint(2, false), &[], 0..end).unwrap();
    // The first page of an answer does not read the rest.
    let all = TxLink::new(0)..TxLink::new(end);
    let mut cursor = reader.cursor(busy, all, Order::Descending).unwrap();
    for link in links.iter().rev().take(25) {
        assert_eq!(cursor.next().unwrap(), Some(TxLink::new(*link)));
    }
}

//! Lookups of keys that repeat, over several runs, with and without filters.

use proptest::prelude::*;

use super::*;
use crate::fixture::{KEY, LEAF_ROWS, Row, Tiny, disk, look_up, write_run};
use crate::fuse::Width;
use crate::run::Access;

fn runs_of(storage: &std::sync::Arc<dyn varve_io::Storage>, parts: &[Vec<Row>]) -> Runs<Tiny> {
    let filters = [None, Some(Width::Half), Some(Width::One), Some(Width::Two)];
    let mut runs = Runs::empty(KEY);
    for ((number, rows), filter) in (1..).zip(parts).zip(filters.into_iter().cycle()) {
        runs = runs.with_youngest(write_run(storage, number, filter, rows));
    }
    runs
}

/// All rows of the keys, from the youngest run (the last) to the oldest.
fn expected(parts: &[Vec<Row>], keys: &[u64]) -> Vec<Row> {
    let of_key = |key: &u64| {
        let key = *key;
        parts.iter().rev().flatten().copied().filter(move |row| row.0 == key)
    };
    keys.iter().flat_map(of_key).collect()
}

/// A frequent key over dozens of leaves, its neighbours, and absent keys.
#[test]
fn all_rows_of_a_key_are_found_over_many_leaves() {
    let (_dir, storage) = disk();
    let busy = u32::try_from(30 * LEAF_ROWS + 7).unwrap();
    let mut old: Vec<Row> = (0..2_000).map(|key| (key, 1)).collect();
    old.extend((0..busy).map(|value| (2_000, value)));
    old.extend((2_001..4_000).map(|key| (key, 1)));
    let young: Vec<Row> = (0..900).map(|value| (2_000 + u64::from(value) / 300, value)).collect();
    let parts = [old, young];
    let runs = runs_of(&storage, &parts);
    for keys in [vec![2_000], vec![1_999, 2_000, 2_001], (1_500..5_000).collect()] {
        assert!(look_up(&runs, &keys).unwrap() == expected(&parts, &keys));
    }
    assert!(look_up(&runs, &[]).unwrap().is_empty());
    assert!(look_up(&Runs::empty(KEY), &[3]).unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn as_a_list_says(
        parts in prop::collection::vec(
            prop::collection::btree_set((0_u64..40, 0_u32..400), 0..2_000),
            0..5,
        ),
        spread in 0_u32..58,
        keys in prop::collection::btree_set(0_u64..44, 0..44),
    ) {
        let (_dir, storage) = disk();
        let parts: Vec<Vec<Row>> = parts
            .into_iter()
            .map(|rows| rows.into_iter().map(|(key, value)| (key << spread, value)).collect())
            .collect();
        let runs = runs_of(&storage, &parts);
        let keys: Vec<u64> = keys.into_iter().map(|key| key << spread).collect();
        prop_assert!(look_up(&runs, &keys).unwrap() == expected(&parts, &keys));
    }
}

#[test]
fn keys_out_of_order_are_found_in_every_chunk() {
    let (_dir, storage) = disk();
    let rows: Vec<Row> = (0..140_000).map(|key| (key << 20, 1)).collect();
    let run = write_run(&storage, 1, Some(Width::Two), &rows);
    let runs = Runs::empty(KEY).with_youngest(run);
    let keys: Vec<u64> = rows.iter().step_by(9).map(|row| row.0).collect();
    let (low, high) = keys.split_at(keys.len() / 2);
    let shuffled: Vec<u64> = high.iter().rev().zip(low).flat_map(|(a, b)| [*a, *b]).collect();
    assert_eq!(look_up(&runs, &shuffled).unwrap().len(), shuffled.len());
}

/// The filter rejects nearly all absent keys; without one, an absent key costs one page.
#[test]
fn pages_looked_into_for_nothing() {
    let (_dir, storage) = disk();
    let rows: Vec<Row> = (0..50_000).map(|key| (key << 40, 1)).collect();
    let absent: Vec<u64> = (0..50_000).map(|key| (key << 40) + 1).collect();
    let candidates = |filter| {
        let runs = Runs::empty(KEY).with_youngest(write_run(&storage, 1, filter, &rows));
        Query::new(&runs, absent.clone()).candidates.len()
    };
    assert_eq!(candidates(None), 50_000);
    assert!((50_000 / 20..50_000 / 12).contains(&candidates(Some(Width::Half))));
    assert!(candidates(Some(Width::One)) < 2 * 50_000 / 256);
    assert!(candidates(Some(Width::Two)) < 10);
}

#[test]
fn pages_are_read_once_and_only_where_access_is_direct() {
    let (_dir, storage) = disk();
    let rows: Vec<Row> = (0..50 * LEAF_ROWS as u64).map(|key| (key, 1)).collect();
    let run = write_run(&storage, 1, None, &rows);
    let runs = Runs::empty(KEY).with_youngest(run.clone());
    let keys: Vec<u64> = rows.iter().map(|row| row.0).collect();
    run.set_access(Access::Mapped);
    assert_eq!(Query::new(&runs, keys.clone()).unread(), 0);
    run.set_access(Access::Direct);
    let mut query = Query::new(&runs, keys);
    assert_eq!(query.unread(), 50);
    let mut buffers = PageBuffers::default();
    query.fetch(&mut BatchReader::new(8), &mut buffers).unwrap();
    assert_eq!(query.unread(), 0);
    query.release(&mut buffers);
    assert_eq!(buffers.0.len(), 50, "their memory is kept");
}

/// The memory of a query does not grow with its keys: what is beyond its buffers is mapped, and few
/// of them are kept for the next query.
#[test]
fn a_query_of_very_many_keys_takes_no_more_buffers() {
    let (_dir, storage) = disk();
    let leaves = READS_MAX * 3 / 2;
    let rows: Vec<Row> = (0..(leaves * LEAF_ROWS) as u64).map(|key| (key, 1)).collect();
    let run = write_run(&storage, 1, None, &rows);
    run.set_access(Access::Direct);
    let runs = Runs::empty(KEY).with_youngest(run);
    let keys: Vec<u64> = rows.iter().step_by(9).map(|row| row.0).collect();
    let (mut query, mut buffers) = (Query::new(&runs, keys.clone()), PageBuffers::default());
    assert_eq!(query.unread(), READS_MAX);
    query.fetch(&mut BatchReader::new(64), &mut buffers).unwrap();
    assert!(query.by_key().flatten().all(|candidate| query.payload(candidate).is_ok()));
    query.release(&mut buffers);
    assert_eq!(buffers.0.len(), PageBuffers::KEPT);
}

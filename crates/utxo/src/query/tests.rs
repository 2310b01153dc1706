//! Lookups over several runs.

use std::sync::Arc;

use varve_runs::Access;
use varve_types::Txid;

use super::*;
use crate::fixture::{Changes, KEY, disk, look_up, outpoint, owned, span, write_run};

/// Three runs: 0..1000 added long ago, 0..300 of them deleted since, 0..100 created again.
fn three() -> (tempfile::TempDir, Runs) {
    let (dir, storage) = disk();
    let old = (0..1000).map(|n| ((outpoint(n), 1), Some(owned(n)))).collect::<Changes>();
    let dead = (0..300).map(|n| ((outpoint(n), 1), None)).collect::<Changes>();
    let again = (0..100).map(|n| ((outpoint(n), 9), Some(owned(n + 5000)))).collect::<Changes>();
    let mut runs = Runs::empty(KEY);
    for (number, changes) in (1_u32..).zip([old, dead, again]) {
        let run = write_run(&storage, number.into(), span(number, number), &changes).unwrap();
        runs = runs.with_youngest(Arc::new(run));
    }
    (dir, runs)
}

#[test]
fn the_youngest_coin_that_is_not_deleted_is_the_answer() {
    let (_dir, runs) = three();
    let found = look_up(&runs, (0..1100).map(outpoint).collect()).unwrap();
    for number in 0..1100 {
        let expected = match number {
            0..100 => Some((9, owned(number + 5000))),
            100..300 => None,
            300..1000 => Some((1, owned(number))),
            _ => None,
        };
        assert_eq!(found.get(&outpoint(number)), expected.as_ref(), "{number}");
    }
}

#[test]
fn a_delete_and_an_add_in_one_run_are_the_coin() {
    let (_dir, storage) = disk();
    for (births, alive) in [((3, 8), 8), ((8, 3), 3)] {
        let (deleted, added) = births;
        let changes =
            Changes::from([((outpoint(1), deleted), None), ((outpoint(1), added), Some(owned(1)))]);
        let run = write_run(&storage, 1, span(1, 1), &changes).unwrap();
        let runs = Runs::empty(KEY).with_youngest(Arc::new(run));
        let found = look_up(&runs, vec![outpoint(1)]).unwrap();
        assert_eq!(found[&outpoint(1)].0, alive, "whichever birth is higher");
    }
}

/// A pane is flushed at S, its coin is reorganised away after S, the same outpoint is made again in
/// the next pane, and the late delete comes a pane later still. The youngest run with an entry then
/// has a delete although the outpoint has a coin.
#[test]
fn a_late_delete_of_an_older_birth_does_not_hide_the_coin() {
    let (_dir, storage) = disk();
    let changes = [
        ((outpoint(1), 3), Some(owned(1))),
        ((outpoint(1), 5), Some(owned(2))),
        ((outpoint(1), 3), None),
    ];
    let mut runs = Runs::empty(KEY);
    for (number, change) in (1_u32..).zip(changes) {
        let changes = Changes::from([change]);
        let run = write_run(&storage, number.into(), span(number, number), &changes).unwrap();
        runs = runs.with_youngest(Arc::new(run));
    }
    let found = look_up(&runs, vec![outpoint(1)]).unwrap();
    assert_eq!(found.get(&outpoint(1)), Some(&(5, owned(2))));
    // Merging the two older ones leaves two coins of the outpoint in one run.
    let older = crate::compact::merge_runs(
        &storage,
        KEY,
        varve_runs::RunNumber(4),
        &runs.as_slice()[1..],
        true,
    );
    let merged = runs.with_replaced(1..3, Some(Arc::new(older.unwrap().unwrap())));
    let found = look_up(&merged, vec![outpoint(1)]).unwrap();
    assert_eq!(found.get(&outpoint(1)), Some(&(5, owned(2))));
}

#[test]
fn births_that_the_window_deleted_are_passed_over() {
    let (_dir, runs) = three();
    let keys: Vec<Outpoint> = (0..2).map(outpoint).collect();
    let mut query = Query::new(&runs, keys);
    runs.as_slice().iter().for_each(|run| run.set_access(Access::Mapped));
    query.pass_over(1, &[Sequence::new(9)]);
    let mut coins = Coins::unknown(2);
    query.join(&mut coins, |key| key).unwrap();
    assert_eq!(coins.birth(0).map(Sequence::to_u32), Some(9));
    assert_eq!(coins.get(1), None, "9 by the window, 1 by a run");
}

#[test]
fn answers_are_in_the_order_of_the_keys_sorted_or_not_and_repeated() {
    let (_dir, runs) = three();
    let numbers = [999, 3, 3, 150, 77_777, 400, 0];
    for access in [Access::Mapped, Access::Direct] {
        runs.as_slice().iter().for_each(|run| run.set_access(access));
        let mut query = Query::new(&runs, numbers.map(outpoint).to_vec());
        query.fetch(&mut BatchReader::new(8), &mut PageBuffers::default()).unwrap();
        let mut coins = Coins::unknown(numbers.len());
        query.join(&mut coins, |key| key).unwrap();
        let birth = |place| coins.birth(place).map(Sequence::to_u32);
        let births: Vec<Option<u32>> = (0..query.keys().len()).map(birth).collect();
        assert_eq!(births, [Some(1), Some(9), Some(9), None, None, Some(1), Some(9)]);
        let mut coins = Coins::unknown(9);
        query.join(&mut coins, |key| 8 - key).unwrap();
        let births: Vec<Option<u32>> =
            (0..9).map(|place| coins.birth(place).map(Sequence::to_u32)).collect();
        assert_eq!(births[2..], [Some(9), Some(1), None, None, Some(9), Some(9), Some(1)]);
        assert_eq!(births[..2], [None, None], "each at the place that was asked for");
    }
}

#[test]
fn nothing_asked_or_nothing_there() {
    let (_dir, runs) = three();
    assert!(look_up(&runs, Vec::new()).unwrap().is_empty());
    assert!(look_up(&Runs::empty(KEY), vec![outpoint(1)]).unwrap().is_empty());
}

#[test]
fn pages_are_read_once_and_only_where_access_is_direct() {
    let (_dir, runs) = three();
    runs.as_slice().iter().for_each(|run| run.set_access(Access::Mapped));
    let keys: Vec<Outpoint> = {
        let mut keys: Vec<Outpoint> = (300..1000).map(outpoint).collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(Query::new(&runs, keys.clone()).unread(), 0);
    let oldest = &runs.as_slice()[2];
    oldest.set_access(Access::Direct);
    let mut query = Query::new(&runs, keys);
    let leaves = usize::try_from(oldest.info().pages).unwrap();
    assert!(query.unread() > 0 && query.unread() < leaves, "{} of {leaves}", query.unread());
    let mut buffers = PageBuffers::default();
    query.fetch(&mut BatchReader::new(8), &mut buffers).unwrap();
    assert_eq!(query.unread(), 0);
    query.join(&mut Coins::default(), |key| key).unwrap();
}

/// The filter rejects nearly all absent keys, so that a lookup reads one page a coin.
#[test]
#[cfg(not(feature = "weak-hash"))]
fn few_pages_are_read_for_nothing() {
    let (_dir, runs) = three();
    runs.as_slice().iter().for_each(|run| run.set_access(Access::Direct));
    let absent = (0..20_000_u32).map(|n| Outpoint::new(crate::fixture::txid(n + 1_000_000), 0));
    let query = Query::new(&runs, absent.collect());
    let pages = query.pages.by_key().flatten().count();
    assert!(pages <= 10, "{pages}");
}

/// Chosen txids cost the same as random ones, counted in pages read.
#[test]
fn ground_txids_need_one_page_each() {
    let (_dir, storage) = disk();
    let key = |number: u32| {
        let mut txid = [0x77; 32];
        txid[28..].copy_from_slice(&number.to_be_bytes());
        Outpoint::new(Txid::from_bytes(txid), 0)
    };
    let changes: Changes = (0..20_000).map(|n| ((key(n), 1), Some(owned(n)))).collect();
    let run = write_run(&storage, 1, span(1, 1), &changes).unwrap();
    let runs = Runs::empty(KEY).with_youngest(Arc::new(run));
    let query = Query::new(&runs, (0..20_000).map(key).collect());
    assert_eq!(query.pages.by_key().flatten().count(), 20_000);
    assert_eq!(look_up(&runs, (0..20_000).map(key).collect()).unwrap().len(), 20_000);
}

/// A run with several chunks in its filter, asked in the worst order.
#[test]
fn keys_out_of_order_are_found_in_every_chunk() {
    let (_dir, storage) = disk();
    let count = 140_000;
    let changes: Changes = (0..count).map(|n| ((outpoint(n), 1), Some(owned(n)))).collect();
    let run = write_run(&storage, 1, span(1, 1), &changes).unwrap();
    let runs = Runs::empty(KEY).with_youngest(Arc::new(run));
    let mut keys: Vec<Outpoint> = (0..count).step_by(9).map(outpoint).collect();
    keys.sort_unstable();
    let (low, high) = keys.split_at(keys.len() / 2);
    let shuffled: Vec<Outpoint> = high.iter().rev().zip(low).flat_map(|(a, b)| [*a, *b]).collect();
    for keys in [keys, shuffled] {
        let mut coins = Coins::unknown(keys.len());
        Query::new(&runs, keys).join(&mut coins, |key| key).unwrap();
        assert!(coins.iter().all(|coin| coin.is_some()));
    }
}

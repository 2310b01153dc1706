//! The forecast stays below the bar, and its sizes are those of real files.

use std::collections::BTreeMap;

use varve_types::{BlockHash, Height, Outpoint};

use super::*;
use crate::entry::Entry;
use crate::entry_list::{EntryList, write_entry};
use crate::fixture::{Changes, Owned, disk, span, txid, write_run};
use crate::undo::{UndoRecord, UndoTx};

/// At most one byte for every byte of block data, and never more runs than allowed.
#[test]
fn a_hundred_thousand_blocks_write_less_than_they_are() {
    // With coins as old as mainnet's the oldest run is never a third dead; with young ones it is.
    for (age, rewrites) in [(300_000, 0..1), (10_000, 1..4)] {
        let forecast = Forecast::of(&Parameters::default(), 100_000, age);
        println!("{forecast:.3?} {:.3}", forecast.total());
        assert!(forecast.total() <= 1.0, "{forecast:?}");
        assert!(forecast.most_runs <= 12, "{forecast:?}");
        assert!(rewrites.contains(&forecast.oldest_rewrites), "{forecast:?}");
    }
}

#[test]
fn small_flushes_and_a_large_fan_in_write_more() {
    let default = Forecast::of(&Parameters::default(), 100_000, 300_000);
    let other = Parameters { flush_interval: 64, fan_in: 8, ..Parameters::default() };
    let other = Forecast::of(&other, 100_000, 300_000);
    assert!(other.merged > 1.5 * default.merged, "what the default is chosen over: {other:?}");
}

/// A coin of a common kind, as it is when it leaves the window: one in five has a sibling left.
fn coin(number: u32) -> (Outpoint, Owned) {
    let script = match number % 7 {
        0 => [[0x76, 0xa9, 0x14].as_slice(), &[7; 20], &[0x88, 0xac]].concat(),
        1 => [[0xa9, 0x14].as_slice(), &[7; 20], &[0x87]].concat(),
        2 | 3 => [[0x51, 0x20].as_slice(), &[7; 32]].concat(),
        _ => [[0, 0x14].as_slice(), &[7; 20]].concat(),
    };
    let (height, value) = (850_000 + number / 60, 1_000 + u64::from(number) * 104_729);
    (
        Outpoint::new(txid(number / 5 * 4 + (number % 5).min(3)), number % 3),
        Owned { height, value, script },
    )
}

/// Compares the mean size of `count` items in `bytes` with the assumed size.
fn compare(what: &str, bytes: usize, count: usize, reckoned: f64) {
    let found = bytes as f64 / count as f64;
    assert!((found / reckoned - 1.0).abs() < 0.06, "{what}: {found:.1} bytes, not {reckoned}");
}

#[test]
fn the_sizes_are_those_of_real_files() {
    const COUNT: u32 = 40_000;
    let coins: BTreeMap<Outpoint, Owned> = (0..COUNT).map(coin).collect();
    let (_dir, storage) = disk();
    let (adds, deletes): (Changes, Changes) = (
        coins.iter().map(|(key, coin)| ((*key, coin.height + 7), Some(coin.clone()))).collect(),
        // Coins are spent one by one.
        (0..COUNT).map(|n| ((Outpoint::new(txid(n), n % 3), 850_000 + n / 60), None)).collect(),
    );
    for (what, changes, reckoned) in [("add", adds, ADD), ("delete", deletes, DELETE)] {
        let run = write_run(&storage, 1, span(1, 1), &changes).unwrap();
        let bytes = usize::try_from(run.info().pages).unwrap() * 4096;
        compare(what, bytes, changes.len(), reckoned);
    }
    let birth = |coin: &Owned| Sequence::new(coin.height + 7);
    let mut listed = Vec::new();
    for (key, coin) in &coins {
        write_entry(&Entry::add(*key, birth(coin), coin.coin()), &mut listed);
    }
    compare("listed add", listed.len(), coins.len(), LISTED_ADD);
    listed.clear();
    for (key, coin) in &coins {
        write_entry(&Entry::delete(*key, birth(coin)), &mut listed);
    }
    compare("listed delete", listed.len(), coins.len(), LISTED_DELETE);
    let record = UndoRecord {
        sequence: Sequence::new(9),
        height: Height::new(1),
        block: BlockHash::ZERO,
        previous: BlockHash::ZERO,
        spent: EntryList::new(),
        created: (0..28_000).flat_map(|n| (0..3).map(move |v| Outpoint::new(txid(n), v))).collect(),
        txs: (0..28_000).map(|n| UndoTx { txid: txid(n), spends: 2, creates: 3 }).collect(),
    };
    listed.clear();
    record.encode(&mut listed);
    compare("created", listed.len(), 28_000, CREATED_TX + 3.0 * CREATED_OUTPUT);
}

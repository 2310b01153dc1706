//! The number of threads and of shards changes nothing but the time.

use std::num::NonZeroUsize;
use varve_testdata::Random;

use super::model::{Model, outpoint};
use crate::entry_list::EntryList;
use crate::window::WindowConfig;

/// Blocks large enough for more than one thread; the entries of every flush and of the end.
fn history(shards: usize, workers: usize) -> Vec<EntryList> {
    let mut model = Model::new(WindowConfig { shards, pane_steps: 3 });
    model.workers = NonZeroUsize::new(workers).unwrap();
    let mut random = Random::new(5);
    let mut seen = Vec::new();
    for block in 0..10 {
        let mut spent: Vec<_> = model.set.keys().copied().collect();
        spent.retain(|_| random.one_in(3));
        let created: Vec<_> = (block * 1_500..(block + 1) * 1_500).map(outpoint).collect();
        model.connect(&spent, &created).unwrap();
        if block % 4 == 3 {
            model.disconnect();
        }
        if let Some(flush) = model.window.begin_flush() {
            seen.push(flush.entries().collect());
            model.flush = Some(flush);
            model.flush_ready = true;
        }
    }
    let mut entries: Vec<_> = model.window.version().entries().collect();
    entries.sort_unstable_by_key(|entry| (entry.key(), entry.coin.is_some()));
    seen.push(entries.into_iter().collect());
    seen
}

#[test]
fn threads_and_shards_change_nothing() {
    let expected = history(1, 1);
    assert!(expected.len() > 2, "some panes were flushed");
    for (shards, workers) in [(16, 1), (16, 2), (16, 5), (4, 64), (256, 3)] {
        assert!(history(shards, workers) == expected, "{shards} shards, {workers} threads");
    }
}

//! Pruning: what goes, what stays, and in which order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::*;
use crate::engine::Engine;
use crate::error::ErrorCode;
use crate::extended::Transaction;
use crate::fixture::{FailingEngine, child, everywhere, mined, options, root, store, with_engines};
use crate::operation::SpendRules;
use crate::prepare::CreateOptions;

fn at(height: u32) -> PruneAt {
    PruneAt { height: Height::new(height), persisted: None, assembly_running: true }
}

/// A parent that is all spent by a mined child: due at 389.
fn spent_pair(store: &Store, salt: u32) -> [Transaction; 2] {
    let parent = root(salt, 1);
    store.add_mined(&parent);
    let spender = child(&[(&parent, 0)], 1, 1);
    store.add(&spender);
    store.set_mined_multi(&[spender.txid()], &mined(2, 101)).unwrap();
    assert_eq!(store.record(&parent).delete_at, Some(Height::new(389)));
    [parent, spender]
}

fn exists(store: &Store, tx: &Transaction) -> bool {
    store.get_meta(tx.txid()).is_ok()
}

#[test]
fn a_record_goes_when_its_height_is_reached_and_its_child_is_remembered() {
    everywhere(|store| {
        let grandparent = root(5, 2);
        store.add_mined(&grandparent);
        let parent = child(&[(&grandparent, 0)], 1, 1);
        store.add(&parent);
        store.set_mined_multi(&[parent.txid()], &mined(2, 101)).unwrap();
        let spender = child(&[(&parent, 0)], 1, 1);
        store.add(&spender);
        store.set_mined_multi(&[spender.txid()], &mined(2, 101)).unwrap();
        assert_eq!(prune(store, at(388)).unwrap(), PruneReport::default());
        let report = prune(store, at(389)).unwrap();
        assert_eq!((report.removed, report.kept.len()), (1, 0));
        assert!(!exists(store, &parent) && exists(store, &spender));
        assert!(store.record(&grandparent).children.deleted.contains(&parent.txid()));
        // A replay of the pruned transaction is refused, not taken for a repetition.
        let rules = SpendRules::at(Height::new(390));
        let replay = store.spend_and_create(&parent, rules, &options()).unwrap_err();
        assert_eq!(replay.record().unwrap().cause(), ErrorCode::UtxoError);
    });
}

/// The pruner took a parent from a child that waited; the node never got past that block.
#[test]
fn a_parent_of_an_unmined_child_stays() {
    everywhere(|store| {
        let [parent, spender] = spent_pair(store, 1);
        store.mark_on_longest_chain(&[spender.txid()], false).unwrap();
        let report = prune(store, at(10_000)).unwrap();
        assert!(exists(store, &parent));
        assert_eq!((report.old_unmined, report.preserved), (1, 1));
        // Even when phase 1 did not see the child, because it is young.
        let [parent, spender] = spent_pair(store, 2);
        store.set_block_height(Height::new(9_999)).unwrap();
        store.mark_on_longest_chain(&[spender.txid()], false).unwrap();
        let report = prune(store, at(10_000)).unwrap();
        assert!(exists(store, &parent));
        assert_eq!(report.kept, [(parent.txid(), Pruned::NeededBy(spender.txid()))]);
        store.mark_on_longest_chain(&[spender.txid()], true).unwrap();
        assert_eq!(prune(store, at(10_000)).unwrap().removed, 1);
    });
}

#[test]
fn parents_of_old_unmined_transactions_are_preserved() {
    everywhere(|store| {
        let parents = [root(1, 1), root(2, 1), root(3, 1)];
        parents.iter().for_each(|tx| store.add_mined(tx));
        let old = child(&[(&parents[0], 0), (&parents[1], 0)], 1, 1);
        store.add(&old);
        let young = child(&[(&parents[2], 0)], 1, 1);
        let height = Height::new(200);
        let create = CreateOptions { height, ..options() };
        store.spend_and_create(&young, SpendRules::at(height), &create).unwrap();
        let run = |height| {
            let mut report = PruneReport::default();
            preserve_parents(store, Height::new(height), &mut report).unwrap();
            (report.old_unmined, report.preserved)
        };
        assert_eq!(run(144), (0, 0), "the height is too low");
        assert_eq!(run(244), (0, 0), "too new");
        assert_eq!(run(245), (1, 2));
        let until = |tx| store.record(tx).preserve_until.map(Height::to_u32);
        assert_eq!(parents.each_ref().map(until), [Some(245 + 1440), Some(245 + 1440), None]);
        assert_eq!(run(344), (2, 3), "both, and a parent that was preserved is preserved longer");
        assert_eq!(until(&parents[0]), Some(344 + 1440));
        store.delete(&[parents[1].txid()]).unwrap();
        assert_eq!(run(344), (2, 2), "a parent without a record is passed over");
    });
}

#[test]
fn a_preservation_that_is_over_ends() {
    everywhere(|store| {
        let [parent, _] = spent_pair(store, 1);
        store.preserve_until(&[parent.txid()], Height::new(1_000)).unwrap();
        assert_eq!(prune(store, at(999)).unwrap(), PruneReport::default());
        assert_eq!(prune(store, at(1_000)).unwrap().expired, 1);
        assert_eq!(store.record(&parent).delete_at, Some(Height::new(1_288)));
        assert_eq!(prune(store, at(1_288)).unwrap().removed, 1);
    });
}

#[test]
fn what_is_not_persisted_holds_the_pruner_back() {
    everywhere(|store| {
        let [parent, _] = spent_pair(store, 1);
        let with = |persisted| PruneAt { persisted: Some(Height::new(persisted)), ..at(1_000) };
        assert_eq!(prune(store, with(100)).unwrap().removed, 0, "388 is the safe height");
        let waiting = PruneAt { assembly_running: false, ..at(1_000) };
        assert_eq!(prune(store, waiting).unwrap().removed, 0);
        assert!(exists(store, &parent));
        assert_eq!(prune(store, with(101)).unwrap().removed, 1);
        let [_, _] = spent_pair(store, 2);
        assert_eq!(prune(store, with(0)).unwrap().removed, 1, "0: nobody persists");
    });
}

#[test]
fn a_failure_while_preserving_ends_the_run() {
    with_engines(|new| {
        let engine: Arc<dyn Engine> = new();
        let whole = store(Arc::clone(&engine));
        let [due, _] = spent_pair(&whole, 1);
        let parent = root(2, 1);
        whole.add_mined(&parent);
        whole.add(&child(&[(&parent, 0)], 1, 1));
        let failing = Arc::new(FailingEngine::new(engine, 0));
        let shared: Arc<dyn Engine> = Arc::<FailingEngine>::clone(&failing);
        let cut = store(shared);
        prune(&cut, at(1_000)).unwrap_err();
        assert!(exists(&whole, &due), "phase 2 did not run");
        failing.left.store(1_000, Ordering::SeqCst);
        assert_eq!(prune(&cut, at(1_000)).unwrap().removed, 1);
    });
}

#[test]
fn a_fork_transaction_that_is_all_spent_is_not_scheduled() {
    everywhere(|store| {
        let parent = root(1, 1);
        store.create(&parent, &options()).unwrap();
        let side = crate::operation::MinedBlockInfo { on_longest_chain: false, ..mined(9, 100) };
        store.set_mined_multi(&[parent.txid()], &side).unwrap();
        store.add(&child(&[(&parent, 0)], 1, 1));
        assert_eq!(store.record(&parent).delete_at, None);
        assert_eq!(prune(store, at(100_000)).unwrap().removed, 0);
    });
}

/// Pages of the scan and the removals in them do not disturb one another.
#[test]
fn many_records_go_in_batches() {
    everywhere(|store| {
        for salt in 0..2_300 {
            spent_pair(store, salt);
        }
        assert_eq!(prune(store, at(389)).unwrap().removed, 2_300);
        assert_eq!(store.everything().len(), 2_300);
    });
}

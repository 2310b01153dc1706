//! Recovery of what waits for a block.

use std::sync::Arc;

use varve_types::BlockHash;

use super::*;
use crate::conflicts::{ConflictBlock, process_conflicting};
use crate::extended::Transaction;
use crate::fixture::{
    FailingEngine, NEXT, child, everywhere, mined, options, root, store, store_with, with_engines,
};
use crate::operation::{MinedBlockInfo, SpendRules};
use crate::prepare::CreateOptions;

fn recovered(store: &Store, best: &[u32]) -> Recovery {
    let mut given = Vec::new();
    let mut take = |tx: &UnminedTx| {
        given.push(tx.txid);
        Ok(())
    };
    let recovery = recover(store, &|id| best.contains(&id.0), &mut take).unwrap();
    assert_eq!(given, recovery.added);
    recovery
}

fn add_at(store: &Store, tx: &Transaction, created_at: u64, locked: bool) {
    let create = CreateOptions { created_at, locked, ..options() };
    let rules = SpendRules { ignore_locked: true, ..SpendRules::at(NEXT) };
    store.spend_and_create(tx, rules, &create).unwrap();
}

#[test]
fn transactions_come_back_in_the_order_of_their_creation() {
    everywhere(|store| {
        let parent = root(1, 2);
        store.add_mined(&parent);
        let mut chain = vec![parent];
        for salt in 0..20 {
            let tx = child(&[(chain.last().unwrap(), 0)], 1, salt);
            add_at(store, &tx, u64::from(salt), salt == 19);
            chain.push(tx);
        }
        let lost = child(&[(&chain[0], 1)], 1, 5);
        store.add_conflicting(&lost);
        let recovery = recovered(store, &[1]);
        let expected: Vec<Txid> = chain.iter().skip(1).map(Transaction::txid).collect();
        assert_eq!(recovery.added, expected);
        assert_eq!(recovery.left_out, []);
        assert_eq!(recovery.unlocked, [expected[19]]);
        assert!(!store.record(&chain[20]).locked);
    });
}

/// A time in milliseconds does not tell a chain of transactions apart that came at once.
#[test]
fn of_those_that_were_created_at_once_parents_come_first() {
    everywhere(|store| {
        let parent = root(1, 2);
        store.add_mined(&parent);
        let mut chain = vec![parent];
        for salt in 0..40 {
            let before = chain.last().unwrap();
            let two = [(before, 0), (&chain[0], 1)];
            let tx = child(&two[..if salt == 20 { 2 } else { 1 }], 1, salt);
            add_at(store, &tx, 7, false);
            chain.push(tx);
        }
        let recovery = recovered(store, &[1]);
        let expected: Vec<Txid> = chain.iter().skip(1).map(Transaction::txid).collect();
        assert_eq!(recovery.added, expected);
    });
}

#[test]
fn a_transaction_in_a_block_of_the_best_chain_is_marked() {
    everywhere(|store| {
        let tx = root(1, 1);
        store.create(&tx, &options()).unwrap();
        let elsewhere = MinedBlockInfo { on_longest_chain: false, ..mined(7, 99) };
        store.set_mined_multi(&[tx.txid()], &elsewhere).unwrap();
        assert!(store.record(&tx).unmined_since.is_some());
        assert_eq!(recovered(store, &[8]).added, [tx.txid()], "a block of another branch");
        assert_eq!(recovered(store, &[7]).mined, [tx.txid()]);
        assert_eq!(store.record(&tx).unmined_since, None);
        let nothing = recovered(store, &[7]);
        assert!(nothing.added.is_empty() && nothing.mined.is_empty());
        assert!(nothing.left_out.is_empty() && nothing.unlocked.is_empty());
    });
}

#[test]
fn coinbases_and_wrong_orders_are_left_out() {
    everywhere(|store| {
        let coinbase = root(1, 1);
        let create = CreateOptions { is_coinbase: Some(true), ..options() };
        store.create(&coinbase, &create).unwrap();
        let parent = root(2, 1);
        let create = CreateOptions { created_at: 50, ..options() };
        store.create(&parent, &create).unwrap();
        let early = child(&[(&parent, 0)], 1, 1);
        add_at(store, &early, 40, false);
        let next = child(&[(&early, 0)], 1, 1);
        add_at(store, &next, 60, false);
        let recovery = recovered(store, &[]);
        assert_eq!(recovery.added, [parent.txid()]);
        let left_out = [
            (coinbase.txid(), LeftOut::Coinbase),
            (early.txid(), LeftOut::BeforeParent(parent.txid())),
            (next.txid(), LeftOut::InvalidParent(early.txid())),
        ];
        assert_eq!(recovery.left_out, left_out);
    });
}

#[test]
fn a_parent_that_is_not_on_the_best_chain_counts_when_the_settings_say_so() {
    crate::fixture::with_engines(|new| {
        for strict in [false, true] {
            let settings = crate::Settings {
                remove_invalid_parents: strict,
                parent_validation_batch: 2,
                ..crate::Settings::default()
            };
            let blobs = crate::blob::Blobs::new(
                crate::blob::ObjectBucket::memory(),
                crate::blob::Fanout::None,
            );
            let store = store_with(new(), blobs, settings);
            let (parent, gone) = (root(1, 1), root(2, 1));
            [&parent, &gone].into_iter().for_each(|tx| store.add_mined(tx));
            let txs = [child(&[(&parent, 0)], 1, 1), child(&[(&gone, 0)], 1, 1)];
            txs.iter().for_each(|tx| store.add(tx));
            store.delete(&[gone.txid()]).unwrap();
            let added = recovered(&store, &[2]).added;
            assert_eq!(added.is_empty(), strict, "block 1 is on another branch");
            let expected = if strict { 1 } else { 2 };
            assert_eq!(recovered(&store, &[1]).added.len(), expected, "one parent has no record");
        }
    });
}

#[test]
fn block_assembly_that_fails_leaves_the_locks() {
    everywhere(|store| {
        let tx = root(1, 1);
        store.create(&tx, &CreateOptions { locked: true, ..options() }).unwrap();
        let mut refuse = |_: &UnminedTx| Err(AssemblyError("full".to_owned()));
        let error = recover(store, &|_| false, &mut refuse).unwrap_err();
        assert!(matches!(error, RecoveryError::Assembly(_)), "{error}");
        assert!(store.record(&tx).locked);
    });
}

#[test]
fn a_resolution_that_was_cut_off_is_done_again_first() {
    with_engines(|new| {
        let engine = new();
        let whole = store(Arc::clone(&engine));
        let parent = root(1, 1);
        whole.add_mined(&parent);
        let (loser, winner) = (child(&[(&parent, 0)], 1, 1), child(&[(&parent, 0)], 1, 2));
        whole.add(&loser);
        whole.add_conflicting(&winner);
        let block = ConflictBlock {
            height: NEXT,
            hash: BlockHash::from_bytes([7; 32]),
            now_ms: 5,
            budget: 10,
            is_ancestor: &|_| false,
        };
        let cut = store(Arc::new(FailingEngine::new(engine, 1)));
        process_conflicting(&cut, &[winner.txid()], &block).unwrap_err();
        let recovery = recovered(&whole, &[1]);
        assert_eq!((recovery.replayed, recovery.added), (1, vec![winner.txid()]));
        assert_eq!(whole.spender(&parent, 0), Some(winner.txid()));
    });
}

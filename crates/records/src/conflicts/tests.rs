//! Conflict resolution, scenario by scenario.

use std::sync::Arc;

use super::*;
use crate::engine::Engine;
use crate::error::ErrorCode;
use crate::extended::Transaction;
use crate::fixture::{
    FailingEngine, MeddlingEngine, NEXT, child, everywhere, mined, options, root, slot, store,
    with_engines,
};
use crate::operation::{Operation, SpendRules, Unit};
use crate::outcome::{Pruned, Reply};
use crate::prepare::CreateOptions;
use crate::record::Record;

fn block(is_ancestor: &dyn Fn(BlockId) -> bool) -> ConflictBlock<'_> {
    let hash = BlockHash::from_bytes([7; 32]);
    ConflictBlock { height: NEXT, hash, now_ms: 5, budget: CLOSURE_BUDGET, is_ancestor }
}

fn win(store: &Store, winners: &[&Transaction]) -> Result<Vec<Txid>> {
    let winners: Vec<Txid> = winners.iter().map(|tx| tx.txid()).collect();
    process_conflicting(store, &winners, &block(&|_| false))
}

/// Nothing is changed by a resolution that is refused.
fn refused(store: &Store, winners: &[&Transaction]) -> ConflictError {
    let before = store.everything();
    let error = win(store, winners).unwrap_err();
    assert!(store.everything() == before, "{error}");
    assert!(store.intents().unwrap().is_empty());
    error
}

/// P:0 was spent by L, on which C builds; W came later.
struct Case {
    parent: Transaction,
    loser: Transaction,
    grandchild: Transaction,
    winner: Transaction,
}

fn case(store: &Store) -> Case {
    let parent = root(1, 3);
    let other = root(2, 1);
    let loser = child(&[(&parent, 0), (&parent, 1)], 2, 1);
    let grandchild = child(&[(&loser, 0), (&other, 0)], 1, 1);
    let winner = child(&[(&parent, 0)], 1, 2);
    store.add_mined(&parent);
    store.add_mined(&other);
    store.add(&loser);
    store.add(&grandchild);
    store.add_conflicting(&winner);
    Case { parent, loser, grandchild, winner }
}

#[test]
fn the_winner_takes_what_the_loser_and_its_descendants_held() {
    everywhere(|store| {
        let case = case(store);
        let losers = win(store, &[&case.winner]).unwrap();
        assert_eq!(losers, [case.loser.txid(), case.grandchild.txid()]);
        assert_eq!(store.spender(&case.parent, 0), Some(case.winner.txid()));
        assert_eq!(store.spender(&case.parent, 1), None, "the other input is free too");
        assert_eq!(store.spender(&case.loser, 0), None);
        let flags = |tx| {
            let record = store.record(tx);
            (record.conflicting, record.locked)
        };
        assert_eq!(flags(&case.winner), (false, false));
        assert_eq!(flags(&case.loser), (true, false));
        assert_eq!(flags(&case.grandchild), (true, false));
        assert_eq!(flags(&case.parent), (false, false));
        assert_eq!(store.record(&case.winner).delete_at, None);
        assert!(store.record(&case.loser).delete_at.is_some());
        assert!(store.intents().unwrap().is_empty());
    });
}

#[test]
fn only_what_lost_can_win() {
    everywhere(|store| {
        let case = case(store);
        let error = refused(store, &[&case.loser]);
        assert!(matches!(error, ConflictError::NotConflicting(txid) if txid == case.loser.txid()));
        let missing = refused(store, &[&root(9, 1)]);
        assert!(matches!(missing, ConflictError::Store(e) if e.code() == ErrorCode::TxNotFound));
        let placeholder = process_conflicting(store, &[PLACEHOLDER], &block(&|_| false));
        assert!(matches!(placeholder, Err(ConflictError::Placeholder)));
        assert_eq!(win(store, &[]).unwrap(), []);
    });
}

#[test]
fn a_frozen_output_is_seen_and_stops_the_resolution() {
    everywhere(|store| {
        let case = case(store);
        store.freeze(&[slot(&case.loser, 1)]).unwrap()[0].clone().unwrap();
        let error = refused(store, &[&case.winner]);
        assert!(matches!(error, ConflictError::FrozenChild(_)), "{error}");
        let children = get_conflicting_children(store, case.loser.txid(), 10).unwrap();
        assert_eq!(children, [case.grandchild.txid(), PLACEHOLDER], "visible, never followed");

        let late = child(&[(&case.parent, 2)], 1, 3);
        store.add_conflicting(&late);
        store.freeze(&[slot(&case.parent, 2)]).unwrap()[0].clone().unwrap();
        let error = refused(store, &[&late]);
        assert!(matches!(error, ConflictError::Frozen { outpoint } if outpoint.vout == 2));
    });
}

#[test]
fn an_output_that_does_not_exist_stops_the_resolution() {
    everywhere(|store| {
        let case = case(store);
        let winner = child(&[(&case.parent, 7)], 1, 3);
        store.add_conflicting(&winner);
        let error = refused(store, &[&winner]);
        assert!(matches!(error, ConflictError::NoSuchOutput(outpoint) if outpoint.vout == 7));
    });
}

/// A walk over all descendants of a popular output stalled a whole fleet.
#[test]
fn a_walk_beyond_its_budget_changes_nothing() {
    everywhere(|store| {
        let case = case(store);
        let mut last = case.grandchild.clone();
        for salt in 0..3_000 {
            let next = child(&[(&last, 0)], 1, salt);
            store.add(&next);
            last = next;
        }
        let winners = [case.winner.txid()];
        let before = store.everything();
        let small = ConflictBlock { budget: 3_001, ..block(&|_| false) };
        let error = process_conflicting(store, &winners, &small).unwrap_err();
        assert!(matches!(error, ConflictError::TooMany { budget: 3_001 }));
        assert!(store.everything() == before);
        let enough = ConflictBlock { budget: 3_002, ..block(&|_| false) };
        assert_eq!(process_conflicting(store, &winners, &enough).unwrap().len(), 3_002);
        assert!(store.record(&last).conflicting);
    });
}

#[test]
fn a_loser_in_a_block_below_does_not_lose() {
    everywhere(|store| {
        let case = case(store);
        let txids = [case.grandchild.txid()];
        store.set_mined_multi(&txids, &mined(6, 95)).unwrap();
        let before = store.everything();
        let ancestry = |id: BlockId| id == BlockId(6);
        let winners = [case.winner.txid()];
        let error = process_conflicting(store, &winners, &block(&ancestry)).unwrap_err();
        let expected = case.grandchild.txid();
        let ConflictError::LoserConfirmed { txid, block: found } = error else { panic!("{error}") };
        assert_eq!((txid, found), (expected, BlockId(6)));
        assert!(store.everything() == before);
        win(store, &[&case.winner]).expect("a block of another branch does not protect");
    });
}

#[test]
fn counter_conflicts_are_the_rivals_with_all_that_builds_on_them() {
    everywhere(|store| {
        let case = case(store);
        let found = get_counter_conflicting(store, case.winner.txid(), 10).unwrap();
        let expected = [&case.winner, &case.loser, &case.grandchild].map(Transaction::txid);
        assert_eq!(found, expected);
        let alone = root(5, 1);
        store.add_mined(&alone);
        assert_eq!(get_counter_conflicting(store, alone.txid(), 10).unwrap(), [alone.txid()]);
        assert!(get_counter_conflicting(store, PLACEHOLDER, 10).is_err());
        assert!(get_counter_conflicting(store, case.winner.txid(), 2).is_err());
        assert_eq!(get_conflicting_children(store, PLACEHOLDER, 10).unwrap(), []);
        // The conflicting child of a parent counts although it spends nothing.
        let children = get_conflicting_children(store, case.parent.txid(), 10).unwrap();
        assert!(children.contains(&case.winner.txid()));
    });
}

#[test]
fn children_are_locked_generation_by_generation() {
    everywhere(|store| {
        assert_eq!(get_and_lock_children(store, PLACEHOLDER, 10).unwrap(), []);
        let case = case(store);
        let locked = get_and_lock_children(store, case.grandchild.txid(), 10).unwrap();
        assert_eq!(locked, [case.grandchild.txid()], "no children");
        let locked = get_and_lock_children(store, case.loser.txid(), 10).unwrap();
        assert_eq!(locked, [case.loser.txid(), case.grandchild.txid()]);
        let many = root(4, 3);
        store.add_mined(&many);
        let children = [0, 1, 2].map(|vout| child(&[(&many, vout)], 1, vout));
        children.iter().for_each(|tx| store.add(tx));
        let below = child(&[(&children[1], 0)], 1, 1);
        store.add(&below);
        let locked = get_and_lock_children(store, many.txid(), 10).unwrap();
        assert_eq!(locked.len(), 5);
        for tx in children.iter().chain([&many, &below]) {
            assert!(store.record(tx).locked);
        }
        assert!(get_and_lock_children(store, root(8, 1).txid(), 10).is_err(), "missing");
        assert!(get_and_lock_children(store, many.txid(), 3).is_err(), "beyond the budget");
    });
}

/// The double spends of the system tests, on one store: each step is a block.
#[test]
fn double_spends_of_several_kinds() {
    everywhere(|store| {
        // Several conflicts in one block, one of them a chain.
        let funds = [root(1, 2), root(2, 2)];
        funds.iter().for_each(|tx| store.add_mined(tx));
        let losers = [child(&[(&funds[0], 0)], 2, 1), child(&[(&funds[1], 0)], 1, 1)];
        losers.iter().for_each(|tx| store.add(tx));
        let nested = child(&[(&losers[0], 0), (&losers[1], 0)], 1, 1);
        store.add(&nested);
        let first = child(&[(&funds[0], 0), (&funds[1], 1)], 1, 2);
        let second = child(&[(&funds[1], 0)], 1, 2);
        let third = child(&[(&first, 0)], 1, 2);
        [&first, &second, &third].into_iter().for_each(|tx| store.add_conflicting(tx));
        let found = win(store, &[&first, &second, &third]).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(store.spender(&first, 0), Some(third.txid()));
        assert_eq!(store.spender(&funds[1], 1), Some(first.txid()));

        // A reorganisation brings the first ones back, and a third rival wins in the end.
        let back = win(store, &[&losers[0], &losers[1], &nested]).unwrap();
        assert_eq!(back.len(), 3);
        assert_eq!(store.spender(&losers[0], 0), Some(nested.txid()));
        assert!(store.record(&third).conflicting);
        let rival = child(&[(&funds[0], 0)], 1, 3);
        store.add_conflicting(&rival);
        win(store, &[&rival]).unwrap();
        assert_eq!(store.spender(&funds[0], 0), Some(rival.txid()));
        assert!(!store.record(&losers[1]).conflicting, "the other pair is untouched");
        assert!(store.record(&nested).conflicting);

        // What does not conflict is not touched, and two winners for one output are refused.
        let bystander = child(&[(&funds[0], 1)], 1, 1);
        store.add(&bystander);
        assert!(!store.record(&bystander).conflicting);
        let error = refused(store, &[&losers[0], &first]);
        assert!(matches!(error, ConflictError::WinnersConflict(_)), "{error}");
        for tx in &funds {
            assert!(!store.record(tx).locked);
        }
    });
}

#[test]
fn a_winner_that_builds_on_a_loser_is_refused() {
    everywhere(|store| {
        let case = case(store);
        let absurd = child(&[(&case.loser, 1)], 1, 5);
        store.add_conflicting(&absurd);
        let error = refused(store, &[&case.winner, &absurd]);
        assert!(matches!(error, ConflictError::WinnerBuildsOnLoser(_)), "{error}");
    });
}

/// The same after the winner was pruned as a loser and came back.
fn case_of_one_that_came_back(store: &Store) -> Case {
    let case = case(store);
    let (txid, height) = (case.winner.txid(), Height::new(1_000));
    let reply = store.apply_one(Operation::Prune { txid, height }).unwrap();
    assert_eq!(reply, Reply::Pruned(Pruned::Removed));
    store.add_conflicting(&case.winner);
    case
}

/// A crash in the middle left stores that disagreed with the chain for good.
#[test]
fn a_resolution_that_is_cut_off_anywhere_ends_the_same_after_a_replay() {
    with_engines(|new| {
        cut_off_anywhere(new, case);
        cut_off_anywhere(new, case_of_one_that_came_back);
    });
}

fn cut_off_anywhere(new: fn() -> Arc<dyn Engine>, case: fn(&Store) -> Case) {
    let expected = {
        let store = store(new());
        let case = case(&store);
        win(&store, &[&case.winner]).unwrap();
        normal(&store)
    };
    let mut cuts = 0;
    for left in 0.. {
        let engine: Arc<dyn Engine> = new();
        let whole = store(Arc::clone(&engine));
        let case = case(&whole);
        let before = normal(&whole);
        let inner = Arc::clone(&engine);
        let cut = store(Arc::new(FailingEngine::new(inner, left)));
        let done = win(&cut, &[&case.winner]).is_ok();
        assert_eq!(replay(&whole).unwrap().done, usize::from(!done && left > 0));
        let after = normal(&whole);
        if left == 0 {
            assert!(after == before, "no intent, no change");
        } else {
            assert!(after == expected, "cut off after {left} operations");
        }
        assert!(whole.intents().unwrap().is_empty());
        if done {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 6, "every step was cut off: {cuts}");
}

/// A store on which the resolution of [`case`] was cut off when losers had given way and winners
/// had taken nothing: the intent, a mark for each loser, and the freeing are done.
fn cut_off_when_freed(new: fn() -> Arc<dyn Engine>) -> (Store, Case) {
    let engine = new();
    let whole = store(Arc::clone(&engine));
    let case = case(&whole);
    let cut = store(Arc::new(FailingEngine::new(engine, 4)));
    win(&cut, &[&case.winner]).unwrap_err();
    assert_eq!(whole.spender(&case.parent, 0), None);
    (whole, case)
}

#[test]
fn what_was_freed_is_locked_until_the_winner_has_it() {
    with_engines(|new| {
        let (store, case) = cut_off_when_freed(new);
        let third = child(&[(&case.parent, 0)], 1, 9);
        assert!(store.record(&case.parent).locked);
        store.spend(&third, SpendRules::at(NEXT)).unwrap_err();
        assert_eq!(replay(&store).unwrap().done, 1);
        assert_eq!(store.spender(&case.parent, 0), Some(case.winner.txid()));
        assert!(!store.record(&case.parent).locked);
    });
}

/// Losers are scheduled for removal as soon as they are marked, so a replay may find them gone.
#[test]
fn a_replay_passes_over_losers_that_are_gone() {
    with_engines(|new| {
        let (store, case) = cut_off_when_freed(new);
        store.delete(&[case.loser.txid(), case.grandchild.txid()]).unwrap();
        assert_eq!(replay(&store).unwrap().done, 1);
        assert_eq!(store.spender(&case.parent, 0), Some(case.winner.txid()));
    });
}

/// What the loser no longer owns is none of the replay's business.
#[test]
fn a_replay_passes_over_what_was_freed_and_frozen_since() {
    with_engines(|new| {
        let (store, case) = cut_off_when_freed(new);
        let frozen = store.freeze(&[slot(&case.parent, 1)]).unwrap();
        assert!(frozen.iter().all(Result::is_ok), "{frozen:?}");
        assert_eq!(replay(&store).unwrap().done, 1);
        assert_eq!(store.spender(&case.parent, 0), Some(case.winner.txid()));
        assert!(store.record(&case.parent).utxos[1].unwrap().is_frozen());
    });
}

/// A block unlocked an owner in the middle of a resolution, and somebody took what was free.
#[test]
fn one_who_takes_what_was_freed_loses_too() {
    with_engines(|new| {
        let engine = new();
        let plain = store(Arc::clone(&engine));
        let case = case(&plain);
        let thief = child(&[(&case.parent, 0)], 1, 9);
        let info = mined(5, 100);
        let create =
            Unit::spend_and_create(&thief, SpendRules::at(NEXT), &options(), plain.settings());
        let others =
            vec![Operation::SetMined { txid: case.parent.txid(), info }, create.unwrap().into()];
        let meddled = store(Arc::new(MeddlingEngine::new(engine, others)));
        let losers = win(&meddled, &[&case.winner]).unwrap();
        let expected = [&case.loser, &case.grandchild, &thief].map(Transaction::txid);
        assert_eq!(losers, expected);
        assert_eq!(plain.spender(&case.parent, 0), Some(case.winner.txid()));
        for tx in [&case.loser, &case.grandchild, &thief] {
            assert!(plain.record(tx).conflicting);
        }
        assert!(plain.everything().iter().all(|record| !record.locked), "a lock is left");
        assert!(plain.intents().unwrap().is_empty());
    });
}

/// The one who took what was freed is confirmed below the block that asks. The refusal names the
/// intent that stays.
#[test]
fn a_refusal_on_the_second_look_names_the_intent() {
    with_engines(|new| {
        let engine = new();
        let plain = store(Arc::clone(&engine));
        let case = case(&plain);
        let thief = child(&[(&case.parent, 0)], 1, 9);
        let blocks = vec![mined(6, 95).block];
        let options = CreateOptions { blocks, ..options() };
        let create =
            Unit::spend_and_create(&thief, SpendRules::at(NEXT), &options, plain.settings());
        let info = mined(5, 100);
        let others =
            vec![Operation::SetMined { txid: case.parent.txid(), info }, create.unwrap().into()];
        let meddled = store(Arc::new(MeddlingEngine::new(engine, others)));
        let ancestry = |id: BlockId| id == BlockId(6);
        let winners = [case.winner.txid()];
        let error = process_conflicting(&meddled, &winners, &block(&ancestry)).unwrap_err();
        let text = error.to_string();
        let ConflictError::Pending { id, error } = error else { panic!("{error}") };
        assert!(matches!(*error, ConflictError::LoserConfirmed { .. }), "{error}");
        assert!(text.contains(&id.to_string()), "{text}");
        let pending = plain.intents().unwrap();
        assert_eq!(pending.iter().map(Intent::id).collect::<Vec<_>>(), [id]);
        abandon(&plain, id).unwrap();
        // What is stuck names the inputs and what is wrong with each.
        let intent = Intent { txids: vec![case.winner.txid()], ..pending[0].clone() };
        plain.apply_one(Operation::BeginIntent(intent)).unwrap();
        let stuck = replay(&plain).unwrap().stuck.remove(0).1.to_string();
        let outpoint = Outpoint::new(case.parent.txid(), 0).to_string();
        assert!(stuck.contains(&outpoint) && stuck.contains("is spent by"), "{stuck}");
    });
}

/// Of two intents for one winner the first cannot be done while a loser of the second holds on.
#[test]
fn an_intent_that_waits_for_another_is_done_after_it() {
    with_engines(|new| {
        for byte in 0..8 {
            let store = store(new());
            let case = case(&store);
            let intent = |losers: &[&Transaction]| Intent {
                kind: IntentKind::ResolveConflicts,
                height: NEXT,
                block: BlockHash::from_bytes([byte; 32]),
                txids: [case.winner.txid(), PLACEHOLDER]
                    .into_iter()
                    .chain(losers.iter().map(|tx| tx.txid()))
                    .collect(),
                created_at: 1,
            };
            for losers in [&[&case.grandchild][..], &[&case.loser, &case.grandchild]] {
                store.apply_one(Operation::BeginIntent(intent(losers))).unwrap();
            }
            assert_eq!(replay(&store).unwrap().done, 2);
            assert_eq!(store.spender(&case.parent, 0), Some(case.winner.txid()));
            assert!(store.intents().unwrap().is_empty());
            let other = child(&[(&case.parent, 0)], 1, 3);
            store.add_conflicting(&other);
            let hopeless = Intent { txids: vec![other.txid()], ..intent(&[]) };
            store.apply_one(Operation::BeginIntent(hopeless)).unwrap();
            let stuck = replay(&store).unwrap().stuck;
            assert!(matches!(stuck[..], [(_, ConflictError::Stuck { .. })]), "{stuck:?}");
        }
    });
}

/// All records without the time of their creation, which differs between stores.
fn normal(store: &Store) -> Vec<Record> {
    let mut all = store.everything();
    all.iter_mut().for_each(|record| record.created_at = 0);
    all
}

/// A parent that waits for block assembly is not a reason to leave the spender locked.
#[test]
fn a_winner_spends_a_locked_parent() {
    everywhere(|store| {
        let parent = root(1, 1);
        store.create(&parent, &CreateOptions { locked: true, ..options() }).unwrap();
        let loser = child(&[(&parent, 0)], 1, 1);
        let rules = SpendRules { ignore_locked: true, ..SpendRules::at(NEXT) };
        store.spend_and_create(&loser, rules, &options()).unwrap();
        let winner = child(&[(&parent, 0)], 1, 2);
        store.add_conflicting(&winner);
        win(store, &[&winner]).unwrap();
        assert_eq!(store.spender(&parent, 0), Some(winner.txid()));
    });
}

//! Moves of the tip: confirmation, conflicts, reorganisations, restarts.

use varve_types::Outpoint;

use super::world::{Moved, World, child, spend};
use crate::mempool::{Event, Judge, Removal};

#[test]
fn what_a_block_holds_leaves_in_the_same_step_as_the_tip_moves() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let parent = spend(&[coin], value, &[1], 1_000);
    let kid = child(&parent, 0, &[2], 1_000);
    world.take(&parent);
    world.take(&kid);
    let before = world.pool.version().clone();
    world.mine(&[&parent]);
    let version = world.watch.version.clone().unwrap();
    assert_eq!(version.tip().height, world.chain.height());
    assert!(!version.contains(&parent.txid()) && version.contains(&kid.txid()));
    assert_eq!(version.entry(&kid.txid()).unwrap().electrum_height(), 0);
    assert!(before.contains(&parent.txid()) && before.tip().height < version.tip().height);
    let block = version.tip().hash;
    assert_eq!(world.removals(), [(parent.txid(), Removal::Mined { block })]);
    let record = world.pool.ledger.store.get_meta(parent.txid()).unwrap();
    assert!(record.unmined_since.is_none() && record.blocks.len() == 1);
}

#[test]
fn a_commit_is_applied_once() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let tx = spend(&[coin], value, &[1], 1_000);
    world.take(&tx);
    let (left, joined) = world.move_tip(0, vec![vec![tx.clone()]]);
    world.follow(&left, &joined).unwrap();
    let (events, version) = (world.watch.events.len(), world.pool.version().clone());
    world.follow(&left, &joined).unwrap();
    assert_eq!(world.watch.events.len(), events);
    assert!(std::sync::Arc::ptr_eq(&version, world.pool.version()));
}

#[test]
fn a_block_with_a_double_spend_evicts_the_loser_and_what_builds_on_it() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let loser = spend(&[coin], value, &[1], 1_000);
    let kid = child(&loser, 0, &[2], 1_000);
    world.take(&loser);
    world.take(&kid);
    let winner = spend(&[coin], value, &[3], 5);
    world.mine(&[&winner]);
    let with = winner.txid();
    let lost = Removal::Conflict { with };
    assert_eq!(world.removals(), [(loser.txid(), lost), (kid.txid(), lost)]);
    let store = &world.pool.ledger.store;
    assert!(store.get_meta(loser.txid()).unwrap().conflicting);
    assert!(store.get_meta(kid.txid()).unwrap().conflicting);
}

#[test]
fn a_loser_that_a_block_confirms_is_no_loser() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let first = spend(&[coin], value, &[1], 1_000);
    let second = spend(&[coin], value, &[2], 9_000);
    world.take(&first);
    world.take(&second);
    assert!(world.pool.ledger.store.get_meta(first.txid()).unwrap().conflicting);
    world.mine(&[&first]);
    let record = world.pool.ledger.store.get_meta(first.txid()).unwrap();
    assert!(!record.conflicting && record.unmined_since.is_none());
    assert!(world.pool.ledger.store.get_meta(second.txid()).unwrap().conflicting);
    let with = first.txid();
    assert_eq!(world.removals().last(), Some(&(second.txid(), Removal::Conflict { with })));
}

#[test]
fn a_disconnected_block_gives_its_transactions_back_in_order() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let parent = spend(&[coin], value, &[1], 1_000);
    let kid = child(&parent, 0, &[2], 1_000);
    let grandchild = child(&kid, 0, &[3], 1_000);
    world.mine(&[&parent, &kid]);
    world.take(&grandchild);
    world.watch.events.clear();
    world.reorganise(1, vec![vec![], vec![]]);
    let order: Vec<_> = world.version().entries().map(|entry| entry.txid()).collect();
    assert_eq!(order, [parent.txid(), kid.txid(), grandchild.txid()]);
    let entry = world.version().entry(&grandchild.txid()).unwrap();
    assert_eq!(entry.ancestors().count, 3);
    let accepted = [parent.txid(), kid.txid()].map(|txid| Event::Accepted { txid });
    assert_eq!(world.watch.events, accepted, "the grandchild never left");
    world.mine(&[&parent, &kid, &grandchild]);
    assert_eq!(world.version().totals().sum.count, 0);
}

#[test]
fn descendants_of_a_coinbase_that_left_drop() {
    let mut world = World::usual();
    world.mine(&[]);
    world.mine(&[]);
    let (coin, value) = world.coin(11);
    let tx = spend(&[coin], value, &[1], 1_000);
    let kid = child(&tx, 0, &[2], 1_000);
    world.take(&tx);
    world.take(&kid);
    world.reorganise(2, vec![vec![], vec![], vec![]]);
    let invalid = Removal::Invalidated;
    assert_eq!(world.removals(), [(tx.txid(), invalid), (kid.txid(), invalid)]);
    assert!(world.pool.ledger.store.get_meta(coin.txid).is_err(), "nor is there a record");
}

#[test]
fn a_lower_tip_makes_lock_times_and_young_coinbases_count_again() {
    let mut world = World::usual();
    world.mine(&[]);
    let (coin, value) = world.coin(10);
    let young = spend(&[coin], value, &[1], 1_000);
    let (coin, value) = world.coin(1);
    let mut locked = spend(&[coin], value, &[1], 1_000);
    locked.lock_time = 11;
    let (coin, value) = world.coin(2);
    let plain = spend(&[coin], value, &[1], 1_000);
    [&young, &locked, &plain].iter().for_each(|tx| world.take(tx));
    world.reorganise(1, vec![]);
    assert!(!world.has(&young) && !world.has(&locked) && world.has(&plain));
}

#[test]
fn a_whole_reorganisation_is_one_version() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let tx = spend(&[coin], value, &[1], 1_000);
    world.mine(&[&tx]);
    world.mine(&[]);
    world.watch.events.clear();
    let before = world.pool.version().clone();
    world.reorganise(2, vec![vec![], vec![tx.clone()], vec![]]);
    let after = world.pool.version().clone();
    assert!(!before.contains(&tx.txid()) && !after.contains(&tx.txid()));
    assert_eq!(world.watch.events, [], "it was confirmed before and after");
}

#[test]
fn mined_records_and_their_parents_go_some_blocks_later() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let tx = spend(&[coin], value, &[1, 2], 1_000);
    let kid = child(&tx, 0, &[3], 1_000);
    world.take(&tx);
    world.take(&kid);
    world.mine(&[&tx]);
    (0..7).for_each(|_| world.mine(&[]));
    let store = world.pool.ledger.store.clone();
    assert!(store.get_meta(coin.txid).is_err(), "the parent of what was mined");
    assert!(store.get_meta(tx.txid()).is_ok(), "the child still needs it");
    world.mine(&[&kid]);
    (0..7).for_each(|_| world.mine(&[]));
    assert!(store.get_meta(tx.txid()).is_err() && store.get_meta(kid.txid()).is_err());
    assert_eq!(store.engine().status().unwrap().keys, 0, "nothing is left behind");
}

#[test]
fn another_output_of_an_imported_parent_is_added_to_its_record() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let payout = spend(&[coin], value, &[1, 2, 3], 1_000);
    world.mine(&[&payout]);
    let spenders: Vec<_> = (0..3).map(|vout| child(&payout, vout, &[4], 1_000)).collect();
    for tx in [&spenders[2], &spenders[0], &spenders[1]] {
        world.take(tx);
    }
    let outpoints: Vec<_> = (0..3).map(|vout| Outpoint::new(payout.txid(), vout)).collect();
    let slots = world.pool.ledger.store.engine().slots(&outpoints).unwrap();
    for (slot, spender) in slots.into_iter().zip(&spenders) {
        assert_eq!(slot.unwrap().slot.unwrap().spender().unwrap().txid, spender.txid());
    }
}

#[test]
fn a_restart_keeps_what_is_valid_and_drops_the_rest() {
    let mut world = World::usual();
    let coins: Vec<_> = (1..=4).map(|height| world.coin(height)).collect();
    let txs: Vec<_> =
        coins.iter().map(|(coin, value)| spend(&[*coin], *value, &[1], 1_000)).collect();
    let kid = child(&txs[0], 0, &[2], 1_000);
    let loses = child(&txs[2], 0, &[2], 1_000);
    txs.iter().chain([&kid, &loses]).for_each(|tx| world.take(tx));
    let entry = world.version().entry(&kid.txid()).unwrap().clone();
    // The chain moves while nobody looks: one is confirmed, one is double spent.
    let rival = spend(&[coins[2].0], coins[2].1, &[5], 10);
    world.move_tip(0, vec![vec![txs[1].clone(), rival]]);
    let reloaded = world.restart();
    assert_eq!(reloaded.kept, 3);
    assert!(world.has(&txs[0]) && world.has(&kid) && world.has(&txs[3]));
    let again = world.version().entry(&kid.txid()).unwrap();
    assert_eq!(
        (again.time(), again.fee(), again.bytes()),
        (entry.time(), entry.fee(), entry.bytes())
    );
    assert_eq!(again.ancestors(), entry.ancestors());
    assert_eq!(reloaded.dropped.len(), 3);
    world.mine(&[&txs[0], &kid]);
    assert_eq!(world.version().totals().sum.count, 1);
}

#[test]
fn a_restart_puts_children_behind_parents_that_came_back_later() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let parent = spend(&[coin], value, &[1], 1_000);
    let kid = child(&parent, 0, &[2], 1_000);
    world.mine(&[&parent]);
    world.take(&kid);
    world.now += 100;
    world.reorganise(1, vec![vec![], vec![]]);
    assert_eq!(world.restart().kept, 2);
    assert_eq!(world.version().entry(&kid.txid()).unwrap().ancestors().count, 2);
}

#[test]
fn a_block_in_no_order_of_dependence_is_followed_and_given_back() {
    // Some chains sort blocks by txid: a child may come before its parent.
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let parent = spend(&[coin], value, &[1], 1_000);
    let kid = child(&parent, 0, &[2], 1_000);
    world.take(&parent);
    world.take(&kid);
    let (left, mut joined) = world.move_tip(0, vec![vec![parent.clone(), kid.clone()]]);
    joined[0].1.txs[1..].reverse();
    world.follow(&left, &joined).unwrap();
    assert_eq!(world.version().totals().sum.count, 0);
    let (mut left, none): (Moved, Moved) = world.move_tip(1, vec![]);
    left[0].1.txs[1..].reverse();
    world.follow(&left, &none).unwrap();
    let order: Vec<_> = world.version().entries().map(|entry| entry.txid()).collect();
    assert_eq!(order, [parent.txid(), kid.txid()]);
}

#[test]
fn a_double_spend_across_branches_changes_sides_with_the_chain() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let ours = spend(&[coin], value, &[1], 1_000);
    let kid = child(&ours, 0, &[2], 1_000);
    let theirs = spend(&[coin], value, &[3], 2_000);
    world.take(&ours);
    world.mine(&[&ours]);
    world.take(&kid);
    world.reorganise(1, vec![vec![theirs.clone()], vec![]]);
    let with = theirs.txid();
    assert_eq!(world.removals().last(), Some(&(kid.txid(), Removal::Conflict { with })));
    assert!(world.pool.ledger.store.get_meta(ours.txid()).unwrap().conflicting);
    assert!(world.pool.ledger.store.get_meta(kid.txid()).unwrap().conflicting);
    assert_eq!(world.version().totals().sum.count, 0);
    // Back again: the other one loses.
    world.reorganise(2, vec![vec![ours.clone()], vec![], vec![]]);
    let verdicts = world.accept_many(&[&kid], Judge::Ours);
    assert!(verdicts[0].is_ok(), "a loser that is valid again comes in");
    assert!(!world.pool.ledger.store.get_meta(kid.txid()).unwrap().conflicting);
    assert!(!world.has(&theirs));
}

#[test]
fn transactions_of_five_blocks_that_move_into_one_answer_the_same() {
    // Conduit's functional test: the same questions before and after a reorganisation of five
    // blocks in which all transactions land in one block of the new branch.
    let mut world = World::usual();
    let coins: Vec<_> = (1..=5).map(|height| world.coin(height)).collect();
    let txs: Vec<_> =
        coins.iter().map(|(coin, value)| spend(&[*coin], *value, &[1], 1_000)).collect();
    txs.iter().for_each(|tx| world.mine(&[tx]));
    let kids: Vec<_> = txs.iter().map(|tx| child(tx, 0, &[1], 1_000)).collect();
    kids.iter().for_each(|tx| world.take(tx));
    let script = varve_types::ScriptHash::of(&super::world::script(1));
    let answers = |world: &World| {
        let version = world.version();
        let spender = |tx| version.spender(&Outpoint::new(tx, 0));
        let spenders: Vec<_> = txs.iter().map(|tx| spender(tx.txid())).collect();
        (version.history(script), version.script_delta(script), spenders)
    };
    let before = answers(&world);
    world.reorganise(5, vec![vec![], vec![], vec![], vec![], vec![], txs.clone()]);
    assert_eq!(answers(&world), before);
}

#[test]
fn a_transaction_of_a_stale_block_is_confirmed_at_another_height() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let tx = spend(&[coin], value, &[1], 1_000);
    world.take(&tx);
    world.mine(&[&tx]);
    world.reorganise(1, vec![vec![], vec![]]);
    assert!(world.has(&tx), "in between it waits");
    world.mine(&[&tx]);
    assert!(!world.has(&tx));
    let record = world.pool.ledger.store.get_meta(tx.txid()).unwrap();
    assert_eq!(record.blocks.iter().map(|block| block.height.to_u32()).collect::<Vec<_>>(), [13]);
}

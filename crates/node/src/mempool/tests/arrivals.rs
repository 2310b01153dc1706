//! Arrivals: consensus, policy, replacement, packages, orphans, eviction, expiry.

use varve_consensus::{SpendError, TransactionError};
use varve_types::{Amount, Outpoint};

use super::world::{World, child, spend};
use crate::mempool::{Event, FeeRate, Judge, Policy, Reject, Removal, ReplaceError};

#[test]
fn an_accepted_transaction_is_published_recorded_and_unlocked() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let tx = spend(&[coin], value, &[1, 2], 1_000);
    world.take(&tx);
    let entry = world.version().entry(&tx.txid()).unwrap();
    assert_eq!((entry.fee(), entry.bytes()), (Amount::from_sat(1_000), tx.bytes()));
    assert_eq!(entry.vsize(), tx.bytes().len() as u64);
    assert_eq!(world.watch.events, [Event::Accepted { txid: tx.txid() }]);
    let record = world.pool.ledger.store.get_meta(tx.txid()).unwrap();
    assert!(!record.locked && record.unmined_since.is_some());
    let parent = world.pool.ledger.store.get_meta(coin.txid).unwrap();
    assert!(parent.is_all_spent() && parent.is_coinbase, "imported and spent");
    assert!(matches!(world.refuse(&tx), Reject::Here(_)));
}

#[test]
fn consensus_refuses_what_no_block_can_hold() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let good = spend(&[coin], value, &[1], 1_000);
    let mut twice = good.clone();
    twice.inputs.push(twice.inputs[0].clone());
    let twice = world.refuse(&twice);
    let error = TransactionError::DuplicateInput { outpoint: coin };
    assert!(matches!(twice, Reject::Transaction { error: e, .. } if e == error), "{twice}");
    let mut over = good.clone();
    over.outputs[0].value = value + 1;
    let over = world.refuse(&over);
    assert!(matches!(over, Reject::Spend(SpendError::Overspent { .. })), "{over}");
    let (young, _) = world.coin(10);
    let young = world.refuse(&spend(&[young], value, &[1], 1_000));
    assert!(matches!(young, Reject::Spend(SpendError::ImmatureCoinbase { .. })), "{young}");
    let mut later = good.clone();
    later.lock_time = 11;
    assert!(matches!(world.refuse(&later), Reject::NotFinal(_)), "the next block is 11");
    later.lock_time = 10;
    later.inputs[0].sequence = 11;
    let locked = world.refuse(&later);
    assert!(matches!(locked, Reject::Spend(SpendError::RelativelyLocked { .. })), "{locked}");
    assert_eq!(world.version().totals().sum.count, 0);
}

#[test]
fn a_script_that_fails_is_refused_and_a_node_is_believed() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let mut parent = spend(&[coin], value, &[1], 1_000);
    parent.outputs[0].script = vec![0x00];
    world.take(&parent);
    let bad = child(&parent, 0, &[1], 1_000);
    assert!(matches!(world.refuse(&bad), Reject::Script { vin: 0, .. }));
    world.accept_many(&[&bad], Judge::Node)[0].as_ref().unwrap();
    let unspendable = {
        let (coin, value) = world.coin(2);
        let mut tx = spend(&[coin], value, &[1], 1_000);
        tx.outputs[0].script = vec![0x6a];
        tx
    };
    world.take(&unspendable);
    let refused = world.refuse(&child(&unspendable, 0, &[1], 1_000));
    assert!(matches!(refused, Reject::NoSuchOutput { .. }), "{refused}");
}

#[test]
fn a_fee_below_the_relay_rate_is_refused() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    assert!(matches!(world.refuse(&spend(&[coin], value, &[1], 0)), Reject::Fee { .. }));
    assert!(world.accept_many(&[&spend(&[coin], value, &[1], 0)], Judge::Node)[0].is_ok());
}

#[test]
fn replacement_removes_descendants_and_marks_them_in_the_records() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let first = spend(&[coin], value, &[1, 2], 1_000);
    let second = child(&first, 0, &[3], 1_000);
    let third = child(&second, 0, &[4], 1_000);
    [&first, &second, &third].iter().for_each(|tx| world.take(tx));
    let short = spend(&[coin], value, &[5], 3_000);
    let refused = world.refuse(&short);
    assert!(matches!(refused, Reject::Replace { error: ReplaceError::Fee { .. }, .. }));
    let double = Event::DoubleSpend { outpoint: coin, holder: first.txid(), refused: short.txid() };
    assert!(world.watch.events.contains(&double), "a double spend is found and reported");
    let better = spend(&[coin], value, &[5], 3_100);
    world.take(&better);
    let by = better.txid();
    let removed: Vec<_> =
        [&first, &second, &third].iter().map(|tx| (tx.txid(), Removal::Replaced { by })).collect();
    assert_eq!(world.removals(), removed);
    for tx in [&first, &second, &third] {
        assert!(world.pool.ledger.store.get_meta(tx.txid()).unwrap().conflicting);
    }
    assert!(!world.pool.ledger.store.get_meta(by).unwrap().conflicting);
    assert_eq!(world.version().spender(&coin).unwrap().txid, by);
    assert_eq!(world.version().totals().sum.count, 1);
}

#[test]
fn each_rule_of_bip125_refuses() {
    let policy = Policy { full_rbf: false, max_replaced: 2, ..Policy::default() };
    let mut world = World::new(10, policy);
    let error = |world: &mut World, tx| match world.refuse(&tx) {
        Reject::Replace { error, .. } => error,
        other => panic!("{other}"),
    };
    let (coin, value) = world.coin(1);
    let mut silent = spend(&[coin], value, &[1, 2, 3], 1_000);
    silent.inputs[0].sequence = 0xffff_fffe;
    world.take(&silent);
    let found = error(&mut world, spend(&[coin], value, &[1], 9_000));
    assert_eq!(found, ReplaceError::NotSignaled);
    let (coin, value) = world.coin(2);
    let original = spend(&[coin], value, &[1, 2, 3], 1_000);
    world.take(&original);
    let same_rate = spend(&[coin], value, &[1, 2, 3], 1_000);
    let mut same_rate = same_rate;
    same_rate.outputs[0].value += 1;
    same_rate.outputs[1].value -= 1;
    assert_eq!(error(&mut world, same_rate), ReplaceError::Rate);
    let new_input = Outpoint::new(silent.txid(), 0);
    let value_both = value + silent.outputs[0].value;
    let unconfirmed = spend(&[coin, new_input], value_both, &[1], 50_000);
    assert_eq!(error(&mut world, unconfirmed), ReplaceError::NewUnconfirmedInput);
    let own = Outpoint::new(original.txid(), 0);
    let on_itself = spend(&[coin, own], value + original.outputs[0].value, &[1], 50_000);
    assert_eq!(error(&mut world, on_itself), ReplaceError::BuildsOnIt);
    for vout in 0..2 {
        world.take(&child(&original, vout, &[7], 1_000));
    }
    let many = error(&mut world, spend(&[coin], value, &[1], 50_000));
    assert_eq!(many, ReplaceError::TooMany { count: 3 });
}

#[test]
fn chains_of_unconfirmed_have_a_limit() {
    let policy = Policy { max_relatives: 3, ..Policy::default() };
    let mut world = World::new(10, policy);
    let (coin, value) = world.coin(1);
    let first = spend(&[coin], value, &[1, 2], 1_000);
    let second = child(&first, 0, &[3], 1_000);
    let third = child(&second, 0, &[4], 1_000);
    [&first, &second, &third].iter().for_each(|tx| world.take(tx));
    let fourth = child(&third, 0, &[5], 1_000);
    assert!(matches!(world.refuse(&fourth), Reject::TooManyRelatives { limit: 3, .. }));
    let sibling = child(&first, 1, &[5], 1_000);
    let refused = world.refuse(&sibling);
    assert!(matches!(refused, Reject::TooManyRelatives { .. }), "descendants of the first");
    assert!(world.accept_many(&[&fourth], Judge::Node)[0].is_ok(), "the node has its own limits");
    // A replacement frees the places of what it replaces.
    let replacement = child(&first, 0, &[6], 9_000);
    world.take(&replacement);
    world.take(&sibling);
}

#[test]
fn a_child_pays_for_its_parent_in_a_package() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let parent = spend(&[coin], value, &[1], 0);
    let child_tx = child(&parent, 0, &[2], 1_000);
    assert!(matches!(world.refuse(&parent), Reject::Fee { .. }));
    let free = child(&parent, 0, &[2], 1);
    assert!(world.package(&[&parent, &free]).iter().all(Result::is_err));
    assert_eq!(world.version().totals().sum.count, 0, "all or none");
    let (other, value) = world.coin(2);
    let unrelated = spend(&[other], value, &[2], 10_000);
    let verdicts = world.package(&[&parent, &unrelated]);
    assert!(matches!(verdicts[0], Err(Reject::NoPackage(2))));
    assert!(world.package(&[&parent, &child_tx]).iter().all(Result::is_ok));
    assert!(world.has(&parent) && world.has(&child_tx));
    let rich = spend(&[other], value, &[2], 10_000);
    let poor = child(&rich, 0, &[2], 0);
    let verdicts = world.package(&[&rich, &poor]);
    assert!(matches!(verdicts[1], Err(Reject::Fee { .. })), "parents do not pay for a child");
}

#[test]
fn orphans_wait_for_their_parents_within_limits() {
    let policy = Policy { max_orphans: 2, orphan_expiry: 60, ..Policy::default() };
    let mut world = World::new(10, policy);
    let (coin, value) = world.coin(1);
    let parent = spend(&[coin], value, &[1, 2, 3], 1_000);
    let children: Vec<_> = (0..3).map(|vout| child(&parent, vout, &[4], 1_000)).collect();
    let grandchild = child(&children[2], 0, &[5], 1_000);
    for tx in [&children[0], &children[2], &grandchild] {
        assert!(matches!(world.refuse(tx), Reject::Orphan { .. }));
    }
    assert_eq!(world.pool.orphans(), 2, "the oldest went");
    assert!(!world.pool.is_orphan(&children[0].txid()));
    world.take(&parent);
    assert!(world.has(&children[2]) && world.has(&grandchild) && !world.has(&children[0]));
    assert_eq!(world.pool.orphans(), 0);
    let (coin, value) = world.coin(2);
    let late = spend(&[coin], value, &[1], 1_000);
    world.refuse(&child(&late, 0, &[2], 1_000));
    world.now += 61;
    world.pool.expire(world.now, &mut world.watch).unwrap();
    assert_eq!(world.pool.orphans(), 0);
}

#[test]
fn an_orphan_is_adopted_when_a_block_has_its_parent() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let parent = spend(&[coin], value, &[1], 1_000);
    let orphan = child(&parent, 0, &[2], 1_000);
    world.refuse(&orphan);
    world.mine(&[&parent]);
    assert!(world.has(&orphan) && !world.has(&parent));
    assert_eq!(world.version().entry(&orphan.txid()).unwrap().electrum_height(), 0);
}

#[test]
fn the_lowest_packages_are_evicted_and_the_floor_rises() {
    let mut world = World::usual();
    let coins: Vec<_> = (1..=8).map(|height| world.coin(height)).collect();
    let txs: Vec<_> = (1..)
        .zip(&coins)
        .map(|(rank, (coin, value))| spend(&[*coin], *value, &[1], 1_000 * rank))
        .collect();
    world.take(&txs[0]);
    let one = world.version().totals().memory;
    world.pool.policy.memory = one * 4;
    // The cheapest has a child that pays for both: it stays, and the second goes.
    let rich = child(&txs[0], 0, &[2], 50_000);
    world.take(&rich);
    txs[1..5].iter().for_each(|tx| world.take(tx));
    assert!(world.version().totals().memory <= one * 4);
    assert!(world.has(&txs[0]) && world.has(&rich));
    assert!(!world.has(&txs[1]) && !world.has(&txs[2]) && world.has(&txs[4]));
    let floor = world.version().totals().min_rate;
    let evicted = FeeRate::of(Amount::from_sat(3_000), txs[2].bytes().len() as u64);
    assert_eq!(floor, evicted.plus(FeeRate::per_kvb(100)));
    assert!(matches!(world.refuse(&txs[1]), Reject::Fee { .. }), "below the floor");
    assert!(world.pool.ledger.store.get_meta(txs[1].txid()).is_err(), "its record is gone");
    world.now += 24 * 3_600;
    world.pool.expire(world.now, &mut world.watch).unwrap();
    world.take(&txs[7]);
    let later = world.version().totals().min_rate;
    assert!(later < floor || world.removals().len() > 2, "it halves in time");
}

#[test]
fn a_newcomer_that_pays_least_is_refused_and_nothing_changes() {
    let mut world = World::usual();
    let coins: Vec<_> = (1..=4).map(|height| world.coin(height)).collect();
    let tx = |rank: usize, fee| spend(&[coins[rank].0], coins[rank].1, &[1], fee);
    world.take(&tx(0, 5_000));
    world.pool.policy.memory = world.version().totals().memory;
    let before = world.version().txids(None, 10);
    assert!(matches!(world.refuse(&tx(1, 4_000)), Reject::Full(_)));
    assert_eq!(world.version().txids(None, 10), before);
    world.take(&tx(2, 6_000));
    assert_eq!(world.version().totals().sum.count, 1);
}

#[test]
fn old_transactions_expire_with_their_descendants() {
    let policy = Policy { expiry: 100, ..Policy::default() };
    let mut world = World::new(10, policy);
    let (coin, value) = world.coin(1);
    let old = spend(&[coin], value, &[1], 1_000);
    world.take(&old);
    world.now += 60;
    let young = child(&old, 0, &[2], 1_000);
    world.take(&young);
    world.now += 41;
    world.pool.expire(world.now, &mut world.watch).unwrap();
    let expired = [(old.txid(), Removal::Expired), (young.txid(), Removal::Expired)];
    assert_eq!(world.removals(), expired);
    world.take(&old);
}

#[test]
fn what_the_node_accepted_takes_the_place_of_what_we_had() {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let ours = spend(&[coin], value, &[1], 50_000);
    world.take(&ours);
    let theirs = spend(&[coin], value, &[2], 10);
    world.accept_many(&[&theirs], Judge::Node)[0].as_ref().unwrap();
    assert!(world.has(&theirs) && !world.has(&ours));
    world.pool.drop_txs(&[theirs.txid()], world.now, &mut world.watch).unwrap();
    assert_eq!(world.removals().last().unwrap(), &(theirs.txid(), Removal::Dropped));
    assert!(world.pool.ledger.store.get_meta(theirs.txid()).is_err());
}

#[test]
fn an_output_that_is_frozen_by_order_is_refused_by_the_records() {
    use varve_records::operation::SlotRef;
    use varve_records::record::UtxoHash;
    use varve_types::TxOut;

    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let parent = spend(&[coin], value, &[1, 2], 1_000);
    world.take(&parent);
    let script = parent.outputs[0].script.clone();
    let output = TxOut { value: Amount::from_sat(parent.outputs[0].value), script: &script };
    let outpoint = Outpoint::new(parent.txid(), 0);
    let slot = SlotRef { outpoint, hash: UtxoHash::of(&outpoint, &output) };
    world.pool.ledger.store.freeze(&[slot]).unwrap()[0].as_ref().unwrap();
    let frozen = child(&parent, 0, &[3], 1_000);
    let other = child(&parent, 1, &[3], 1_000);
    let verdicts = world.accept_many(&[&frozen, &other], Judge::Ours);
    assert!(matches!(verdicts[0], Err(Reject::Record { .. })));
    assert!(verdicts[1].is_ok() && !world.has(&frozen));
    assert!(world.pool.ledger.store.get_meta(frozen.txid()).is_err());
}

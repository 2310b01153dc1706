//! Conflict resolutions that were cut off or are stuck: resumed, retried, abandoned, superseded.

use varve_types::Height;

use super::Disk;
use super::draft::{Coin, TxDraft};
use super::node::{Node, START, asks};
use super::resolution::{keep, prune_at, win};
use crate::conflicts::{self, ConflictError, Retry, abandon, process_conflicting, retry};
use crate::extended::Transaction;
use crate::intent::{Intent, IntentKind};
use crate::operation::{Operation, SpendRules};
use crate::outcome::Pruned;
use crate::record::BlockId;
use crate::restart::recover;
use crate::spending_data::PLACEHOLDER;

fn intent(winners: &[&Transaction], losers: &[&Transaction]) -> Intent {
    let mut txids: Vec<_> = winners.iter().map(|tx| tx.txid()).collect();
    txids.push(PLACEHOLDER);
    txids.extend(losers.iter().map(|tx| tx.txid()));
    Intent {
        kind: IntentKind::ResolveConflicts,
        height: Height::new(START + 1),
        block: asks(START + 1, 9, &|_| false).hash,
        txids,
        created_at: 1,
    }
}

/// A resolution that cannot be finished: the winner claims what was reassigned meanwhile.
fn stuck(node: &Node) -> (Transaction, [Transaction; 2], Intent) {
    let fund = node.fund(1, 2);
    let coin = Coin::of(&fund, 0);
    let winner = keep(node, std::slice::from_ref(&coin), 2);
    let loser = node.take(&[(&fund, 1)], 1);
    node.store.freeze(&[coin.slot()]).expect("the storage works")[0].clone().expect("unspent");
    let intent = intent(&[&winner], &[&loser]);
    node.store.apply_one(Operation::BeginIntent(intent.clone())).expect("the storage works");
    (fund, [winner, loser], intent)
}

/// One resolution that is stuck is reported; everything else of a restart is done.
pub fn a_stuck_intent_does_not_stop_a_restart<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let (fund, [winner, _], intent) = stuck(&node);
    let [other, good] = [node.fund(2, 1), node.fund(3, 1)];
    let [first, second] = [1, 2].map(|tag| node.take(&[(&other, 0)], tag));
    let waiting = node.take(&[(&good, 0)], 1);
    let txids = vec![second.txid(), PLACEHOLDER, first.txid()];
    let able = Intent { txids, ..intent.clone() };
    node.store.apply_one(Operation::BeginIntent(able)).expect("the storage works");
    let recovery = recover(&node.store, &|id| id == BlockId(1), &mut |_| Ok(()));
    let recovery = recovery.expect("one stuck intent is no reason to stop");
    assert_eq!(recovery.replayed, 1, "the other one is done");
    assert_eq!(recovery.stuck.len(), 1);
    assert_eq!(recovery.stuck[0].0, intent.id());
    assert!(recovery.added.contains(&waiting.txid()) && recovery.added.contains(&second.txid()));
    assert_eq!(node.spender(&other, 0), Some(second.txid()));
    assert_eq!(node.store.intents().expect("the storage works"), std::slice::from_ref(&intent));
    assert!(node.record(&fund).locked, "what was freed stays out of reach");
    // It is not pruned away either, because it may be tried again.
    let report = prune_at(&node, START + 1_000);
    assert!(node.find(&winner).is_some());
    assert!(report.kept.contains(&(winner.txid(), Pruned::Pending)), "{report:?}");
    abandon(&node.store, intent.id()).expect("it is there");
    node.end(disk);
}

/// When the reason is gone a stuck resolution can be tried again.
pub fn a_stuck_intent_can_be_tried_again<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let (fund, [winner, loser], intent) = stuck(&node);
    let again = Retry { now_ms: 2, budget: 10, is_ancestor: &|_| false };
    let error = retry(&node.store, intent.id(), &again).expect_err("the output is frozen");
    let ConflictError::Pending { id, error } = error else { panic!("{error}") };
    assert!(id == intent.id() && matches!(*error, ConflictError::Frozen { .. }), "{error}");
    assert_eq!(node.store.intents().expect("the storage works"), std::slice::from_ref(&intent));
    let slot = Coin::of(&fund, 0).slot();
    node.store.unfreeze(&[slot]).expect("the storage works")[0].clone().expect("it is frozen");
    assert_eq!(retry(&node.store, intent.id(), &again).expect("it is free"), [loser.txid()]);
    assert_eq!(node.spender(&fund, 0), Some(winner.txid()));
    let error = retry(&node.store, intent.id(), &again).expect_err("it is done");
    assert!(matches!(error, ConflictError::NoSuchIntent(_)), "{error}");
    node.end(disk);
}

/// Giving up leaves nothing locked: both sides have lost, and either may win later.
pub fn a_stuck_intent_can_be_abandoned<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let (fund, [winner, loser], intent) = stuck(&node);
    assert_eq!(conflicts::replay(&node.store).expect("the storage works").stuck.len(), 1);
    assert!(node.record(&fund).locked && node.record(&loser).conflicting);
    assert_eq!(abandon(&node.store, intent.id()).expect("it is there"), intent);
    assert!(!node.record(&fund).locked);
    assert!(node.record(&loser).delete_at.is_some(), "losers are scheduled");
    assert!(node.record(&winner).conflicting);
    abandon(&node.store, intent.id()).expect_err("it is gone");
    assert_eq!(win(&node, &[&loser], START + 1).expect("nobody is in the way"), []);
    assert_eq!(node.spender(&fund, 1), Some(loser.txid()));
    node.end(disk);
}

/// The chain decides the other way while a resolution is stuck. The stuck one is obsolete: resumed
/// later it would undo the decision.
pub fn a_newer_decision_supersedes_a_stuck_one<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let (fund, [_, loser], _) = stuck(&node);
    assert_eq!(conflicts::replay(&node.store).expect("the storage works").stuck.len(), 1);
    let losers = process_conflicting(&node.store, &[loser.txid()], &asks(START + 2, 8, &|_| false));
    assert_eq!(losers.expect("nobody is in the way"), []);
    assert_eq!(node.store.intents().expect("the storage works"), []);
    assert!(!node.record(&fund).locked && node.stands(&loser));
    let replayed = conflicts::replay(&node.store).expect("the storage works");
    assert_eq!((replayed.done, replayed.stuck.len()), (0, 0));
    assert_eq!(node.spender(&fund, 1), Some(loser.txid()));
    node.end(disk);
}

/// A crash comes when the newer decision is written down and the older not yet given up.
pub fn of_two_intents_that_disagree_the_newer_is_resumed<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let (fund, [winner, loser], older) = stuck(&node);
    assert_eq!(conflicts::replay(&node.store).expect("the storage works").stuck.len(), 1);
    assert!(node.record(&loser).conflicting);
    let txids = vec![loser.txid(), PLACEHOLDER];
    let newer = Intent { txids, created_at: older.created_at + 1, ..older };
    node.store.apply_one(Operation::BeginIntent(newer)).expect("the storage works");
    let replayed = conflicts::replay(&node.store).expect("the storage works");
    assert_eq!((replayed.done, replayed.stuck.len()), (1, 0));
    assert!(node.stands(&loser) && node.record(&winner).conflicting);
    assert_eq!(node.spender(&fund, 1), Some(loser.txid()));
    node.end(disk);
}

/// The chain decides for a third one that claims the same output as the winner that is stuck.
pub fn a_third_rival_supersedes_a_stuck_one<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 2);
    let [first, second] = [0, 1].map(|vout| Coin::of(&fund, vout));
    let loser = node.take(&[(&fund, 0)], 1);
    let winner = keep(&node, &[first.clone(), second.clone()], 2);
    let third = keep(&node, &[first], 3);
    node.store.freeze(&[second.slot()]).expect("the storage works")[0].clone().expect("unspent");
    let intent = intent(&[&winner], &[&loser]);
    node.store.apply_one(Operation::BeginIntent(intent)).expect("the storage works");
    assert_eq!(conflicts::replay(&node.store).expect("the storage works").stuck.len(), 1);
    let asks = asks(START + 2, 8, &|_| false);
    process_conflicting(&node.store, &[third.txid()], &asks).expect("the output is free");
    assert_eq!(node.store.intents().expect("the storage works"), []);
    let replayed = conflicts::replay(&node.store).expect("the storage works");
    assert_eq!((replayed.done, replayed.stuck.len()), (0, 0));
    assert!(node.stands(&third) && !node.record(&fund).locked);
    assert_eq!(node.spender(&fund, 0), Some(third.txid()));
    node.end(disk);
}

/// A winner spends from one that somebody else has locked, for instance until block assembly has
/// it. That lock is none of the resolution's.
pub fn a_pending_intent_holds_no_lock_of_others<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let [fund, good] = [node.fund(1, 2), node.fund(2, 1)];
    let frozen = Coin::of(&fund, 0);
    let loser = node.take(&[(&fund, 1)], 1);
    let waiting = node.take(&[(&good, 0)], 1);
    let winner = keep(&node, &[frozen.clone(), Coin::of(&waiting, 0)], 2);
    node.store.freeze(&[frozen.slot()]).expect("the storage works")[0].clone().expect("unspent");
    let intent = intent(&[&winner], &[&loser]);
    node.store.apply_one(Operation::BeginIntent(intent.clone())).expect("the storage works");
    let lock = |locked| node.store.set_locked(&[waiting.txid()], locked).expect("it is there");
    lock(true);
    let recovery = recover(&node.store, &|id| id == BlockId(1), &mut |_| Ok(()));
    let recovery = recovery.expect("one stuck intent is no reason to stop");
    assert_eq!(recovery.stuck.len(), 1);
    assert_eq!(recovery.unlocked, [waiting.txid()], "a restart ends what waits for assembly");
    assert!(node.record(&fund).locked);
    lock(true);
    abandon(&node.store, intent.id()).expect("it is there");
    assert!(node.record(&waiting).locked && !node.record(&fund).locked);
    lock(false);
    node.end(disk);
}

/// What the resolution frees from a loser without a record is locked, and unlocked when it is given
/// up.
pub fn abandoning_unlocks_what_a_loser_without_a_record_held<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 2);
    let [first, frozen] = [0, 1].map(|vout| Coin::of(&fund, vout));
    let ghost = TxDraft::spending(std::slice::from_ref(&first), 1).tag(7).build();
    let rules = SpendRules::at(Height::new(START + 1));
    node.store.spend(&ghost, rules).expect("it is unspent");
    let winner = keep(&node, &[first, frozen.clone()], 2);
    node.store.freeze(&[frozen.slot()]).expect("the storage works")[0].clone().expect("unspent");
    let intent = intent(&[&winner], &[&ghost]);
    node.store.apply_one(Operation::BeginIntent(intent.clone())).expect("the storage works");
    assert_eq!(conflicts::replay(&node.store).expect("the storage works").stuck.len(), 1);
    assert!(node.record(&fund).locked && node.spender(&fund, 0).is_none());
    abandon(&node.store, intent.id()).expect("it is there");
    assert!(!node.record(&fund).locked);
    node.end(disk);
}

/// A loser names the records that were locked for it, so it is not pruned before the intent ends.
pub fn abandoning_unlocks_though_the_loser_was_due<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let [fund, other] = [node.fund(1, 2), node.fund(2, 2)];
    let frozen = Coin::of(&fund, 0);
    let loser = node.take(&[(&fund, 1), (&other, 0)], 1);
    let winner = keep(&node, std::slice::from_ref(&frozen), 2);
    node.store.freeze(&[frozen.slot()]).expect("the storage works")[0].clone().expect("unspent");
    let intent = intent(&[&winner], &[&loser]);
    node.store.apply_one(Operation::BeginIntent(intent.clone())).expect("the storage works");
    assert_eq!(conflicts::replay(&node.store).expect("the storage works").stuck.len(), 1);
    assert!(node.record(&other).locked);
    let report = prune_at(&node, START + 1_000);
    assert!(report.kept.contains(&(loser.txid(), Pruned::Pending)), "{report:?}");
    abandon(&node.store, intent.id()).expect("it is there");
    assert!(!node.record(&other).locked);
    node.end(disk);
}

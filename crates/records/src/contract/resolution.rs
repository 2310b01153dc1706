//! Who may win a double spend and who may not, and what becomes of losers.
//!
//! Each case is one story, as in [`double_spend`](super::double_spend). Here the participants are
//! not the two plain transactions of a textbook: an output was reassigned, a spender has no record,
//! a rival was pruned, a child comes while the resolution is under way.

use std::cell::Cell;

use varve_types::{Height, Txid};

use super::Disk;
use super::draft::{Coin, TxDraft};
use super::node::{Block, Node, START, asks};
use crate::conflicts::{ConflictError, get_conflicting_children, process_conflicting};
use crate::error::SlotError;
use crate::extended::Transaction;
use crate::operation::SpendRules;
use crate::prepare::CreateOptions;
use crate::pruner::{PruneAt, PruneReport, prune};
use crate::record::BlockId;

/// Keeps a transaction as the loser of a double spend, whatever it claims.
pub(super) fn keep(node: &Node, inputs: &[Coin], tag: u32) -> Transaction {
    let tx = TxDraft::spending(inputs, 2).tag(tag).build();
    let height = Height::new(START + 1);
    let options = CreateOptions { height, conflicting: true, ..CreateOptions::default() };
    node.store.create(&tx, &options).expect("it is new");
    tx
}

/// Asks for winners at a height. A refusal must leave everything as it was.
pub(super) fn win(
    node: &Node,
    winners: &[&Transaction],
    height: u32,
) -> Result<Vec<Txid>, ConflictError> {
    let winners: Vec<Txid> = winners.iter().map(|tx| tx.txid()).collect();
    let before = node.everything();
    let losers = process_conflicting(&node.store, &winners, &asks(height, 9, &|_| false));
    if losers.is_err() {
        assert!(node.everything() == before, "a refusal changes nothing");
        assert_eq!(node.store.intents().expect("the storage works"), []);
    }
    losers
}

pub(super) fn prune_at(node: &Node, height: u32) -> PruneReport {
    node.stand_at(height);
    let at = PruneAt { height: Height::new(height), persisted: None, assembly_running: true };
    prune(&node.store, at).expect("the storage works")
}

/// An order gave the output to somebody else. The former owner's transaction is in a block of a
/// node that does not know of the order; it must not take the output from the new owner.
pub fn a_former_owner_does_not_win_a_reassigned_output<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 2);
    let old = Coin::of(&fund, 0);
    let new = Coin { script: vec![0x53], ..old.clone() };
    node.store.freeze(&[old.slot()]).expect("the storage works")[0].clone().expect("unspent");
    node.store.reassign(old.slot(), new.hash()).expect("it is frozen");
    node.stand_at(START + 1_000);
    let height = START + 1_001;
    let former = keep(&node, &[old], 1);
    let error = win(&node, &[&former], height).expect_err("the output is not theirs");
    let ConflictError::Unspendable { outpoint, error, .. } = error else { panic!("{error}") };
    assert_eq!((outpoint, error), (new.outpoint, SlotError::HashMismatch));
    // With a rival that is rightful it is the same, and the rightful one can win.
    let spender = |tag| TxDraft::spending(std::slice::from_ref(&new), 1).tag(tag).build();
    let [first, second] = [2, 3].map(spender);
    node.store.spend(&first, SpendRules::at(Height::new(height))).expect("it is theirs");
    win(&node, &[&former], height).expect_err("the output is not theirs");
    assert_eq!(node.spender(&fund, 0), Some(first.txid()));
    let options = CreateOptions { conflicting: true, ..CreateOptions::default() };
    node.store.create(&second, &options).expect("it is new");
    assert_eq!(win(&node, &[&second], height).expect("it is theirs"), [first.txid()]);
    assert_eq!(node.spender(&fund, 0), Some(second.txid()));
    node.end(disk);
}

/// The hash covers the value: whoever claims another one spends another output.
pub fn a_winner_that_lies_about_the_value_is_refused<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let first = node.take(&[(&fund, 0)], 1);
    let coin = Coin::of(&fund, 0);
    let liar = keep(&node, &[Coin { value: coin.value + 1, ..coin }], 2);
    let error = win(&node, &[&liar], START + 1).expect_err("the value is another");
    assert!(matches!(error, ConflictError::Unspendable { txid, .. } if txid == liar.txid()));
    assert_eq!(node.spender(&fund, 0), Some(first.txid()));
    node.end(disk);
}

/// Outputs that nobody may spend at this height are refused by their own names.
pub fn a_winner_meets_the_checks_of_a_spend<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let coinbase = TxDraft::coinbase(1, 1).build();
    let height = Height::new(START);
    let options = CreateOptions { height, ..CreateOptions::default() };
    node.store.create(&coinbase, &options).expect("it is new");
    let early = keep(&node, &[Coin::of(&coinbase, 0)], 1);
    let error = win(&node, &[&early], START + 1).expect_err("it is young");
    let ConflictError::Unspendable { error, .. } = error else { panic!("{error}") };
    assert!(matches!(error, SlotError::CoinbaseImmature { .. }), "{error}");
    let ripe = node.store.settings().coinbase_maturity + START;
    assert_eq!(win(&node, &[&early], ripe).expect("it is ripe"), []);
    // Nothing can be spent at height 0, and that is known before anybody gives way.
    let fund = node.fund(2, 1);
    node.take(&[(&fund, 0)], 1);
    let second = node.take(&[(&fund, 0)], 2);
    win(&node, &[&second], 0).expect_err("the height is missing");
    node.end(disk);
}

/// A spend without a record of the spender, as an interrupted node or a bare spend leaves it.
pub fn a_spender_without_a_record_gives_way<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 2);
    let rules = SpendRules::at(Height::new(START + 1));
    let ghost = TxDraft::spending(&[Coin::of(&fund, 0)], 1).tag(7).build();
    node.store.spend(&ghost, rules).expect("it is unspent");
    let winner = node.take(&[(&fund, 0)], 2);
    assert_eq!(win(&node, &[&winner], START + 1).expect("it is resolved"), [ghost.txid()]);
    assert_eq!(node.spender(&fund, 0), Some(winner.txid()));
    // The same one generation below: what the loser had sold to nobody is free again.
    let loser = node.take(&[(&fund, 1)], 1);
    let below = TxDraft::spending(&[Coin::of(&loser, 0)], 1).tag(8).build();
    node.store.spend(&below, rules).expect("it is unspent");
    let winner = node.take(&[(&fund, 1)], 2);
    let losers = win(&node, &[&winner], START + 1).expect("it is resolved");
    assert_eq!(losers, [loser.txid(), below.txid()]);
    assert_eq!(node.spender(&loser, 0), None);
    node.end(disk);
}

/// A funded output whose first spender is confirmed, all spent, and pruned.
fn pruned_spender(node: &Node) -> (Transaction, Transaction, u32) {
    let fund = node.fund(1, 2);
    let rival = node.take(&[(&fund, 0)], 1);
    let above = node.take(&[(&rival, 0), (&rival, 1)], 1);
    node.connect(&Block::new(2, 101, &[&rival, &above])).expect("nothing conflicts");
    let late = START + 2 + node.store.settings().retention;
    prune_at(node, late);
    assert_eq!(node.find(&rival), None, "it is pruned");
    (fund, rival, late)
}

/// What was confirmed and pruned cannot lose: nobody could bring it back.
pub fn a_rival_that_was_confirmed_and_pruned_is_not_taken_back<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let (fund, rival, late) = pruned_spender(&node);
    let second = keep(&node, &[Coin::of(&fund, 0)], 2);
    let error = win(&node, &[&second], late + 1).expect_err("the rival is confirmed");
    assert!(matches!(error, ConflictError::LoserPruned(txid) if txid == rival.txid()), "{error}");
    assert_eq!(node.spender(&fund, 0), Some(rival.txid()));
    node.end(disk);
}

/// The same when the owner of the output was pruned as well: who spent it is not known any more.
pub fn a_winner_whose_parent_was_pruned_is_refused<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let rival = node.take(&[(&fund, 0)], 1);
    let above = node.take(&[(&rival, 0), (&rival, 1)], 1);
    node.connect(&Block::new(2, 101, &[&rival, &above])).expect("nothing conflicts");
    let late = START + 2 + node.store.settings().retention;
    prune_at(&node, late);
    assert!(node.find(&rival).is_none() && node.find(&fund).is_none(), "both are pruned");
    let second = keep(&node, &[Coin::of(&fund, 0)], 2);
    let error = win(&node, &[&second], late + 1).expect_err("the rival is confirmed");
    let ConflictError::Unspendable { txid, error, .. } = error else { panic!("{error}") };
    assert_eq!((txid, error), (second.txid(), SlotError::TxNotFound));
    node.end(disk);
}

/// The same one generation above the rival.
pub fn a_descendant_that_was_confirmed_and_pruned_protects<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 2);
    let rival = node.take(&[(&fund, 0)], 1);
    let child = node.take(&[(&rival, 0)], 1);
    let above = node.take(&[(&child, 0), (&child, 1)], 1);
    node.connect(&Block::new(2, 101, &[&rival, &child, &above])).expect("nothing conflicts");
    let late = START + 2 + node.store.settings().retention;
    prune_at(&node, late);
    assert!(node.find(&child).is_none() && node.find(&rival).is_some());
    let second = keep(&node, &[Coin::of(&fund, 0)], 2);
    let error = win(&node, &[&second], late + 1).expect_err("a descendant is confirmed");
    assert!(matches!(error, ConflictError::LoserPruned(txid) if txid == child.txid()), "{error}");
    node.end(disk);
}

/// A transaction that was only marked still holds what it spent. When it goes, that is free.
pub fn a_loser_that_goes_gives_back_what_it_holds<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let first = node.take(&[(&fund, 0)], 1);
    node.store.set_conflicting(&[first.txid()], true).expect("the storage works");
    assert_eq!(node.spender(&fund, 0), Some(first.txid()));
    let late = START + 1 + node.store.settings().retention;
    assert_eq!(prune_at(&node, late).removed, 1);
    assert_eq!(node.spender(&fund, 0), None);
    let second = keep(&node, &[Coin::of(&fund, 0)], 2);
    assert_eq!(win(&node, &[&second], late + 1).expect("nobody is in the way"), []);
    assert_eq!(node.spender(&fund, 0), Some(second.txid()));
    node.end(disk);
}

/// A child arrives after the losers were looked for and before they are marked.
pub fn a_child_that_comes_meanwhile_loses_too<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let [fund, other] = [node.fund(1, 1), node.fund(2, 1)];
    let [first, second] = [1, 2].map(|tag| node.take(&[(&fund, 0)], tag));
    node.see(&Block::new(8, 101, &[&first]));
    let come = Cell::new(None);
    let meanwhile = |_: BlockId| {
        if come.take().is_none() {
            let child = node.take(&[(&first, 0), (&other, 0)], 5);
            come.set(Some([node.take(&[(&child, 0)], 6), child]));
        }
        false
    };
    let asks = asks(START + 1, 9, &meanwhile);
    let losers = process_conflicting(&node.store, &[second.txid()], &asks).expect("resolved");
    let [grandchild, child] = come.take().expect("they came");
    assert_eq!(losers, [first.txid(), child.txid(), grandchild.txid()]);
    assert!([&first, &child, &grandchild].into_iter().all(|tx| node.record(tx).conflicting));
    assert_eq!(node.spender(&other, 0), None, "what it spent elsewhere is free");
    assert!([&child, &grandchild].into_iter().all(|tx| node.record(tx).delete_at.is_some()));
    node.end(disk);
}

/// Losers wait for nobody: a chain of them goes when it is due, in one run.
pub fn a_chain_of_losers_goes_when_it_is_due<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let mut chain = vec![node.take(&[(&fund, 0)], 1)];
    for _ in 0..3 {
        let next = node.take(&[(&chain[chain.len() - 1], 0)], 1);
        chain.push(next);
    }
    let second = node.take(&[(&fund, 0)], 2);
    node.connect(&Block::new(2, START + 1, &[&second])).expect("it is resolved");
    let due = START + node.store.settings().retention;
    // Runs before they are due must not put it off, though the losers are old and unmined.
    for height in [START + 150, START + 200, due - 1] {
        assert_eq!(prune_at(&node, height).removed, 0);
    }
    assert_eq!(prune_at(&node, due).removed, 4);
    assert!(chain.iter().all(|tx| node.find(tx).is_none()));
    assert!(node.find(&fund).is_some(), "the winner's parent is not due yet");
    node.end(disk);
}

/// A parent that stands is kept for a loser as long as the loser has a record.
pub fn a_loser_still_preserves_a_parent_that_stands<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let [_, second] = [1, 2].map(|tag| node.take(&[(&fund, 0)], tag));
    assert!(node.record(&second).conflicting);
    let report = prune_at(&node, START + 200);
    assert_eq!((report.old_unmined, report.preserved), (2, 1));
    assert!(node.record(&fund).preserve_until.is_some());
    let children = get_conflicting_children(&node.store, fund.txid(), 10).expect("few");
    assert!(children.contains(&second.txid()));
    node.end(disk);
}

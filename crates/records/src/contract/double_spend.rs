//! Double spends, from the first transaction to the block that decides.
//!
//! Each case is one story, played block by block on a `Node`; at its end the power fails, and the
//! records must be the same afterwards.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use varve_types::Height;

use super::Disk;
use super::draft::{Coin, TxDraft};
use super::node::{Block, Node, START, asks, sorted};
use crate::conflicts::{ConflictError, process_conflicting};
use crate::extended::Transaction;
use crate::operation::SpendRules;
use crate::prepare::CreateOptions;
use crate::pruner::{PruneAt, prune};
use crate::record::BlockId;

/// The second of two spenders is in a block: the first loses.
pub fn a_block_decides_for_the_second_spender<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let [first, second] = [1, 2].map(|tag| node.take(&[(&fund, 0)], tag));
    assert!(node.stands(&first) && !node.stands(&second));
    let losers = node.connect(&Block::new(2, 101, &[&second])).expect("it is resolved");
    assert_eq!(losers, [first.txid()]);
    assert!(!node.stands(&first) && node.stands(&second));
    assert_eq!(node.spender(&fund, 0), Some(second.txid()));
    assert_eq!(node.record(&second).unmined_since, None);
    node.end(disk);
}

/// Nobody is in the way of a transaction that was marked for another reason.
pub fn a_winner_without_a_rival_wins<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let tx = TxDraft::spending(&[Coin::of(&fund, 0)], 1).build();
    let height = Height::new(START + 1);
    let options = CreateOptions { height, conflicting: true, ..CreateOptions::default() };
    node.store.create(&tx, &options).expect("it is new");
    assert_eq!(node.connect(&Block::new(2, 101, &[&tx])).expect("it is resolved"), []);
    assert_eq!(node.spender(&fund, 0), Some(tx.txid()));
    assert!(node.stands(&tx));
    node.end(disk);
}

/// One block decides several double spends.
pub fn several_conflicts_in_one_block<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 3);
    let firsts = [0, 1, 2].map(|vout| node.take(&[(&fund, vout)], 1));
    let seconds = [0, 1].map(|vout| node.take(&[(&fund, vout)], 2));
    let mut losers = node.connect(&Block::new(2, 101, &[&seconds[0], &seconds[1]])).expect("ok");
    losers.sort();
    assert_eq!(losers, sorted(&[&firsts[0], &firsts[1]]));
    assert!(node.stands(&firsts[2]), "it had no rival");
    assert_eq!(node.spender(&fund, 2), Some(firsts[2].txid()));
    node.end(disk);
}

/// Several double spends, each decided by a block of its own.
pub fn several_conflicts_in_different_blocks<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 2);
    let firsts = [0, 1].map(|vout| node.take(&[(&fund, vout)], 1));
    let seconds = [0, 1].map(|vout| node.take(&[(&fund, vout)], 2));
    for (place, below) in [(0_usize, &[][..]), (1, &[2])] {
        let id = 2 + u32::try_from(place).expect("a small number");
        let block = Block::new(id, 99 + id, &[&seconds[place]]).on(below);
        assert_eq!(node.connect(&block).expect("ok"), [firsts[place].txid()]);
        assert!(place == 1 || node.stands(&firsts[1]), "the other is not decided yet");
    }
    assert!(seconds.iter().all(|tx| node.stands(tx)));
    node.end(disk);
}

/// Two chains that begin with a double spend: the whole chain loses or wins.
pub fn chains_lose_and_win_whole<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let chain = |tag| {
        let first = node.take(&[(&fund, 0)], tag);
        let second = node.take(&[(&first, 0)], tag);
        let third = node.take(&[(&second, 0), (&first, 1)], tag);
        [first, second, third]
    };
    let (ours, theirs) = (chain(1), chain(2));
    assert!(theirs.iter().all(|tx| !node.stands(tx)), "what builds on a loser is one");
    let block = Block::new(2, 101, &[&theirs[0], &theirs[1], &theirs[2]]);
    let losers = node.connect(&block).expect("it is resolved");
    assert_eq!(losers, ours.each_ref().map(Transaction::txid));
    assert_eq!(node.spender(&theirs[0], 0), Some(theirs[1].txid()));
    assert_eq!(node.spender(&theirs[0], 1), Some(theirs[2].txid()));
    assert!(theirs.iter().all(|tx| node.stands(tx)));
    node.end(disk);
}

/// A transaction that builds on two losers gives back what it had from others too.
pub fn nested_losers_give_everything_back<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let [fund, other] = [node.fund(1, 2), node.fund(2, 1)];
    let firsts = [0, 1].map(|vout| node.take(&[(&fund, vout)], 1));
    let nested = node.take(&[(&firsts[0], 0), (&other, 0), (&firsts[1], 0)], 1);
    let deep = node.take(&[(&nested, 0), (&firsts[0], 1)], 1);
    let second = node.take(&[(&fund, 1)], 2);
    let mut losers = node.connect(&Block::new(2, 101, &[&second])).expect("it is resolved");
    losers.sort();
    assert_eq!(losers, sorted(&[&firsts[1], &nested, &deep]));
    assert!(node.stands(&firsts[0]));
    let free = [node.spender(&other, 0), node.spender(&firsts[0], 0), node.spender(&firsts[0], 1)];
    assert_eq!(free, [None; 3]);
    node.end(disk);
}

/// A block of another branch decides nothing before that branch is the longest.
pub fn a_fork_decides_when_it_is_the_longest<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let [first, second] = [1, 2].map(|tag| node.take(&[(&fund, 0)], tag));
    let (here, there) = (Block::new(2, 101, &[&first]), Block::new(3, 101, &[&second]));
    assert_eq!(node.connect(&here).expect("no conflict"), []);
    node.see(&there);
    assert!(node.stands(&first) && !node.stands(&second));
    assert_eq!(node.spender(&fund, 0), Some(first.txid()));
    node.disconnect(&here);
    assert_eq!(node.connect(&there).expect("it is resolved"), [first.txid()]);
    node.connect(&Block::new(4, 102, &[]).on(&[3])).expect("no conflict");
    assert_eq!(node.spender(&fund, 0), Some(second.txid()));
    assert_eq!(node.record(&first).block_ids(), [BlockId(2)], "the other block is still known");
    node.end(disk);
}

/// A block cannot hold a rival of what a block below it has.
pub fn a_double_spend_in_a_subsequent_block_is_refused<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let [first, second] = [1, 2].map(|tag| node.take(&[(&fund, 0)], tag));
    node.connect(&Block::new(2, 101, &[&first])).expect("no conflict");
    let before = node.everything();
    for below in [&[2][..], &[1, 2, 3]] {
        let error = node.connect(&Block::new(4, 102, &[&second]).on(below));
        let Err(ConflictError::LoserConfirmed { txid, block }) = error else {
            panic!("{error:?}");
        };
        assert_eq!((txid, block), (first.txid(), BlockId(2)));
        assert!(node.everything() == before, "nothing is changed");
    }
    node.end(disk);
}

/// Three branches, each with its own spender: whichever branch is the longest, its spender holds
/// the output, and no other.
pub fn of_three_branches_the_longest_decides<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let rivals = [1, 2, 3].map(|tag| node.take(&[(&fund, 0)], tag));
    let block = |place: usize| {
        Block::new(2 + u32::try_from(place).expect("a small number"), 101, &[&rivals[place]])
    };
    node.connect(&block(0)).expect("no conflict");
    let mut before = 0;
    for branch in [1, 2, 0, 2, 1] {
        node.disconnect(&block(before));
        assert_eq!(node.connect(&block(branch)).expect("ok"), [rivals[before].txid()]);
        for (place, rival) in rivals.iter().enumerate() {
            assert_eq!(node.stands(rival), place == branch);
        }
        assert_eq!(node.spender(&fund, 0), Some(rivals[branch].txid()));
        before = branch;
    }
    node.end(disk);
}

/// What has no rival waits again after its block is gone, and is in the next one.
pub fn what_does_not_conflict_survives_a_reorganisation<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 2);
    let [first, second] = [1, 2].map(|tag| node.take(&[(&fund, 0)], tag));
    let calm = node.take(&[(&fund, 1)], 1);
    let above = node.take(&[(&calm, 0)], 1);
    let here = Block::new(2, 101, &[&first, &calm, &above]);
    node.connect(&here).expect("no conflict");
    node.disconnect(&here);
    assert_eq!(node.connect(&Block::new(3, 101, &[&second])).expect("ok"), [first.txid()]);
    assert_eq!(node.reset_assembly(&[1, 3]), sorted(&[&calm, &above]));
    node.connect(&Block::new(4, 102, &[&calm, &above]).on(&[3])).expect("no conflict");
    assert_eq!(node.reset_assembly(&[1, 3, 4]), []);
    assert!(node.stands(&calm) && node.stands(&above));
    node.end(disk);
}

/// A loser and all that builds on it come back whole when its branch is the longest again.
pub fn a_loser_wins_again_after_a_reorganisation<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let [first, second] = [1, 2].map(|tag| node.take(&[(&fund, 0)], tag));
    let above = node.take(&[(&first, 0)], 1);
    let (here, there) = (Block::new(2, 101, &[&first, &above]), Block::new(3, 101, &[&second]));
    node.connect(&here).expect("no conflict");
    node.disconnect(&here);
    node.connect(&there).expect("it is resolved");
    assert_eq!(node.reset_assembly(&[1, 3]), [], "losers are not given to block assembly");
    node.disconnect(&there);
    assert_eq!(node.connect(&here).expect("it is resolved"), [second.txid()]);
    assert!(node.stands(&first) && node.stands(&above) && !node.stands(&second));
    assert_eq!(node.spender(&first, 0), Some(above.txid()));
    assert_eq!(node.record(&first).delete_at, None);
    node.end(disk);
}

/// A block assembly that forgot everything is given the first spender before the block that
/// decides, and neither of them after it.
pub fn double_spends_after_a_reset_of_block_assembly<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 2);
    let [first, second] = [1, 2].map(|tag| node.take(&[(&fund, 0)], tag));
    let above = node.take(&[(&first, 0)], 3);
    let bystander = node.take(&[(&fund, 1)], 1);
    assert_eq!(node.reset_assembly(&[1]), sorted(&[&first, &above, &bystander]));
    assert!(!node.stands(&second), "a reset is no decision");
    node.connect(&Block::new(2, 101, &[&second])).expect("it is resolved");
    for _ in 0..2 {
        assert_eq!(node.reset_assembly(&[1, 2]), [bystander.txid()]);
        assert!(!node.stands(&first) && !node.stands(&above) && node.stands(&second));
        assert_eq!(node.spender(&fund, 0), Some(second.txid()));
    }
    node.end(disk);
}

/// A frozen output takes no part in a double spend, and the block waits for its end.
pub fn a_frozen_output_holds_up_a_double_spend<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 2);
    let [first, second] = [1, 2].map(|tag| node.take(&[(&fund, 0)], tag));
    let slot = Coin::of(&first, 0).slot();
    node.store.freeze(&[slot]).expect("the storage works")[0].clone().expect("it is unspent");
    let before = node.everything();
    let block = Block::new(2, 101, &[&second]);
    let error = node.connect(&block).expect_err("it is refused");
    assert!(matches!(error, ConflictError::FrozenChild(_)), "{error}");
    assert!(node.everything() == before, "nothing is changed");
    node.store.unfreeze(&[slot]).expect("the storage works")[0].clone().expect("it is frozen");
    assert_eq!(node.connect(&block).expect("it is resolved"), [first.txid()]);
    node.end(disk);
}

/// Neither spender is in a block for long. The second is pruned as a loser, the output stays
/// because the first still waits, and a late block decides for the second all the same.
pub fn a_double_spend_that_is_not_mined_for_long<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let [first, second] = [1, 2].map(|tag| node.take(&[(&fund, 0)], tag));
    let late = START + 1 + node.store.settings().retention;
    node.stand_at(late);
    let at = PruneAt { height: Height::new(late), persisted: None, assembly_running: true };
    let report = prune(&node.store, at).expect("the storage works");
    assert_eq!((report.old_unmined, report.removed), (2, 1), "{report:?}");
    assert_eq!(node.find(&second), None);
    assert_eq!(node.spender(&fund, 0), Some(first.txid()), "the parent of what waits is there");
    let block = Block::new(2, late + 1, &[&second]);
    assert_eq!(node.connect(&block).expect("it is resolved"), [first.txid()]);
    assert!(node.stands(&second));
    assert_eq!(node.spender(&fund, 0), Some(second.txid()));
    let again = node.store.spend(&second, SpendRules::at(Height::new(late + 1)));
    assert!(again.is_ok(), "what was pruned as a loser and won is no replay: {again:?}");
    node.end(disk);
}

/// Two blocks of two branches decide at the same time for two transactions. The second resolution
/// looks after the first is done; otherwise both would take the same loser for theirs.
pub fn resolutions_at_once_come_one_after_the_other<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let [first, left, right] = [1, 2, 3].map(|tag| node.take(&[(&fund, 0)], tag));
    // While a resolution looks it asks about the block of the loser, and waits there for the other.
    node.see(&Block::new(9, 101, &[&first]));
    let looking = AtomicUsize::new(0);
    let wait_for_both = |_: BlockId| {
        looking.fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        while looking.load(Ordering::SeqCst) < 2 && start.elapsed() < Duration::from_millis(100) {
            thread::yield_now();
        }
        false
    };
    thread::scope(|scope| {
        for winner in [&left, &right] {
            let (store, wait_for_both) = (&node.store, &wait_for_both);
            scope.spawn(move || {
                let asks = asks(START + 1, 2, wait_for_both);
                process_conflicting(store, &[winner.txid()], &asks).expect("it is resolved")
            });
        }
    });
    let holder = node.spender(&fund, 0);
    for tx in [&first, &left, &right] {
        assert_eq!(node.stands(tx), holder == Some(tx.txid()));
    }
    assert!(!node.stands(&first));
    node.end(disk);
}

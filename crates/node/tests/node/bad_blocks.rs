//! Blocks that break a rule: refused with the reason, remembered, and the best valid chain stays.

use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_node::source::directory::Directory;
use varve_node::{Organizer, SyncOptions, Verify};
use varve_types::script::opcode::OP_0;
use varve_types::{Network, Outpoint, Txid};
use varve_utxo::SetHash;

use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{disk, framed, pipe, set_hash, sync, sync_options};

/// A chain of five blocks, a branch above its third one with a bad block in its middle, and what
/// is wrong with that.
fn branch(spoil: impl FnOnce(&Mined, &mut BlockDraft)) -> (Vec<Mined>, Vec<Mined>) {
    let main = Mined::genesis().chain(1, 5);
    let mut branch = main[2].chain(2, 2);
    let parent = branch[1].clone();
    let spend = TxDraft::spending(&[parent.coin()], 2);
    let mut draft = parent.draft(2, vec![spend]);
    spoil(&parent, &mut draft);
    branch.push(parent.mine(draft));
    let above = branch[2].chain(2, 3);
    branch.extend(above);
    (main, branch)
}

/// Gives a node the chain and the branch, twice, with a restart between, and looks at the verdict.
fn check(reason: &str, spoil: impl FnOnce(&Mined, &mut BlockDraft)) {
    let (main, branch) = branch(spoil);
    let bad = branch[2].hash;
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    let blocks = bytes_of(main.iter().chain(&branch));
    sync(&mut node, &mut pipe(Network::Regtest, &bytes_of(&main)), &sync_options()).unwrap();
    let before = set_hash(&node, SetHash::HashSerialized3);
    for _ in 0..2 {
        let mut source = pipe(Network::Regtest, &blocks);
        let refused = sync(&mut node, &mut source, &sync_options()).unwrap();
        let [(hash, given)] = &refused[..] else { panic!("once, not {refused:?}") };
        assert!(*hash == bad.to_string() && given.contains(reason), "{reason}: {given}");
        assert_eq!(node.snapshot().tip.1, main[4].hash, "{reason}");
        assert_eq!(set_hash(&node, SetHash::HashSerialized3), before);
        drop(node);
        node = Organizer::open(disk(folder.path()), young_options()).unwrap();
        let invalid = node.invalid(&bad).expect("remembered");
        assert!(invalid.reason.contains(reason), "{}", invalid.reason);
        assert_eq!(node.snapshot().tip.1, main[4].hash);
        assert_eq!(set_hash(&node, SetHash::HashSerialized3), before);
    }
    // The chain still grows.
    let longer = bytes_of(main.iter().chain(&main[4].chain(3, 4)));
    sync(&mut node, &mut pipe(Network::Regtest, &longer), &sync_options()).unwrap();
    assert_eq!(node.snapshot().tip.0.to_u32(), 9);
}

#[test]
fn spending_a_coinbase_too_early() {
    let reason = "bad-txns-premature-spend-of-coinbase";
    check(reason, |_, draft| {
        let own = Outpoint::new(draft.txs[0].txid(), 0);
        draft.txs.push(TxDraft::spending(&[own], 1));
    });
}

#[test]
fn spending_twice() {
    check("bad-txns-inputs-missingorspent", |parent, draft| {
        draft.txs.push(TxDraft::spending(&[parent.coin()], 1));
    });
}

#[test]
fn spending_what_is_not_there() {
    check("bad-txns-inputs-missingorspent", |_, draft| {
        let nothing = Outpoint::new(Txid::from_bytes([9; 32]), 0);
        draft.txs.push(TxDraft::spending(&[nothing], 1));
    });
}

#[test]
fn spending_more_than_there_is() {
    check("bad-txns-in-belowout", |_, draft| {
        draft.txs[1].outputs[0].value = 51 * 100_000_000;
    });
}

#[test]
fn taking_too_much() {
    check("bad-cb-amount", |_, draft| draft.txs[0].outputs[0].value += 50 * 100_000_000);
}

#[test]
fn a_second_coinbase() {
    check("bad-cb-multiple", |parent, draft| draft.txs.push(parent.coinbase.clone()));
}

fn failing_script(draft: &mut BlockDraft) {
    draft.txs[1].outputs[0].script = vec![OP_0];
    let failing = Outpoint::new(draft.txs[1].txid(), 0);
    draft.txs.push(TxDraft::spending(&[failing], 1));
}

#[test]
fn a_script_that_fails() {
    check("block-script-verify-flag-failed", |_, draft| failing_script(draft));
}

#[test]
fn scripts_are_not_asked_for_spends_alone() {
    let (main, branch) = branch(|_, draft| failing_script(draft));
    let blocks = bytes_of(main.iter().chain(&branch));
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    let spends = SyncOptions { verify: Verify::Spends, ..sync_options() };
    assert_eq!(sync(&mut node, &mut pipe(Network::Regtest, &blocks), &spends).unwrap(), []);
    assert_eq!(node.snapshot().tip.1, branch.last().unwrap().hash);
}

#[test]
fn bytes_that_are_not_those_of_the_header_do_not_condemn_it() {
    let main = Mined::genesis().chain(1, 3);
    let mut blocks = bytes_of(&main);
    let last = blocks[2].len() - 6;
    blocks[2][last] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    let mut source = pipe(Network::Regtest, &blocks);
    let refused = sync(&mut node, &mut source, &sync_options()).unwrap();
    let once = refused.len() == 1 && refused[0].1.starts_with("bad-txnmrklroot");
    assert!(once, "{refused:?}");
    assert_eq!(node.snapshot().tip.1, main[1].hash);
    assert!(node.invalid(&main[2].hash).is_none());
    let mut source = pipe(Network::Regtest, &bytes_of(&main));
    assert_eq!(sync(&mut node, &mut source, &sync_options()).unwrap(), []);
    assert_eq!(node.snapshot().tip.1, main[2].hash);
}

/// The best header may be one whose block nobody has. A source that gives the best chain alone
/// still brings the chain on that it tells of.
#[test]
fn a_branch_that_nobody_has_does_not_hold_up_another() {
    let main = Mined::genesis().chain(1, 5);
    let branch = main[2].chain(2, 9);
    let mut blocks = bytes_of(main.iter().chain(&branch));
    let torn = blocks[6].len() - 6;
    blocks[6][torn] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
    assert_eq!(node.snapshot().tip.1, main[4].hash);
    assert_eq!(node.header_height().to_u32(), 12);
    let longer = main[4].chain(3, 2);
    let file = folder.path().join("blk00000.dat");
    let blocks = bytes_of(main.iter().chain(&longer));
    std::fs::write(&file, framed(Network::Regtest, &blocks)).unwrap();
    let mut source = Directory::open(&file, Network::Regtest, false).unwrap();
    let best_alone = SyncOptions { all_branches: false, ..sync_options() };
    sync(&mut node, &mut source, &best_alone).unwrap();
    assert_eq!(node.snapshot().tip.1, longer[1].hash);
}

#[test]
fn a_header_without_work() {
    let main = Mined::genesis().chain(1, 3);
    let mut blocks = bytes_of(&main);
    // Of the nonces one of two has not even the little work that regtest asks for.
    while varve_types::sha256d(&blocks[2][..80])[31] < 0x80 {
        blocks[2][76] = blocks[2][76].wrapping_add(1);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    let mut source = pipe(Network::Regtest, &blocks);
    let refused = sync(&mut node, &mut source, &sync_options()).unwrap();
    assert!(refused.len() == 1 && refused[0].1.contains("has not the work"), "{refused:?}");
    assert_eq!(node.snapshot().tip.1, main[1].hash);
}

//! Conflicts, and the notes of works of several steps.

use varve_types::{BlockHash, Height, Outpoint, Txid};

use super::draft::{Coin, TxDraft};
use super::{Disk, World, errors};
use crate::engine::Scan;
use crate::error::{ErrorCode, SlotError};
use crate::intent::{Intent, IntentKind};
use crate::operation::{Operation, SpendRules, Unit, Unspend};
use crate::outcome::Reply;
use crate::spending_data::{PLACEHOLDER, SpendingData};

fn set(txid: Txid, conflicting: bool) -> Operation {
    Operation::SetConflicting { txid, conflicting }
}

/// Marking returns what the loser spent and who spends the loser.
pub fn a_loser_names_its_parents_and_children<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parents = [1, 2].map(|tag| world.root(tag, 2));
    let coins = [Coin::of(&parents[0], 1), Coin::of(&parents[1], 0), Coin::of(&parents[0], 0)];
    let loser = world.child(&coins, 3);
    let both = [0, 2].map(|vout| Coin::of(&loser, vout));
    let child = world.child(&both, 1);
    world.ok(Operation::Delete { txid: parents[1].txid() });
    let Reply::Conflicting { parents: spent, spenders } = world.ok(set(loser.txid(), true)) else {
        panic!("marking answers otherwise");
    };
    let item =
        |coin: &Coin, vin| Unspend { slot: coin.slot(), by: SpendingData::new(loser.txid(), vin) };
    assert_eq!(spent, [item(&coins[0], 0), item(&coins[2], 2)], "of parents that have a record");
    assert_eq!(spenders, [child.txid()], "once");
    let record = world.record(loser.txid());
    assert!(record.conflicting);
    assert_eq!(record.delete_at, Some(Height::new(110)));
    assert_eq!(world.record(parents[0].txid()).children.conflicting, [loser.txid()]);
    assert_eq!(world.scan(Scan::Conflicting), [loser.txid()]);
}

/// Nobody spends a loser, and its parent is no loser.
pub fn a_loser_cannot_be_spent<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let loser = world.child(&[Coin::of(&parent, 0)], 1);
    world.ok(set(loser.txid(), true));
    let tx = TxDraft::spending(&[Coin::of(&loser, 0)], 1).build();
    assert_eq!(errors(&world.refusal(world.spend(&tx))), [Some(SlotError::Conflicting)]);
    assert!(!world.record(parent.txid()).conflicting);
}

/// A winner is unmarked, and no longer scheduled unless it is all spent and mined.
pub fn a_winner_is_unmarked<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let txid = world.root(1, 1).txid();
    world.ok(set(txid, true));
    world.ok(set(txid, false));
    let record = world.record(txid);
    assert_eq!((record.conflicting, record.delete_at), (false, None));
    assert!(world.scan(Scan::Conflicting).is_empty());
}

/// The height of a loser's removal does not move.
pub fn a_loser_is_scheduled_once<D: Disk>(disk: &D) {
    let mut world = World::new(disk.open());
    let tx = world.root(1, 1);
    world.ok(set(tx.txid(), true));
    world.context.height = Height::new(105);
    world.ok(set(tx.txid(), true));
    world.set_mined(tx.txid(), 2, 105);
    assert_eq!(world.record(tx.txid()).delete_at, Some(Height::new(110)));
}

/// The placeholder of a coinbase is no transaction and is passed over.
pub fn the_placeholder_is_passed_over<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let nothing = Reply::Conflicting { parents: Vec::new(), spenders: Vec::new() };
    assert_eq!(world.ok(set(PLACEHOLDER, true)), nothing);
    assert_eq!(world.refusal(set(Txid::ZERO, true)).code(), ErrorCode::TxNotFound);
}

/// A child is taken from the list of its parent, once or often.
pub fn a_conflicting_child_is_forgotten<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let child = world.child(&[Coin::of(&parent, 0)], 1);
    world.ok(set(child.txid(), true));
    let remove = |txid| Operation::RemoveConflictingChild { txid, child: child.txid() };
    for txid in [parent.txid(), parent.txid(), Txid::ZERO] {
        assert_eq!(world.ok(remove(txid)), Reply::Done);
    }
    assert!(world.record(parent.txid()).children.conflicting.is_empty());
}

/// The five steps by which a transaction of a block wins against the one that came first.
pub fn the_winner_of_a_double_spend_takes_the_output<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let coin = Coin::of(&parent, 0);
    let loser = world.child(std::slice::from_ref(&coin), 1);
    let winner = TxDraft::spending(std::slice::from_ref(&coin), 2).build();
    let mut unit = world.create(&winner, &world.options());
    unit.create.as_mut().expect("it creates").conflicting = true;
    world.ok(unit);
    let Reply::Conflicting { parents, .. } = world.ok(set(loser.txid(), true)) else {
        panic!("marking answers otherwise");
    };
    world.ok(Operation::Unspend { spends: parents, lock_parents: true });
    let rules = SpendRules { ignore_conflicting: true, ignore_locked: true, ..world.rules() };
    world.ok(Unit::spend(&winner, rules).expect("it is extended"));
    world.ok(set(winner.txid(), false));
    world.ok(Operation::SetLocked { txid: parent.txid(), locked: false });
    let by = SpendingData::new(winner.txid(), 0);
    assert_eq!(world.slot(Outpoint::new(parent.txid(), 0)).spending, Some(by));
    assert_eq!(world.scan(Scan::Conflicting), [loser.txid()]);
    let both = [winner.txid(), loser.txid()];
    assert_eq!(world.record(parent.txid()).children.conflicting, both);
}

/// A work that was begun and not completed is found after a crash.
pub fn a_note_survives_a_crash<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let intent = |byte| Intent {
        kind: IntentKind::ResolveConflicts,
        height: Height::new(7),
        block: BlockHash::from_bytes([byte; 32]),
        txids: vec![Txid::from_bytes([byte; 32]); usize::from(byte)],
        created_at: 9,
    };
    for byte in [1, 2, 1] {
        world.ok(Operation::BeginIntent(intent(byte)));
    }
    let later = Intent { created_at: 10, ..intent(1) };
    world.ok(Operation::BeginIntent(later));
    drop(world);
    disk.crash();
    let world = World::new(disk.open());
    let found = world.intents();
    let mut expected = vec![intent(1), intent(2)];
    expected.sort_by_key(Intent::id);
    assert_eq!(found, expected, "each once, as it was first written");
    for _ in 0..2 {
        world.ok(Operation::CompleteIntent(intent(1).id()));
        assert_eq!(world.intents(), [intent(2)]);
    }
}

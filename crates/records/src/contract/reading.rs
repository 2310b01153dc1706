//! What reads bring.

use varve_types::{Height, Outpoint, Txid};

use super::draft::{Coin, TxDraft};
use super::{Disk, World, block};
use crate::engine::{Engine, SlotView};
use crate::fields::Fields;
use crate::freeze_window::FreezeWindow;
use crate::operation::Operation;
use crate::slot::Slot;

/// Only what is asked for, and always the head.
pub fn fields_are_selected<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let tx = world.child(&[Coin::of(&parent, 0)], 2);
    world.ok(Operation::Freeze(Coin::of(&tx, 1).slot()));
    let all = world.record(tx.txid());
    let sets = [Fields::HEAD, Fields::TX, Fields::INPOINTS, Fields::UTXOS, Fields::ALERTS];
    for fields in sets.into_iter().chain([Fields::CHILDREN, Fields::GET, Fields::META]) {
        let read = world.engine.read(&[tx.txid()], fields).expect("the storage works");
        assert_eq!(read, [Some(all.select(fields))], "{fields:?}");
    }
    assert!(all.select(Fields::META).body.is_none() && all.select(Fields::GET).body.is_some());
}

/// Many at once, in the order of the question, with gaps where there is nothing.
pub fn reads_keep_the_order_of_the_question<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let [a, b] = [1, 2].map(|tag| world.root(tag, 1).txid());
    let question = [b, Txid::ZERO, a, b];
    let read = world.engine.read(&question, Fields::HEAD).expect("the storage works");
    let txids: Vec<_> = read.iter().map(|r| r.as_ref().map(|record| record.txid)).collect();
    assert_eq!(txids, [Some(b), None, Some(a), Some(b)]);
    let outpoints = question.map(|txid| Outpoint::new(txid, 0));
    let slots = world.engine.slots(&outpoints).expect("the storage works");
    let found: Vec<_> = slots.iter().map(Option::is_some).collect();
    assert_eq!(found, [true, false, true, true]);
}

/// A slot comes with what its record says about it.
pub fn a_slot_brings_the_state_of_its_record<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let coinbase = TxDraft::coinbase(5, 6).with_data().build();
    let txid = coinbase.txid();
    world.ok(world.create(&coinbase, &world.mined()));
    let coin = Coin::of(&coinbase, 5);
    let window = FreezeWindow::from_interval(1, Some(2), true);
    world.ok(Operation::FreezeWindow { slot: coin.slot(), window });
    world.ok(Operation::SetLocked { txid, locked: true });
    let views = [5, 6, 7].map(|vout| Outpoint::new(txid, vout));
    let views = world.engine.slots(&views).expect("the storage works");
    let expected = SlotView {
        slot: Some(Slot::unspent(coin.hash())),
        spendable_in: None,
        window: Some(window),
        spending_height: Some(Height::new(200)),
        lock_time: 5,
        conflicting: false,
        locked: true,
        creating: false,
        blocks: vec![block(1, 90)],
    };
    let nothing = SlotView { slot: None, window: None, ..expected.clone() };
    assert_eq!(views, [Some(expected), Some(nothing.clone()), Some(nothing)]);
}

//! Records of many parts.

use varve_types::{BlockHash, Height};

use super::draft::{Coin, TxDraft};
use super::{Disk, World};
use crate::engine::{Cursor, Engine, EngineError, Scan};
use crate::error::{ErrorCode, SlotError};
use crate::intent::{Intent, IntentKind};
use crate::key::BatchSize;
use crate::operation::{Operation, Unspend};
use crate::prepare::CreateOptions;
use crate::record::{Body, PartCounts};
use crate::spending_data::{PLACEHOLDER, SpendingData};

/// Forty-five thousand outputs make three parts.
pub fn forty_five_thousand_outputs_are_three_parts<D: Disk>(disk: &D) {
    let mut world = World::new(disk.open());
    world.settings.batch = BatchSize::new(20_000).expect("not zero");
    let tx = TxDraft::root(1, 45_000).build();
    let mut unit = world.create(&tx, &world.mined());
    assert!(unit.create.as_ref().is_some_and(|new| new.needs_blob(&world.settings)));
    unit.create.as_mut().expect("it creates").body = Body::External;
    world.ok(unit);
    let record = world.record(tx.txid());
    let part = |utxos| PartCounts { utxos, spent: 0 };
    assert_eq!(record.parts, [part(20_000), part(20_000), part(5_000)]);
    assert_eq!((record.total_utxos, record.extra_parts(), record.external), (45_000, 2, true));
    let coins = [0, 19_999, 20_000, 44_999].map(|vout| Coin::of(&tx, vout));
    world.child(&coins, 1);
    let spent: Vec<_> = world.record(tx.txid()).parts.iter().map(|part| part.spent).collect();
    assert_eq!(spent, [2, 1, 1]);
    let slot = world.slot(coins[3].outpoint);
    assert_eq!(slot.hash, coins[3].hash());
}

/// A record is all spent when every part is, in whatever order, and not before.
pub fn all_parts_must_be_spent<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 10);
    let coins: Vec<_> = (0..10).map(|vout| Coin::of(&parent, vout)).collect();
    world.child(&coins[4..8], 1);
    let record = world.record(parent.txid());
    assert_eq!((record.extra_parts(), record.spent_extra_parts()), (2, 1));
    world.child(&coins[..4], 1);
    assert_eq!(world.record(parent.txid()).delete_at, None);
    let last = world.child(&coins[8..], 1);
    assert_eq!(world.record(parent.txid()).delete_at, Some(Height::new(111)));
    let by = SpendingData::new(last.txid(), 1);
    let spends = vec![Unspend { slot: coins[9].slot(), by }];
    world.ok(Operation::Unspend { spends, lock_parents: false });
    let record = world.record(parent.txid());
    assert_eq!((record.delete_at, record.spent_extra_parts()), (None, 1));
    world.ok(world.spend(&last));
    assert_eq!(world.record(parent.txid()).delete_at, Some(Height::new(111)));
}

/// Every output of a large transaction is spent once, whichever part has it.
pub fn a_large_transaction_is_not_spent_twice<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 100);
    let coins: Vec<_> = (0..100).map(|vout| Coin::of(&parent, vout)).collect();
    let first = world.child(&coins, 1);
    let second = TxDraft::spending(&coins, 2).build();
    let refusal = world.refusal(world.spend_and_create(&second));
    let expected =
        (0..100).map(|vin| Some(SlotError::Spent { by: SpendingData::new(first.txid(), vin) }));
    assert!(super::errors(&refusal).into_iter().eq(expected), "each names its own spender");
    world.ok(world.spend(&first));
    assert_eq!(world.record(parent.txid()).parts.iter().map(|part| part.spent).sum::<u32>(), 100);
}

/// A part without slots does not keep the record.
pub fn a_part_without_slots_is_spent<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let mut draft = TxDraft::root(1, 4);
    for _ in 0..4 {
        draft = draft.with_data();
    }
    let parent = draft.build();
    world.ok(world.create(&parent, &world.mined()));
    world.child(&[0, 1, 2, 3].map(|vout| Coin::of(&parent, vout)), 1);
    let record = world.record(parent.txid());
    assert_eq!(record.parts[1], PartCounts::default());
    assert_eq!(record.delete_at, Some(Height::new(111)));
}

/// Flags are those of the record, whichever part has the output.
pub fn locks_hold_for_every_part<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = TxDraft::root(1, 10).build();
    world.ok(world.create(&parent, &CreateOptions { locked: true, ..world.options() }));
    let tx = TxDraft::spending(&[Coin::of(&parent, 9)], 1).build();
    assert_eq!(world.refusal(world.spend(&tx)).cause(), ErrorCode::TxLocked);
    world.ok(Operation::SetLocked { txid: parent.txid(), locked: false });
    world.ok(world.spend(&tx));
}

/// Pages of any size give the same records, each once.
pub fn scans_come_in_pages<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let mut expected: Vec<_> = (0..20).map(|tag| world.root(tag, 1).txid()).collect();
    expected.sort();
    for page in [1, 7, 20, 21] {
        assert_eq!(super::scan_all(&world.engine, Scan::All, page), expected);
    }
    let empty = world.engine.scan(Scan::Conflicting, None, 5).expect("the storage works");
    assert!(empty.txids.is_empty() && empty.next.is_none());
}

/// A record that goes and comes again in one batch has the slots of the new one, in every part.
pub fn a_record_comes_again_in_the_batch_that_removes_it<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = world.root(1, 30);
    world.child(&[Coin::of(&tx, 29), Coin::of(&tx, 0)], 1);
    let spender = TxDraft::spending(&[Coin::of(&tx, 12)], 2).build();
    let batch: Vec<Operation> = vec![
        Operation::Delete { txid: tx.txid() },
        world.create(&tx, &world.mined()).into(),
        world.spend_and_create(&spender).into(),
    ];
    let outcomes = world.engine.apply(&world.context, &batch).expect("the storage works");
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()), "{outcomes:?}");
    let spent = world.record(tx.txid()).spending_datas();
    let expected = |vout| (vout == 12).then_some(SpendingData::new(spender.txid(), 0));
    assert!(spent.into_iter().eq((0..30).map(expected)));
    let batch = [batch[1].clone(), Operation::Delete { txid: tx.txid() }];
    world.engine.apply(&world.context, &batch).expect("the storage works");
    assert_eq!(world.find(tx.txid()), None);
}

/// Bytes that no page ended with are refused, and not taken for a place.
pub fn a_foreign_cursor_is_refused<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    world.root(1, 1);
    for bytes in [&b""[..], b"next", &[7; 37]] {
        for scan in [Scan::All, Scan::Unmined] {
            let page = world.engine.scan(scan, Some(Cursor(bytes.to_vec())), 5);
            assert!(matches!(page, Err(EngineError::Cursor)), "{scan:?}");
        }
    }
}

/// Intents come in pages too, each once.
pub fn intents_come_in_pages<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let intent = |height| Intent {
        kind: IntentKind::ResolveConflicts,
        height: Height::new(height),
        block: BlockHash::from_bytes([7; 32]),
        txids: vec![PLACEHOLDER],
        created_at: 1,
    };
    let mut expected: Vec<Intent> = (1..=5).map(intent).collect();
    for intent in &expected {
        world.ok(Operation::BeginIntent(intent.clone()));
    }
    expected.sort_by_key(Intent::id);
    assert_eq!(world.intents(), expected);
    let ids: Vec<_> = expected.iter().map(Intent::id).collect();
    let behind = |id, limit| world.engine.intents(Some(id), limit).expect("the storage works");
    assert_eq!(behind(ids[1], 2), expected[2..4]);
    assert_eq!(behind(ids[4], 2), []);
}

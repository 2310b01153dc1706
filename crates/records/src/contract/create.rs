//! Creating records.

use varve_types::{Amount, Format, Height, Outpoint, TxOut};

use super::draft::{Coin, TxDraft};
use super::{Disk, START, World, block};
use crate::engine::Engine;
use crate::error::{ErrorCode, RecordError};
use crate::extended::Transaction;
use crate::operation::{NewRecord, Operation, Unit};
use crate::outcome::{Effect, Reply};
use crate::prepare::CreateOptions;
use crate::record::{Body, PartCounts};
use crate::slot::Slot;
use crate::spending_data::PLACEHOLDER;
use crate::utxo_wrapper::{WrappedOutput, WrapperHead, write_wrapper};

/// All that a record holds after creation.
pub fn a_record_has_every_field<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let coins = [Coin::of(&parent, 1), Coin::of(&parent, 0)];
    let tx = TxDraft::spending(&coins, 1).with_data().tag(77).build();
    let options = CreateOptions { locked: true, ..world.options() };
    assert_eq!(world.ok(world.create(&tx, &options)), Reply::Unit(Vec::new()));
    let record = world.record(tx.txid());
    assert_eq!((record.version, record.lock_time), (1, 77));
    assert_eq!(record.fee, Amount::from_sat(1_000_000));
    assert_eq!((record.size, record.extended_size), (tx.size(), tx.bytes().len() as u64));
    assert!(record.locked && !record.conflicting && !record.creating && !record.external);
    assert!(!record.is_coinbase && !record.is_frozen());
    assert_eq!(
        (record.spending_height, record.preserve_until, record.delete_at),
        (None, None, None)
    );
    assert_eq!((record.unmined_since, record.created_at), (Some(START), 7));
    assert_eq!((record.total_utxos, record.extra_parts()), (2, 0));
    assert_eq!(record.parts, [PartCounts { utxos: 1, spent: 0 }]);
    assert_eq!(record.inputs, coins.map(|coin| coin.outpoint));
    let slot = Slot::unspent(Coin::of(&tx, 0).hash());
    assert_eq!(record.utxos, [Some(slot), None], "data gets no slot but keeps its place");
    assert_eq!(record.body, Some(Body::Transaction(tx)));
    assert!(record.blocks.is_empty() && record.children.conflicting.is_empty());
}

/// A transaction with a witness keeps it, and spends and is spent like any other.
pub fn a_witness_is_kept<D: Disk>(disk: &D) {
    let mut world = World::new(disk.open());
    let parent = world.root(1, 1);
    let coin = Coin::of(&parent, 0);
    let plain = TxDraft::spending(std::slice::from_ref(&coin), 2).build();
    let standard = plain.view().to_legacy();
    let (version, rest) = standard.split_at(4);
    let (rest, lock_time) = rest.split_at(rest.len() - 4);
    let bytes = [version, &[0, 1], rest, &[1, 3, 7, 8, 9], lock_time].concat();
    let tx = Transaction::parse(bytes.clone().into(), Format::Segwit).expect("one witness");
    let script = coin.script.as_slice();
    let spent = [TxOut { value: Amount::from_sat(coin.value), script }];
    let tx = tx.extend(&spent).expect("one input");
    assert_eq!(tx.txid(), plain.txid());
    world.ok(world.spend_and_create(&tx));
    drop(world);
    disk.crash();
    world = World::new(disk.open());
    let record = world.record(tx.txid());
    assert_eq!((record.fee, record.size), (Amount::from_sat(333_334), bytes.len() as u64));
    let Some(Body::Transaction(read)) = record.body else { panic!("it is in the record") };
    assert_eq!(read.view().bytes(), bytes, "as in a block");
    assert!(read.inputs().map(|input| input.spent).eq([Some(spent[0])]));
    assert_eq!(world.slot(coin.outpoint).spender().map(|data| data.txid), Some(tx.txid()));
    world.child(&[Coin::of(&tx, 1)], 1);
}

/// A record is created once, whatever became of it.
pub fn a_second_creation_is_refused<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = world.root(1, 2);
    let again = world.create(&tx, &world.options());
    let error = RecordError::TxExists { txid: tx.txid() };
    assert_eq!(world.refusal(again.clone()), error);
    world.child(&[Coin::of(&tx, 0)], 1);
    assert_eq!(world.refusal(again), error, "after a spend too");
    assert_eq!(world.record(tx.txid()).blocks, [block(1, 90)], "and nothing changed");
}

/// A coinbase can be spent from its height plus the maturity on.
pub fn a_coinbase_matures<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let coinbase = TxDraft::coinbase(1, 1).build();
    world.ok(world.create(&coinbase, &world.mined()));
    let record = world.record(coinbase.txid());
    assert!(record.is_coinbase && record.inputs.is_empty());
    assert_eq!(record.spending_height, Some(Height::new(200)));
    let spender = TxDraft::spending(&[Coin::of(&coinbase, 0)], 1).build();
    let mut unit = world.spend(&spender);
    unit.spend.as_mut().expect("it spends").rules.height = Height::new(199);
    assert_eq!(world.refusal(unit.clone()).cause(), ErrorCode::TxCoinbaseImmature);
    unit.spend.as_mut().expect("it spends").rules.height = Height::new(200);
    world.ok(unit);
}

/// What was in a block at creation is mined, with all three lists.
pub fn blocks_at_creation_make_it_mined<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = TxDraft::root(1, 1).build();
    let blocks = vec![block(5, 90), block(6, 91)];
    world.ok(world.create(&tx, &CreateOptions { blocks: blocks.clone(), ..world.options() }));
    let record = world.record(tx.txid());
    assert_eq!((record.blocks, record.unmined_since), (blocks, None));
}

/// Created frozen, nothing of it can be spent until it is unfrozen.
pub fn a_record_can_begin_frozen<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = TxDraft::root(1, 2).with_data().build();
    world.ok(world.create(&tx, &CreateOptions { frozen: true, ..world.options() }));
    let record = world.record(tx.txid());
    assert_eq!((record.frozen_utxos, record.parts[0].spent), (2, 0));
    let spender = TxDraft::spending(&[Coin::of(&tx, 1)], 1).build();
    assert_eq!(world.refusal(world.spend(&spender)).cause(), ErrorCode::UtxoFrozen);
    world.ok(Operation::Unfreeze(Coin::of(&tx, 1).slot()));
    world.ok(world.spend(&spender));
    assert_eq!(world.record(tx.txid()).frozen_utxos, 1);
}

/// A conflicting record is known to its parents and scheduled for removal at once.
pub fn a_conflicting_record_is_scheduled<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let coins = [Coin::of(&parent, 0), Coin::of(&parent, 1)];
    let tx = TxDraft::spending(&coins, 1).build();
    let height = Height::new(150);
    let options = CreateOptions { conflicting: true, height, ..world.options() };
    let mut unit = world.create(&tx, &options);
    unit.create.as_mut().expect("it creates").body = Body::External;
    let effects = world.outcome(unit).effects;
    let (txid, height) = (tx.txid(), Height::new(160));
    assert_eq!(effects, [Effect::DeleteAt { txid, height }]);
    assert_eq!(world.record(txid).delete_at, Some(height));
    let parent = world.record(parent.txid());
    assert_eq!(parent.children.conflicting, [txid], "once, though it spends two outputs");
    assert!(!parent.conflicting);
}

/// Outputs may come without the rest of their transaction, and with gaps.
pub fn outputs_can_be_imported<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let whole = TxDraft::root(1, 6).build();
    let coins = [Coin::of(&whole, 1), Coin::of(&whole, 5)];
    let head = WrapperHead { txid: whole.txid(), height: Height::new(90), coinbase: true };
    let outputs = coins.iter().map(|coin| WrappedOutput {
        index: coin.outpoint.vout,
        output: varve_types::TxOut { value: Amount::from_sat(coin.value), script: &coin.script },
    });
    let mut bytes = Vec::new();
    write_wrapper(&head, outputs, &mut bytes);
    let options = CreateOptions { height: Height::new(90), ..world.mined() };
    let bytes = bytes::Bytes::from(bytes);
    let import = NewRecord::outputs_only(bytes.clone(), &options, &world.settings);
    let (txid, record) = import.expect("it decodes");
    world.ok(Unit { txid, spend: None, create: Some(record) });
    let record = world.record(whole.txid());
    assert_eq!(record.body, Some(Body::Outputs(bytes)));
    assert_eq!((record.total_utxos, record.parts.len()), (6, 2));
    assert_eq!(record.spending_height, Some(Height::new(190)));
    assert!(record.inputs.is_empty() && record.is_coinbase);
    let mut spend = world.spend(&TxDraft::spending(&coins, 1).build());
    spend.spend.as_mut().expect("it spends").rules.height = Height::new(190);
    world.ok(spend);
    assert!(world.record(whole.txid()).is_all_spent());
}

/// Whatever is wrong with a request is reported before any record is looked at.
pub fn impossible_requests_are_refused<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let tx = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    let mut unit = world.spend_and_create(&tx);
    unit.spend.as_mut().expect("it spends").rules.height = Height::GENESIS;
    assert_eq!(world.refusal(unit).code(), ErrorCode::Processing);
    let unit = Unit { txid: PLACEHOLDER, ..world.spend_and_create(&tx) };
    assert_eq!(world.refusal(unit).code(), ErrorCode::Processing);
    assert_eq!(world.find(tx.txid()), None);
    assert_eq!(world.slot(Outpoint::new(parent.txid(), 0)).spending, None);
}

/// A body above the engine's limit is refused, and taken when it is in a blob.
pub fn a_body_above_the_limit_is_refused<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let limit = world.engine.limits().body;
    let Some(len) = usize::try_from(limit).ok().filter(|limit| *limit < 1 << 26) else { return };
    let mut draft = TxDraft::root(1, 1);
    draft.outputs[0].1 = vec![0x51; len];
    let tx = draft.build();
    let mut unit = world.create(&tx, &world.options());
    assert_eq!(world.refusal(unit.clone()).code(), ErrorCode::StorageError);
    assert_eq!(world.find(tx.txid()), None);
    unit.create.as_mut().expect("it creates").body = Body::External;
    world.ok(unit);
    assert!(world.record(tx.txid()).external);
}

/// A record that is being written cannot be spent until it is complete.
pub fn a_record_in_creation_waits<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let txs = [1, 2].map(|tag| TxDraft::root(tag, 1).build());
    for tx in &txs {
        let mut unit = world.create(tx, &world.options());
        unit.create.as_mut().expect("it creates").creating = true;
        world.ok(unit);
        let spender = TxDraft::spending(&[Coin::of(tx, 0)], 1).build();
        assert_eq!(world.refusal(world.spend(&spender)).cause(), ErrorCode::TxCreating);
    }
    let again = world.create(&txs[0], &world.options());
    assert_eq!(world.refusal(again).code(), ErrorCode::TxExists);
    world.set_mined(txs[1].txid(), 1, 100);
    for tx in &txs {
        assert!(!world.record(tx.txid()).creating, "created again, or mined");
    }
}

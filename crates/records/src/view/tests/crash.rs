//! A crash while a block is connected or taken back changes no later verdict.

use std::sync::Arc;

use varve_consensus::contract::draft::TxDraft;

use super::*;
use crate::engine::Engine;
use crate::fixture::FailingEngine;
use crate::operation::SlotRef;
use crate::utxo_hash::UtxoHash;

const ID: BlockId = BlockId(2);
const HEIGHT: Height = Height::new(2);

fn settings() -> Settings {
    Settings { coinbase_maturity: 0, ..Settings::new(Network::Regtest) }
}

/// Two blocks. Transactions of the second spend the first, and one another.
fn blocks() -> [Vec<u8>; 2] {
    let mut coinbase = TxDraft::coinbase(Height::new(1), 5_000);
    let output = coinbase.outputs[0].clone();
    coinbase.outputs = vec![output; 3];
    let of_coinbase = |vout| Outpoint::new(coinbase.txid(), vout);
    let first = TxDraft::spending(&[of_coinbase(0)], 2);
    let second = TxDraft::spending(&[Outpoint::new(first.txid(), 0), of_coinbase(1)], 1);
    let third = TxDraft::spending(&[of_coinbase(2), Outpoint::new(second.txid(), 0)], 1);
    let own = TxDraft::coinbase(HEIGHT, 5_000);
    let second = BlockDraft::new(vec![own, first, second, third]).bytes();
    [BlockDraft::new(vec![coinbase]).bytes(), second]
}

/// Calls `act` with the second block.
fn with_second<T>(bytes: &[u8], act: impl FnOnce(&BlockAt<'_>) -> T) -> T {
    let block = Block::parse(bytes, Network::Regtest.format()).unwrap();
    act(&BlockAt::new(HEIGHT, &block))
}

/// A store with the first block.
fn begun(engine: Arc<dyn Engine>, first: &[u8]) -> Store {
    let store = new_store(engine, settings());
    let block = Block::parse(first, Network::Regtest.format()).unwrap();
    connect(&store, Network::Regtest, &BlockAt::new(Height::new(1), &block), BlockId(1)).unwrap();
    store
}

/// Acts on an engine that stops after `0, 1, 2, …` operations, until it does not stop any more, and
/// calls `after` with the store as the crash has left it.
fn cut_everywhere(
    new: fn() -> Arc<dyn Engine>,
    prepare: impl Fn(&Store, &[u8]),
    act: impl Fn(&Store, &[u8]) -> bool,
    after: impl Fn(&Store, &[u8]),
) {
    let [first, second] = blocks();
    for left in 0.. {
        let engine = new();
        let whole = begun(Arc::clone(&engine), &first);
        prepare(&whole, &second);
        let cut = new_store(Arc::new(FailingEngine::new(engine, left)), settings());
        let done = act(&cut, &second);
        after(&whole, &second);
        if done {
            assert!(left > 3, "it was cut off several times");
            return;
        }
    }
}

fn connect_second(store: &Store, bytes: &[u8]) -> Result<RecordsUndo, ConnectError> {
    with_second(bytes, |block| connect(store, Network::Regtest, block, ID))
}

#[test]
fn a_valid_block_is_valid_after_a_crash() {
    with_engines(|new| {
        let [first, second] = blocks();
        let expected = {
            let store = begun(new(), &first);
            connect_second(&store, &second).unwrap();
            store.everything()
        };
        let act = |store: &Store, bytes: &[u8]| connect_second(store, bytes).is_ok();
        cut_everywhere(
            new,
            |_, _| {},
            act,
            |store, bytes| {
                connect_second(store, bytes).expect("the block is valid, whatever was cut off");
                assert!(store.everything() == expected);
            },
        );
    });
}

#[test]
fn a_refused_block_is_refused_after_a_crash() {
    with_engines(|new| {
        let freeze = |store: &Store, bytes: &[u8]| {
            // The last input of the block from outside.
            let outpoint = with_second(bytes, |block| {
                let (_, tx) = block.txs().last().unwrap();
                tx.inputs().next().unwrap().outpoint
            });
            let output = store.outputs(&[outpoint]).unwrap().remove(&outpoint).unwrap().unwrap();
            let hash = UtxoHash::of(&outpoint, &output.as_output());
            store.freeze(&[SlotRef { outpoint, hash }]).unwrap()[0].clone().unwrap();
        };
        let [first, second] = blocks();
        let expected = {
            let store = begun(new(), &first);
            freeze(&store, &second);
            store.everything()
        };
        let refused = |error: &ConnectError| matches!(error, ConnectError::Refused { .. });
        let act = |store: &Store, bytes: &[u8]| {
            let error = connect_second(store, bytes).unwrap_err();
            refused(&error)
        };
        cut_everywhere(new, freeze, act, |store, bytes| {
            let error = connect_second(store, bytes).unwrap_err();
            assert!(refused(&error), "{error}");
            assert!(store.everything() == expected, "nothing is left of it");
        });
    });
}

#[test]
fn a_block_that_was_taken_back_in_part_can_be_connected_again() {
    with_engines(|new| {
        let connected = |store: &Store, bytes: &[u8]| drop(connect_second(store, bytes).unwrap());
        let act = |store: &Store, bytes: &[u8]| {
            with_second(bytes, |block| disconnect(store, block, ID, &RecordsUndo::default()))
                .is_ok()
        };
        let [first, second] = blocks();
        let expected = {
            let store = begun(new(), &first);
            connected(&store, &second);
            store.everything()
        };
        cut_everywhere(new, connected, act, |store, bytes| {
            connected(store, bytes);
            assert!(store.everything() == expected);
        });
    });
}

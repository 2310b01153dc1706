//! Many at once.

use std::sync::Barrier;
use std::thread;

use varve_types::Outpoint;

use super::draft::{Coin, TxDraft};
use super::{Disk, World};
use crate::engine::Engine;
use crate::error::ErrorCode;
use crate::extended::Transaction;
use crate::fields::Fields;
use crate::operation::Operation;
use crate::record::BlockId;
use crate::spending_data::SpendingData;

const CROWD: u32 = 8;

/// Lets each of the crowd do something at the same moment, and collects the answers.
fn at_once<T: Send>(run: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(CROWD as usize);
    thread::scope(|scope| {
        let run = |number| {
            let (start, run) = (&start, &run);
            scope.spawn(move || {
                start.wait();
                run(number)
            })
        };
        let threads: Vec<_> = (0..CROWD).map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread fails")).collect()
    })
}

/// However many want an output, one gets it, and all others learn who.
pub fn exactly_one_of_many_spenders_wins<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    for round in 0..20 {
        let parents = [0, 1].map(|n| world.root(round * 2 + n, 1));
        let coins = parents.each_ref().map(|parent| Coin::of(parent, 0));
        // Half of them name the parents the other way round, so that their orders cross.
        let rivals: Vec<Transaction> = (0..CROWD)
            .map(|number| {
                let mut coins = coins.to_vec();
                if number % 2 == 1 {
                    coins.reverse();
                }
                TxDraft::spending(&coins, 1).tag(number).build()
            })
            .collect();
        let results =
            at_once(|number| world.attempt(world.spend_and_create(&rivals[number as usize])));
        let winners: Vec<_> = (0..).zip(&results).filter(|(_, r)| r.is_ok()).collect();
        assert_eq!(winners.len(), 1, "exactly one wins");
        let winner: usize = winners[0].0;
        for (number, result) in results.iter().enumerate().filter(|(number, _)| *number != winner) {
            let error = result.as_ref().expect_err("the others lose");
            assert_eq!(error.cause(), ErrorCode::UtxoSpent);
            let holder = error.items().iter().filter_map(|item| item.conflicting_txid());
            assert!(holder.into_iter().all(|txid| txid == rivals[winner].txid()));
            assert_eq!(world.find(rivals[number].txid()), None, "a loser leaves nothing");
        }
        for (vin, coin) in coins.iter().enumerate() {
            let data = world.slot(coin.outpoint).spending.expect("it is spent");
            assert_eq!(data.txid, rivals[winner].txid());
            assert_eq!(data.vin as usize, if winner % 2 == 1 { 1 - vin } else { vin });
        }
    }
}

/// However many create a record, one does.
pub fn exactly_one_of_many_creators_wins<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = TxDraft::root(1, 10).build();
    let unit = world.create(&tx, &world.options());
    let results = at_once(|_| world.attempt(unit.clone()));
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let errors = results.iter().filter_map(|result| result.as_ref().err());
    assert!(errors.into_iter().all(|error| error.code() == ErrorCode::TxExists));
}

/// Spenders of different outputs of one record do not lose one another's spends.
pub fn neighbours_do_not_disturb_one_another<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, CROWD);
    at_once(|number| world.child(&[Coin::of(&parent, number)], 1));
    let record = world.record(parent.txid());
    assert!(record.is_all_spent() && record.delete_at.is_some());
}

/// An order to freeze and a spend meet at the same output: one of them comes first, and the other
/// learns it.
pub fn a_freeze_and_a_spend_race<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    for round in 0..20 {
        let parent = world.root(round, 1);
        let coin = Coin::of(&parent, 0);
        let tx = TxDraft::spending(std::slice::from_ref(&coin), 1).build();
        let results = at_once(|number| match number {
            0 => world.attempt(world.spend_and_create(&tx)),
            _ => world.attempt(Operation::Freeze(coin.slot())),
        });
        let worked = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(worked, 1, "spent, or frozen by one of the orders");
        let spent = results[0].is_ok();
        assert_eq!(world.slot(coin.outpoint).is_frozen(), !spent);
        assert_eq!(world.find(tx.txid()).is_some(), spent);
        let codes = results.iter().filter_map(|result| result.as_ref().err());
        let expected = if spent { ErrorCode::UtxoSpent } else { ErrorCode::UtxoFrozen };
        assert!(codes.into_iter().all(|error| error.cause() == expected));
    }
}

/// Blocks that come at the same moment are all kept, each once.
pub fn blocks_that_come_together_are_all_kept<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let txid = world.root(1, 1).txid();
    at_once(|number| {
        for id in [number, number, 99] {
            world.set_mined(txid, 100 + id, 101);
        }
    });
    let mut ids = world.record(txid).block_ids();
    ids.sort();
    let expected = [1].into_iter().chain(100..100 + CROWD).chain([199]).map(BlockId);
    assert!(ids.into_iter().eq(expected));
}

/// A reader sees a unit whole or not at all, while others write.
pub fn readers_see_units_whole<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 64);
    let tx = |vout| TxDraft::spending(&[Coin::of(&parent, vout)], 1).build();
    at_once(|number| {
        for vout in 0..64 {
            let tx = tx(vout);
            if number == 0 {
                world.ok(world.spend_and_create(&tx));
                continue;
            }
            let created = world.find(tx.txid()).is_some();
            let slot = world.slot(Outpoint::new(parent.txid(), vout));
            let spent = slot.spending == Some(SpendingData::new(tx.txid(), 0));
            assert!(spent || !created, "a created spender has spent");
        }
    });
}

/// A record that is read while it changes is always of one moment.
pub fn a_record_is_read_of_one_moment<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 32);
    let txid = parent.txid();
    at_once(|number| {
        for vout in 0..32 {
            match number {
                0 => drop(world.child(&[Coin::of(&parent, vout)], 1)),
                1 => drop(world.ok(Operation::SetLocked { txid, locked: false })),
                _ => {
                    let read = world.engine.read(&[txid], Fields::UTXOS);
                    let records = read.expect("the storage works");
                    let record = records[0].as_ref().expect("it is there");
                    let spent = record.spending_datas().iter().flatten().count();
                    let counted: u32 = record.parts.iter().map(|part| part.spent).sum();
                    assert_eq!(spent, counted as usize, "slots and counts agree");
                }
            }
        }
    });
}

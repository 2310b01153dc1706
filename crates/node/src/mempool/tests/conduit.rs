//! Conduit's defects that concern the mempool, each by the number it has in the list of facts.

use varve_types::Outpoint;
use varve_types::ScriptHash;

use super::world::{World, child, script, spend};
use crate::mempool::{Event, Judge};

#[test]
fn defect_1_one_known_transaction_does_not_hide_those_behind_it() {
    // At the first transaction of a chunk that it had seen, Conduit stopped writing rows for all
    // later ones.
    let mut world = World::usual();
    let coins: Vec<_> = (1..=3).map(|height| world.coin(height)).collect();
    let txs: Vec<_> =
        (1..).zip(&coins).map(|(n, (coin, value))| spend(&[*coin], *value, &[n], 1_000)).collect();
    world.take(&txs[0]);
    let batch: Vec<_> = txs.iter().collect();
    let verdicts = world.accept_many(&batch, Judge::Ours);
    assert!(verdicts[0].is_err() && verdicts[1].is_ok() && verdicts[2].is_ok());
    for (number, tx) in (1..).zip(&txs) {
        let history = world.version().history(ScriptHash::of(&script(number)));
        assert!(history.iter().any(|item| item.txid == tx.txid()));
    }
}

#[test]
fn defect_2_every_transaction_of_a_batch_has_its_event() {
    // Conduit overwrote the list of matches: only the last transaction of a batch notified.
    let mut world = World::usual();
    let coins: Vec<_> = (1..=5).map(|height| world.coin(height)).collect();
    let txs: Vec<_> =
        coins.iter().map(|(coin, value)| spend(&[*coin], *value, &[1], 1_000)).collect();
    world.accept_many(&txs.iter().collect::<Vec<_>>(), Judge::Ours);
    let accepted: Vec<_> = txs.iter().map(|tx| Event::Accepted { txid: tx.txid() }).collect();
    assert_eq!(world.watch.events, accepted);
}

#[test]
fn defect_4_an_unconfirmed_spend_is_an_answer_and_no_failure() {
    // Conduit asserted that every match had a confirmed header; one row of the mempool failed the
    // whole question.
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let tx = spend(&[coin], value, &[1], 1_000);
    world.take(&tx);
    let spender = world.version().spender(&coin).unwrap();
    assert_eq!((spender.txid, spender.vin), (tx.txid(), 0));
    assert_eq!(world.version().spender(&Outpoint::new(tx.txid(), 0)), None);
}

#[test]
fn defect_5_rows_of_replaced_and_dropped_transactions_go() {
    // No code of Conduit removed rows of what had left the mempool, and a point had one spender for
    // ever.
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let first = spend(&[coin], value, &[6], 1_000);
    let kid = child(&first, 0, &[7], 1_000);
    world.take(&first);
    world.take(&kid);
    let second = spend(&[coin], value, &[5], 9_000);
    world.take(&second);
    assert_eq!(world.version().spender(&coin).unwrap().txid, second.txid());
    for number in [6, 7] {
        assert_eq!(world.version().history(ScriptHash::of(&script(number))), []);
    }
    world.pool.drop_txs(&[second.txid()], world.now, &mut world.watch).unwrap();
    let version = world.version();
    assert_eq!(version.spender(&coin), None);
    let rows = (version.spends.len(), version.scripts.len(), version.entries().count());
    assert_eq!((rows, version.totals().memory), ((0, 0, 0), 0));
}

//! Answers with numbers that can be read off: paging, history, histograms, estimates, pushed data.

use varve_types::Txid;
use varve_types::pushdata::PushdataRule;
use varve_types::{PushdataHash, ScriptHash};

use super::world::{World, child, script, spend};
use crate::mempool::{FeeRate, Policy, Side};

#[test]
fn history_is_in_the_order_of_electrums_status() {
    let mut world = World::usual();
    let mut confirmed = Vec::new();
    for height in 1..=4 {
        let (coin, value) = world.coin(height);
        let tx = spend(&[coin], value, &[9], 1_000);
        world.take(&tx);
        confirmed.push(tx);
    }
    let kids: Vec<_> = confirmed.iter().map(|tx| child(tx, 0, &[9], 1_000)).collect();
    kids.iter().for_each(|tx| world.take(tx));
    let mut expected: Vec<(i32, String)> = Vec::new();
    expected.extend(confirmed.iter().map(|tx| (0, tx.txid().to_string())));
    expected.extend(kids.iter().map(|tx| (-1, tx.txid().to_string())));
    expected.sort_by_key(|(height, txid)| (-height, txid.clone()));
    let history = world.version().history(ScriptHash::of(&script(9)));
    let found: Vec<_> = history.iter().map(|item| (item.height, item.txid.to_string())).collect();
    assert_eq!(found, expected);
    let delta = world.version().script_delta(ScriptHash::of(&script(9)));
    assert_eq!((delta.txs, delta.funded_count, delta.spent_count), (8, 8, 4));
    let left: u64 = kids.iter().map(|tx| tx.outputs[0].value).sum();
    assert_eq!(delta.balance(), i64::try_from(left).unwrap());
}

#[test]
fn txids_are_paged_without_gap_or_repetition() {
    let mut world = World::new(40, Policy::default());
    for height in 1..=30 {
        let (coin, value) = world.coin(height);
        world.take(&spend(&[coin], value, &[1], 1_000));
    }
    let all = world.version().txids(None, usize::MAX);
    assert!(all.len() == 30 && all.is_sorted());
    let mut paged: Vec<Txid> = Vec::new();
    loop {
        let page = world.version().txids(paged.last(), 7);
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
    let newest: Vec<_> = world.version().recent(10).map(|entry| entry.txid()).collect();
    assert_eq!(newest.len(), 10);
}

#[test]
fn histograms_and_estimates_follow_the_rates() {
    let mut world = World::new(40, Policy { max_relatives_vsize: u64::MAX, ..Policy::default() });
    // Transactions of about 60,000 bytes, each paying more than the one before.
    for height in 1..=20_usize {
        let (coin, value) = world.coin(height);
        let mut tx = spend(&[coin], value, &[1], 60_200 * height as u64);
        tx.outputs[0].script = [vec![0x4d, 0x60, 0xea], vec![7; 60_000], vec![0x75, 0x51]].concat();
        world.take(&tx);
    }
    let version = world.version();
    let total = version.totals().sum.vsize;
    let electrum = version.electrum_histogram();
    assert_eq!(electrum.iter().map(|bin| bin.vsize).sum::<u64>(), total);
    assert!(electrum.iter().rev().skip(1).all(|bin| bin.vsize >= 100_000));
    assert!(electrum.is_sorted_by(|one, next| one.rate > next.rate));
    let esplora = version.esplora_histogram();
    assert_eq!(esplora.len(), 20, "each is above 50,000 and has another rate");
    // A block holds 16 of them: the sixteenth best pays five.
    let soon = version.estimate(1);
    assert!(soon >= FeeRate::per_kvb(3_900) && soon <= FeeRate::per_kvb(5_000), "{soon}");
    assert_eq!(version.estimate(2), FeeRate::per_kvb(100), "the floor: all fit");
    assert_eq!(version.estimate(1_008), FeeRate::per_kvb(100));
}

#[test]
fn pushed_items_by_both_rules() {
    let item = [9_u8; 20];
    let hash = PushdataHash::of(&item);
    for rule in [Some(PushdataRule::Conduit), Some(PushdataRule::Documented)] {
        let mut world = World::new(10, Policy { push_rule: rule, ..Policy::default() });
        let (coin, value) = world.coin(1);
        let mut tx = spend(&[coin], value, &[9, 1], 1_000);
        // OP_0 OP_RETURN: data that is indexed, though nobody can spend it.
        tx.outputs[1].script = [vec![0x00, 0x6a, 20], item.to_vec()].concat();
        let mut signed = child(&tx, 0, &[1], 1_000);
        signed.inputs[0].script = [vec![20], item.to_vec(), vec![0x75]].concat();
        world.take(&tx);
        world.accept_many(&[&signed], crate::mempool::Judge::Node)[0].as_ref().unwrap();
        let rows: Vec<_> = world
            .version()
            .pushes(hash)
            .iter()
            .map(|row| (row.txid, row.side, row.flags.bits()))
            .collect();
        let output = (tx.txid(), Side::Output(0), 1);
        let data = (tx.txid(), Side::Output(1), 1 | 4);
        let input = (signed.txid(), Side::Input(0), 2);
        match rule {
            Some(PushdataRule::Conduit) => assert_eq!(rows, [output]),
            _ => assert_eq!(rows, [output, data, input]),
        }
    }
}

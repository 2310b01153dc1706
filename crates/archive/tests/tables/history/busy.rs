//! A script of more than 100,000 transactions among others.

use std::sync::Arc;

use varve_archive::TxLink;
use varve_archive::history::{
    Batch, BlockChanges, Connected, Funded, HistoryKeys, HistoryOptions, HistoryTable, Spent,
    UnspentCursor,
};
use varve_archive::search::Order;
use varve_io::faulty::FaultyStorage;
use varve_runs::Compaction;
use varve_types::{Amount, BlockHash, Height};

use super::rig::{KEY, check_history, mix, outpoint, script};

const BLOCKS: u32 = 130;
const TXS: u32 = 1_000;

/// The block at a height: nearly all of its transactions pay script 0, and one in three spends what
/// the same transaction of the block below paid it.
fn block(height: u32) -> (Connected, BlockChanges) {
    let hash = |height: u32| BlockHash::from_bytes([height as u8; 32]);
    let first = u64::from(height * TXS);
    let mut changes = BlockChanges { height: Height::new(height), ..BlockChanges::default() };
    for position in 0..TXS {
        let tx = first + u64::from(position);
        let who = if position % 10 == 9 { mix(tx) } else { 0 };
        let (value, script) = (Amount::from_sat(1_000 + tx), script(who));
        let output = Funded { position, outpoint: outpoint(tx, 0), value, script };
        changes.funded.push(output);
        if height > 1 && position % 3 == 0 {
            let spent = tx - u64::from(TXS);
            let who = if position % 10 == 9 { mix(spent) } else { 0 };
            changes.spent.push(Spent {
                position,
                outpoint: outpoint(spent, 0),
                height: Height::new(height - 1),
                value: Amount::from_sat(1_000 + spent),
                script: super::rig::script(who),
            });
        }
    }
    let connected = Connected {
        height: Height::new(height),
        hash: hash(height),
        parent: hash(height.wrapping_sub(1)),
        count: TXS,
    };
    (connected, changes)
}

#[test]
fn a_busy_script_is_paged_both_ways_and_its_sums_cost_no_walk() {
    let keys = HistoryKeys::new(KEY);
    let options = HistoryOptions {
        window: 8,
        flush_blocks: 16,
        fan_in: 4,
        compaction: Compaction::Inline,
        ..HistoryOptions::default()
    };
    let storage = Arc::new(FaultyStorage::new(1));
    let mut table = HistoryTable::open(storage, keys, options).unwrap();
    let (mut links, mut unspent, mut balance) = (Vec::new(), 0, 0);
    for height in 0..BLOCKS {
        let (connected, changes) = block(height);
        table.tend().unwrap();
        table.connect(&connected, Batch::new(&keys, &changes)).unwrap();
        table.settle().unwrap();
        let first = TxLink::new(u64::from(height * TXS));
        if height == 0 {
            continue;
        }
        let busy = changes.funded.iter().filter(|output| output.script == script(0));
        busy.for_each(|output| {
            links.push(first.plus(output.position));
            balance += output.value.to_sat();
            unspent += 1;
        });
        for output in changes.spent.iter().filter(|output| output.script == script(0)) {
            let link = first.plus(output.position);
            links.push(link);
            balance -= output.value.to_sat();
            unspent -= 1;
        }
    }
    links.sort_unstable();
    links.dedup();
    assert!(links.len() > 100_000, "{}", links.len());
    for tidy in [false, true] {
        if tidy {
            table.tidy().unwrap();
            table.finish().unwrap();
            assert_eq!(table.size().runs, 1);
        }
        let view = table.reader().view();
        let sums = view.sums(&[script(0)]).unwrap()[0];
        assert_eq!((sums.txs, sums.balance()), (links.len() as i64, balance));
        assert_eq!(sums.funded - sums.spent, unspent);
        check_history(&view, &script(0), &links).unwrap();
        let all = TxLink::new(0)..TxLink::new(u64::MAX >> 8);
        let newest = view.history(&script(0), all, Order::Descending, 25).unwrap();
        assert!(newest.rows.iter().eq(links.iter().rev().take(25)));
        let (mut found, mut rest, mut height) = (0, Some(UnspentCursor::START), Height::GENESIS);
        while let Some(from) = rest {
            let page = view.unspent(&script(0), from, 5_000).unwrap();
            assert!(page.rows.first().is_none_or(|output| output.height >= height));
            height = page.rows.last().map_or(height, |output| output.height);
            found += page.rows.len() as i64;
            rest = page.rest;
        }
        assert_eq!(found, unspent);
    }
}

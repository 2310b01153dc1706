//! The indexes against a scan of all blocks: histories, balances and unspent outputs of every
//! script, and where every item is pushed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use varve_archive::TxLink;
use varve_archive::history::{HistoryOptions, is_indexed};
use varve_archive::search::Order;
use varve_blocks::BlockNumber;
use varve_node::{
    IndexSet, NodeSnapshot, Options, Organizer, ScriptPage, ScriptTx, ScriptUnspent, Scripts,
    SettingsChange,
};
use varve_types::pushdata::{PushdataFlags, PushdataRule, PushedItem};
use varve_types::{
    Amount, Block, BlockHash, Header, Height, Outpoint, PushdataHash, ScriptHash, Txid,
};
use varve_utxo::Compaction;

/// A window of four blocks and small runs, two of them merged at a time.
pub(crate) fn tiny(indexes: &str, options: Options) -> Options {
    let indexes: IndexSet = indexes.parse().unwrap();
    let history = HistoryOptions {
        fan_in: 2,
        window: 4,
        flush_bytes: 4 << 10,
        flush_blocks: 6,
        compaction: Compaction::Inline,
        ..HistoryOptions::default()
    };
    let settings = SettingsChange { indexes: Some(indexes), ..SettingsChange::default() };
    Options { history, settings, ..options }
}

/// What a scan finds of a script: its transactions, and its unspent outputs.
#[derive(Default)]
struct Found {
    txs: Vec<ScriptTx>,
    unspent: BTreeMap<Outpoint, ScriptUnspent>,
}

/// Reads the confirmed chain up to a height.
fn scan(snapshot: &NodeSnapshot, top: u32) -> HashMap<ScriptHash, Found> {
    let view = snapshot.view();
    let mut scripts: HashMap<ScriptHash, Found> = HashMap::new();
    let mut coins: HashMap<Outpoint, (ScriptHash, Amount)> = HashMap::new();
    for height in 1..=top {
        let height = Height::new(height);
        let link = view.to_confirmed(height).unwrap();
        let bytes = view.raw_block(link).unwrap().unwrap().to_vec();
        let parsed = Block::parse(&bytes, view.network().format()).unwrap();
        let block = Header::new(bytes.first_chunk().unwrap()).hash();
        for (position, tx) in (0..).zip(parsed.txs()) {
            let txid = tx.txid();
            let empty = ScriptTx {
                txid,
                height,
                block,
                position,
                funded: 0,
                received: Amount::from_sat(0),
                spent: 0,
                sent: Amount::from_sat(0),
            };
            let mut touched: BTreeMap<[u8; 32], ScriptTx> = BTreeMap::new();
            for input in tx.inputs().filter(|_| !tx.is_coinbase()) {
                let Some((script, value)) = coins.remove(&input.outpoint) else { continue };
                scripts.get_mut(&script).unwrap().unspent.remove(&input.outpoint);
                let entry = touched.entry(*script.as_bytes()).or_insert(empty);
                entry.spent += 1;
                entry.sent = Amount::from_sat(entry.sent.to_sat() + value.to_sat());
            }
            for (vout, output) in (0..).zip(tx.outputs()) {
                if !is_indexed(output.script) {
                    continue;
                }
                let (script, outpoint) = (ScriptHash::of(output.script), Outpoint::new(txid, vout));
                let value = output.value;
                coins.insert(outpoint, (script, value));
                let unspent = ScriptUnspent { height, position, outpoint, value };
                scripts.entry(script).or_default().unspent.insert(outpoint, unspent);
                let entry = touched.entry(*script.as_bytes()).or_insert(empty);
                entry.funded += 1;
                entry.received = Amount::from_sat(entry.received.to_sat() + value.to_sat());
            }
            for (script, entry) in touched {
                scripts.get_mut(&ScriptHash::from_bytes(script)).unwrap().txs.push(entry);
            }
        }
    }
    scripts
}

/// Compares every script with a scan, as of a height when one is given.
pub(crate) fn check(snapshot: &NodeSnapshot, scripts: &Scripts, at: Option<u32>) -> usize {
    assert_eq!(scripts.tip(), Some(snapshot.tip));
    let expected = scan(snapshot, at.unwrap_or(snapshot.tip.0.to_u32()));
    let at = at.map(Height::new);
    for (script, found) in &expected {
        let sums = scripts.sums(script, at).unwrap();
        let count = |of: fn(&ScriptTx) -> u32| found.txs.iter().map(|tx| i64::from(of(tx))).sum();
        let txs = i64::try_from(found.txs.len()).unwrap();
        assert_eq!(
            (sums.funded, sums.spent, sums.txs),
            (count(|tx| tx.funded), count(|tx| tx.spent), txs)
        );
        let balance: u64 = found.unspent.values().map(|output| output.value.to_sat()).sum();
        assert_eq!(sums.balance(), balance);
        for order in [Order::Ascending, Order::Descending] {
            let (mut txs, mut cursor) = (Vec::new(), None);
            loop {
                let limit = (found.txs.len() / 2).max(3);
                let page =
                    scripts.history(script, at, ScriptPage { order, cursor, limit }).unwrap();
                txs.extend(page.txs);
                cursor = page.cursor;
                if cursor.is_none() {
                    break;
                }
            }
            if order == Order::Descending {
                txs.reverse();
            }
            assert_eq!(txs, found.txs, "{order:?}");
        }
        let mut unspent: Vec<ScriptUnspent> = found.unspent.values().copied().collect();
        unspent.sort_unstable();
        assert_eq!(scripts.unspent(script, at).unwrap(), unspent);
    }
    let nobody = ScriptHash::of(b"nobody");
    assert_eq!(scripts.sums(&nobody, at).unwrap().txs, 0);
    expected.len()
}

pub(crate) fn check_node(node: &Organizer) -> usize {
    let snapshot = node.snapshot();
    check(&snapshot, &snapshot.script_histories().unwrap(), None)
}

/// Where an item is pushed: block, transaction, input or output, and what it is.
pub(crate) type Places = BTreeSet<(BlockHash, Txid, u32, PushdataFlags)>;

/// Every item that a stored block pushes, on any branch, with its places in the confirmed chain.
pub(crate) fn scan_pushes(
    snapshot: &NodeSnapshot,
    rule: PushdataRule,
) -> BTreeMap<PushdataHash, Places> {
    let view = snapshot.view();
    let mut pushes: BTreeMap<PushdataHash, Places> = BTreeMap::new();
    for number in snapshot.blocks.first_held().unwrap().get()..snapshot.blocks.count() {
        let bytes = snapshot.blocks.raw(BlockNumber::new(number)).unwrap().to_vec();
        let hash = Header::new(bytes.first_chunk().unwrap()).hash();
        let link = view.to_header(hash).unwrap().unwrap();
        let confirmed = view.to_confirmed(view.header(link).unwrap().height) == Some(link);
        let block = Block::parse(&bytes, view.network().format()).unwrap();
        for tx in block.txs() {
            let mut put = |item: PushedItem<'_>, index: u32| {
                let places = pushes.entry(item.hash()).or_default();
                if confirmed {
                    places.insert((hash, tx.txid(), index, item.flags));
                }
            };
            for (vout, output) in (0..).zip(tx.outputs()) {
                rule.of_output(output.script).for_each(|item| put(item, vout));
            }
            for (vin, input) in (0..).zip(tx.inputs()).filter(|_| !tx.is_coinbase()) {
                rule.of_input(input.script).for_each(|item| put(item, vin));
            }
        }
    }
    pushes
}

/// Compares every item with a scan, under the rule of the folder. Returns how many there are.
pub(crate) fn check_pushes(snapshot: &NodeSnapshot) -> usize {
    let view = snapshot.view();
    let rule = view.indexes().pushdata.unwrap();
    let expected = scan_pushes(snapshot, rule);
    for (item, places) in &expected {
        let page = view.pushed(*item, TxLink::new(0), usize::MAX).unwrap();
        let found: Vec<_> = page
            .rows
            .iter()
            .map(|row| {
                let block = view.header(row.tx.block).unwrap().hash;
                (block, row.tx.txid, row.index, row.flags)
            })
            .collect();
        assert_eq!(found.len(), places.len(), "{item}");
        assert_eq!(&found.into_iter().collect::<Places>(), places, "{item}");
    }
    let nobody = view.pushed(PushdataHash::of(b"nobody"), TxLink::new(0), 1).unwrap();
    assert!(nobody.rows.is_empty());
    expected.len()
}

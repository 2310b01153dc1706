//! What Conduit gets wrong (its seven defects) and what is hard for every indexer, each a test.
//!
//! The defects are those of the indexer that seed 003 describes, as its code has them; the cases
//! come from the bug reports of other indexers. Those of the mempool and of the protocols are
//! tested where those live (`crates/node/src/mempool/tests`, `crates/server`).

use std::collections::BTreeSet;

use varve_archive::TxLink;
use varve_consensus::contract::draft::TxDraft;
use varve_node::{NodeSnapshot, Options, Organizer, SettingsChange, SyncOptions, Verify};
use varve_types::proof::{ProofNode, Target, TscProof};
use varve_types::pushdata::{PushdataFlags, PushdataRule};
use varve_types::{Header, Network, Outpoint, PushdataHash, ScriptHash};

use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{disk, options, pipe, sync, sync_options};
use crate::scan::{check_node, check_pushes, scan_pushes, tiny};

/// A script that pushes these items and can be spent by anyone.
fn pushing(items: &[&[u8]]) -> Vec<u8> {
    let mut script = Vec::new();
    for item in items {
        script.push(u8::try_from(item.len()).unwrap());
        script.extend_from_slice(item);
        script.push(0x75); // OP_DROP
    }
    script.push(0x51);
    script
}

/// A transaction that spends an outpoint into outputs with these scripts.
fn paying(from: Outpoint, scripts: &[Vec<u8>]) -> TxDraft {
    let mut tx = TxDraft::spending(&[from], scripts.len());
    for (output, script) in tx.outputs.iter_mut().zip(scripts) {
        output.script.clone_from(script);
    }
    tx
}

/// The transactions in the confirmed chain that push an item.
fn pushers(snapshot: &NodeSnapshot, item: &[u8]) -> Vec<(u32, u32)> {
    let page = snapshot.view().pushed(PushdataHash::of(item), TxLink::new(0), usize::MAX).unwrap();
    let mut found: Vec<_> =
        page.rows.iter().map(|row| (row.tx.height.to_u32(), row.tx.position)).collect();
    found.sort_unstable();
    found
}

fn take(node: &mut Organizer, blocks: &[Mined]) {
    sync(node, &mut pipe(Network::Regtest, &bytes_of(blocks)), &sync_options()).unwrap();
    assert_eq!(node.snapshot().tip.1, blocks.last().unwrap().hash);
}

fn node_with_indexes(folder: &std::path::Path) -> Organizer {
    Organizer::open(disk(folder), tiny("script,pushdata", young_options())).unwrap()
}

const ITEM: &[u8] = &[7; 20];
const OTHER: &[u8] = &[8; 33];

/// Defect 1: behind the first transaction of a batch that was seen before, Conduit drops the rows
/// of all others. Here a branch brings a known transaction first and new ones behind it.
#[test]
fn defect_1_transactions_behind_one_that_is_known_have_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = node_with_indexes(folder.path());
    let base = Mined::genesis().chain(1, 3);
    let known = paying(base[2].coin(), &[pushing(&[ITEM])]);
    let first = base[2].above(2, vec![known.clone()]);
    take(&mut node, &[&base[..], &[first]].concat());
    assert_eq!(pushers(&node.snapshot(), ITEM), [(4, 1)]);
    let new = paying(Outpoint::new(known.txid(), 0), &[pushing(&[OTHER, ITEM])]);
    let second = base[2].above(3, vec![known, new]);
    let third = second.above(3, Vec::new());
    take(&mut node, &[second, third]);
    assert_eq!(pushers(&node.snapshot(), ITEM), [(4, 1), (4, 2)]);
    assert_eq!(pushers(&node.snapshot(), OTHER), [(4, 2)]);
    check_pushes(&node.snapshot());
    check_node(&node);
}

/// Defect 4: Conduit asserts that every match is in a block of the chain, so a row of another
/// branch makes the whole answer fail. Here it is left out.
#[test]
fn defect_4_rows_of_stale_blocks_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = node_with_indexes(folder.path());
    let base = Mined::genesis().chain(1, 2);
    let stale = base[1].above(2, vec![paying(base[1].coin(), &[pushing(&[ITEM])])]);
    take(&mut node, &[&base[..], &[stale]].concat());
    assert_eq!(pushers(&node.snapshot(), ITEM), [(3, 1)]);
    take(&mut node, &base[1].chain(3, 2));
    assert_eq!(pushers(&node.snapshot(), ITEM), []);
    check_pushes(&node.snapshot());
}

/// Defect 5, the part of blocks: one spender an outpoint. Here both branches have theirs, and the
/// confirmed one is the answer.
#[test]
fn defect_5_an_output_has_a_spender_on_each_branch() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = node_with_indexes(folder.path());
    let base = Mined::genesis().chain(1, 2);
    let coin = base[1].coin();
    let (one, two) = (paying(coin, &[pushing(&[ITEM])]), paying(coin, &[pushing(&[OTHER])]));
    let first = base[1].above(2, vec![one.clone()]);
    take(&mut node, &[&base[..], &[first]].concat());
    let second = base[1].above(3, vec![two.clone()]);
    let third = second.above(3, Vec::new());
    let spender = |node: &Organizer| {
        let snapshot = node.snapshot();
        let view = snapshot.view();
        let spender = view.confirmed_spender(coin).unwrap().unwrap();
        (view.txid(&spender.tx).unwrap(), view.spenders(coin).unwrap().len())
    };
    assert_eq!(spender(&node), (one.txid(), 1));
    take(&mut node, &[second, third]);
    assert_eq!(spender(&node), (two.txid(), 2));
    check_node(&node);
}

/// Defect 6: Conduit repeats a hash where the standard has a mark for it. In a block of three
/// transactions the last is its own neighbour.
#[test]
fn defect_6_duplicate_nodes_of_a_proof_are_marked() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = node_with_indexes(folder.path());
    let base = Mined::genesis().chain(1, 2);
    let first = paying(base[1].coin(), &[pushing(&[ITEM])]);
    let second = paying(Outpoint::new(first.txid(), 0), &[pushing(&[ITEM])]);
    let block = base[1].above(2, vec![first, second.clone()]);
    take(&mut node, &[&base[..], std::slice::from_ref(&block)].concat());
    let snapshot = node.snapshot();
    let view = snapshot.view();
    let place = view.to_tx(second.txid()).unwrap().unwrap();
    let branch = view.tx_branch(&place).unwrap();
    let proof = TscProof::new(&branch, place.txid, Target::BlockHash(block.hash));
    assert!(matches!(proof.nodes[..], [ProofNode::Duplicate, ProofNode::Hash(_)]));
    let header = Header::new(block.bytes.first_chunk().unwrap());
    assert_eq!(proof.verify(header, Network::Regtest.format()), Ok(second.txid()));
}

/// Defect 7: a collision of shortened hashes raises. With the feature `weak-hash` every test of
/// this file has collisions; here two items of one transaction and of one script stay apart.
#[test]
fn defect_7_items_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = node_with_indexes(folder.path());
    let base = Mined::genesis().chain(1, 2);
    let items: Vec<[u8; 20]> = (0..=255).map(|byte| [byte; 20]).collect();
    let scripts: Vec<Vec<u8>> = items.chunks(2).map(|two| pushing(&[&two[0], &two[1]])).collect();
    let block = base[1].above(2, vec![paying(base[1].coin(), &scripts)]);
    take(&mut node, &[&base[..], &[block]].concat());
    let snapshot = node.snapshot();
    let view = snapshot.view();
    for (number, item) in (0..).zip(&items) {
        let page = view.pushed(PushdataHash::of(item), TxLink::new(0), usize::MAX).unwrap();
        let [row] = page.rows[..] else { panic!("item {number}") };
        assert_eq!((row.tx.height.to_u32(), row.index), (3, number / 2));
        assert_eq!(row.flags, PushdataFlags::OUTPUT);
    }
}

/// A transaction in a stale block and later at another height counts once, and a reorganisation to
/// a lower height takes it back.
#[test]
fn a_transaction_confirmed_again_at_another_height_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = node_with_indexes(folder.path());
    let base = Mined::genesis().chain(1, 2);
    let tx = paying(base[1].coin(), &[pushing(&[ITEM])]);
    let low = base[1].above(2, vec![tx.clone()]);
    take(&mut node, &[&base[..], &[low]].concat());
    let mut high = vec![base[1].above(3, Vec::new())];
    for txs in [Vec::new(), vec![tx.clone()], Vec::new()] {
        high.push(high.last().unwrap().above(3, txs));
    }
    take(&mut node, &high);
    assert_eq!(pushers(&node.snapshot(), ITEM), [(5, 1)]);
    let script = ScriptHash::of(&pushing(&[ITEM]));
    let sums = node.snapshot().script_histories().unwrap().sums(&script, None).unwrap();
    assert_eq!((sums.txs, sums.funded), (1, 1));
    // To a lower height: the branch with the most work is marked as bad.
    node.invalidate(high[0].hash, &mut |_| {}).unwrap();
    assert_eq!(node.snapshot().tip.0.to_u32(), 3);
    assert_eq!(pushers(&node.snapshot(), ITEM), [(3, 1)]);
    check_node(&node);
    check_pushes(&node.snapshot());
}

/// Scripts with pushes that end behind the script give what is left, and nothing fails.
#[test]
fn truncated_pushes_are_indexed_as_far_as_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = node_with_indexes(folder.path());
    let base = Mined::genesis().chain(1, 2);
    let cut = [&[0x4c, 0xff][..], &[9; 30]].concat();
    let nothing = vec![0x4d];
    let block = base[1].above(2, vec![paying(base[1].coin(), &[cut, nothing, pushing(&[ITEM])])]);
    take(&mut node, &[&base[..], &[block]].concat());
    assert_eq!(pushers(&node.snapshot(), &[9; 30]), [(3, 1)]);
    assert_eq!(pushers(&node.snapshot(), ITEM), [(3, 1)]);
    check_pushes(&node.snapshot());
}

/// Every pushed item of the Conduit chains, before and after their reorganisation, against a scan.
#[test]
fn the_chains_of_conduit_before_and_after_their_reorganisation() {
    for rule in [PushdataRule::Conduit, PushdataRule::Documented] {
        let folder = tempfile::tempdir().unwrap();
        let options = tiny("script,pushdata", options(Network::BsvRegtest));
        let settings = SettingsChange { pushdata_rule: Some(rule), ..options.settings };
        let options = Options { settings, ..options };
        let mut node = Organizer::open(disk(folder.path()), options).unwrap();
        let mut seen = BTreeSet::new();
        for name in ["115_3677f4", "116_7c9cd2", "117_28c2d3", "118_0ebc17"] {
            let path = format!("chains/conduit-regtest/contrib/blockchains/blockchain_{name}");
            let Some(path) = varve_testdata::data(&path) else { return };
            let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
            let blocks = files.filter(|file| file.file_name().is_some_and(|name| name.len() == 64));
            let blocks: Vec<Vec<u8>> = blocks.map(|file| std::fs::read(file).unwrap()).collect();
            let spends = SyncOptions { verify: Verify::Spends, ..sync_options() };
            sync(&mut node, &mut pipe(Network::BsvRegtest, &blocks), &spends).unwrap();
            let height: u32 = name[..3].parse().unwrap();
            let snapshot = node.snapshot();
            assert_eq!(snapshot.tip.0.to_u32(), height, "{name}");
            assert!(check_node(&node) > 5, "{name}");
            assert!(check_pushes(&snapshot) > 5, "{name}");
            // Items move between blocks, and none is lost: wallet transactions stay in the chain.
            let pushed = scan_pushes(&snapshot, rule).into_iter();
            let confirmed: BTreeSet<_> =
                pushed.filter(|(_, places)| !places.is_empty()).map(|(item, _)| item).collect();
            seen.extend(confirmed);
        }
        assert!(seen.len() > 10);
    }
}

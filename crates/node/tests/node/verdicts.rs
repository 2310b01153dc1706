//! Marks that an operator sets and takes back: the chain moves at once, durably, and a sync keeps
//! to them.

use std::sync::Arc;

use serde_json::json;
use varve_consensus::contract::draft::TxDraft;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_node::source::directory::Directory;
use varve_node::{Error, Organizer, Prune, SettingsChange};
use varve_testdata::bitcoind::Bitcoind;
use varve_types::{BlockHash, Network, Outpoint, Txid};
use varve_utxo::{SetHash, UndoConfig};

use crate::crash::{check_agreement, eager_options, hash_of};
use crate::miner::{Mined, bytes_of, young_options};
use crate::real_node::p2p;
use crate::rig::{disk, framed, is_long, options, pipe, set_hash, sync, sync_options, tip};

/// Six blocks, and a branch of three above the second.
fn two_branches() -> (Vec<Mined>, Vec<Mined>) {
    let main = Mined::genesis().chain(1, 6);
    let branch = main[1].chain(2, 3);
    (main, branch)
}

fn take(node: &mut Organizer, blocks: &[Vec<u8>]) -> Vec<(String, String)> {
    sync(node, &mut pipe(Network::Regtest, blocks), &sync_options()).unwrap()
}

fn invalidate(node: &mut Organizer, block: &Mined) -> Result<(), Error> {
    node.invalidate(block.hash, &mut |_| {})
}

fn reconsider(node: &mut Organizer, block: &Mined) -> Result<(), Error> {
    node.reconsider(block.hash, &mut |_| {})
}

#[test]
fn the_chain_leaves_an_invalidated_block_and_comes_back_when_it_is_reconsidered() {
    let (main, branch) = two_branches();
    let all = bytes_of(main.iter().chain(&branch));
    let folder = tempfile::tempdir().unwrap();
    let open = || Organizer::open(disk(folder.path()), young_options()).unwrap();
    let mut node = open();
    take(&mut node, &all);
    let whole = set_hash(&node, SetHash::HashSerialized3);
    assert_eq!(node.snapshot().tip.1, main[5].hash);
    invalidate(&mut node, &main[3]).unwrap();
    for _ in 0..2 {
        assert_eq!(node.snapshot().tip.1, branch[2].hash);
        check_agreement(&node.snapshot());
        node.verify(&mut |_, _| {}).unwrap();
        assert!(node.invalid(&main[5].hash).unwrap().reason.contains("reconsider"));
        assert!(node.invalid(&main[2].hash).is_none());
        // Again, and what a sync brings changes nothing.
        invalidate(&mut node, &main[3]).unwrap();
        take(&mut node, &all);
        drop(node);
        node = open();
    }
    // The branch grows, and loses all the same when the mark is gone.
    take(&mut node, &bytes_of(branch.iter().take(3)));
    reconsider(&mut node, &main[4]).unwrap();
    for _ in 0..2 {
        assert_eq!(node.snapshot().tip.1, main[5].hash);
        assert_eq!(set_hash(&node, SetHash::HashSerialized3), whole);
        assert_eq!(node.invalid_blocks().count(), 0);
        node.verify(&mut |_, _| {}).unwrap();
        reconsider(&mut node, &main[4]).unwrap();
        drop(node);
        node = open();
    }
}

#[test]
fn without_another_branch_the_chain_ends_below_the_block() {
    let main = Mined::genesis().chain(1, 6);
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    take(&mut node, &bytes_of(&main));
    invalidate(&mut node, &main[5]).unwrap();
    assert_eq!(node.snapshot().tip.1, main[4].hash);
    invalidate(&mut node, &main[0]).unwrap();
    assert_eq!(node.snapshot().tip.0.to_u32(), 0);
    drop(node);
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    assert_eq!(node.snapshot().tip.0.to_u32(), 0);
    // The lower one takes the mark above it back as well, as Core does.
    reconsider(&mut node, &main[0]).unwrap();
    assert_eq!(node.snapshot().tip.1, main[5].hash);
    node.verify(&mut |_, _| {}).unwrap();
}

#[test]
fn unknown_blocks_and_genesis_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    let unknown = BlockHash::from_bytes([7; 32]);
    for refused in [node.invalidate(unknown, &mut |_| {}), node.reconsider(unknown, &mut |_| {})] {
        assert!(refused.unwrap_err().to_string().contains("is not known"));
    }
    let genesis = invalidate(&mut node, &Mined::genesis()).unwrap_err().to_string();
    assert!(genesis.contains("genesis"), "{genesis}");
    reconsider(&mut node, &Mined::genesis()).unwrap();
}

/// A block that does break a rule is refused again, with the same reason.
#[test]
fn a_block_that_is_bad_is_marked_again_when_it_is_reconsidered() {
    let main = Mined::genesis().chain(1, 4);
    let nothing = Outpoint::new(Txid::from_bytes([9; 32]), 0);
    let bad = main[3].above(1, vec![TxDraft::spending(&[nothing], 1)]);
    let above = bad.chain(1, 2);
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    // From a file all headers come first, those above the bad block too.
    let file = folder.path().join("blk00000.dat");
    let blocks = bytes_of(main.iter().chain([&bad]).chain(&above));
    std::fs::write(&file, framed(Network::Regtest, &blocks)).unwrap();
    let mut source = Directory::open(&file, Network::Regtest, false).unwrap();
    sync(&mut node, &mut source, &sync_options()).unwrap();
    let reason = node.invalid(&bad.hash).unwrap().reason;
    invalidate(&mut node, &above[0]).unwrap();
    let mut refused = Vec::new();
    node.reconsider(above[1].hash, &mut |report| {
        if let varve_node::Report::Refused { hash, .. } = report {
            refused.push(hash);
        }
    })
    .unwrap();
    assert_eq!(refused, [bad.hash]);
    assert_eq!(node.invalid(&bad.hash).unwrap().reason, reason);
    let marked: Vec<_> = node.invalid_blocks().map(|invalid| invalid.block).collect();
    assert_eq!(marked, [bad.hash], "the operator's mark is gone");
    assert_eq!(node.snapshot().tip.1, main[3].hash);
}

/// The power is cut at every write of both: the mark and the turn are there together, or neither.
#[test]
fn power_cuts_at_every_write_of_a_verdict() {
    let (main, branch) = two_branches();
    let all = bytes_of(main.iter().chain(&branch));
    let storage = Arc::new(FaultyStorage::new(5));
    let mut node = Organizer::open(storage.clone(), eager_options()).unwrap();
    take(&mut node, &all);
    let kept = (tip(&node), hash_of(&node.snapshot()));
    let mut moments = vec![(storage.operations(), false)];
    invalidate(&mut node, &main[2]).unwrap();
    let left = (tip(&node), hash_of(&node.snapshot()));
    assert_ne!(kept.0, left.0);
    moments.push((storage.operations(), true));
    reconsider(&mut node, &main[2]).unwrap();
    assert_eq!((tip(&node), hash_of(&node.snapshot())), kept);
    moments.push((storage.operations(), false));
    drop(node);
    for pair in moments.windows(2) {
        let ((begin, before), (end, after)) = (pair[0], pair[1]);
        for n in begin..=end {
            for crash in [Crash::LoseAll, Crash::KeepAll, Crash::Seed(n as u64)] {
                let name = format!("after {n} of {begin}..={end}, {crash:?}");
                let cut = Arc::new(storage.crash(n, crash));
                let mut node = match Organizer::open(cut, eager_options()) {
                    Ok(node) => node,
                    Err(error) => panic!("{name}: {error}"),
                };
                let is_marked = node.invalid(&main[2].hash).is_some();
                let possible = if n == end { vec![after] } else { vec![before, after] };
                assert!(possible.contains(&is_marked), "{name}");
                let expected = if is_marked { &left } else { &kept };
                assert_eq!((tip(&node), hash_of(&node.snapshot())), *expected, "{name}");
                check_agreement(&node.snapshot());
                if is_long() || n % 3 == 0 {
                    reconsider(&mut node, &main[2]).unwrap();
                    assert_eq!((tip(&node), hash_of(&node.snapshot())), kept, "{name}");
                }
            }
        }
    }
}

/// What it takes to leave the block is pruned: nothing is marked.
#[test]
fn a_block_below_the_horizon_of_a_pruned_folder_is_not_marked() {
    let undo = UndoConfig { blocks: 3, segment_size: 300, cache: 0 };
    let settings = SettingsChange { prune: Some(Prune::To(1)), ..SettingsChange::default() };
    let options = varve_node::Options { undo, settings, block_segment: 700, ..eager_options() };
    let main = Mined::genesis().chain(1, 200);
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), options).unwrap();
    take(&mut node, &bytes_of(&main));
    assert!(node.pruned_below().unwrap().is_some());
    let before = tip(&node);
    assert!(matches!(invalidate(&mut node, &main[4]), Err(Error::Pruned { .. })));
    assert_eq!((tip(&node), node.invalid_blocks().count()), (before, 0));
    invalidate(&mut node, &main[198]).unwrap();
    assert_eq!(node.snapshot().tip.1, main[197].hash);
}

/// A real node beside ours: the same tip after every verdict. (No two branches have the same work:
/// then the order decides in which blocks came, and that is not the same for both.)
#[test]
fn a_real_node_gives_the_same_tips() {
    let Some(real) = Bitcoind::start(&["-checkblockindex=0"]) else { return };
    let mine = |count: u32, to: &str| {
        let hashes = real.call("generatetodescriptor", &json!([count, format!("raw({to})")]));
        let hashes: Vec<String> = serde_json::from_value(hashes).unwrap();
        hashes
    };
    let first = mine(12, "51");
    real.call("invalidateblock", &json!([first[7]]));
    let second = mine(4, "52");
    real.call("reconsiderblock", &json!([first[7]]));
    let best = || real.call("getbestblockhash", &json!([])).as_str().unwrap().to_owned();
    assert_eq!(best(), first[11]);
    let folder = tempfile::tempdir().unwrap();
    let files = real.folder();
    let mut ours = Organizer::open(disk(folder.path()), options(Network::Regtest)).unwrap();
    // From the files, so that both branches are there.
    let mut source = Directory::open(&files, Network::Regtest, false).unwrap();
    sync(&mut ours, &mut source, &sync_options()).unwrap();
    assert_eq!(tip(&ours).1, best());
    let steps = [
        ("invalidateblock", &first[9]),
        ("invalidateblock", &second[3]),
        ("invalidateblock", &first[2]),
        ("reconsiderblock", &second[0]),
        ("reconsiderblock", &first[11]),
        ("invalidateblock", &second[1]),
        ("reconsiderblock", &first[2]),
        ("invalidateblock", &first[10]),
        ("reconsiderblock", &second[1]),
    ];
    for (number, (call, block)) in steps.into_iter().enumerate() {
        real.call(call, &json!([block]));
        let hash = block.parse().unwrap();
        match call {
            "invalidateblock" => ours.invalidate(hash, &mut |_| {}).unwrap(),
            _ => ours.reconsider(hash, &mut |_| {}).unwrap(),
        }
        assert_eq!(tip(&ours).1, best(), "step {number}: {call}");
        // What the real node's chain is makes no difference.
        let _ = sync(&mut ours, &mut p2p(&[&real]), &sync_options());
        assert_eq!(tip(&ours).1, best(), "after a sync in step {number}");
    }
    ours.verify(&mut |_, _| {}).unwrap();
}

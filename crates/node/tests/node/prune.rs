//! Folders that keep only the youngest blocks: what is dropped, what is answered, what goes on.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use varve_consensus::contract::draft::TxDraft;
use varve_io::FileOffset;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_node::source::SourceError;
use varve_node::{Error, Event, Giver, Limits, Options, Organizer, Prune, SettingsChange, Source};
use varve_types::{BlockHash, Height, Network, Outpoint};
use varve_utxo::{Compaction, SetHash, UndoConfig};

use crate::crash::check_agreement;
use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{disk, is_long, pipe, set_hash, sync, sync_options};

/// How many blocks can be rewound.
const UNDO: u32 = 20;

/// Small files of blocks, and few undo records.
fn plain() -> Options {
    let undo = UndoConfig { blocks: UNDO, segment_size: 1_000, cache: 0 };
    Options { undo, block_segment: 2_000, ..young_options() }
}

fn pruned(bytes: u64) -> Options {
    let settings = SettingsChange { prune: Some(Prune::To(bytes)), ..SettingsChange::default() };
    Options { settings, ..plain() }
}

fn open(folder: &Path, options: Options) -> Organizer {
    Organizer::open(disk(folder), options).unwrap()
}

fn take(node: &mut Organizer, blocks: &[Mined]) {
    let blocks = bytes_of(blocks);
    assert_eq!(sync(node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap(), []);
}

/// Bytes of the files of blocks.
fn stored(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder.join("blocks")).unwrap().map(Result::unwrap);
    let blocks = files.filter(|file| file.file_name().to_string_lossy().starts_with("blocks-"));
    blocks.map(|file| file.metadata().unwrap().len()).sum()
}

fn height_of(error: &Error) -> u32 {
    match error {
        Error::Pruned { height } => height.to_u32(),
        other => panic!("{other}"),
    }
}

#[test]
fn old_blocks_go_and_what_needs_them_is_told() {
    let chain = Mined::genesis().chain(1, 200);
    let folder = tempfile::tempdir().unwrap();
    let mut node = open(folder.path(), pruned(1));
    take(&mut node, &chain);
    let below = node.pruned_below().unwrap().unwrap().to_u32();
    assert!((150..=201 - UNDO).contains(&below), "{below}: the horizon is kept, in whole files");
    assert!(stored(folder.path()) < 20_000, "{}", stored(folder.path()));

    let snapshot = node.snapshot();
    let view = snapshot.view();
    let at = |height: u32| view.to_confirmed(Height::new(height)).unwrap();
    for height in [0, 1, below - 1] {
        let answer = view.raw_block(at(height)).unwrap_err();
        assert_eq!(height_of(&answer.into()), height);
    }
    for height in [below, 200] {
        assert!(view.raw_block(at(height)).unwrap().is_some());
    }
    // Which transaction a row is takes its bytes.
    let old = &chain[4];
    let place = view.to_tx(old.coinbase.txid());
    assert_eq!(height_of(&place.unwrap_err().into()), 5);
    let row = view.block_txs(at(5)).unwrap().unwrap().start;
    assert_eq!(height_of(&view.raw_tx(row).unwrap_err().into()), 5);
    let output = view.output(Outpoint::new(old.coinbase.txid(), 0));
    assert_eq!(height_of(&output.unwrap_err().into()), 5);
    let spender = view.confirmed_spender(old.coin());
    assert_eq!(height_of(&spender.unwrap_err().into()), 6);
    // The figures of past heights begin at genesis.
    let counted = node.stats_at(Height::new(150), &mut |_, _| {});
    assert_eq!(height_of(&counted.unwrap_err()), 1);

    let verified = node.verify(&mut |_, _| {}).unwrap();
    assert_eq!(verified.pruned + verified.blocks, 201);
    assert!(verified.pruned > 100 && verified.coins == snapshot.utxo.coin_count());
    drop((view, snapshot, node));
    let repaired = Organizer::repair(disk(folder.path()), plain(), &mut |_, _| {});
    assert_eq!(height_of(&repaired.err().unwrap()), 0);
    assert_eq!(open(folder.path(), plain()).snapshot().tip.1, chain[199].hash, "nothing was lost");
}

#[test]
fn it_goes_on_as_before_and_can_be_ended() {
    let chain = Mined::genesis().chain(1, 300);
    let (folder, clean) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut whole = open(clean.path(), plain());
    take(&mut whole, &chain[..100]);
    // Chosen later, kept without being said again, changed, ended.
    let mut node = open(folder.path(), plain());
    take(&mut node, &chain[..100]);
    assert_eq!(node.pruned_below().unwrap(), None);
    let mut lowest = 0;
    for (options, end) in [
        (pruned(1), 100),
        (plain(), 160),
        (pruned(10_000), 161),
        (plain(), 240),
        (pruned(u64::MAX), 300),
    ] {
        drop(node);
        node = open(folder.path(), options);
        take(&mut node, &chain[..end]);
        let below = node.pruned_below().unwrap().unwrap().to_u32();
        assert!(below >= lowest, "dropped blocks do not come back");
        lowest = below;
        take(&mut whole, &chain[..end]);
        let hash = SetHash::HashSerialized3;
        assert_eq!(set_hash(&node, hash), set_hash(&whole, hash));
        node.verify(&mut |_, _| {}).unwrap();
    }
    assert_eq!(node.settings().prune, Prune::To(u64::MAX));
    assert!(lowest > 100 && lowest <= 241 - UNDO, "{lowest}: nothing more went");
    drop(node);
    let off = SettingsChange { prune: Some(Prune::Off), ..SettingsChange::default() };
    let node = open(folder.path(), Options { settings: off, ..plain() });
    assert_eq!(node.settings().prune, Prune::Off);
    assert_eq!(node.pruned_below().unwrap().unwrap().to_u32(), lowest);
}

#[test]
fn a_branch_within_the_horizon_wins_and_one_below_it_is_refused_before_anything_changes() {
    let chain = Mined::genesis().chain(1, 200);
    let folder = tempfile::tempdir().unwrap();
    let mut node = open(folder.path(), pruned(1));
    take(&mut node, &chain);
    let short = chain[199 - UNDO as usize].chain(2, 25);
    let blocks: Vec<Mined> = chain[..=199 - UNDO as usize].iter().chain(&short).cloned().collect();
    take(&mut node, &blocks);
    assert_eq!(node.snapshot().tip.1, short[24].hash);
    let clean = tempfile::tempdir().unwrap();
    let mut whole = open(clean.path(), plain());
    take(&mut whole, &blocks);
    let before = set_hash(&node, SetHash::HashSerialized3);
    assert_eq!(before, set_hash(&whole, SetHash::HashSerialized3));

    // From block 3 on, longer than all: nobody can go back so far.
    let deep: Vec<Mined> = chain[..3].iter().cloned().chain(chain[2].chain(3, 230)).collect();
    for _ in 0..2 {
        let deep = bytes_of(&deep);
        let refused = sync(&mut node, &mut pipe(Network::Regtest, &deep), &sync_options());
        assert_eq!(height_of(&refused.unwrap_err()), 4);
        assert_eq!(set_hash(&node, SetHash::HashSerialized3), before);
        drop(node);
        node = open(folder.path(), plain());
        assert_eq!(node.snapshot().tip.1, short[24].hash);
    }
    take(&mut whole, &deep);
    assert_eq!(whole.snapshot().tip.1, deep[232].hash, "with all blocks it is possible");
}

#[test]
fn lost_stores_of_a_pruned_folder_are_told_as_pruned() {
    let chain = Mined::genesis().chain(1, 100);
    for store in ["archive", "utxo"] {
        let folder = tempfile::tempdir().unwrap();
        take(&mut open(folder.path(), pruned(1)), &chain);
        std::fs::remove_dir_all(folder.path().join(store)).unwrap();
        let error = Organizer::open(disk(folder.path()), plain()).err().unwrap();
        assert_eq!(height_of(&error), 0);
    }
}

/// A source that breaks off after a few events.
struct Few(VecDeque<Event>);

impl Source for Few {
    fn seek(&mut self, _: &[BlockHash]) -> Result<(), SourceError> {
        Ok(())
    }

    fn want(&mut self, _: Giver, _: &[BlockHash]) -> Result<(), SourceError> {
        Ok(())
    }

    fn next_event(&mut self, _: Duration) -> Result<Event, SourceError> {
        let source = std::io::Error::other("that was all");
        self.0.pop_front().ok_or(SourceError::Io { path: "few".into(), source })
    }

    fn blame(&mut self, _: Giver, _: &str) {}
}

/// Stores the last block of a branch of three and loses the headers of all, as a crash does.
fn store_orphan(folder: &Path, branch: &[Mined]) {
    let giver = Giver::ONLY;
    let headers = branch.iter().map(|block| *block.bytes.first_chunk().unwrap()).collect();
    let Mined { hash, bytes, .. } = branch[2].clone();
    let events = [Event::Headers { headers, giver }, Event::Block { hash, bytes, giver }];
    let mut node = open(folder, plain());
    // The block is stored when its verdict is taken, before the source is asked again.
    let mut few = Few(events.into_iter().chain([Event::Idle, Event::Idle]).collect());
    assert!(sync(&mut node, &mut few, &sync_options()).is_err());
}

/// A block whose parents were lost in a crash, with their headers, does not keep others from being
/// pruned. When they come after all, so does it.
#[test]
fn a_block_whose_header_is_lost_does_not_stop_pruning() {
    let (chain, branch) = (Mined::genesis().chain(1, 260), Mined::genesis().chain(2, 3));
    let folder = tempfile::tempdir().unwrap();
    store_orphan(folder.path(), &branch);
    let mut node = open(folder.path(), pruned(1));
    let hash = branch[2].hash;
    assert!(node.chain_tips().iter().all(|tip| tip.hash != hash), "its header is lost");
    take(&mut node, &chain[..200]);
    let below = node.pruned_below().unwrap().unwrap().to_u32();
    assert!((150..=201 - UNDO).contains(&below), "{below}");
    node.verify(&mut |_, _| {}).unwrap();
    drop(node);
    let mut node = open(folder.path(), pruned(1));
    take(&mut node, &branch);
    for _ in 0..2 {
        assert!(node.chain_tips().iter().any(|tip| tip.hash == hash));
        node.verify(&mut |_, _| {}).unwrap();
        drop(node);
        node = open(folder.path(), pruned(1));
        let snapshot = node.snapshot();
        let link = snapshot.view().to_header(hash).unwrap().unwrap();
        let bytes = snapshot.view().raw_block(link).unwrap().unwrap();
        assert_eq!(bytes[..], branch[2].bytes[..], "it was fetched again");
    }
    take(&mut node, &chain);
    node.verify(&mut |_, _| {}).unwrap();
}

/// One that stays an orphan for ever is no reason to archive all later blocks at every opening.
#[test]
fn an_orphan_does_not_make_every_opening_archive_later_blocks_again() {
    let (chain, branch) = (Mined::genesis().chain(1, 50), Mined::genesis().chain(2, 3));
    let folder = tempfile::tempdir().unwrap();
    store_orphan(folder.path(), &branch);
    take(&mut open(folder.path(), plain()), &chain);
    let mut archived = Vec::new();
    let mut note = |number, _| archived.push(number);
    let mut node = Organizer::open_with(disk(folder.path()), plain(), &mut note).unwrap();
    assert!(archived.is_empty(), "{archived:?}");
    // It is still there when its header comes, and after that.
    take(&mut node, &branch);
    drop(node);
    let mut note = |number, _| archived.push(number);
    let node = Organizer::open_with(disk(folder.path()), plain(), &mut note).unwrap();
    assert!(archived.is_empty(), "{archived:?}");
    assert!(node.chain_tips().iter().any(|tip| tip.hash == branch[2].hash));
    let snapshot = node.snapshot();
    let link = snapshot.view().to_header(branch[2].hash).unwrap().unwrap();
    assert!(snapshot.view().raw_block(link).unwrap().is_some());
    node.verify(&mut |_, _| {}).unwrap();
}

/// Blocks that were stored from the last to the first: an archive that was lost is made again in
/// one pass over them, in the order in which they are stored.
#[test]
fn an_archive_is_made_again_in_one_pass_whatever_the_order_of_storage() {
    let (chain, branch) = (Mined::genesis().chain(1, 60), Mined::genesis().chain(2, 30));
    let folder = tempfile::tempdir().unwrap();
    let giver = Giver::ONLY;
    let mut events = VecDeque::new();
    for part in [&chain, &branch] {
        let headers = part.iter().map(|block| *block.bytes.first_chunk().unwrap()).collect();
        events.push_back(Event::Headers { headers, giver });
    }
    for Mined { hash, bytes, .. } in chain.iter().rev().chain(branch.iter().rev()).cloned() {
        events.push_back(Event::Block { hash, bytes, giver });
    }
    events.extend([const { Event::Idle }; 8]);
    events.push_back(Event::HeadersDone);
    let mut node = open(folder.path(), plain());
    let _ended = sync(&mut node, &mut Few(events), &sync_options());
    assert_eq!(node.snapshot().tip.1, chain[59].hash);
    node.checkpoint().unwrap();
    let tips = node.chain_tips().len();
    drop(node);
    std::fs::remove_dir_all(folder.path().join("archive")).unwrap();
    let mut archived = Vec::new();
    let mut note = |number, all| archived.push((number, all));
    let node = Organizer::open_with(disk(folder.path()), plain(), &mut note).unwrap();
    assert_eq!(archived, (1..=91).map(|number| (number, 91)).collect::<Vec<_>>());
    assert_eq!((node.snapshot().tip.1, node.chain_tips().len()), (chain[59].hash, tips));
    node.verify(&mut |_, _| {}).unwrap();
}

/// A branch leaves below the horizon, where undo records are left all the same. The set has gone
/// back to the fork and the confirmed tip has not: what a crash needs to return to that is kept.
#[test]
fn power_cuts_while_the_set_is_below_the_horizon() {
    let chain = Mined::genesis().chain(1, 100);
    let branch: Vec<Mined> = chain[..70].iter().cloned().chain(chain[69].chain(2, 70)).collect();
    let storage = Arc::new(FaultyStorage::new(4));
    // A checkpoint is due as soon as the branch has the most work.
    let lag = branch[70..=100].iter().map(|block| block.bytes.len() as u64).sum();
    let limits = Limits { lag, ..Limits::default() };
    let options = |options| Options { limits, compaction: Compaction::Inline, ..options };
    let mut node = Organizer::open(storage.clone(), options(plain())).unwrap();
    take(&mut node, &chain);
    drop(node);
    let before = storage.operations();
    let mut node = Organizer::open(storage.clone(), options(pruned(1))).unwrap();
    take(&mut node, &branch);
    assert_eq!(node.snapshot().tip.1, branch[139].hash);
    for n in (before..=storage.operations()).step_by(if is_long() { 1 } else { 3 }) {
        let after = Arc::new(storage.crash(n, Crash::KeepAll));
        let node = match Organizer::open(after, options(plain())) {
            Ok(node) => node,
            Err(error) => panic!("after {n} of {}: {error}", storage.operations()),
        };
        check_agreement(&node.snapshot());
    }
}

/// With the indexes that take what blocks spend.
fn indexed(options: Options) -> Options {
    let indexes = Some("filter,stats".parse().unwrap());
    Options { settings: SettingsChange { indexes, ..options.settings }, ..options }
}

/// Filter header, MuHash, and counts of the set.
type Answer = ([u8; 32], [u8; 32], [u64; 3]);

/// Filters and figures of a node at every height of the confirmed chain.
fn answers(node: &Organizer) -> Vec<Answer> {
    let snapshot = node.snapshot();
    let at = |height: u32| {
        let link = snapshot.archive.to_confirmed(Height::new(height)).unwrap();
        let filter = snapshot.archive.filter_header(link).unwrap().unwrap();
        let mut computed = 0;
        let row = node.stats_at(Height::new(height), &mut |_, _| computed += 1).unwrap();
        assert_eq!((computed, row.height.to_u32()), (0, height), "the index has it");
        (filter, row.muhash(), [row.txouts, row.bogosize, row.total_amount])
    };
    (0..=snapshot.tip.0.to_u32()).map(at).collect()
}

/// Coins from far below the horizon are spent, so that their blocks are pruned by then.
fn old_spends(count: u32) -> Vec<Mined> {
    let mut chain = Mined::genesis().chain(1, 3);
    let mut rich = TxDraft::spending(&[chain[2].coin()], 200);
    rich.outputs.iter_mut().for_each(|output| output.value = 1_000);
    let coin = |vout| Outpoint::new(rich.txid(), vout);
    chain.push(chain[2].above(1, vec![rich.clone()]));
    for vout in 0..count {
        let last = chain.last().unwrap();
        let spend = TxDraft::spending(&[coin(vout)], 1);
        chain.push(last.above(1, vec![spend]));
    }
    chain
}

/// What they answer does not depend on whether blocks are pruned, across a reorganisation too.
#[test]
fn filters_and_figures_are_kept_with_pruned_blocks() {
    let chain = old_spends(120);
    let branch: Vec<Mined> = chain[..110].iter().cloned().chain(chain[109].chain(2, 20)).collect();
    let (folder, clean) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut node = open(folder.path(), indexed(pruned(1)));
    let mut whole = open(clean.path(), plain());
    for blocks in [&chain[..60], &chain, &branch] {
        take(&mut node, blocks);
        take(&mut whole, blocks);
        drop((node, whole));
        whole = open(clean.path(), indexed(plain()));
        take(&mut whole, blocks);
        assert_eq!(whole.pruned_below().unwrap(), None);
        node = open(folder.path(), plain());
        assert!(node.pruned_below().unwrap().is_some());
        assert_eq!(answers(&node), answers(&whole));
        node.verify(&mut |_, _| {}).unwrap();
        // Chosen again, from the start, out of archive and blocks.
        drop(whole);
        let none =
            SettingsChange { indexes: Some(Default::default()), ..SettingsChange::default() };
        whole = open(clean.path(), Options { settings: none, ..plain() });
    }
}

/// A power cut at any write: the indexes come back to the tip without the pruned blocks.
#[test]
fn power_cuts_with_indexes_over_pruned_blocks() {
    let chain = old_spends(70);
    let branch: Vec<Mined> = chain[..60].iter().cloned().chain(chain[59].chain(2, 20)).collect();
    let expected: Vec<_> = [&chain, &branch]
        .into_iter()
        .map(|blocks| {
            let mut whole =
                Organizer::open(Arc::new(FaultyStorage::new(5)), indexed(plain())).unwrap();
            take(&mut whole, blocks);
            answers(&whole)
        })
        .collect();
    let storage = Arc::new(FaultyStorage::new(4));
    let options = |options| Options { compaction: Compaction::Inline, ..indexed(options) };
    let mut node = Organizer::open(storage.clone(), options(pruned(1))).unwrap();
    take(&mut node, &chain[..40]);
    assert!(node.pruned_below().unwrap().is_some());
    let before = storage.operations();
    take(&mut node, &chain);
    take(&mut node, &branch);
    drop(node);
    for n in (before..=storage.operations()).step_by(if is_long() { 1 } else { 5 }) {
        let crash = [Crash::LoseAll, Crash::KeepAll, Crash::Seed(n as u64)][n % 3];
        let after = Arc::new(storage.crash(n, crash));
        let node = Organizer::open(after, options(plain()));
        let node = node.unwrap_or_else(|error| panic!("after {n}, {crash:?}: {error}"));
        let found = answers(&node);
        let is_branch = node.snapshot().tip.0.to_u32() >= 60
            && node.snapshot().archive.to_header(branch[60].hash).unwrap()
                == node.snapshot().archive.to_confirmed(Height::new(61));
        assert_eq!(found, expected[usize::from(is_branch)][..found.len()], "after {n}, {crash:?}");
    }
}

/// Figures that cannot be computed again are not removed when they are damaged: opening works, and
/// both questions and `verify` name the file.
#[test]
fn damaged_figures_over_pruned_blocks_are_kept_and_reported() {
    const FILE: &str = "stats/checkpoint";
    let storage = Arc::new(FaultyStorage::new(4));
    let mut node = Organizer::open(storage.clone(), indexed(pruned(1))).unwrap();
    take(&mut node, &old_spends(60));
    assert!(node.pruned_below().unwrap().is_some());
    drop(node);
    assert!(storage.flip_bit(FILE, FileOffset::new(40), 1));
    let mut node = Organizer::open(storage.clone(), plain()).unwrap();
    let blocks = bytes_of(&old_spends(61));
    let errors = [
        node.stats_at(Height::new(5), &mut |_, _| {}).map(drop).unwrap_err(),
        node.verify(&mut |_, _| {}).map(drop).unwrap_err(),
        sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap_err(),
    ];
    assert!(errors.iter().all(|error| error.to_string().contains("checkpoint")), "{errors:?}");
    drop(node);
    assert!(storage.flip_bit(FILE, FileOffset::new(40), 1), "the file is still there");
    let mut node = Organizer::open(storage, plain()).unwrap();
    take(&mut node, &old_spends(61));
    assert_eq!(answers(&node).len(), 66);
}

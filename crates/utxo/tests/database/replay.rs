//! Replay after a crash takes spent coins from the undo records that survived it.

use std::sync::Arc;

use varve_consensus::BlockAt;
use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Access, Caching, FileOffset, Storage as _};
use varve_testdata::Random;
use varve_types::{Block, Height, Network, Outpoint};
use varve_utxo::parts::Prepared;
use varve_utxo::{Compaction, Database, Error, Options, Repeats};

use crate::twin::{KEY, Twin, oracle_state, small, state};

const PAGE: u64 = 4096;
const BASE: usize = 30;
const BLOCKS: usize = 8;

/// A set imported as one run, and blocks above it that spend coins of the run.
fn twin() -> Twin {
    // Without threads every record is written when its step is made.
    let compaction = Compaction::Inline;
    let options = Options { compaction, ..Options::new(Network::Regtest, KEY) };
    let mut twin = Twin::imported(4, options, BASE);
    let mut chance = Random::new(4);
    (0..BLOCKS).for_each(|_| twin.append_draft(&mut chance).unwrap());
    twin
}

/// What a crash leaves of the set, with a flipped bit in every leaf of its run.
fn without_leaves(twin: &Twin, crash: Crash) -> Arc<FaultyStorage> {
    let left = twin.storage.crash(twin.storage.operations(), crash);
    let names = left.list().unwrap();
    let runs: Vec<&String> = names.iter().filter(|name| name.ends_with(".run")).collect();
    let [run] = runs[..] else { panic!("one run: {names:?}") };
    let file = left.open(run, Access::Read, Caching::Buffered).unwrap();
    // One page before the leaves for the header, and one each after them for directory, filter and
    // footer.
    let pages = file.size().unwrap() / PAGE;
    for page in 1..pages - 3 {
        assert!(left.flip_bit(run, FileOffset::new(page * PAGE + 2), 1));
    }
    Arc::new(left)
}

fn replay(twin: &Twin, storage: Arc<FaultyStorage>) -> Result<Database, Error> {
    let mut database = Database::open(storage, twin.options)?;
    assert_eq!(database.tip().unwrap().0.to_u32() as usize, BASE, "nothing but the import");
    for (height, (bytes, _)) in (0..).zip(&twin.chain).skip(BASE + 1) {
        let block = Block::parse(bytes, Network::Regtest.format()).unwrap();
        database.append(&BlockAt::new(Height::new(height), &block))?;
    }
    Ok(database)
}

#[test]
fn what_survived_is_not_looked_up() {
    let twin = twin();
    // No leaf can be read, and the blocks are connected nevertheless.
    let database = replay(&twin, without_leaves(&twin, Crash::KeepAll)).unwrap();
    assert_eq!(database.tip(), twin.database.as_ref().unwrap().tip());
    // Without the records the coins are looked up in the run.
    let error = replay(&twin, without_leaves(&twin, Crash::LoseAll)).unwrap_err();
    assert!(error.to_string().contains(".run"), "{error}");
}

/// Whatever survived, the replay leads to the same coins, and so does rewinding.
#[test]
fn every_crash_replays_to_the_same_coins() {
    let twin = twin();
    for operation in 0..=twin.storage.operations() {
        for crash in [Crash::KeepAll, Crash::LoseAll, Crash::Seed(operation as u64)] {
            let left = Arc::new(twin.storage.crash(operation, crash));
            let database = Database::open(left.clone(), twin.options).unwrap();
            let imported = database.tip().is_some();
            drop(database);
            if imported {
                let mut database = replay(&twin, left).unwrap();
                assert_eq!(state(&database.snapshot()), oracle_state(&twin.oracle));
                let base = Height::new(u32::try_from(BASE).unwrap());
                database.rewind_to(base).unwrap();
                let expected = twin.history.values().nth(1).unwrap();
                assert_eq!(state(&database.snapshot()), **expected);
            }
        }
    }
}

/// The owner connects other blocks than before the crash: the survivors are useless and harmless.
#[test]
fn another_way_after_the_crash() {
    for seed in 0..12 {
        let mut twin = twin();
        let left = twin.storage.crash(twin.storage.operations(), Crash::KeepAll);
        let mut chance = Random::new(seed);
        // The same first blocks, then others.
        for _ in 0..chance.index(BLOCKS) {
            twin.rewind().unwrap();
        }
        (0..3).for_each(|_| twin.append_draft(&mut chance).unwrap());
        twin.history.retain(|sequence, _| sequence.to_u32() as usize <= BASE + 1);
        twin.reopen(Some(left));
        (0..4).for_each(|_| twin.rewind_with_archive().unwrap());
        twin.check();
    }
}

/// A block is prepared, another one spends the same coin, and the first is refused at its turn. A
/// crash keeps everything that was written by then. When the refused block is offered again after
/// the replay, it is refused again: the attempt has left nothing that the replay would use.
#[test]
fn a_double_spend_that_was_refused_before_a_crash_is_refused_after_it() {
    for compaction in [Compaction::Inline, Compaction::Threads] {
        let mut twin = Twin::new(1, Options { compaction, ..Options::new(Network::Regtest, KEY) });
        let mut chance = Random::new(1);
        (0..5).for_each(|_| twin.append_draft(&mut chance).unwrap());
        twin.database().flush().unwrap();
        let coin = TxDraft::coinbase(Height::new(900), 1);
        let first = block_of(&twin, vec![coin.clone()]);
        twin.append(&first).unwrap();
        let spent = Outpoint::new(coin.txid(), 0);
        let version = twin.database().snapshot();
        twin.append(&block_of(&twin, vec![TxDraft::spending(&[spent], 1)])).unwrap();
        // At this version the coin was still there.
        let thief = block_of(&twin, vec![TxDraft::spending(&[spent], 2)]);
        let height = Height::new(twin.height());
        let parsed = Block::parse(&thief, Network::Regtest.format()).unwrap();
        let at = BlockAt::new(height, &parsed);
        let early = Prepared::new(&version, Network::Regtest, &at, Repeats::Possible).unwrap();
        let error = twin.database().append_prepared(&at, early).unwrap_err();
        assert!(matches!(error, Error::Prevout(_)), "{error}");
        // The threads beside the writer have ended when the set is closed.
        twin.database = None;
        let left = twin.storage.crash(twin.storage.operations(), Crash::KeepAll);
        twin.reopen(Some(left));
        let error = twin.append(&thief).unwrap_err();
        assert!(matches!(error, Error::Prevout(_)), "{error}");
        twin.check();
    }
}

/// The same at random: blocks prepared at any of the last versions, which may spend what has been
/// spent since, and a crash after any operation.
#[test]
fn attempts_that_were_refused_leave_nothing_to_a_replay() {
    for seed in 0..60 {
        let mut twin = Twin::new(seed, small());
        let mut chance = Random::new(seed);
        let mut refused: Vec<(u32, Vec<u8>)> = Vec::new();
        for _ in 0..25 {
            let version = twin.database().snapshot();
            let early = twin.draft(&mut chance);
            twin.append_draft(&mut chance).unwrap();
            let moved = BlockDraft { previous: twin.tip_hash(), ..early };
            let bytes = moved.bytes();
            let height = twin.height();
            let parsed = Block::parse(&bytes, Network::Regtest.format()).unwrap();
            let at = BlockAt::new(Height::new(height), &parsed);
            let prepared = Prepared::new(&version, Network::Regtest, &at, Repeats::Possible);
            match twin.database().append_prepared(&at, prepared.unwrap()) {
                Ok(_) => twin.database().rewind_unpublished().unwrap(),
                Err(Error::Prevout(_)) => refused.push((height, bytes)),
                Err(error) => panic!("{error}"),
            }
            twin.note();
        }
        assert!(!refused.is_empty());
        let since = twin.storage.operations() - twin.opened;
        let operation = twin.opened + since - chance.index(since / 4 + 1);
        let left = twin.storage.crash(operation, Crash::KeepAll);
        let tall: Vec<Vec<u8>> = twin.chain.iter().map(|(bytes, _)| bytes.clone()).collect();
        twin.database = None;
        let mut database = Database::open(Arc::new(left), twin.options).unwrap();
        let next = database.tip().map_or(0, |(height, _)| height.to_u32() + 1);
        for (height, bytes) in (0..).zip(&tall).skip(next as usize) {
            let append = |database: &mut Database, bytes: &[u8]| {
                let block = Block::parse(bytes, Network::Regtest.format()).unwrap();
                database.append(&BlockAt::new(Height::new(height), &block))
            };
            for (_, bytes) in refused.iter().filter(|(at, _)| *at == height) {
                // The crash may have left the set on another branch than it was on then.
                let error = append(&mut database, bytes).unwrap_err();
                let is_refused = matches!(error, Error::Prevout(_) | Error::NotNext { .. });
                assert!(is_refused, "seed {seed}: {error}");
            }
            if let Err(error) = append(&mut database, bytes) {
                assert!(matches!(error, Error::NotNext { .. }), "{error}");
                break;
            }
        }
    }
}

/// A block of these transactions on the tip.
fn block_of(twin: &Twin, txs: Vec<TxDraft>) -> Vec<u8> {
    let coinbase = TxDraft::coinbase(Height::new(1_000 + twin.height()), 1);
    let txs = [coinbase].into_iter().chain(txs).collect();
    BlockDraft { previous: twin.tip_hash(), ..BlockDraft::new(txs) }.bytes()
}

//! The joiner against the oracle: out of order, failing in the middle, beside readers.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_consensus::contract::{SetUnderTest, check};
use varve_consensus::{BlockAt, PrevoutError, UnspentOutputsView};
use varve_io::faulty::{Fault, FaultRule, FaultyStorage, Operation, When};
use varve_testdata::Random;
use varve_types::{Block, BlockHash, Height, Network, Outpoint, Txid};
use varve_utxo::parts::{Access, JoinState, Prepared};
use varve_utxo::{
    Database, DatabaseView, Error, JoinError, Joiner, JoinerOptions, Options, Repeats, SubmitError,
};

use crate::twin::{State, Twin, oracle_state, small, state, threaded};

pub(crate) const TWO: JoinerOptions = JoinerOptions::new(NonZeroUsize::new(2).unwrap());

/// Every block goes through its own joiner.
struct Set(Database);

impl SetUnderTest for Set {
    fn connect(&mut self, block: &BlockAt<'_>) -> Result<(), PrevoutError> {
        let results = join(&mut self.0, std::slice::from_ref(block), &[0], &HashSet::new());
        match results.into_iter().next() {
            Some((_, Ok(()))) => Ok(()),
            Some((_, Err(JoinError::Set(Error::Prevout(reason))))) => Err(reason),
            other => panic!("{other:?}"),
        }
    }

    fn disconnect(&mut self, block: &BlockAt<'_>) {
        assert_eq!(self.0.tip(), Some((block.height(), block.hash())));
        self.0.rewind().unwrap();
    }

    fn view(&self, block: &BlockAt<'_>) -> impl UnspentOutputsView<Error: Debug> {
        self.0.view(block).unwrap()
    }
}

/// Hornet refused spends within a block (defect 4) and let two transactions of a block spend one
/// output (defect 5); the contract has both.
#[test]
fn defect_4_and_5_the_contract_holds_through_the_joiner() {
    for options in [Options::new(Network::Regtest, small().key), small()] {
        check(|| Set(Database::open(Arc::new(FaultyStorage::new(1)), options).unwrap()));
    }
}

type Results = Vec<(BlockHash, Result<(), JoinError<String>>)>;

/// Submits the blocks in this order, as far as the depth allows, and retires all. The check asks
/// the view and refuses the `bad`.
fn join(
    database: &mut Database,
    blocks: &[BlockAt<'_>],
    order: &[usize],
    bad: &HashSet<BlockHash>,
) -> Results {
    let check = |block: &BlockAt<'_>, view: &DatabaseView| {
        view.query_prevouts_unspent(block).map_err(|error| error.to_string())?;
        if bad.contains(&block.hash()) { Err("bad".to_owned()) } else { Ok(()) }
    };
    let joined = Joiner::scope(database, &TWO, check, |joiner| {
        let mut results = Vec::new();
        let mut left: Vec<usize> = order.to_vec();
        loop {
            let mut refused = Vec::new();
            for place in left {
                match joiner.submit(&blocks[place], Repeats::Possible) {
                    Ok(()) => {}
                    Err(SubmitError::Height { .. } | SubmitError::Full(_)) => refused.push(place),
                    // Blocks above the failed one are no longer accepted.
                    Err(SubmitError::Failed(_)) => {}
                }
            }
            left = refused;
            let Some(done) = joiner.retire() else { break };
            let failed = done.result.is_err();
            results.push((done.block.hash(), done.result));
            if failed {
                left.clear();
            }
            if results.len() % 5 == 2 {
                // Blocks are in progress, some of them appended and not checked.
                joiner.begin_flush().unwrap();
            }
        }
        results
    });
    joined.unwrap()
}

/// Blocks on the tip, that the oracle has connected and the database has not.
pub(crate) fn ahead(twin: &mut Twin, chance: &mut Random, count: usize) -> Vec<Vec<u8>> {
    let blocks = (0..count).map(|_| {
        let bytes = twin.draft(chance).bytes();
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        let at = BlockAt::new(Height::new(twin.height()), &block);
        let undo = twin.oracle.connect(&at).unwrap();
        twin.chain.push((bytes.clone(), undo));
        bytes
    });
    blocks.collect()
}

/// What the set refuses, and a block on top of it.
fn refused(twin: &mut Twin, chance: &mut Random) -> [Vec<u8>; 2] {
    let mut draft = twin.draft(chance);
    let inputs = draft.txs.iter().flat_map(|tx| &tx.inputs).map(|input| input.outpoint);
    let mut inputs: Vec<Outpoint> = inputs.filter(|input| *input != Outpoint::NULL).collect();
    if inputs.is_empty() || chance.index(2) == 0 {
        inputs = vec![Outpoint::new(Txid::ZERO, 1)];
    }
    draft.txs.push(TxDraft::spending(&inputs, 9));
    let bytes = draft.bytes();
    let previous = Block::parse(&bytes, Network::Regtest.format()).unwrap().hash();
    let coinbase = TxDraft::coinbase(Height::new(twin.height() + 1), 1);
    let above = BlockDraft { previous, ..BlockDraft::new(vec![coinbase]) }.bytes();
    [bytes, above]
}

pub(crate) fn parse(blocks: &[Vec<u8>]) -> Vec<Block<'_>> {
    blocks.iter().map(|bytes| Block::parse(bytes, Network::Regtest.format()).unwrap()).collect()
}

/// The places with a few random swaps of neighbours.
fn shuffled(count: usize, chance: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for _ in 0..2 * count {
        let (from, to) = (chance.index(count), chance.index(4));
        let to = (from + to).min(count - 1);
        order.swap(from, to);
    }
    order
}

/// A stretch of chain through the joiner, good or with a bad block in it.
fn stretch(twin: &mut Twin, chance: &mut Random, seen: &mut HashMap<BlockHash, State>) {
    let base = twin.height();
    let count = 1 + chance.index(14);
    let mut bytes = ahead(twin, chance, count);
    let mut bad = HashSet::new();
    let mut end = bytes.len();
    match chance.index(3) {
        0 => {
            end = chance.index(bytes.len());
            bad.insert(parse(&bytes)[end].hash());
            // Sometimes one above it is bad as well.
            bad.insert(parse(&bytes)[end + chance.index(bytes.len() - end)].hash());
        }
        1 => bytes.extend(refused(twin, chance)),
        _ => {}
    }
    let blocks = parse(&bytes);
    let at = |(height, block)| BlockAt::new(Height::new(height), block);
    let blocks: Vec<BlockAt<'_>> = (base..).zip(&blocks).map(at).collect();
    let order = shuffled(blocks.len(), chance);
    let results = join(twin.database(), &blocks, &order, &bad);
    // Those above a failed one may have gaps between them, where blocks were not submitted yet.
    let place = |hash: &BlockHash| blocks.iter().position(|block| block.hash() == *hash).unwrap();
    assert!(results.is_sorted_by_key(|(hash, _)| place(hash)), "they retire in order");
    for (place, result) in results.iter().map(|(hash, result)| (place(hash), result)) {
        match (place.cmp(&end), result) {
            (std::cmp::Ordering::Less, Ok(())) => {}
            (std::cmp::Ordering::Equal, Err(JoinError::Check(_) | JoinError::Set(_))) => {}
            (std::cmp::Ordering::Greater, Err(JoinError::Cancelled { below })) => {
                assert_eq!(*below, blocks[end].height());
            }
            other => panic!("block {place} of {}, {end} is bad: {other:?}", blocks.len()),
        }
    }
    assert!(results.iter().filter(|(_, result)| result.is_ok()).count() == end);
    while twin.chain.len() > base as usize + end {
        twin.disconnect_oracle();
    }
    twin.note();
    seen.insert(twin.tip_hash(), oracle_state(&twin.oracle));
    twin.check();
    assert_eq!(twin.database().latest().tip(), twin.database().snapshot().tip());
}

fn live(seed: u64, options: Options, access: Access) {
    let (mut chance, mut twin) = (Random::new(seed), Twin::new(seed, options));
    let mut seen = HashMap::new();
    for _ in 0..12 {
        stretch(&mut twin, &mut chance, &mut seen);
        let snapshot = twin.database().snapshot();
        snapshot.runs().as_slice().iter().for_each(|run| run.set_access(access));
        match chance.index(6) {
            0 => {
                for _ in 0..chance.index(5).min(twin.chain.len() - 1) {
                    twin.rewind().unwrap();
                }
            }
            1 => {
                twin.database().flush().unwrap();
                twin.reopen(None);
            }
            _ => {}
        }
    }
}

/// How many lives: a share of them, or as many as `VARVE_SEQUENCES` says.
fn lives(share: u64) -> u64 {
    std::env::var("VARVE_SEQUENCES").map_or(share, |count| count.parse().unwrap())
}

#[test]
fn lives_through_the_joiner() {
    for seed in 0..lives(25) {
        live(seed, small(), Access::Mapped);
    }
}

/// All runs are read through the workers' rings, or `pread` in their place.
#[test]
fn lives_with_direct_reads() {
    for seed in 0..lives(25) {
        live(seed, Options { memory: 0, ..small() }, Access::Direct);
    }
}

/// Panes become runs between the lookup of a block and its turn.
#[test]
fn lives_without_memory_for_a_window() {
    for seed in 0..lives(25) {
        let options = if seed % 2 == 0 { small() } else { threaded() };
        live(1000 + seed, Options { memory: 0, ..options }, Access::Mapped);
    }
}

#[test]
fn lives_with_the_default_parameters() {
    for seed in 0..lives(10) {
        live(seed, Options::new(small().network, small().key), Access::Mapped);
    }
}

/// A block prepared long before its turn, while blocks come, go and come again, and panes become
/// runs: what was found is brought up to date, or refused as the oracle would.
#[test]
fn a_block_prepared_early_is_right_when_its_turn_comes() {
    for seed in 0..lives(60) {
        let memory = if seed % 2 == 0 { 0 } else { 1 << 20 };
        let mut chance = Random::new(seed);
        let mut twin = Twin::new(seed, Options { memory, ..small() });
        (0..10).for_each(|_| twin.append_draft(&mut chance).unwrap());
        for _ in 0..20 {
            // Drawn from the current coins, prepared now, connected some steps later.
            let mut draft = twin.draft(&mut chance);
            let version = twin.database().snapshot();
            for _ in 0..chance.index(6) {
                if chance.index(3) == 0 && twin.chain.len() > 4 {
                    twin.rewind().unwrap();
                } else {
                    twin.append_draft(&mut chance).unwrap();
                }
            }
            draft.previous = twin.tip_hash();
            let bytes = draft.bytes();
            let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
            let at = BlockAt::new(Height::new(twin.height()), &block);
            let early = Prepared::new(&version, Network::Regtest, &at, Repeats::Possible).unwrap();
            let expected = twin.oracle.clone().connect(&at);
            match (twin.database().append_prepared(&at, early), expected) {
                (Ok(appended), Ok(_)) => {
                    assert!(appended.view.query_prevouts_unspent(&at).is_ok());
                    let seen = twin.database().snapshot().tip();
                    assert_ne!(seen, appended.version.tip(), "nobody has seen it");
                    twin.database().rewind_unpublished().unwrap();
                    assert_eq!(twin.database().snapshot().tip(), seen);
                    twin.note();
                    twin.check();
                    twin.append(&bytes).unwrap();
                }
                (Err(Error::Prevout(_)), Err(_)) => {}
                (got, expected) => panic!("{got:?}, and the oracle says {expected:?}"),
            }
            twin.check();
        }
    }
}

/// Each reader's version is one of a block that was good, with exactly its coins; blocks that were
/// appended on trust and rewound are never seen.
#[test]
fn readers_see_only_what_was_published() {
    let (mut chance, mut twin) = (Random::new(11), Twin::new(11, threaded()));
    let reader = twin.database().reader();
    let done = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (reader, done) = (reader.clone(), Arc::clone(&done));
            std::thread::spawn(move || {
                let mut seen = HashMap::new();
                while !done.load(Ordering::Relaxed) {
                    let version = reader.snapshot();
                    let tip = version.tip().map(|(_, hash)| hash).unwrap();
                    let coins = state(&version);
                    assert_eq!(version.coin_count(), coins.len() as u64);
                    let before = seen.insert(tip, coins.clone());
                    assert!(before.is_none_or(|before| before == coins), "one block, one state");
                }
                seen
            })
        })
        .collect();
    let mut states = HashMap::new();
    for _ in 0..30 {
        stretch(&mut twin, &mut chance, &mut states);
        // The states of all blocks below, by rewinding the oracle and coming back.
        let blocks: Vec<Vec<u8>> = (0..15)
            .filter_map(|_| {
                states.insert(twin.tip_hash(), oracle_state(&twin.oracle));
                (twin.chain.len() > 1).then(|| twin.disconnect_oracle())
            })
            .collect();
        for bytes in blocks.into_iter().rev() {
            let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
            let at = BlockAt::new(Height::new(twin.height()), &block);
            let undo = twin.oracle.connect(&at).unwrap();
            twin.chain.push((bytes.clone(), undo));
        }
    }
    done.store(true, Ordering::Relaxed);
    for thread in threads {
        let seen = thread.join().unwrap();
        // How many depends on the machine and its load.
        assert!(seen.len() > 2, "{} blocks were seen", seen.len());
        for (tip, coins) in seen {
            assert_eq!(Some(&coins), states.get(&tip), "{tip} was never the tip");
        }
    }
}

/// Hornet never looked at the results of its ring (defect 7). Here a read that fails fails the
/// block that needed it, and those above it are cancelled.
#[test]
fn defect_7_a_failed_read_fails_its_block() {
    let mut failures = 0;
    for nth in 0..40 {
        let mut twin = Twin::new(nth as u64, Options { memory: 0, ..small() });
        let mut chance = Random::new(nth as u64);
        (0..20).for_each(|_| twin.append_draft(&mut chance).unwrap());
        let snapshot = twin.database().snapshot();
        snapshot.runs().as_slice().iter().for_each(|run| run.set_access(Access::Direct));
        let base = twin.height();
        let bytes = ahead(&mut twin, &mut chance, 8);
        let blocks = parse(&bytes);
        let at = |(height, block)| BlockAt::new(Height::new(height), block);
        let blocks: Vec<BlockAt<'_>> = (base..).zip(&blocks).map(at).collect();
        let mut rule = FaultRule::new(Operation::Read, When::Nth(nth / 4), Fault::Io);
        rule.path_contains = ".run".to_owned();
        twin.storage.inject(rule);
        let order = shuffled(8, &mut chance);
        let results = join(twin.database(), &blocks, &order, &HashSet::new());
        twin.storage.clear_faults();
        let good = results.iter().take_while(|(_, result)| result.is_ok()).count();
        if let Some((_, Err(error))) = results.get(good) {
            failures += 1;
            assert!(matches!(error, JoinError::Set(Error::Run(_))), "{error}");
            assert!(error.to_string().contains(".run"), "{error}");
        }
        while twin.chain.len() > base as usize + good {
            twin.disconnect_oracle();
        }
        twin.note();
        twin.check();
        // The same blocks once more, and the disk has recovered.
        let rest: Vec<usize> = (0..8 - good).collect();
        let again = join(twin.database(), &blocks[good..], &rest, &HashSet::new());
        assert!(again.iter().all(|(_, result)| result.is_ok()), "{again:?}");
        assert_eq!(twin.database().tip().map(|(_, hash)| hash), Some(blocks[7].hash()));
    }
    assert!(failures > 5, "{failures}");
}

#[test]
fn heights_out_of_reach_come_back() {
    let mut twin = Twin::new(1, small());
    let mut chance = Random::new(1);
    let bytes = ahead(&mut twin, &mut chance, 10);
    let blocks = parse(&bytes);
    let blocks: Vec<BlockAt<'_>> = (1..)
        .zip(&blocks)
        .map(|(height, block)| BlockAt::new(Height::new(height), block))
        .collect();
    let check = |_: &BlockAt<'_>, _: &DatabaseView| Ok::<(), String>(());
    let scope = Joiner::scope(twin.database(), &TWO, check, |joiner| {
        assert!(joiner.retire().is_none(), "nothing was submitted");
        let far = joiner.submit(&blocks[8], Repeats::Possible).unwrap_err();
        assert!(far.to_string().contains("submit at 1 to 8"), "{far}");
        joiner.submit(&blocks[2], Repeats::Possible).unwrap();
        assert!(joiner.submit(&blocks[2], Repeats::Possible).is_err(), "taken");
        assert!(joiner.retire().is_none(), "the lowest is missing");
        while joiner.states() != [(Height::new(3), JoinState::Fetched)] {
            std::thread::yield_now();
        }
        joiner.submit(&blocks[0], Repeats::Possible).unwrap();
        assert!(joiner.retire().unwrap().result.is_ok());
        assert!(joiner.submit(&blocks[0], Repeats::Possible).is_err(), "it has left");
    });
    scope.unwrap();
    // The third was given up when the scope ended.
    assert_eq!(twin.database().tip().map(|(_, hash)| hash), Some(blocks[0].hash()));
}

/// A checkpoint may hold blocks that were appended on trust. The next opener rewinds them.
#[test]
fn what_was_not_published_can_be_rewound_after_a_crash() {
    let mut twin = Twin::new(1, small());
    let mut chance = Random::new(1);
    (0..9).for_each(|_| twin.append_draft(&mut chance).unwrap());
    let (published, expected) = (twin.database().tip(), oracle_state(&twin.oracle));
    let bytes = ahead(&mut twin, &mut chance, 1);
    let block = Block::parse(&bytes[0], Network::Regtest.format()).unwrap();
    let at = BlockAt::new(Height::new(twin.height() - 1), &block);
    let version = twin.database().snapshot();
    let prepared = Prepared::new(&version, Network::Regtest, &at, Repeats::Impossible).unwrap();
    let appended = twin.database().append_prepared(&at, prepared).unwrap();
    assert!(matches!(appended.view.find_repeated_output(&at), Err(Error::RepeatsUnknown { .. })));
    twin.database().flush().unwrap();
    assert_eq!(state(&twin.database().snapshot()), expected);
    twin.database = None;
    let mut database = Database::open(Arc::new(twin.storage.reopen()), twin.options).unwrap();
    assert_eq!(database.tip(), Some((at.height(), at.hash())));
    database.rewind().unwrap();
    assert_eq!((database.tip(), state(&database.snapshot())), (published, expected));
}

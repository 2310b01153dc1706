//! A disk that hangs: what continues, and what waits.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use varve_consensus::BlockAt;
use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_io::faulty::{Gate, Operation};
use varve_testdata::Random;
use varve_types::{Block, Height, Network, Outpoint};
use varve_utxo::parts::{Access, JoinState};
use varve_utxo::{
    AsBlock, DatabaseView, JoinError, Joiner, Options, Parameters, Repeats, UndoConfig,
};

use crate::joiner::{TWO, ahead, parse};
use crate::twin::{Twin, oracle_state, small, state, threaded};

/// How long a test waits for an expected event; generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A storage that hangs delays neither blocks nor readers until too much is waiting for it: undo
/// records, sealing of files, directory syncs, runs being written, and checkpoints.
#[test]
fn blocks_are_joined_while_the_disk_does_not_answer() {
    let calls = [Operation::Write, Operation::Sync, Operation::SyncDir, Operation::Remove];
    for (seed, call) in (0..).zip(calls.into_iter().chain([Operation::Rename])) {
        let undo = UndoConfig { segment_size: 1 << 12, cache: 0, ..UndoConfig::default() };
        // Enough runs that no block waits for a merge, however slow the machine is.
        let parameters = Parameters { max_probed: 64, ..small().parameters };
        let mut twin = Twin::new(seed, Options { undo, parameters, ..threaded() });
        let mut chance = Random::new(seed);
        (0..20).for_each(|_| twin.append_draft(&mut chance).unwrap());
        // Finish what is in progress, so that the next call is the one held up.
        twin.database().flush().unwrap();
        let base = twin.height();
        let bytes = ahead(&mut twin, &mut chance, 6);
        let blocks = parse(&bytes);
        let at = |(height, block)| BlockAt::new(Height::new(height), block);
        let blocks: Vec<BlockAt<'_>> = (base..).zip(&blocks).map(at).collect();
        let gate = twin.storage.hold(call, "");
        let waits = twin.database().waits();
        let reader = twin.database().reader();
        let check = |_: &BlockAt<'_>, _: &DatabaseView| Ok::<(), String>(());
        let scope = Joiner::scope(twin.database(), &TWO, check, |joiner| {
            joiner.begin_flush().unwrap();
            for block in &blocks {
                joiner.submit(block, Repeats::Possible).unwrap();
            }
            for block in &blocks {
                assert!(joiner.retire().unwrap().result.is_ok(), "{call:?}");
                assert!(reader.snapshot().tip().unwrap().0 >= block.height());
            }
            assert!(gate.wait_for_caller(PATIENCE), "{call:?} was not called");
        });
        scope.unwrap();
        assert_eq!(twin.database().waits(), waits, "{call:?}: nobody has waited");
        assert_eq!(state(&twin.database().snapshot()), oracle_state(&twin.oracle));
        drop(gate);
        twin.note();
        twin.database().flush().unwrap();
        twin.check();
        twin.reopen(None);
    }
}

/// Whether the caller of a joiner gets answers while the gate is closed. Opens it afterwards.
fn answers_while_held<T, R, E>(joiner: &Joiner<'_, '_, T, R, E>, gate: Gate) -> bool
where
    T: AsBlock + Send + Sync,
    R: Send,
    E: Send,
{
    let (done, wait) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..10 {
                joiner.begin_flush().unwrap();
                // Locks the set, as every call of the owner does.
                assert!(joiner.memory().total() > 0);
                std::thread::sleep(Duration::from_millis(5));
            }
            done.send(()).unwrap();
        });
        let answered = wait.recv_timeout(PATIENCE).is_ok();
        drop(gate);
        answered
    })
}

/// Waits until the lowest block has reached this state.
fn wait_for<T, R, E>(joiner: &Joiner<'_, '_, T, R, E>, state: JoinState)
where
    T: AsBlock + Send + Sync,
    R: Send,
    E: Send,
{
    let start = Instant::now();
    while joiner.states().first().is_none_or(|(_, first)| *first != state) {
        assert!(start.elapsed() < PATIENCE, "{:?}", joiner.states());
        std::thread::yield_now();
    }
}

/// A block that must wait for a flush, because the window is full, does not hold the set meanwhile.
#[test]
fn a_block_that_waits_for_a_flush_does_not_hold_the_set() {
    let mut twin = Twin::new(7, Options { memory: 0, ..threaded() });
    let mut chance = Random::new(7);
    (0..20).for_each(|_| twin.append_draft(&mut chance).unwrap());
    twin.database().flush().unwrap();
    let base = twin.height();
    let bytes = ahead(&mut twin, &mut chance, 8);
    let blocks = parse(&bytes);
    let at = |(height, block)| BlockAt::new(Height::new(height), block);
    let blocks: Vec<BlockAt<'_>> = (base..).zip(&blocks).map(at).collect();
    let gate = twin.storage.hold(Operation::Write, ".run");
    let waits = twin.database().waits();
    let check = |_: &BlockAt<'_>, _: &DatabaseView| Ok::<(), String>(());
    let scope = Joiner::scope(twin.database(), &TWO, check, |joiner| {
        blocks.iter().for_each(|block| joiner.submit(block, Repeats::Possible).unwrap());
        assert!(gate.wait_for_caller(PATIENCE));
        wait_for(joiner, JoinState::Fetched);
        assert!(answers_while_held(joiner, gate), "the set was held");
        for _ in &blocks {
            assert!(joiner.retire().unwrap().result.is_ok());
        }
    });
    scope.unwrap();
    assert!(twin.database().waits().for_memory > waits.for_memory, "a block has waited");
    assert_eq!(state(&twin.database().snapshot()), oracle_state(&twin.oracle));
}

/// A failed block is undone while the disk does not accept the undo records of others.
#[test]
fn a_failed_block_is_taken_back_while_undo_records_are_being_written() {
    let mut twin = Twin::new(8, threaded());
    let mut chance = Random::new(8);
    (0..20).for_each(|_| twin.append_draft(&mut chance).unwrap());
    twin.database().flush().unwrap();
    let base = twin.height();
    let bytes = ahead(&mut twin, &mut chance, 4);
    let blocks = parse(&bytes);
    let at = |(height, block)| BlockAt::new(Height::new(height), block);
    let blocks: Vec<BlockAt<'_>> = (base..).zip(&blocks).map(at).collect();
    let gate = Mutex::new(Some(twin.storage.hold(Operation::Write, "undo")));
    let check = |block: &BlockAt<'_>, _: &DatabaseView| {
        if block.height() < Height::new(base + 2) {
            return Ok(());
        }
        let held = gate.lock().unwrap().as_ref().is_some_and(|gate| gate.wait_for_caller(PATIENCE));
        Err(if held { "bad" } else { "no undo record is being written" })
    };
    let scope = Joiner::scope(twin.database(), &TWO, check, |joiner| {
        blocks.iter().for_each(|block| joiner.submit(block, Repeats::Possible).unwrap());
        let (done, wait) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..4 {
                    done.send(joiner.retire().unwrap().result).unwrap();
                }
            });
            let results: Vec<_> = (0..4).map_while(|_| wait.recv_timeout(PATIENCE).ok()).collect();
            drop(gate.lock().unwrap().take());
            results
        })
    });
    let results = scope.unwrap();
    let [Ok(()), Ok(()), Err(JoinError::Check("bad")), Err(JoinError::Cancelled { .. })] =
        &results[..]
    else {
        panic!("{results:?}");
    };
    assert_eq!(twin.database().tip().unwrap().0, Height::new(base + 1));
}

/// A block that was prepared when its coin was in the window, and whose coin is in a run at its
/// turn, reads it without holding the set.
#[test]
fn a_slow_read_does_not_hold_the_set() {
    // Every pane is flushed before the next step, and its run is not merged.
    let parameters = Parameters { flush_interval: 1, max_probed: 64, ..small().parameters };
    let mut twin = Twin::new(1, Options { memory: 0, parameters, ..threaded() });
    let mut chance = Random::new(1);
    (0..5).for_each(|_| twin.append_draft(&mut chance).unwrap());
    let tip = &twin.chain.last().unwrap().0;
    let tip = Block::parse(tip, Network::Regtest.format()).unwrap();
    let young = Outpoint::new(tip.txids()[0], 0);
    let base = twin.height();
    let (mut previous, mut bytes) = (tip.hash(), Vec::new());
    for height in base..base + 4 {
        let mut txs = vec![TxDraft::coinbase(Height::new(5_000 + height), 1)];
        if height == base + 3 {
            txs.push(TxDraft::spending(&[young], 1));
        }
        let block = BlockDraft { previous, ..BlockDraft::new(txs) }.bytes();
        previous = Block::parse(&block, Network::Regtest.format()).unwrap().hash();
        bytes.push(block);
    }
    let blocks = parse(&bytes);
    let at = |(height, block)| BlockAt::new(Height::new(height), block);
    let blocks: Vec<BlockAt<'_>> = (base..).zip(&blocks).map(at).collect();
    let reader = twin.database().reader();
    let storage = Arc::clone(&twin.storage);
    let check = |_: &BlockAt<'_>, _: &DatabaseView| Ok::<(), String>(());
    let scope = Joiner::scope(twin.database(), &TWO, check, |joiner| {
        joiner.submit(&blocks[3], Repeats::Impossible).unwrap();
        wait_for(joiner, JoinState::Fetched);
        for block in &blocks[..2] {
            joiner.submit(block, Repeats::Impossible).unwrap();
            assert!(joiner.retire().unwrap().result.is_ok());
        }
        for run in reader.snapshot().runs().as_slice() {
            run.set_access(Access::Direct);
        }
        let gate = storage.hold(Operation::Read, ".run");
        joiner.submit(&blocks[2], Repeats::Impossible).unwrap();
        assert!(joiner.retire().unwrap().result.is_ok());
        assert!(gate.wait_for_caller(PATIENCE), "the last block's turn has come");
        assert!(answers_while_held(joiner, gate), "the set was held");
        assert!(joiner.retire().unwrap().result.is_ok());
    });
    scope.unwrap();
}

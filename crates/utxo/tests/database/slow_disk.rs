//! A disk that does not answer: who goes on, and who waits.

use std::time::Duration;

use varve_consensus::BlockAt;
use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_io::faulty::Operation;
use varve_types::{Block, Height, Network, Outpoint};
use varve_utxo::{Access, DatabaseView, Joiner, Options, Repeats, UndoConfig};

use crate::joiner::{TWO, ahead, parse};
use crate::twin::{Chance, Twin, oracle_state, small, state, threaded};

/// A storage that does not answer holds up neither blocks nor readers, until more waits for it than
/// is allowed: records of undo, files that are sealed, directories that are synced, runs that are
/// written, and checkpoints.
#[test]
fn blocks_are_joined_while_the_disk_does_not_answer() {
    let calls = [Operation::Write, Operation::Sync, Operation::SyncDir, Operation::Remove];
    for (seed, call) in (0..).zip(calls.into_iter().chain([Operation::Rename])) {
        let undo = UndoConfig { segment_size: 1 << 12, cache: 0, ..UndoConfig::default() };
        let mut twin = Twin::new(seed, Options { undo, ..threaded() });
        let mut chance = Chance(seed);
        (0..20).for_each(|_| twin.append_draft(&mut chance).unwrap());
        // What is under way by then is let through, so that the next call is held up.
        twin.database().flush().unwrap();
        let base = twin.height();
        // Fewer than would make more runs wait than a lookup may probe.
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
            assert!(gate.wait_for_caller(Duration::from_secs(60)), "{call:?} was not called");
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

/// A block whose coins must be read again at its turn waits for the disk without holding the set.
#[test]
fn a_slow_read_does_not_hold_the_set() {
    let mut twin = Twin::new(1, Options { memory: 0, ..small() });
    let mut chance = Chance(1);
    (0..20).for_each(|_| twin.append_draft(&mut chance).unwrap());
    let runs = twin.database().snapshot();
    runs.runs().as_slice().iter().for_each(|run| run.set_access(Access::Direct));
    // Spends coins of the runs only.
    let spent: Vec<Outpoint> = twin.oracle.iter().map(|(outpoint, _)| *outpoint).take(4).collect();
    let txs = vec![TxDraft::coinbase(Height::new(5_000), 1), TxDraft::spending(&spent, 1)];
    let bytes = BlockDraft { previous: twin.tip_hash(), ..BlockDraft::new(txs) }.bytes();
    let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
    let at = BlockAt::new(Height::new(twin.height()), &block);
    let gate = twin.storage.hold(Operation::Read, ".run");
    let check = |_: &BlockAt<'_>, _: &DatabaseView| Ok::<(), String>(());
    let scope = Joiner::scope(twin.database(), &TWO, check, |joiner| {
        joiner.submit(&at, Repeats::Impossible).unwrap();
        assert!(gate.wait_for_caller(Duration::from_secs(60)));
        // Would not come back if whoever reads had the set.
        assert!(joiner.memory().budget == 0 && joiner.try_retire().is_none());
        drop(gate);
        assert!(joiner.retire().unwrap().result.is_ok());
    });
    scope.unwrap();
}

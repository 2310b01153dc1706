//! Random lives: append, rewind, rival branches, refused blocks, snapshots held, flush, reopen, a
//! power cut at any operation.

use std::sync::Arc;

use varve_consensus::contract::draft::TxDraft;
use varve_io::faulty::Crash;
use varve_testdata::Random;
use varve_types::{Outpoint, Txid};
use varve_utxo::{Error, Options, Version};

use crate::twin::{State, Twin, oracle_state, small, state, threaded};

fn live(seed: u64, mut twin: Twin, steps: usize) {
    let mut chance = Random::new(seed);
    let mut held: Vec<(Arc<Version>, State)> = Vec::new();
    for _ in 0..steps {
        match chance.index(20) {
            0..11 => twin.append_draft(&mut chance).unwrap(),
            11..14 => {
                for _ in 0..1 + chance.index(7) {
                    if twin.chain.len() > 1 {
                        twin.rewind_with_archive().unwrap();
                    }
                }
            }
            14 => refused(&mut twin, &mut chance),
            15 => {
                let checkpoint = twin.database().flush().unwrap();
                assert_eq!(checkpoint.tip, twin.database().tip());
            }
            16 if chance.index(2) == 0 => twin.reopen(None),
            16 => {
                let since = twin.storage.operations() - twin.opened;
                let operation = twin.opened + chance.index(since + 1);
                let left = twin.storage.crash(operation, Crash::Seed(chance.index(9) as u64));
                twin.reopen(Some(left));
            }
            17 => held.push((twin.database().snapshot(), oracle_state(&twin.oracle))),
            18 if !held.is_empty() => {
                let (version, expected) = held.swap_remove(chance.index(held.len()));
                assert_eq!(state(&version), expected, "a reader is not disturbed");
            }
            _ => twin.check(),
        }
    }
    for (version, expected) in held {
        assert_eq!(state(&version), expected, "a reader is not disturbed");
    }
    twin.check();
    twin.reopen(None);
}

/// A block with a fault changes nothing; `Twin::append` compares the reason with the oracle's.
fn refused(twin: &mut Twin, chance: &mut Random) {
    let mut draft = twin.draft(chance);
    match chance.index(2) {
        0 => draft.txs.push(TxDraft::spending(&[Outpoint::new(Txid::ZERO, 1)], 1)),
        _ => {
            let inputs = draft.txs.iter().flat_map(|tx| &tx.inputs).map(|input| input.outpoint);
            let inputs: Vec<Outpoint> = inputs.filter(|input| *input != Outpoint::NULL).collect();
            if inputs.is_empty() {
                return;
            }
            draft.txs.push(TxDraft::spending(&inputs, 9));
        }
    }
    let before = twin.database().snapshot();
    let error = twin.append(&draft.bytes()).unwrap_err();
    assert!(matches!(error, Error::Prevout(_)), "{error}");
    assert_eq!(twin.database().snapshot().sequence(), before.sequence());
}

/// How many lives: a share of them, or as many as `VARVE_SEQUENCES` says.
fn lives(share: u64) -> u64 {
    std::env::var("VARVE_SEQUENCES").map_or(share, |count| count.parse().unwrap())
}

#[test]
fn lives_with_a_window_of_four() {
    for seed in 0..lives(150) {
        live(seed, Twin::new(seed, small()), 80);
    }
}

#[test]
fn lives_with_the_default_parameters() {
    for seed in 0..lives(30) {
        live(seed, Twin::new(seed, Options::new(small().network, small().key)), 80);
    }
}

/// Panes leave the window while their coins are still being spent.
#[test]
fn lives_without_memory_for_a_window() {
    for seed in 0..lives(50) {
        live(seed, Twin::new(seed, Options { memory: 0, ..small() }), 80);
    }
}

#[test]
fn lives_with_threads() {
    for seed in 0..lives(80) {
        live(seed, Twin::new(seed, threaded()), 80);
    }
}

/// Every pane is flushed as soon as it can be, so runs are late, and the writer waits.
#[test]
fn lives_with_threads_without_memory_for_a_window() {
    for seed in 0..lives(40) {
        live(seed, Twin::new(seed, Options { memory: 0, ..threaded() }), 80);
    }
}

/// Sets without undo records below the block at which they begin: rewinding further takes a source
/// of spent coins, and rival branches grow from there.
#[test]
fn lives_that_rewind_below_the_undo_log() {
    for seed in 0..lives(100) {
        live(seed, Twin::imported(seed, small(), 12), 80);
    }
    for seed in 0..lives(20) {
        let options = Options { memory: 0, ..threaded() };
        live(seed, Twin::imported(seed, options, 12), 60);
    }
}

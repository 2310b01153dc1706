//! Defects of Hornet's original, each as a test of the whole set that it does not occur here.
//! Statements about the original are from its source or from running it.
//! `docs/adr/0005-unspent-set.md` lists all twelve with their tests: those of single parts are
//! beside the parts.

use varve_consensus::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use varve_consensus::{Ancestor, BlockAt, CheckError, Params, SpendError, Spending, check_spends};
use varve_io::faulty::{Crash, Fault, FaultRule, Operation, When};
use varve_io::{Access, Caching, FileOffset, Storage as _};
use varve_testdata::Random;
use varve_types::{Block, BlockHash, Height, Network, Outpoint};
use varve_utxo::{Database, Error, Options, UndoConfig};

use crate::twin::{Twin, oracle_state, small, state};

/// A block of these transactions on the tip.
fn block(twin: &Twin, txs: Vec<TxDraft>) -> Vec<u8> {
    BlockDraft { previous: twin.tip_hash(), ..BlockDraft::new(txs) }.bytes()
}

/// Outputs that anyone can spend.
fn outputs(count: u32) -> Vec<OutputDraft> {
    (0..count).map(|vout| OutputDraft { value: u64::from(vout), script: vec![0x51] }).collect()
}

/// A reorganisation dropped blocks but not the offset at which the next output goes, so a fetch
/// returned another block's output. Here restored, recreated and new coins each have their own
/// content, in the window and in runs.
#[test]
fn defect_01_a_reorganisation_does_not_move_coins() {
    for depth in 1..16_u64 {
        let mut twin = Twin::new(depth, small());
        let mut chance = Random::new(depth);
        (0..24).for_each(|_| twin.append_draft(&mut chance).unwrap());
        (0..depth).for_each(|_| twin.rewind().unwrap());
        twin.check();
        (0..depth + 6).for_each(|_| twin.append_draft(&mut chance).unwrap());
        twin.check();
    }
}

/// After a rewind of 4 blocks and a refill to height 600, age 0 held 540 runs: the height that
/// merges waited for never came again. Here panes leave by steps, and runs are merged by size.
#[test]
fn defect_02_a_reorganisation_does_not_stall_compaction() {
    let mut twin = Twin::new(1, small());
    for salt in 0.. {
        let coinbase = TxDraft::coinbase(Height::new(twin.height()), salt);
        let made = block(&twin, vec![coinbase]);
        twin.append(&made).unwrap();
        if salt == 300 {
            (0..4).for_each(|_| twin.rewind().unwrap());
        }
        let runs = twin.database().snapshot().runs().as_slice().len();
        assert!(runs <= 4, "{runs} runs at {}", twin.height());
        if twin.height() == 600 {
            break;
        }
    }
    twin.check();
}

/// Erasing left the size wrong: 10,000 expected, 18,192 found. Here counting, walking and looking
/// up agree, whether the coins are in the window or in a run.
#[test]
fn defect_03_erasing_keeps_the_size() {
    for options in [small(), Options { memory: 0, ..small() }] {
        let mut twin = Twin::new(1, options);
        let mut wide = TxDraft::coinbase(Height::new(1), 0);
        wide.outputs = outputs(2_000);
        let made = block(&twin, vec![wide.clone()]);
        twin.append(&made).unwrap();
        let spent: Vec<_> = (500..1_500).map(|vout| Outpoint::new(wide.txid(), vout)).collect();
        let mut spending = TxDraft::spending(&spent, 1);
        spending.outputs.clear();
        let coinbase = TxDraft::coinbase(Height::new(2), 0);
        let spends = block(&twin, vec![coinbase, spending]);
        twin.append(&spends).unwrap();
        assert_eq!(twin.database().snapshot().coin_count(), 1_001);
        assert_eq!(state(&twin.database().snapshot()).len(), 1_001);
        let mut chance = Random::new(1);
        (0..8).for_each(|_| twin.append_draft(&mut chance).unwrap());
        let expected = oracle_state(&twin.oracle).len() as u64;
        assert_eq!(twin.database().snapshot().coin_count(), expected);
        (0..9).for_each(|_| twin.rewind().unwrap());
        assert_eq!(twin.database().snapshot().coin_count(), 2_000);
        twin.check();
    }
}

/// Rolling back a failed write cut a file of one segment at an offset counted over all segments.
/// Here the two are different types, and a write that fails in a later segment leaves every file as
/// it was, up to what it may have added at the end.
#[test]
fn defect_09_a_failed_write_cuts_nothing() {
    let undo = UndoConfig { blocks: 4_096, segment_size: 1 << 12, cache: 0 };
    let mut failures = 0;
    for nth in 0..12 {
        let mut twin = Twin::new(9, Options { undo, ..small() });
        let mut chance = Random::new(9);
        (0..40).for_each(|_| twin.append_draft(&mut chance).unwrap());
        let segments = |twin: &Twin| -> Vec<(String, Vec<u8>)> {
            let names = twin.storage.list().unwrap();
            let undo = names.into_iter().filter(|name| name.starts_with("undo"));
            undo.map(|name| (name.clone(), content(twin, &name))).collect()
        };
        let before = segments(&twin);
        assert!(before.len() > 3, "{} segments", before.len());
        let rule = FaultRule::new(Operation::Write, When::Nth(nth), Fault::Io);
        twin.storage.inject(FaultRule { path_contains: "undo".to_owned(), ..rule });
        let failed = (0..20).find_map(|_| twin.append_draft(&mut chance).err());
        twin.storage.clear_faults();
        failures += usize::from(failed.is_some());
        let after = segments(&twin);
        for (name, bytes) in &before {
            let (_, now) = after.iter().find(|(other, _)| other == name).unwrap();
            assert!(now.starts_with(bytes), "{name} was cut or changed");
        }
        twin.check();
        twin.reopen(None);
        while twin.height() > 1 {
            twin.rewind().unwrap();
        }
        twin.check();
    }
    assert!(failures > 6, "{failures}");
}

fn content(twin: &Twin, name: &str) -> Vec<u8> {
    let file = twin.storage.open(name, Access::Read, Caching::Buffered).unwrap();
    let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
    file.read_at(FileOffset::new(0), &mut bytes).unwrap();
    bytes
}

/// `OP_RETURN` outputs, a sixth of all that are made now, were kept for ever. Here they never enter
/// the set, and no file has a byte of them.
#[test]
fn defect_10_unspendable_outputs_are_not_kept() {
    let mut twin = Twin::new(1, Options { memory: 0, ..small() });
    let message = b"nobody will ever spend this";
    let mut coinbase = TxDraft::coinbase(Height::new(1), 5);
    let script = [&[0x6a, 27][..], message].concat();
    coinbase.outputs.push(OutputDraft::with_script(script));
    let made = block(&twin, vec![coinbase.clone()]);
    twin.append(&made).unwrap();
    assert_eq!(twin.database().snapshot().coin_count(), 1);
    let keys = [0, 1].map(|vout| Outpoint::new(coinbase.txid(), vout));
    let found = twin.database().query(&keys).unwrap();
    assert_eq!((found.get(0).is_some(), found.get(1)), (true, None));
    let mut chance = Random::new(1);
    (0..9).for_each(|_| twin.append_draft(&mut chance).unwrap());
    twin.database().flush().unwrap();
    for name in twin.storage.list().unwrap().iter().filter(|name| *name != "lock") {
        let bytes = content(&twin, name);
        assert!(!bytes.windows(message.len()).any(|part| part == message), "{name}");
    }
    (0..10).for_each(|_| twin.rewind().unwrap());
    assert_eq!(twin.database().snapshot().coin_count(), 0);
}

/// Checks a block on the tip by the rules of spending, over the view of the database.
fn rules(twin: &mut Twin, txs: Vec<TxDraft>) -> Result<Spending, SpendError> {
    let bytes = block(twin, txs);
    let height = Height::new(twin.height());
    let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
    let block = BlockAt::new(height, &block);
    let header = Ancestor { hash: BlockHash::ZERO, time: 0, bits: 0 };
    let ancestors = vec![header; twin.height() as usize];
    let view = twin.database().view(&block).unwrap();
    let params = Params::new(Network::Regtest);
    check_spends(&params, &block, &ancestors, &view).map_err(|error| match error {
        CheckError::Invalid(reason) => reason,
        CheckError::View(error) => panic!("{error}"),
    })
}

/// Coinbase maturity was not implemented, and there was no rule on amounts or fees. Here the view
/// returns height, coinbase flag and amount of every coin, in the window and in runs, and the rules
/// use them.
#[test]
fn defect_11_maturity_and_amounts_are_checked() {
    let mut twin = Twin::new(1, small());
    let reward = |height| TxDraft::coinbase(Height::new(height), 50_000);
    for height in 1..=100 {
        let made = block(&twin, vec![reward(height)]);
        twin.append(&made).unwrap();
    }
    assert!(!twin.database().snapshot().runs().as_slice().is_empty());
    let spending = |height, value| {
        let mut tx = TxDraft::spending(&[Outpoint::new(reward(height).txid(), 0)], 1);
        tx.outputs[0].value = value;
        tx
    };
    let at_101 = |tx| vec![TxDraft::coinbase(Height::new(101), 0), tx];
    // The coinbase of block 1 is 100 blocks old at 101, that of block 2 is not.
    assert_eq!(rules(&mut twin, at_101(spending(1, 49_000))).unwrap().fees.to_sat(), 1_000);
    for young in [2, 60, 100] {
        let error = rules(&mut twin, at_101(spending(young, 49_000))).unwrap_err();
        let SpendError::ImmatureCoinbase { depth, maturity, .. } = error else { panic!("{error}") };
        assert_eq!((depth, maturity), (101 - young, 100));
    }
    let error = rules(&mut twin, at_101(spending(1, 50_001))).unwrap_err();
    assert!(matches!(error, SpendError::Overspent { .. }), "{error}");
    let greedy = vec![TxDraft::coinbase(Height::new(101), 50 * 100_000_000 + 1_001)];
    let error = rules(&mut twin, [greedy, vec![spending(1, 49_000)]].concat()).unwrap_err();
    assert!(matches!(error, SpendError::CoinbaseTooLarge { .. }), "{error}");
}

/// The index was not persisted: reopening began with an empty one. Here a reopened set is the set
/// of its last checkpoint, with its hash, after a clean end and after a cut.
#[test]
fn defect_12_a_reopened_set_is_the_same() {
    let mut twin = Twin::new(12, small());
    let mut chance = Random::new(12);
    (0..60).for_each(|_| twin.append_draft(&mut chance).unwrap());
    let checkpoint = twin.database().flush().unwrap();
    let coins = oracle_state(&twin.oracle);
    (0..3).for_each(|_| twin.append_draft(&mut chance).unwrap());
    twin.database = None;
    for crash in [Crash::KeepAll, Crash::LoseAll, Crash::Seed(5)] {
        let left = twin.storage.crash(twin.storage.operations(), crash);
        let database = Database::open(std::sync::Arc::new(left), twin.options).unwrap();
        assert!(database.checkpoint().sequence >= checkpoint.sequence);
        let at = database.snapshot().sequence();
        assert_eq!(state(&database.snapshot()), *twin.history[&at]);
        if at == checkpoint.sequence {
            assert_eq!(state(&database.snapshot()), coins);
        }
    }
    let error =
        Database::open(twin.storage.clone(), Options { network: Network::Signet, ..small() });
    assert!(matches!(error, Err(Error::Run(_))), "a set knows its network");
}

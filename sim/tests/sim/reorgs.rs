//! Branches: the losing one arrives first, the winning one moves, doubles and drops its
//! transactions.

use std::collections::{HashMap, HashSet};

use varve_sim::{Chain, Config, Model, Profile};
use varve_types::{Block, Outpoint, Txid};

const DEPTH: u32 = 5;

/// Long and full enough that coinbases from after the first reorgs are spent.
fn config() -> Config {
    Config {
        transactions: Some(100),
        reorg_depth: Some(DEPTH),
        ..Config::new(Profile::Mainnet, 250, 9)
    }
}

#[test]
fn the_model_follows_reorgs_of_every_depth() {
    let config = config();
    let mut chain = Chain::new(&config).unwrap();
    let mut model = Model::new(config.network(), DEPTH, 1, &[]);
    let mut stale = HashSet::new();
    for block in chain.by_ref() {
        if block.stale {
            stale.insert(block.hash);
        }
        model.add(block.bytes).unwrap();
    }
    assert_eq!(model.height(), config.blocks);
    let depths: HashSet<u32> = model.reorgs().iter().map(|reorg| reorg.depth).collect();
    assert_eq!(depths, (1..=DEPTH).collect());
    let lost: u32 = model.reorgs().iter().map(|reorg| reorg.depth).sum();
    assert_eq!(lost as usize, stale.len());
    for reorg in model.reorgs() {
        assert!(stale.contains(&reorg.old_tip));
        assert_eq!(reorg.height, reorg.from + 1);
    }
    // Every losing branch is a separate tip.
    assert_eq!(model.chain_tips().len(), model.reorgs().len() + 1);
    for height in 0..=model.height() {
        assert!(!stale.contains(&model.block_hash(height).unwrap()));
    }
    for transaction in chain.into_mempool() {
        model.add_unconfirmed(&transaction.bytes).unwrap();
    }
}

#[test]
fn a_model_that_never_saw_the_losing_branches_agrees() {
    let config = config();
    let mut with = Model::new(config.network(), DEPTH, 10, &[]);
    let mut without = Model::new(config.network(), 0, 10, &[]);
    for block in Chain::new(&config).unwrap() {
        if !block.stale {
            without.add(block.bytes.clone()).unwrap();
        }
        with.add(block.bytes).unwrap();
    }
    assert_eq!(with.set_stats(), without.set_stats());
    assert_eq!(with.set_hashes(), without.set_hashes());
    assert_eq!(with.transactions(), without.transactions());
    let histories = |model: &Model| -> Vec<(Vec<u8>, usize)> {
        let scripts = model.script_samples().into_iter();
        scripts.map(|sample| (sample.script, sample.history.len())).collect()
    };
    // The sample shrinks at other times, but what both sampled is the same.
    let other: HashMap<Vec<u8>, usize> = histories(&without).into_iter().collect();
    let both = histories(&with).into_iter().filter(|(script, _)| other.contains_key(script));
    assert!(both.map(|(script, length)| assert_eq!(other[&script], length)).count() > 10);
}

#[test]
fn transactions_are_moved_doubled_and_dropped() {
    let config = config();
    let mut stale: HashMap<Txid, (u32, Vec<Outpoint>)> = HashMap::new();
    let mut active: HashMap<Txid, u32> = HashMap::new();
    let mut spenders: HashMap<Outpoint, Txid> = HashMap::new();
    for generated in Chain::new(&config).unwrap() {
        let block = Block::parse(&generated.bytes, config.network().format()).unwrap();
        for transaction in block.txs().iter().skip(1) {
            let inputs: Vec<Outpoint> = transaction.inputs().map(|input| input.outpoint).collect();
            if generated.stale {
                stale.insert(transaction.txid(), (generated.height, inputs));
            } else {
                active.insert(transaction.txid(), generated.height);
                spenders.extend(inputs.into_iter().map(|input| (input, transaction.txid())));
            }
        }
    }
    let (mut same, mut moved, mut doubled, mut dropped) = (0, 0, 0, 0);
    for (txid, (height, inputs)) in &stale {
        match active.get(txid) {
            Some(now) if now == height => same += 1,
            Some(_) => moved += 1,
            None if inputs.iter().any(|input| spenders.contains_key(input)) => doubled += 1,
            None => dropped += 1,
        }
    }
    let counts = [same, moved, doubled, dropped];
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

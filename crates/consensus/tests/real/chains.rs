//! Whole chains under all rules.

use std::collections::HashMap;

use varve_consensus::{Params, Work};
use varve_types::{BlockHash, Height, Network};

use crate::load;
use crate::replay::Replay;

#[test]
fn mainnet_from_genesis() {
    let Some(blocks) = load::mainnet() else { return };
    assert_eq!(blocks.len(), 4313);
    let mut replay = Replay::new(Params::new(Network::Mainnet));
    replay.connect_all(&blocks);
    let work = replay.headers.iter().map(|header| Work::of_bits(header.bits));
    // 4,313 blocks at difficulty one.
    let expected = Work::of_bits(0x1d00_ffff);
    assert_eq!(
        work.fold(Work::ZERO, Work::plus),
        (1..4313).fold(expected, |sum, _| sum.plus(expected))
    );
}

#[test]
fn signet_with_its_solutions() {
    let Some(blocks) = load::signet() else { return };
    assert_eq!(blocks.len(), 121);
    Replay::new(Params::new(Network::Signet)).connect_all(&blocks);
}

#[test]
fn regtest_kernel_with_segwit_and_taproot() {
    let Some(blocks) = load::kernel() else { return };
    assert_eq!(blocks.len(), 207);
    Replay::new(Params::new(Network::Regtest)).connect_all(&blocks);
}

/// Every given block, on every branch, each after its parent. Returns the number of blocks and the
/// greatest height.
fn every_branch(params: Params, blocks: &[Vec<u8>]) -> (usize, Height) {
    let mut above: HashMap<BlockHash, Vec<&Vec<u8>>> = HashMap::new();
    for block in blocks {
        above.entry(load::header(block).previous()).or_default().push(block);
    }
    let mut replay = Replay::new(params);
    let (mut count, mut highest) = (0, Height::GENESIS);
    // Depth first: a block is disconnected when all above it has been seen.
    enum Step<'a> {
        Connect(&'a Vec<u8>),
        Disconnect,
    }
    let mut steps = vec![Step::Connect(above[&BlockHash::ZERO][0])];
    while let Some(step) = steps.pop() {
        let Step::Connect(block) = step else {
            replay.disconnect();
            continue;
        };
        let height = replay.next();
        if let Err(refusal) = replay.connect(block) {
            panic!("{} at {height} is refused: {refusal}", load::hash(block));
        }
        (count, highest) = (count + 1, highest.max(height));
        steps.push(Step::Disconnect);
        let children = above.get(&load::hash(block)).into_iter().flatten();
        steps.extend(children.map(|block| Step::Connect(block)));
    }
    assert!(replay.set.is_empty());
    (count, highest)
}

#[test]
fn regtest_core31_on_all_branches() {
    let Some(blocks) = load::core31() else { return };
    let (count, highest) = every_branch(Params::new(Network::Regtest), &blocks);
    assert_eq!(count, blocks.len(), "every block stands on another");
    assert_eq!(highest, Height::new(600));
    assert_eq!(count, 601 + 16, "and sixteen are on side branches");
}

#[test]
fn btcd_reorg_with_a_maturity_of_one() {
    let files = ["blk_0_to_4", "blk_3A", "blk_4A", "blk_5A"];
    let mut blocks = Vec::new();
    for file in files {
        let Some(bytes) = load::bytes(&format!("chains/btcd-reorg/{file}.dat.bz2")) else { return };
        blocks.extend(load::blk_file(&bytes));
    }
    let mut params = Params::new(Network::Mainnet);
    params.coinbase_maturity = 1;
    assert_eq!(every_branch(params, &blocks), (8, Height::new(5)));
    // With the real maturity the chain is refused where it first spends.
    let mut replay = Replay::new(Params::new(Network::Mainnet));
    let refusal = blocks.iter().find_map(|block| replay.connect(block).err()).unwrap();
    assert_eq!(refusal.reason(), "bad-txns-premature-spend-of-coinbase");
}

#[test]
fn conduit_chains_of_bsv() {
    let expected =
        [("115_3677f4", 115), ("116_7c9cd2", 116), ("117_28c2d3", 117), ("118_0ebc17", 118)];
    for (name, height) in expected {
        let folder = format!("chains/conduit-regtest/contrib/blockchains/blockchain_{name}");
        let Some(blocks) = load::folder(&folder) else { return };
        let (count, highest) = every_branch(Params::new(Network::BsvRegtest), &blocks);
        assert_eq!((count, highest), (blocks.len(), Height::new(height)), "{name}");
    }
}

/// Core's index says for some blocks what was spent and made; the difference is the fees.
#[test]
fn fees_are_those_of_core() {
    let Some(blocks) = load::core31() else { return };
    let Some(expected) = load::json("regtest-core31/expected.json") else { return };
    let mut replay = Replay::new(Params::new(Network::Regtest));
    replay.scripts = false;
    let mut compared = 0;
    for hash in expected["blockhash"].as_array().unwrap() {
        let block = blocks.iter().find(|block| load::hash(block).to_string() == *hash).unwrap();
        let height = replay.next();
        let spending = replay.connect(block).unwrap();
        let info = &expected["muhash"][height.to_string()]["block_info"];
        if info.is_object() && height > Height::GENESIS {
            let spent = load::satoshi(&info["prevout_spent"]);
            let made = load::satoshi(&info["new_outputs_ex_coinbase"]);
            let lost = load::satoshi(&info["unspendables"]["scripts"]);
            assert_eq!(spending.fees.to_sat(), spent - made - lost, "at {height}");
            compared += usize::from(spent > 0);
        }
    }
    assert!(compared > 10, "{compared} blocks with spends were compared");
}

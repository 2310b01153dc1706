//! The window keeps its share of the memory, whatever blocks come.

use std::sync::Arc;

use varve_consensus::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use varve_consensus::{BlockAt, MemorySet};
use varve_io::faulty::FaultyStorage;
use varve_types::{Block, BlockHash, Height, Network, Outpoint};
use varve_utxo::{Database, DatabaseView, Joiner, MemoryUse, Options, Parameters, Repeats};

use crate::joiner::{TWO, parse};
use crate::twin::{oracle_state, small, state, threaded};

const MEMORY: usize = Options::MEMORY_MIN;

/// A block with `outputs` outputs, which spends those of the block before.
fn block(height: u32, previous: BlockHash, outputs: usize, spent: &[Outpoint]) -> BlockDraft {
    let mut coinbase = TxDraft::coinbase(Height::new(height), 1);
    coinbase.outputs = (0..outputs).map(|_| OutputDraft::with_script(vec![0x51; 34])).collect();
    let mut txs = vec![coinbase];
    if !spent.is_empty() {
        txs.push(TxDraft::spending(spent, 1));
    }
    BlockDraft { previous, ..BlockDraft::new(txs) }
}

fn fill(options: Options, sizes: &[usize]) {
    // No block gets deep: only memory makes panes leave the window.
    let parameters = Parameters { window: 10_000, flush_interval: 256, fan_in: 4, max_probed: 12 };
    let options = Options { parameters, memory: MEMORY, ..options };
    let mut database = Database::open(Arc::new(FaultyStorage::new(1)), options).unwrap();
    let mut oracle = MemorySet::new(Network::Regtest);
    let (mut most, mut spent, mut previous) = (0, Vec::new(), BlockHash::ZERO);
    for (height, outputs) in (0..100).zip(sizes.iter().cycle()) {
        let draft = block(height, previous, *outputs, &spent);
        let bytes = draft.bytes();
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        let at = BlockAt::new(Height::new(height), &block);
        database.append(&at).unwrap();
        oracle.connect(&at).unwrap();
        previous = block.hash();
        if height > 0 {
            let txid = draft.txs[0].txid();
            spent = (0..).take(*outputs).step_by(2).map(|vout| Outpoint::new(txid, vout)).collect();
        }
        let (window, share) = database.window_memory();
        assert!(window <= share && share <= MEMORY, "{window} of {share}");
        most = most.max(window);
    }
    assert!(most > MEMORY / 4, "the window takes what it may: {most}");
    assert!(!database.snapshot().runs().as_slice().is_empty());
    assert_eq!(state(&database.snapshot()), oracle_state(&oracle));
}

#[test]
fn small_blocks() {
    for options in [small(), threaded()] {
        fill(options, &[2_800]);
    }
}

/// An eighth of the window's share each, and some that are tiny.
#[test]
fn large_blocks() {
    for options in [small(), threaded()] {
        fill(options, &[8_000]);
        fill(options, &[8_000, 1, 1, 6_000, 1]);
    }
}

/// A budget below the minimum is refused, and the error names the minimum.
#[test]
fn too_little_memory_is_refused() {
    let error = small().with_memory(Options::MEMORY_MIN - 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the unspent set needs at least 16 MiB of memory and was given 15 MiB; give it more"
    );
    assert!(small().with_memory(0).is_err());
    assert_eq!(small().with_memory(Options::MEMORY_MIN).unwrap().memory, Options::MEMORY_MIN);
}

/// All parts together stay within the budget while a joiner fills the window, panes are flushed and
/// runs are merged. The largest budget runs in the long form only.
#[test]
fn the_whole_stays_within_the_budget() {
    const MIB: usize = 1 << 20;
    let is_long = std::env::var_os("VARVE_SEQUENCES").is_some();
    let budgets = [(16, 300, 2_000), (64, 300, 8_000), (256, 240, 24_000)];
    for (memory, blocks, outputs) in budgets.into_iter().take(if is_long { 3 } else { 2 }) {
        let parameters =
            Parameters { window: 10_000, flush_interval: 256, fan_in: 2, max_probed: 3 };
        let options = Options { parameters, ..threaded() }.with_memory(memory * MIB).unwrap();
        let mut database = Database::open(Arc::new(FaultyStorage::new(1)), options).unwrap();
        let (mut most, mut previous) = (MemoryUse::default(), BlockHash::ZERO);
        let bytes: Vec<Vec<u8>> = (0..blocks)
            .map(|height| {
                let bytes = block(height, previous, outputs, &[]).bytes();
                previous = Block::parse(&bytes, Network::Regtest.format()).unwrap().hash();
                bytes
            })
            .collect();
        let blocks = parse(&bytes);
        let at = |(height, block)| BlockAt::new(Height::new(height), block);
        let blocks: Vec<BlockAt<'_>> = (0..).zip(&blocks).map(at).collect();
        let check = |_: &BlockAt<'_>, _: &DatabaseView| Ok::<(), String>(());
        let scope = Joiner::scope(&mut database, &TWO, check, |joiner| {
            let look = |most: &mut MemoryUse| {
                let now = joiner.memory();
                assert!(now.total() <= now.budget, "{now:?}");
                most.window = most.window.max(now.window);
                most.buffers = most.buffers.max(now.buffers);
                most.index = most.index.max(now.index);
                most.joining = most.joining.max(now.joining);
            };
            for block in &blocks {
                while joiner.submit(block, Repeats::Possible).is_err() {
                    look(&mut most);
                    assert!(joiner.retire().unwrap().result.is_ok());
                }
                look(&mut most);
            }
            while let Some(done) = joiner.retire() {
                assert!(done.result.is_ok());
                look(&mut most);
            }
        });
        scope.unwrap();
        assert!(most.window > memory * MIB / 8, "{most:?}");
        assert!(most.buffers > 2 * MIB && most.index > 0 && most.joining > 0, "{most:?}");
        assert!(database.written().merged > 0);
    }
}

/// A set that is given less memory flushes what no longer fits, and refuses too little.
#[test]
fn memory_can_be_taken_back() {
    const MIB: usize = 1 << 20;
    let parameters = Parameters { window: 10_000, flush_interval: 4, fan_in: 4, max_probed: 12 };
    let options = Options { parameters, memory: 128 * MIB, ..small() };
    let mut database = Database::open(Arc::new(FaultyStorage::new(1)), options).unwrap();
    let mut previous = BlockHash::ZERO;
    let mut append = |database: &mut Database, height| {
        let bytes = block(height, previous, 5_000, &[]).bytes();
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        previous = block.hash();
        database.append(&BlockAt::new(Height::new(height), &block)).unwrap();
    };
    (0..60).for_each(|height| append(&mut database, height));
    assert!(database.memory().window > 16 * MIB, "{:?}", database.memory());
    database.set_memory(16 * MIB - 1).unwrap_err();
    assert_eq!(database.memory().budget, 128 * MIB);
    database.set_memory(16 * MIB).unwrap();
    (60..80).for_each(|height| append(&mut database, height));
    let now = database.memory();
    assert!(now.budget == 16 * MIB && now.total() <= now.budget, "{now:?}");
}

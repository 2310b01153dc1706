//! The window keeps its share of the memory, whatever blocks come.

use std::sync::Arc;

use varve_consensus::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use varve_consensus::{BlockAt, MemorySet};
use varve_io::faulty::FaultyStorage;
use varve_types::{Block, BlockHash, Height, Network, Outpoint};
use varve_utxo::{Database, Options, Parameters};

use crate::twin::{oracle_state, small, state, threaded};

const MEMORY: usize = 4 << 20;

/// A block with so many outputs, which spends those of the block before.
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
    assert!(most > MEMORY / 3, "the window takes what it may: {most}");
    assert!(!database.snapshot().runs().as_slice().is_empty());
    assert_eq!(state(&database.snapshot()), oracle_state(&oracle));
}

#[test]
fn small_blocks() {
    for options in [small(), threaded()] {
        fill(options, &[700]);
    }
}

/// An eighth of the window's share each, and some that are tiny.
#[test]
fn large_blocks() {
    for options in [small(), threaded()] {
        fill(options, &[2_000]);
        fill(options, &[2_000, 1, 1, 1_500, 1]);
    }
}

/// What a user asks for is refused below what the set can work with, with the least that it takes.
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

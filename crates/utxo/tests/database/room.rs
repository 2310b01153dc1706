//! The joiner's memory: blocks are admitted by their bytes, and not too far ahead.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use varve_consensus::BlockAt;
use varve_consensus::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use varve_types::{Block, BlockHash, Height, Network};
use varve_utxo::{DatabaseView, Joiner, JoinerOptions, Options, Repeats, SubmitError};

use crate::joiner::{TWO, parse};
use crate::twin::{Twin, small};

/// A block of one transaction with a data output of `bytes` bytes, on `previous`.
fn large(height: u32, previous: BlockHash, bytes: usize) -> Vec<u8> {
    let mut coinbase = TxDraft::coinbase(Height::new(height), 1);
    coinbase.outputs.push(OutputDraft::with_script(vec![0x6a; bytes]));
    BlockDraft { previous, ..BlockDraft::new(vec![coinbase]) }.bytes()
}

/// Blocks are counted by their bytes: many small ones are in progress at once, a few large ones,
/// and one that is larger than the joiner's memory alone.
#[test]
fn blocks_are_let_in_by_their_bytes() {
    const MIB: usize = 1 << 20;
    let mut twin = Twin::new(1, Options { memory: 64 * MIB, ..small() });
    // A quarter of the memory, of which a block takes four times its length.
    let room = 4 * MIB;
    let sizes = [room / 2 - 5_000, room / 2 - 5_000, 100, room * 3, 100, 100, 100, room / 2];
    let mut previous = twin.tip_hash();
    let mut bytes: Vec<Vec<u8>> = Vec::new();
    for (height, size) in (1..).zip(sizes) {
        let block = large(height, previous, size);
        previous = Block::parse(&block, Network::Regtest.format()).unwrap().hash();
        bytes.push(block);
    }
    let blocks = parse(&bytes);
    let at = |(height, block)| BlockAt::new(Height::new(height), block);
    let blocks: Vec<BlockAt<'_>> = (1..).zip(&blocks).map(at).collect();
    // While this is locked, the largest block cannot retire.
    let holding = Mutex::new(());
    let largest = blocks[3].height();
    let check = |block: &BlockAt<'_>, _: &DatabaseView| {
        if block.height() == largest {
            drop(holding.lock());
        }
        Ok::<(), String>(())
    };
    let scope = Joiner::scope(twin.database(), &TWO, check, |joiner| {
        let submit = |place: usize| joiner.submit(&blocks[place], Repeats::Possible);
        // The lowest comes last, so that nothing retires before.
        submit(1).unwrap();
        assert!(!joiner.is_full());
        submit(2).unwrap();
        let refused = submit(3).unwrap_err();
        assert!(matches!(refused, SubmitError::Full(_)), "{refused}");
        assert!(!joiner.is_full(), "the lowest is always taken");
        let joining = joiner.memory().joining;
        assert!(joining > 2 * MIB * 4 - 50_000 && joining <= 16 * MIB, "{joining} bytes");
        submit(0).unwrap();
        for _ in 0..2 {
            assert!(joiner.retire().unwrap().result.is_ok());
        }
        while joiner.retire().is_some() {}
        // Larger than all of the memory, and the next in order: it is processed alone.
        let held = holding.lock();
        submit(3).unwrap();
        assert!(matches!(submit(4), Err(SubmitError::Full(_))));
        assert!(joiner.is_full());
        drop(held);
        assert!(joiner.retire().unwrap().result.is_ok());
        assert!(!joiner.is_full());
        (4..8).for_each(|place| submit(place).unwrap());
        while let Some(done) = joiner.retire() {
            assert!(done.result.is_ok());
        }
        assert_eq!(joiner.memory().joining, 0, "everything was released");
    });
    scope.unwrap();
    assert_eq!(twin.database().tip().map(|(_, hash)| hash), Some(blocks[7].hash()));
    assert_eq!(twin.database().memory().joining, 0);
}

#[test]
fn the_depth_does_not_grow_with_the_workers_for_ever() {
    let depth = |workers| JoinerOptions::new(NonZeroUsize::new(workers).unwrap()).depth.get();
    assert_eq!([1, 2, 4, 16, 64, 1_000].map(depth), [8, 8, 16, 64, 64, 64]);
}

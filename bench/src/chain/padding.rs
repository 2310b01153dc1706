//! Empty blocks on top of a chain, so that a real node assumes the scripts below to be valid.
//!
//! `-assumevalid` skips the scripts of a block only when the best header is at least two weeks of
//! work above it, so that recent blocks are always checked. On the regression test network that is
//! 2,016 blocks. A block here has nothing but a coinbase of value zero:
//!
//! ```text
//! header    │ version 4 │ previous 32 │ merkle root 32 │ time 4 │ bits 4 │ nonce 4 │
//! body      │ 1 │ coinbase                                                        │
//! coinbase  │ version 4 │ 1 │ null point 36 │ length │ height │ sequence 4 │
//!           │ 1 │ value 8 │ 1 │ OP_TRUE │ lock time 4 │
//! ```

use varve_types::{BlockHash, Header, Network, sha256d};

/// Two weeks of blocks, and some more.
pub(super) const BLOCKS: u32 = 2_100;
const SPACING: u32 = 600;
/// November 2023: after all simulated blocks, and not in the future.
const START: u32 = 1_700_000_000;
/// The bits of the regression test network, with which every second hash is good.
const BITS: [u8; 4] = 0x207f_ffff_u32.to_le_bytes();
const VERSION: [u8; 4] = 0x2000_0000_u32.to_le_bytes();

/// Where a chain ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Top {
    pub(super) height: u32,
    pub(super) hash: BlockHash,
}

/// Block-file records of `blocks` empty blocks above `top`.
pub(super) fn records(mut top: Top, blocks: u32, network: Network) -> Vec<u8> {
    let mut records = Vec::new();
    for _ in 0..blocks {
        let block = next(&mut top);
        records.extend_from_slice(&network.disk_magic());
        let length = u32::try_from(block.len()).expect("an empty block is short");
        records.extend_from_slice(&length.to_le_bytes());
        records.extend_from_slice(&block);
    }
    records
}

/// The block above `top`, which becomes the top.
fn next(top: &mut Top) -> Vec<u8> {
    let height = top.height + 1;
    let time = START.saturating_add(height.saturating_mul(SPACING));
    let coinbase = coinbase(height);
    let mut header = Vec::with_capacity(Header::LEN);
    header.extend_from_slice(&VERSION);
    header.extend_from_slice(&top.hash.to_bytes());
    header.extend_from_slice(&sha256d(&coinbase));
    header.extend_from_slice(&time.to_le_bytes());
    header.extend_from_slice(&BITS);
    let mined = (0_u32..).find_map(|nonce| {
        let header = [header.as_slice(), &nonce.to_le_bytes()].concat();
        let hash = sha256d(&header);
        // The highest byte is the last.
        (hash[31] < 0x7f).then_some((header, BlockHash::from_bytes(hash)))
    });
    let (header, hash) = mined.expect("every second nonce is good");
    *top = Top { height, hash };
    [header.as_slice(), &[1], &coinbase].concat()
}

fn coinbase(height: u32) -> Vec<u8> {
    let [low, middle, high, _] = height.to_le_bytes();
    // BIP34: the height as a number in a push, which has three bytes from 32,768 on, and two below.
    let script: &[u8] = if height < 0x8000 { &[2, low, middle] } else { &[3, low, middle, high] };
    let length = u8::try_from(script.len()).expect("four bytes at most");
    [
        &[1, 0, 0, 0, 1],
        [0; 32].as_slice(),
        &[0xff; 4],
        &[length],
        script,
        &[0xff; 4],
        &[1],
        &[0; 8],
        &[1, 0x51],
        &[0; 4],
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use varve_consensus::{BlockAt, Params, check_block};
    use varve_types::{Block, Height};

    use super::*;

    #[test]
    fn empty_blocks_stand_on_one_another_and_hold_by_themselves() {
        let network = Network::Regtest;
        let mut top = Top { height: 1000, hash: BlockHash::from_bytes([3; 32]) };
        for height in 1001..1010 {
            let below = top;
            let bytes = next(&mut top);
            let block = Block::parse(&bytes, network.format()).unwrap();
            assert_eq!(block.header().previous(), below.hash);
            assert_eq!(block.hash(), top.hash);
            let at = BlockAt::new(Height::new(height), &block);
            check_block(&Params::new(network), &at).unwrap();
        }
    }
}

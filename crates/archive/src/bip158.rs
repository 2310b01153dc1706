//! The basic block filter of BIP158, and the headers that chain filters (BIP157).
//!
//! 1. The items are the scripts of all outputs that the block makes, those beginning with
//!    `OP_RETURN` left out, and the scripts of all outputs that it spends; each once, empty ones
//!    never.
//! 2. Each is hashed into the range 0 ≤ h < N·M by SipHash-2-4, keyed with the first 16 bytes of
//!    the block hash.
//! 3. The sorted numbers are written as differences, Golomb-Rice coded: the difference divided by
//!    2^P in unary (ones, then a zero), the remainder in P bits, most significant bit first.
//!
//! ```text
//! │ CompactSize N │ 1 1 0 rrrrrrrrrrrrrrrrrrr │ 0 rrr… │ … │ zero bits to the byte │
//! filter header = sha256d(sha256d(filter) ‖ filter header below)
//! ```

use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;
use varve_types::script::opcode::OP_RETURN;
use varve_types::{Block, BlockHash, compact_size, sha256d};

/// Bits of a remainder.
const P: u32 = 19;
/// The inverse of the false-positive rate: one in this many other scripts matches the filter.
const M: u64 = 784_931;

/// The basic filter of a block, which spends outputs with these scripts.
pub fn basic_filter<'s>(block: &Block<'_>, spent: impl IntoIterator<Item = &'s [u8]>) -> Vec<u8> {
    let made = block.txs().iter().flat_map(|tx| tx.outputs()).map(|output| output.script);
    let made = made.filter(|script| script.first() != Some(&OP_RETURN));
    let mut items: Vec<&[u8]> = Vec::new();
    made.for_each(|script| items.push(script));
    spent.into_iter().for_each(|script| items.push(script));
    items.retain(|script| !script.is_empty());
    items.sort_unstable();
    items.dedup();
    encode(block.hash(), &items)
}

/// The filter header of a filter, above this one.
#[must_use]
pub fn filter_header(filter: &[u8], previous: [u8; 32]) -> [u8; 32] {
    sha256d([sha256d(filter), previous].as_flattened())
}

fn hasher(hash: BlockHash) -> SipHasher24 {
    let key = hash.as_bytes().first_chunk().expect("16 of 32 bytes");
    SipHasher24::new_with_key(key)
}

/// The number of a script among `count`.
fn place(hasher: &SipHasher24, script: &[u8], count: u64) -> u64 {
    let mut hasher = *hasher;
    hasher.write(script);
    let product = u128::from(hasher.finish()) * u128::from(count * M);
    u64::try_from(product >> 64).expect("the upper half of 128 bits")
}

/// Encodes distinct items.
fn encode(hash: BlockHash, items: &[&[u8]]) -> Vec<u8> {
    let count = items.len() as u64;
    let mut bytes = Vec::new();
    compact_size::write(count, &mut bytes);
    let hasher = hasher(hash);
    let mut numbers: Vec<_> = items.iter().map(|item| place(&hasher, item, count)).collect();
    numbers.sort_unstable();
    let mut bits = BitWriter { bytes, free: 0 };
    let mut last = 0;
    for number in numbers {
        let step = number - last;
        (0..step >> P).for_each(|_| bits.push(true));
        bits.push(false);
        (0..P).rev().for_each(|bit| bits.push(step >> bit & 1 == 1));
        last = number;
    }
    bits.bytes
}

/// Bits, the first one in the topmost bit of a byte.
struct BitWriter {
    bytes: Vec<u8>,
    /// Free bits of the last byte.
    free: u32,
}

impl BitWriter {
    fn push(&mut self, bit: bool) {
        if self.free == 0 {
            self.bytes.push(0);
            self.free = 8;
        }
        self.free -= 1;
        let last = self.bytes.last_mut().expect("pushed when there was no free bit");
        *last |= u8::from(bit) << self.free;
    }
}

#[cfg(test)]
mod tests;

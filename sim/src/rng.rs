//! Randomness: one ChaCha8 stream per purpose, integers only.
//!
//! Every choice of the simulator comes from a stream keyed by SHA-256 of the seed and the name of
//! its purpose, so that one part can draw more without affecting another. Nothing here touches
//! floating point: `ln`, `exp` and `pow` differ between platforms, and the chain must not. Shapes
//! that look like curves are built from integers:
//!
//! - a number "towards the low end" of a range is the least of several even draws
//!   ([`Rng::span`]), with mean `low + (high - low) / (draws + 1)`;
//! - a Zipf-like rank picks a power of two evenly, then a rank inside it ([`Rng::rank`]), so the
//!   probability of rank `r` falls as about `1 / r`.

use bitcoin::hashes::{Hash as _, HashEngine as _, sha256};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};

use crate::profile::Span;

/// One stream of the chain's randomness.
pub(crate) struct Rng(ChaCha8Rng);

impl Rng {
    /// The stream of `seed` for one named purpose.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        Self(ChaCha8Rng::from_seed(secret(seed, purpose, 0)))
    }

    /// A stream keyed by 32 bytes that are already random, such as a transaction's id.
    pub(crate) fn keyed(key: [u8; 32]) -> Self {
        Self(ChaCha8Rng::from_seed(key))
    }

    /// An even draw from `0..bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let product = u64::from(self.0.next_u32()) * u64::from(bound);
        u32::try_from(product >> 32).expect("a product of two u32 shifted by 32 fits u32")
    }

    /// An even draw of an index into something of `len` elements; 0 when `len` is 0.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        let bound = u32::try_from(len).expect("no collection here reaches 2^32 elements");
        self.below(bound) as usize
    }

    /// An even draw from `low..=high`.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// True in `parts` of `whole` draws.
    pub(crate) fn chance(&mut self, parts: u32, whole: u32) -> bool {
        self.below(whole) < parts
    }

    /// A row of a table by weight, then a number of that row's range, towards its low end.
    pub(crate) fn span(&mut self, table: &[Span]) -> u32 {
        let row = self.weighted(table, |span| span.weight);
        let mut least = row.high;
        for _ in 0..row.skew {
            least = least.min(self.between(row.low, row.high));
        }
        least
    }

    /// A row of a table, by weight.
    pub(crate) fn weighted<'a, T>(&mut self, table: &'a [T], weight: impl Fn(&T) -> u32) -> &'a T {
        let total = table.iter().map(&weight).sum();
        let mut draw = self.below(total);
        for row in table {
            if draw < weight(row) {
                return row;
            }
            draw -= weight(row);
        }
        table.last().expect("a profile's table has rows")
    }

    /// A Zipf-like rank in `0..2^levels - 1`: rank 0 has one part in `levels`.
    pub(crate) fn rank(&mut self, levels: u32) -> u32 {
        let width = 1 << self.below(levels);
        width - 1 + self.below(width)
    }

    /// Appends `len` random bytes.
    pub(crate) fn fill(&mut self, len: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + len, 0);
        let (_, tail) = out.split_at_mut(start);
        self.0.fill_bytes(tail);
    }
}

/// 32 secret bytes of `seed` for the `index`th thing of a named purpose.
pub(crate) fn secret(seed: u64, purpose: &str, index: u32) -> [u8; 32] {
    let mut engine = sha256::Hash::engine();
    engine.input(b"varve-sim");
    engine.input(&seed.to_le_bytes());
    engine.input(&index.to_le_bytes());
    engine.input(purpose.as_bytes());
    sha256::Hash::from_engine(engine).to_byte_array()
}

/// Four words mixed from one (the finaliser of `SplitMix64`): the bytes of a script for which
/// nobody has the key. Cheap enough to be recomputed instead of stored.
pub(crate) fn mix(word: u64) -> [u8; 32] {
    let mut out = [0; 32];
    let mut state = word;
    for chunk in out.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_fixed_by_seed_and_purpose() {
        let first = |seed, purpose| Rng::new(seed, purpose).below(u32::MAX);
        assert_eq!(first(7, "a"), first(7, "a"));
        assert_ne!(first(7, "a"), first(7, "b"));
        assert_ne!(first(7, "a"), first(8, "a"));
    }

    #[test]
    fn spans_have_the_mean_their_table_says() {
        let table = [Span { weight: 1, low: 11, high: 211, skew: 3 }];
        let mut rng = Rng::new(1, "span");
        let sum: u64 = (0..20_000).map(|_| u64::from(rng.span(&table))).sum();
        let mean = sum / 20_000;
        assert!((58..=64).contains(&mean), "{mean}");
        assert_eq!(table[0].mean_per_thousand(), 61_000);
    }

    #[test]
    fn ranks_fall_like_zipf() {
        let mut rng = Rng::new(1, "rank");
        let mut counts = vec![0_u32; 1 << 8];
        for _ in 0..80_000 {
            counts[rng.rank(8) as usize] += 1;
        }
        assert!((9_000..11_000).contains(&counts[0]), "{}", counts[0]);
        assert!(counts[0] > 6 * counts[7]);
        assert_eq!(counts[255], 0);
    }
}

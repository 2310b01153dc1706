//! Reproducible random numbers: SplitMix64.
//!
//! For tests, fuzzing and benchmarks that draw operations. The sequence of a seed never changes, so
//! a failing seed in a message stays a command to run.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 when `limit` is 0. Uneven by less than one part in 2^64 / `limit`.
    pub const fn below(&mut self, limit: u64) -> u64 {
        let bits = self.bits();
        if limit == 0 { 0 } else { bits % limit }
    }

    /// The same for a limit of 32 bits.
    pub fn small(&mut self, limit: u32) -> u32 {
        u32::try_from(self.below(u64::from(limit))).expect("less than the limit")
    }

    /// An index into something of this length; 0 when it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("less than the length")
    }

    /// True in one of `count` draws.
    pub const fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// A random element, or `None` when there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.index(items.len()))
    }

    /// This many random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.fill(&mut bytes);
        bytes
    }

    /// Fills `bytes` at random.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.bits().to_le_bytes();
            chunk.iter_mut().zip(word).for_each(|(place, byte)| *place = byte);
        }
    }

    /// Shuffles the items (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.index(end + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the reference implementation in C for seed 1234567.
    #[test]
    fn the_published_sequence() {
        let mut random = Random::new(1_234_567);
        let drawn = [random.bits(), random.bits(), random.bits()];
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(drawn, published);
    }

    #[test]
    fn draws_stay_within_their_limits() {
        let mut random = Random::new(7);
        assert_eq!((random.below(0), random.index(0), random.pick::<u8>(&[])), (0, 0, None));
        assert!((0..1000).all(|_| random.below(10) < 10));
        assert_eq!(random.bytes(13).len(), 13);
        let mut items: Vec<u32> = (0..100).collect();
        random.shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}

//! Inputs for the short form: examples, changed in ways that hurt decoders, the same every time.
//!
//! [`Mutator::next_input`] gives an example, or parts of two, with up to four changes: a flipped
//! bit, an interesting byte (the marks of longer lengths are among them), an interesting number of
//! 2, 4 or 8 bytes, a removed, repeated or inserted range, a cut. One in eight is bytes at random.

use varve_testdata::Random;

/// Bytes at the edges of encodings: zero, one, signs, and the marks of CompactSize, VARINT and
/// push opcodes.
const BYTES: &[u8] =
    &[0x00, 0x01, 0x02, 0x4b, 0x4c, 0x4d, 0x4e, 0x7f, 0x80, 0xef, 0xfc, 0xfd, 0xfe, 0xff];

/// Numbers at the edges of what fits, and of what is allowed as a length.
const NUMBERS: &[u64] = &[
    0,
    1,
    0xfc,
    0xfd,
    0xffff,
    0x1_0000,
    0x01ff_ffff,
    0x0200_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    u64::MAX,
];

/// The longest input made of bytes at random.
const RANDOM_LENGTH: usize = 256;

/// Makes inputs from examples.
pub struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    random: Random,
}

impl<'a> Mutator<'a> {
    /// The same examples and seed give the same inputs.
    #[must_use]
    pub fn new(seeds: &'a [Vec<u8>], seed: u64) -> Self {
        Self { seeds, random: Random::new(seed) }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = match self.random.below(8) {
            0 => self.noise(),
            1 => self.splice(),
            _ => self.example().to_vec(),
        };
        for _ in 0..self.random.below(5) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.index(input.len());
        match self.random.below(7) {
            0 => {
                let bit = 1 << self.random.below(8);
                self.overwrite(input, at, |byte, _| byte ^ bit, 1);
            }
            1 => {
                let byte = *self.pick(BYTES);
                self.overwrite(input, at, |_, _| byte, 1);
            }
            2 => {
                let number = self.pick(NUMBERS).to_le_bytes();
                let width = *self.pick(&[2, 4, 8]);
                let byte = |old, index: usize| number.get(index).copied().unwrap_or(old);
                self.overwrite(input, at, byte, width);
            }
            3 => {
                let end = at + self.random.index(input.len() - at + 1).min(16);
                input.drain(at..end);
            }
            4 => {
                let end = at + self.random.index(input.len() - at + 1).min(64);
                let range = input.get(at..end).unwrap_or_default().to_vec();
                input.splice(at..at, range);
            }
            5 => {
                let bytes: Vec<u8> =
                    (0..=self.random.below(4)).map(|_| *self.pick(BYTES)).collect();
                input.splice(at..at, bytes);
            }
            _ => input.truncate(at),
        }
    }

    fn overwrite(
        &mut self,
        input: &mut [u8],
        at: usize,
        new: impl Fn(u8, usize) -> u8,
        width: usize,
    ) {
        for (index, byte) in input.iter_mut().skip(at).take(width).enumerate() {
            *byte = new(*byte, index);
        }
    }

    fn noise(&mut self) -> Vec<u8> {
        let length = self.random.index(RANDOM_LENGTH);
        self.random.bytes(length)
    }

    /// The beginning of one example and the end of another.
    fn splice(&mut self) -> Vec<u8> {
        let (first, second) = (self.example(), self.example());
        let (front, _) = first.split_at(self.random.index(first.len() + 1));
        let (_, back) = second.split_at(self.random.index(second.len() + 1));
        [front, back].concat()
    }

    fn example(&mut self) -> &'a [u8] {
        self.random.pick(self.seeds).map_or(&[], Vec::as_slice)
    }

    fn pick<'b, T>(&mut self, list: &'b [T]) -> &'b T {
        self.random.pick(list).expect("the lists above are not empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn inputs(seeds: &[Vec<u8>], seed: u64) -> Vec<Vec<u8>> {
        let mut mutator = Mutator::new(seeds, seed);
        (0..1000).map(|_| mutator.next_input()).collect()
    }

    #[test]
    fn equal_seeds_give_equal_inputs() {
        let seeds = [b"one example".to_vec(), b"another".to_vec()];
        assert_eq!(inputs(&seeds, 7), inputs(&seeds, 7));
        assert_ne!(inputs(&seeds, 7), inputs(&seeds, 8));
    }

    #[test]
    fn inputs_are_many_and_near_the_examples() {
        let seeds = [vec![0x55; 100]];
        let inputs = inputs(&seeds, 1);
        assert!(inputs.contains(&seeds[0]));
        assert!(inputs.iter().collect::<HashSet<_>>().len() > 500);
        let near = inputs.iter().filter(|input| input.iter().filter(|b| **b == 0x55).count() > 50);
        assert!(near.count() > 500);
    }

    #[test]
    fn no_examples_are_no_trouble() {
        assert_eq!(inputs(&[], 1).len(), 1000);
        assert_eq!(inputs(&[Vec::new()], 1).len(), 1000);
    }
}

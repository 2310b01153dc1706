//! Where the transactions of a block begin, in about eleven bits each.
//!
//! The first transaction of a block of `n` begins after the header and the count, so it needs no
//! entry. The starts of the others, counted from there, are `m` = n − 1 growing numbers below `u`,
//! the bytes of all transactions. They are stored in Elias-Fano coding: the low `l` bits of each
//! number in sequence, the rest as distances in unary.
//!
//! ```text
//!  ┌──────────────────┬────────────────────────────────┬───────────────────────────┐
//!  │ low bits         │ high bits                      │ samples                   │
//!  │ m × l bits       │ m + (u >> l) bits              │ u32 × ⌊(m − 1) / 256⌋     │
//!  └──────────────────┴────────────────────────────────┴───────────────────────────┘
//!   l = ⌊log₂(u / m)⌋  bit (vᵢ >> l) + i is set        place of set bit 256, 512, …
//! ```
//!
//! Each part is padded to a whole byte with zero bits; bit 0 of a byte is its lowest. The length
//! of the table follows from `n` and the length of the block, so it is not stored; a block of one
//! transaction has an empty table.
//!
//! To find start `i`: the place `p` of set bit `i` is found from the sample before it by counting
//! bits (at most 256 of them), and the start is `(p − i) << l | low bits i`. A block of 4,000
//! transactions of 400 bytes has `l` = 8 and 1.33 bytes a transaction.

use std::ops::Range;

use varve_types::Header;

use crate::number::TxPosition;

/// The place of every `SAMPLE`-th set bit is stored, so a lookup scans at most that many.
const SAMPLE: usize = 256;
/// The maximum block length: keeps `l` small enough for one load of eight bytes.
const MAX_LENGTH: u64 = 1 << 48;

/// The table of one block, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct TxOffsets<'a> {
    shape: Shape,
    lows: &'a [u8],
    highs: &'a [u8],
    samples: &'a [u8],
}

/// What the number of transactions and the length of the block determine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    txs: u32,
    /// Where the first transaction begins.
    first: u64,
    length: u64,
    low_bits: u32,
    lows_len: usize,
    highs_len: usize,
    samples_len: usize,
}

impl Shape {
    /// `None` when no block has this shape.
    fn new(txs: u32, length: u64) -> Option<Self> {
        let first = Header::LEN as u64 + compact_size_len(txs);
        let span = length.checked_sub(first).filter(|_| length <= MAX_LENGTH)?;
        if txs == 0 || span < u64::from(txs) {
            return None;
        }
        let values = u64::from(txs) - 1;
        if values == 0 {
            let (lows_len, highs_len, samples_len) = (0, 0, 0);
            return Some(Self {
                txs,
                first,
                length,
                low_bits: 0,
                lows_len,
                highs_len,
                samples_len,
            });
        }
        let low_bits = (span / values).ilog2();
        let bytes = |bits: u64| usize::try_from(bits.div_ceil(8)).ok();
        let samples = usize::try_from((values - 1) / SAMPLE as u64).ok()?;
        Some(Self {
            txs,
            first,
            length,
            low_bits,
            lows_len: bytes(values * u64::from(low_bits))?,
            highs_len: bytes(values + (span >> low_bits))?,
            samples_len: samples * size_of::<u32>(),
        })
    }

    const fn len(&self) -> usize {
        self.lows_len + self.highs_len + self.samples_len
    }
}

/// The length of the table of a block of `txs` transactions and `length` bytes; `None` when no
/// block has this shape.
#[must_use]
pub fn table_len(txs: u32, length: u64) -> Option<usize> {
    Shape::new(txs, length).map(|shape| shape.len())
}

/// Makes the table of a block of `length` bytes from where its transactions begin. `None` when
/// the starts are not those of such a block.
#[must_use]
pub fn encode(starts: &[u64], length: u64) -> Option<Vec<u8>> {
    let shape = Shape::new(u32::try_from(starts.len()).ok()?, length)?;
    let (&first, rest) = starts.split_first()?;
    let mut before = first;
    if first != shape.first {
        return None;
    }
    let mut table = vec![0; shape.len()];
    let (lows, others) = table.split_at_mut_checked(shape.lows_len)?;
    let (highs, samples) = others.split_at_mut_checked(shape.highs_len)?;
    let (mut samples, _) = samples.as_chunks_mut::<4>();
    let mask = (1 << shape.low_bits) - 1;
    for (index, &start) in rest.iter().enumerate() {
        if start <= before || start >= length {
            return None;
        }
        before = start;
        let value = start - first;
        put_bits(lows, index * shape.low_bits as usize, value & mask);
        let place = usize::try_from(value >> shape.low_bits).ok()? + index;
        put_bits(highs, place, 1);
        if index > 0 && index % SAMPLE == 0 {
            let (sample, later) = std::mem::take(&mut samples).split_first_mut()?;
            *sample = u32::try_from(place).ok()?.to_le_bytes();
            samples = later;
        }
    }
    Some(table)
}

impl<'a> TxOffsets<'a> {
    /// The table in `bytes`, of a block of `txs` transactions and `length` bytes; `None` when
    /// the table of such a block has another length.
    #[must_use]
    pub fn new(bytes: &'a [u8], txs: u32, length: u64) -> Option<Self> {
        let shape = Shape::new(txs, length).filter(|shape| shape.len() == bytes.len())?;
        let (lows, others) = bytes.split_at_checked(shape.lows_len)?;
        let (highs, samples) = others.split_at_checked(shape.highs_len)?;
        Some(Self { shape, lows, highs, samples })
    }

    /// The bytes of the block that hold the transaction at `position`; `None` when there is none,
    /// or when the table is not one that [`encode`] made.
    #[must_use]
    pub fn range(&self, position: TxPosition) -> Option<Range<u64>> {
        let start = self.start(position.get())?;
        let end = match position.get() + 1 {
            next if next == self.shape.txs => self.shape.length,
            next => self.start(next)?,
        };
        (start < end && end <= self.shape.length).then_some(start..end)
    }

    /// Where transaction `number` begins.
    fn start(&self, number: u32) -> Option<u64> {
        if number >= self.shape.txs {
            return None;
        }
        let Some(index) = number.checked_sub(1) else { return Some(self.shape.first) };
        let index = index as usize;
        let place = self.place(index)?;
        let high = u64::try_from(place.checked_sub(index)?).ok()?;
        let low = get_bits(self.lows, index * self.shape.low_bits as usize, self.shape.low_bits);
        self.shape.first.checked_add((high << self.shape.low_bits) | low)
    }

    /// The place of set bit `index`.
    fn place(&self, index: usize) -> Option<usize> {
        let (samples, _) = self.samples.as_chunks::<4>();
        let from = match (index / SAMPLE).checked_sub(1) {
            None => 0,
            Some(sample) => u32::from_le_bytes(*samples.get(sample)?) as usize,
        };
        let mut left = index % SAMPLE;
        let mut byte = from / 8;
        let mut word = load(self.highs, byte) & (u64::MAX << (from % 8));
        loop {
            let ones = word.count_ones() as usize;
            if left < ones {
                break;
            }
            left -= ones;
            byte += size_of::<u64>();
            if byte >= self.highs.len() {
                return None;
            }
            word = load(self.highs, byte);
        }
        for _ in 0..left {
            word &= word - 1;
        }
        Some(byte * 8 + word.trailing_zeros() as usize)
    }
}

/// The eight bytes from `at` on, with zeroes past the end.
fn load(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(word) = rest.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; size_of::<u64>()];
    word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
}

/// The `count` bits (at most 48) from bit `at` on.
fn get_bits(bytes: &[u8], at: usize, count: u32) -> u64 {
    (load(bytes, at / 8) >> (at % 8)) & ((1 << count) - 1)
}

/// Sets the bits of `value` (at most 48) from bit `at` on, where zeroes are.
fn put_bits(bytes: &mut [u8], at: usize, value: u64) {
    let place = bytes.get_mut(at / 8..).unwrap_or_default();
    for (byte, bits) in place.iter_mut().zip((value << (at % 8)).to_le_bytes()) {
        *byte |= bits;
    }
}

/// The length of the count in front of `txs` transactions.
const fn compact_size_len(txs: u32) -> u64 {
    match txs {
        0..=0xfc => 1,
        0xfd..=0xffff => 3,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The starts of a block whose transactions have these lengths, and its length.
    fn starts(lengths: &[u64]) -> (Vec<u64>, u64) {
        let mut next = 80 + compact_size_len(u32::try_from(lengths.len()).unwrap());
        let starts = lengths.iter().map(|length| {
            next += length;
            next - length
        });
        (starts.collect(), next)
    }

    fn check(lengths: &[u64]) {
        let (starts, length) = starts(lengths);
        let txs = u32::try_from(starts.len()).unwrap();
        let table = encode(&starts, length).unwrap();
        let offsets = TxOffsets::new(&table, txs, length).unwrap();
        for (position, (&start, len)) in (0..).zip(starts.iter().zip(lengths)) {
            let position = TxPosition::new(position);
            assert_eq!(offsets.range(position), Some(start..start + len));
        }
        assert_eq!(offsets.range(TxPosition::new(txs)), None);
    }

    proptest! {
        #[test]
        fn every_start_comes_back(lengths in prop::collection::vec(1_u64..100_000, 1..2_000)) {
            check(&lengths);
        }

        #[test]
        fn any_bytes_give_an_answer_or_none(
            mut table in prop::collection::vec(any::<u8>(), 0..3_000),
            txs in 1_u32..2_000,
            length in 90_u64..2_000_000,
        ) {
            let Some(len) = table_len(txs, length) else { return Ok(()) };
            table.resize(len, 0x5a);
            let offsets = TxOffsets::new(&table, txs, length).unwrap();
            for position in 0..=txs {
                if let Some(range) = offsets.range(TxPosition::new(position)) {
                    prop_assert!(range.start < range.end && range.end <= length);
                }
            }
        }
    }

    #[test]
    fn small_and_lopsided_blocks() {
        check(&[1]);
        check(&[10, 10]);
        check(&[5_000_000_000]);
        check(&[60, 7_000_000_000, 1, 1, 4_000_000_000]);
        check(&vec![1; 300]);
        let mut lengths = vec![250; 70_000];
        lengths[35_000] = 3 << 30;
        check(&lengths);
        assert_eq!(table_len(1, 200), Some(0), "the place of a coinbase needs no table");
    }

    #[test]
    fn a_usual_block_takes_eleven_bits_a_transaction() {
        let (starts, length) = starts(&vec![410; 3_300]);
        let table = encode(&starts, length).unwrap();
        assert!(table.len() * 8 < 11 * 3_300, "{} bytes", table.len());
    }

    #[test]
    fn what_is_no_block_gets_no_table() {
        assert_eq!(encode(&[], 100), None);
        assert_eq!(encode(&[80], 100), None, "the first transaction begins after the count");
        assert_eq!(encode(&[81, 81], 100), None);
        assert_eq!(encode(&[81, 100], 100), None);
        assert_eq!(table_len(5, 85), None);
        assert_eq!(table_len(1, u64::MAX), None);
    }
}

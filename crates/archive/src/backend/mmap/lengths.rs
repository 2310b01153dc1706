//! Where transactions are in their block, in little more than a byte each.
//!
//! Transactions lie behind one another, so a place is the sum of the lengths before it. A block's
//! lengths are cut into groups of [`GROUP`]; each is a value of the blob `tx_len`, and a lookup
//! decodes one of them.
//!
//! ```text
//!  0         4         6       7
//!  ┌─────────┬─────────┬───────┬────────────────────────────
//!  │ offset  │ bytes   │ shift │ a code for each length,
//!  │ u32     │ of codes│ u8    │ low bits first
//!  │         │ u16     │       │
//!  └─────────┴─────────┴───────┴────────────────────────────
//! ```
//!
//! `offset` is that of the group's first transaction in the block. The code of a length is a Rice
//! code: its value above `shift` bits as that number of ones and a zero, then the low `shift` bits.
//! A length that would need [`ESCAPE`] ones or more has exactly that number of them, no zero, and
//! then 32 bits.
//! `shift` is what makes the group shortest. On mainnet a length takes about ten bits.

/// Transactions of a group: decoding half of them takes a fraction of a microsecond, and the front
/// of a group adds half a bit to each.
pub(super) const GROUP: u32 = 128;
/// Ones that stand for a length written out.
const ESCAPE: u32 = 24;
/// The bits of a length written out.
const RAW: u32 = 32;

/// What stands before the codes.
pub(super) const FRONT: usize = size_of::<u32>() + size_of::<u16>() + 1;
const _: () = assert!(FRONT == 7);
/// The longest group.
const MOST: usize = FRONT + (GROUP * (ESCAPE + RAW)).div_ceil(8) as usize;
const _: () = assert!(MOST == 903 && MOST <= u16::MAX as usize);

/// Encodes a group: the offset of its first transaction and the length of each.
pub(super) fn encode(offset: u32, lengths: &[u32]) -> Vec<u8> {
    debug_assert!(lengths.len() <= GROUP as usize, "a group");
    let shift = best_shift(lengths);
    let mut codes = BitWriter::default();
    for len in lengths {
        let ones = len >> shift;
        if ones < ESCAPE {
            codes.push((1 << ones) - 1, ones + 1);
            codes.push(u64::from(len & ((1 << shift) - 1)), shift);
        } else {
            codes.push((1 << ESCAPE) - 1, ESCAPE);
            codes.push(u64::from(*len), RAW);
        }
    }
    let count = u16::try_from(codes.bytes.len()).expect("a group is short, asserted above");
    let mut bytes = Vec::with_capacity(FRONT + codes.bytes.len());
    bytes.extend_from_slice(&offset.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.push(u8::try_from(shift).expect("at most the bits of a length"));
    bytes.extend_from_slice(&codes.bytes);
    bytes
}

/// The length of a group that begins with these bytes.
pub(super) fn len(front: &[u8; FRONT]) -> usize {
    let [.., low, high, _] = *front;
    FRONT + usize::from(u16::from_le_bytes([low, high]))
}

/// The offset and the length of the transaction at `index` of a group; `None` when the bytes are
/// not those of a group with that many transactions.
pub(super) fn find(group: &[u8], index: u32) -> Option<(u32, u32)> {
    let (front, codes) = group.split_first_chunk::<FRONT>()?;
    let [a, b, c, d, _, _, shift] = *front;
    let (mut offset, shift) = (u32::from_le_bytes([a, b, c, d]), u32::from(shift));
    if shift >= RAW {
        return None;
    }
    let mut codes = BitReader { bytes: codes, at: 0 };
    for _ in 0..index {
        offset = offset.checked_add(codes.length(shift)?)?;
    }
    Some((offset, codes.length(shift)?))
}

/// The shift that makes the codes of these lengths shortest. It is near the logarithm of their
/// mean.
fn best_shift(lengths: &[u32]) -> u32 {
    let sum: u64 = lengths.iter().map(|len| u64::from(*len)).sum();
    let mean = sum.checked_div(lengths.len() as u64).unwrap_or_default();
    let near = mean.checked_ilog2().unwrap_or_default();
    let bits = |shift: &u32| -> u64 {
        let code = |len: &u32| match len >> shift {
            ones if ones < ESCAPE => u64::from(ones + 1 + shift),
            _ => u64::from(ESCAPE + RAW),
        };
        lengths.iter().map(code).sum()
    };
    let candidates = near.saturating_sub(2)..=(near + 1).min(RAW - 1);
    candidates.min_by_key(bits).unwrap_or_default()
}

/// Bits behind one another, from the lowest of each byte.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte yet are in the last one.
    free: u32,
}

impl BitWriter {
    /// Appends the low `count` bits.
    fn push(&mut self, mut bits: u64, mut count: u32) {
        while count > 0 {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = u8::BITS;
            }
            let here = count.min(self.free);
            let [part, ..] = (bits & ((1 << here) - 1)).to_le_bytes();
            if let Some(last) = self.bytes.last_mut() {
                *last |= part << (u8::BITS - self.free);
            }
            (bits, count, self.free) = (bits >> here, count - here, self.free - here);
        }
    }
}

/// Reads them back.
struct BitReader<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: usize,
}

impl BitReader<'_> {
    /// At least the next 56 bits, zeroes behind the end.
    fn peek(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(word) => *word,
            None => {
                let mut word = [0; size_of::<u64>()];
                word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                word
            }
        };
        u64::from_le_bytes(word) >> (self.at % 8)
    }

    fn length(&mut self, shift: u32) -> Option<u32> {
        let bits = self.peek();
        let ones = bits.trailing_ones().min(ESCAPE);
        let (high, start, count) = match ones {
            ESCAPE => (0, ESCAPE, RAW),
            _ => (ones << shift, ones + 1, shift),
        };
        let low = u32::try_from(bits >> start & ((1 << count) - 1)).ok()?;
        self.at += (start + count) as usize;
        (self.at <= self.bytes.len() * 8).then_some(high | low)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(offset: u32, lengths: &[u32]) -> usize {
        let group = encode(offset, lengths);
        assert_eq!(len(group.first_chunk().unwrap()), group.len());
        let mut at = offset;
        for (index, len) in (0..).zip(lengths) {
            assert_eq!(find(&group, index), Some((at, *len)));
            at += len;
        }
        assert!(group.len() <= MOST);
        group.len()
    }

    #[test]
    fn lengths_of_every_size_come_back() {
        check(81, &[]);
        check(81, &[0]);
        check(0, &[u32::MAX]);
        check(83, &[4_000_000_000, 1, 60]);
        check(7, &[1 << 25; GROUP as usize][..2]);
        let most = [vec![0; 64], vec![30_000_000; 64]].concat();
        assert!(check(0, &most) < MOST);
    }

    #[test]
    fn lengths_as_on_mainnet_take_ten_bits() {
        let usual = [222, 223, 225, 226, 191, 370, 518, 140, 666, 234, 222, 1_120, 405, 222, 253];
        let lengths: Vec<_> = usual.iter().cycle().take(GROUP as usize).copied().collect();
        let bits = 8 * check(81, &lengths) / lengths.len();
        assert!((9..=11).contains(&bits), "{bits}");
    }

    #[test]
    fn what_is_no_group_gives_nothing() {
        let group = encode(81, &[300, 400, 500]);
        assert_eq!(find(&group[..FRONT], 0), None);
        assert_eq!(find(&group[..3], 0), None);
        let mut wide = group.clone();
        wide[FRONT - 1] = 32;
        assert_eq!(find(&wide, 0), None);
        assert_eq!(find(&group, GROUP), None);
    }

    proptest! {
        #[test]
        fn any_lengths_come_back(
            offset in 0..1_000_u32,
            bits in 0..25_u32,
            seeds in prop::collection::vec(any::<u32>(), 1..=GROUP as usize),
        ) {
            let lengths: Vec<_> = seeds.iter().map(|seed| seed & ((1 << bits) - 1)).collect();
            check(offset, &lengths);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes: Vec<u8>, index in 0..GROUP) {
            let _ = find(&bytes, index);
        }
    }
}

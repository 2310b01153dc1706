//! A binary fuse filter over 64-bit hashes: 1.17 fingerprints a key.
//!
//! An array of fingerprints is divided into segments. A key has one place in each of three
//! neighbouring segments, and the three fingerprints there, combined by XOR, give the key's own.
//! A probe is three loads; a key that is not in the filter agrees by chance, once in 2^4, 2^8 or
//! 2^16 times.
//!
//! Building (Graf and Lemire, 2022):
//!
//! 1. Count for every place how many keys have it, and XOR their hashes there.
//! 2. *Peel*: a place with one key left identifies that key; note the pair of key and place,
//!    remove the key from its other two places, and repeat for those that now have one key left.
//! 3. If all keys were noted, go through the notes backwards: each key's noted place is used by no
//!    key later in this order, so set it to what makes the key's XOR right.
//!
//! Peeling fails with some seeds, and always when two keys are equal; then another seed is tried,
//! and after some seeds equal keys are removed. If even that fails, the filter passes everything:
//! slow, but still correct.

#![expect(clippy::indexing_slicing, reason = "places are below the array's length by construction")]
#![expect(clippy::cast_possible_truncation, reason = "hashes are cut to the bits that are wanted")]

use varve_io::FormatError;

/// How many bytes a fingerprint has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Half a byte: one false positive in 16. For the oldest run, whose keys are nearly always
    /// there, because all younger runs were probed first.
    Half = 0,
    /// One byte: one false positive in 256.
    One = 1,
    /// Two bytes: one false positive in 65,536. For small young runs, of which there are many.
    Two = 2,
}

impl Width {
    /// Bytes of `places` fingerprints. Of two halves in a byte, the lower comes first.
    #[must_use]
    pub(crate) const fn bytes(self, places: usize) -> usize {
        match self {
            Self::Half => places.div_ceil(2),
            Self::One => places,
            Self::Two => 2 * places,
        }
    }

    /// The number of bytes, 0 for half a byte: what a footer has.
    pub(crate) const fn code(self) -> u32 {
        self as u32
    }

    /// The width with this code.
    pub(crate) const fn from_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::Half),
            1 => Some(Self::One),
            2 => Some(Self::Two),
            _ => None,
        }
    }
}

/// The seeds that are tried before equal keys are removed, and those tried in all.
const PATIENCE: u64 = 8;
const TRIES: u64 = 64;

/// The figures that place a key: all of a filter but the fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    seed: u64,
    /// Segments have 2^this places.
    segment_bits: u32,
    /// The number of places at which a key's first place may lie; 0 when the filter passes
    /// everything.
    starts: u32,
}

impl Shape {
    /// Passes everything.
    pub(crate) const OPEN: Self = Self { seed: 0, segment_bits: 0, starts: 0 };
    pub(crate) const ENCODED_LEN: usize = 16;

    /// A shape for `count` keys, after the figures of the paper: 0.875 + 0.25 · ln 10⁶ / ln n
    /// places a key, in segments of 2^⌊ln n / ln 3.33 + 2.25⌋.
    fn for_keys(count: usize, seed: u64) -> Self {
        let count = count.max(2) as u64;
        let mut segment_bits = 2;
        let mut reach = 2_466; // 1000 · 3.33^0.75
        while count * 1000 >= reach && segment_bits < 18 {
            segment_bits += 1;
            reach = reach * 333 / 100;
        }
        let log = u64::from(count.ilog2());
        let places = count * (875 * log + 4_983) / (1000 * log);
        let segments = places.div_ceil(1 << segment_bits).max(3);
        let starts = (segments - 2) << segment_bits;
        Self { seed, segment_bits, starts: u32::try_from(starts).unwrap_or(0) }
    }

    /// The number of fingerprints.
    pub(crate) const fn places(&self) -> usize {
        if self.starts == 0 { 0 } else { self.starts as usize + (2 << self.segment_bits) }
    }

    /// The hash under this seed. Keyed hashes are spread well already, so the first seed, 0, takes
    /// them as they are.
    #[inline]
    const fn spread(&self, hash: u64) -> u64 {
        if self.seed == 0 { hash } else { mix(hash ^ self.seed) }
    }

    #[inline]
    fn positions(&self, hash: u64) -> [u32; 3] {
        let segment = 1 << self.segment_bits;
        let mask = segment - 1;
        let first = ((u128::from(hash) * u128::from(self.starts)) >> 64) as u32;
        let second = (first + segment) ^ ((hash >> 18) as u32 & mask);
        let third = (first + 2 * segment) ^ (hash as u32 & mask);
        [first, second, third]
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.seed.to_le_bytes());
        out.extend_from_slice(&self.segment_bits.to_le_bytes());
        out.extend_from_slice(&self.starts.to_le_bytes());
    }

    /// Decodes a shape. Every place that it gives lies below [`Shape::places`].
    pub(crate) fn decode(bytes: &[u8; Self::ENCODED_LEN]) -> Result<Self, FormatError> {
        let [seed @ .., a, b, c, d, e, f, g, h] = *bytes;
        let shape = Self {
            seed: u64::from_le_bytes(seed),
            segment_bits: u32::from_le_bytes([a, b, c, d]),
            starts: u32::from_le_bytes([e, f, g, h]),
        };
        let whole = shape.segment_bits <= 18
            && shape.starts <= 1 << 30
            && shape.starts.is_multiple_of(1 << shape.segment_bits);
        let what = "a filter has an impossible shape";
        if whole { Ok(shape) } else { Err(FormatError::Damaged { at: 0, what }) }
    }
}

/// Asks a filter for many keys: `may` becomes false for those that are certainly not in it. The
/// loads of one key do not wait for those of another.
pub(crate) fn ask(
    shape: &Shape,
    width: Width,
    fingerprints: &[u8],
    hashes: &[u64],
    may: &mut [bool],
) {
    if fingerprints.is_empty() {
        return may.fill(true);
    }
    match width {
        Width::Half => {
            for (may, hash) in may.iter_mut().zip(hashes) {
                let hash = shape.spread(*hash);
                let [a, b, c] = shape
                    .positions(hash)
                    .map(|place| fingerprints[(place / 2) as usize] >> shift(place));
                *may = (a ^ b ^ c ^ fingerprint(hash) as u8) & HALF == 0;
            }
        }
        Width::One => {
            for (may, hash) in may.iter_mut().zip(hashes) {
                let hash = shape.spread(*hash);
                let [a, b, c] = shape.positions(hash).map(|place| fingerprints[place as usize]);
                *may = a ^ b ^ c == fingerprint(hash) as u8;
            }
        }
        Width::Two => {
            let (fingerprints, _) = fingerprints.as_chunks::<2>();
            for (may, hash) in may.iter_mut().zip(hashes) {
                let hash = shape.spread(*hash);
                let [a, b, c] = shape
                    .positions(hash)
                    .map(|place| u16::from_le_bytes(fingerprints[place as usize]));
                *may = a ^ b ^ c == fingerprint(hash);
            }
        }
    }
}

/// The bits of half a byte.
const HALF: u8 = 0xf;

/// Where the half byte of a place begins in its byte.
#[inline]
const fn shift(place: u32) -> u32 {
    place % 2 * 4
}

/// The fingerprint of a key with this hash.
#[inline]
const fn fingerprint(hash: u64) -> u16 {
    (hash ^ (hash >> 32)) as u16
}

/// Builds filters; keeps its memory from one to the next.
#[derive(Debug, Default)]
pub(crate) struct FuseBuilder {
    /// For every place: how many keys, and the XOR of which of their three places this is.
    counts: Vec<u8>,
    /// For every place: the XOR of its keys' mixed hashes.
    sums: Vec<u64>,
    /// Places with one key left.
    lonely: Vec<u32>,
    /// Mixed hashes in the order in which they were peeled, and which of their places was left.
    peeled: Vec<(u64, u8)>,
}

impl FuseBuilder {
    /// Builds a filter of `hashes`, appending its fingerprints to `out`. May remove equal hashes.
    pub(crate) fn build(
        &mut self,
        hashes: &mut Vec<u64>,
        width: Width,
        out: &mut Vec<u8>,
    ) -> Shape {
        for attempt in 0..TRIES {
            if attempt == PATIENCE {
                hashes.sort_unstable();
                hashes.dedup();
            }
            let seed = mix(attempt);
            let shape = Shape::for_keys(hashes.len(), seed);
            if shape.starts != 0 && self.peel(&shape, hashes) {
                self.assign(&shape, width, out);
                return shape;
            }
        }
        Shape::OPEN
    }

    /// Steps 1 and 2. False when some keys could not be peeled.
    fn peel(&mut self, shape: &Shape, hashes: &[u64]) -> bool {
        let places = shape.places();
        self.counts.clear();
        self.counts.resize(places, 0);
        self.sums.clear();
        self.sums.resize(places, 0);
        let mut crowded = false;
        for hash in hashes {
            let hash = shape.spread(*hash);
            for (which, place) in (0_u8..).zip(shape.positions(hash)) {
                let place = place as usize;
                let count = &mut self.counts[place];
                crowded |= *count >= 0xfc;
                *count = count.wrapping_add(4) ^ which;
                self.sums[place] ^= hash;
            }
        }
        if crowded {
            return false; // a count ran over
        }
        self.lonely.clear();
        let lonely = (0_u32..).zip(&self.counts).filter(|(_, count)| *count >> 2 == 1);
        self.lonely.extend(lonely.map(|(place, _)| place));
        self.peeled.clear();
        while let Some(place) = self.lonely.pop() {
            let count = self.counts[place as usize];
            if count >> 2 != 1 {
                continue; // its key was peeled at another place
            }
            let hash = self.sums[place as usize];
            let left = count & 3;
            self.peeled.push((hash, left));
            for (which, place) in (0_u8..).zip(shape.positions(hash)) {
                let count = &mut self.counts[place as usize];
                *count = count.wrapping_sub(4) ^ which;
                self.sums[place as usize] ^= hash;
                if *count >> 2 == 1 {
                    self.lonely.push(place);
                }
            }
        }
        self.peeled.len() == hashes.len()
    }

    /// Step 3.
    fn assign(&self, shape: &Shape, width: Width, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + width.bytes(shape.places()), 0);
        let fingerprints = &mut out[start..];
        for &(hash, left) in self.peeled.iter().rev() {
            let positions = shape.positions(hash);
            let places = positions.map(|place| place as usize);
            let own = fingerprint(hash);
            let target = places[usize::from(left)];
            match width {
                Width::Half => {
                    let sum = positions.iter().fold(own as u8, |sum, place| {
                        sum ^ fingerprints[(place / 2) as usize] >> shift(*place)
                    });
                    let shift = shift(positions[usize::from(left)]);
                    fingerprints[target / 2] ^= (sum & HALF) << shift;
                }
                Width::One => {
                    let sum = places.iter().fold(0, |sum, place| sum ^ fingerprints[*place]);
                    fingerprints[target] ^= sum ^ own as u8;
                }
                Width::Two => {
                    let [low, high] = own.to_le_bytes();
                    let sum = |byte| {
                        places.iter().fold(0, |sum, place| sum ^ fingerprints[2 * place + byte])
                    };
                    let (low, high) = (sum(0) ^ low, sum(1) ^ high);
                    fingerprints[2 * target] ^= low;
                    fingerprints[2 * target + 1] ^= high;
                }
            }
        }
    }
}

/// Spreads every bit over all others (the last steps of `MurmurHash3`).
#[inline]
const fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: u64, salt: u64) -> Vec<u64> {
        (0..count).map(|key| mix(key * 2 + 1 + (salt << 40))).collect()
    }

    fn yes(shape: &Shape, width: Width, bytes: &[u8], hashes: &[u64]) -> usize {
        let mut may = vec![false; hashes.len()];
        ask(shape, width, bytes, hashes, &mut may);
        may.into_iter().filter(|may| *may).count()
    }

    #[test]
    fn every_key_is_found_and_others_seldom() {
        for width in [Width::Half, Width::One, Width::Two] {
            for count in [0, 1, 2, 3, 7, 60, 1_000, 20_000] {
                let (mut bytes, mut put) = (Vec::new(), keys(count, 1));
                let shape = FuseBuilder::default().build(&mut put, width, &mut bytes);
                assert_eq!(bytes.len(), width.bytes(shape.places()));
                assert_eq!(yes(&shape, width, &bytes, &put), put.len(), "{count} of {width:?}");
                let wrong = yes(&shape, width, &bytes, &keys(20_000, 2));
                let expected = match width {
                    Width::Half => 1_250,
                    Width::One => 78,
                    Width::Two => 0,
                };
                assert!(wrong <= 2 * expected + 3, "{wrong} false with {count} keys of {width:?}");
            }
        }
    }

    #[test]
    fn size_a_key() {
        let (mut bytes, mut put) = (Vec::new(), keys(1 << 17, 1));
        FuseBuilder::default().build(&mut put, Width::One, &mut bytes);
        assert!(bytes.len() * 100 <= put.len() * 121, "{} bytes", bytes.len());
    }

    #[test]
    fn equal_keys_are_no_trouble() {
        let mut put: Vec<u64> = keys(500, 1).into_iter().cycle().take(40_000).collect();
        let mut bytes = Vec::new();
        let shape = FuseBuilder::default().build(&mut put, Width::One, &mut bytes);
        assert_eq!(put.len(), 500);
        assert_eq!(yes(&shape, Width::One, &bytes, &put), 500);
        assert_ne!(shape, Shape::OPEN);
    }

    #[test]
    fn shapes_round_trip_and_hostile_ones_are_refused() {
        let shape = Shape::for_keys(1000, 77);
        let mut bytes = Vec::new();
        shape.encode(&mut bytes);
        let bytes: [u8; 16] = bytes.try_into().unwrap();
        assert_eq!(Shape::decode(&bytes), Ok(shape));
        for (at, value) in [(8, 40), (11, 1), (12, 1), (15, 0xff)] {
            let mut bytes = bytes;
            bytes[at] = value;
            assert!(Shape::decode(&bytes).is_err(), "byte {at}");
        }
        let shape = Shape { seed: 3, segment_bits: 18, starts: 1 << 30 };
        for hash in [0, 1, u64::MAX] {
            assert!(shape.positions(hash).iter().all(|&p| (p as usize) < shape.places()));
        }
    }
}

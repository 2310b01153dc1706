//! A leaf: as many rows in order as fit into a page.
//!
//! Fingerprints are Elias-Fano coded: the low bits of each verbatim, the high bits as steps. In the
//! bitmap of high bits the `i`-th fingerprint is the set bit at `high + i`, so a clear bit is a
//! step up and a set bit a fingerprint. Links are stored separately, all of one width, relative to
//! the lowest link of the leaf.
//!
//! ```text
//!  0        5        7        9        11     12       19      20
//!  ┌────────┬────────┬────────┬────────┬──────┬────────┬───────┬──────┬────────┬──────┬───────┐
//!  │ first  │ rows   │ coded  │ steps  │ low  │ base   │ width │ high │ starts │ lows │ links │
//!  │ 5 bytes│ u16    │ u16    │ u16    │ u8   │ 7 bytes│ u8    │ bits │ bits   │ bits │ bits  │
//!  └────────┴────────┴────────┴────────┴──────┴────────┴───────┴──────┴────────┴──────┴───────┘
//!
//!  first   the first fingerprint; the others are coded as their difference to it
//!  coded   the fingerprints that are coded: one for each row, or each distinct one once
//!  steps   the high part of the last
//!  high    coded + steps bits, up to a whole byte
//!  starts  when fewer fingerprints than rows are coded: a bit for each row, set where the next of
//!          them begins, up to a whole byte
//!  lows    coded · low bits
//!  links   rows · width bits, directly after the lows: the link less `base`
//! ```
//!
//! Bits are counted from the lowest of each byte. A leaf with few rows of equal fingerprints codes
//! them for every row; one with many, such as those of a busy script, codes each once and pays a
//! bit a row. The encoder chooses the shorter form.
//!
//! **Why not Rice-coded gaps with restart points?** With gaps of 785 on average (1.4 billion rows)
//! a gap takes 11.15 bits in Rice code and a restart point every 64 rows another 0.4; here it is
//! 11.53 and there are no restart points. But a lookup counts the bits of some 30 words and then
//! decodes one or two rows instead of 32; and no code is longer than its place, so hostile bytes
//! cannot make a loop long.
//!
//! With links of 30 bits a row takes 5.22 bytes at 1.4 billion rows and 5.06 at 3.4 billion.

mod encode;

use std::ops::Range;

use varve_io::FormatError;

use super::bits;
use super::row::{Fingerprint, LINK_BITS, Row};
use crate::link::TxLink;

pub(super) use encode::encode;

const FIRST_LEN: usize = 5;
const BASE_LEN: usize = 7;
const ROWS_AT: usize = FIRST_LEN;
const CODED_AT: usize = ROWS_AT + size_of::<u16>();
const STEPS_AT: usize = CODED_AT + size_of::<u16>();
const LOW_AT: usize = STEPS_AT + size_of::<u16>();
const BASE_AT: usize = LOW_AT + size_of::<u8>();
const WIDTH_AT: usize = BASE_AT + BASE_LEN;
const HEADER_LEN: usize = WIDTH_AT + size_of::<u8>();
const _: () = assert!(CODED_AT == 7 && STEPS_AT == 9 && LOW_AT == 11);
const _: () = assert!(BASE_AT == 12 && WIDTH_AT == 19 && HEADER_LEN == 20);
const _: () = assert!(FIRST_LEN * 8 == Fingerprint::BITS as usize);
const _: () = assert!(BASE_LEN * 8 == LINK_BITS as usize && LINK_BITS <= bits::WIDTH_MAX);

/// The most rows of a leaf. More rows of one fingerprint with close links would fit; the limit
/// bounds the memory of decoding a leaf.
pub(super) const ROWS_MAX: usize = 4096;

/// The numbers of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Header {
    first: u64,
    rows: usize,
    coded: usize,
    steps: usize,
    low: u32,
    base: u64,
    width: u32,
}

impl Header {
    /// The bytes of the two bitmaps.
    const fn bitmaps(&self) -> (usize, usize) {
        let starts = if self.coded == self.rows { 0 } else { self.rows };
        ((self.coded + self.steps).div_ceil(8), starts.div_ceil(8))
    }

    /// The bytes of the whole leaf.
    const fn len(&self) -> usize {
        let (high, starts) = self.bitmaps();
        let packed = self.coded * self.low as usize + self.rows * self.width as usize;
        HEADER_LEN + high + starts + packed.div_ceil(8)
    }
}

/// A leaf whose header is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf<'a> {
    header: Header,
    high: &'a [u8],
    starts: &'a [u8],
    /// Low bits and links.
    packed: &'a [u8],
}

impl<'a> Leaf<'a> {
    /// Reads the header. The rest is decoded on demand.
    #[inline]
    pub(crate) fn parse(payload: &'a [u8]) -> Result<Self, FormatError> {
        let damaged = |at, what| Err(FormatError::Damaged { at, what });
        let Some((head, rest)) = payload.split_at_checked(HEADER_LEN) else {
            return damaged(payload.len(), "the leaf is cut short");
        };
        let byte = |at: usize| u32::from(head.get(at).copied().unwrap_or_default());
        let number = |at: usize| (byte(at) | byte(at + 1) << 8) as usize;
        let header = Header {
            first: bits::word(head, 0) & bits::mask(Fingerprint::BITS),
            rows: number(ROWS_AT),
            coded: number(CODED_AT),
            steps: number(STEPS_AT),
            low: byte(LOW_AT),
            base: bits::word(head, BASE_AT) & bits::mask(LINK_BITS),
            width: byte(WIDTH_AT),
        };
        if !(1..=ROWS_MAX).contains(&header.rows) || !(1..=header.rows).contains(&header.coded) {
            return damaged(ROWS_AT, "a leaf has no rows, or too many");
        }
        if header.low >= Fingerprint::BITS || header.width > LINK_BITS {
            return damaged(LOW_AT, "a leaf has numbers that are too wide");
        }
        if header.len() > payload.len() {
            return damaged(STEPS_AT, "a leaf is larger than its page");
        }
        let (high_len, starts_len) = header.bitmaps();
        let (high, rest) = rest.split_at(high_len);
        let (starts, packed) = rest.split_at(starts_len);
        Ok(Self { header, high, starts, packed })
    }

    /// The number of rows.
    #[cfg(test)]
    pub(crate) const fn rows(&self) -> usize {
        self.header.rows
    }

    /// The links of a fingerprint, ascending; none when it is not here.
    #[inline]
    pub(crate) fn find(&self, fingerprint: Fingerprint) -> Links<'a> {
        let Range { start, end } = self.rows_of(fingerprint).unwrap_or_default();
        Links { leaf: *self, next: start, end }
    }

    /// Loads the places where the low bits and the link of a fingerprint are about, if it is here.
    #[inline]
    pub(crate) fn touch(&self, fingerprint: Fingerprint) -> u8 {
        let Header { first, rows, coded, steps, low, width, .. } = self.header;
        let above = fingerprint.bits().saturating_sub(first) >> low;
        let above = usize::try_from(above).unwrap_or(usize::MAX);
        let share = |of: usize| above.saturating_mul(of) / (steps + 1);
        let lows = share(coded) * low as usize;
        let links = coded * low as usize + share(rows) * width as usize;
        let load = |bit: usize| self.packed.get(bit / 8).copied().unwrap_or_default();
        load(lows)
            ^ load(links)
            ^ self.high.get(share(self.high.len())).copied().unwrap_or_default()
    }

    /// The rows of a fingerprint.
    fn rows_of(&self, fingerprint: Fingerprint) -> Option<Range<usize>> {
        let Header { first, rows, coded, steps, low, .. } = self.header;
        let above = fingerprint.bits().checked_sub(first)?;
        let step = usize::try_from(above >> low).ok().filter(|step| *step <= steps)?;
        let wanted = above & bits::mask(low);
        let mut place = match step.checked_sub(1) {
            None => 0,
            Some(before) => bits::select_zero(self.high, coded + steps, before)? + 1,
        };
        // The fingerprints of this step, which lie behind one another.
        let low_at = |place: usize| {
            let is_here = place < coded + steps && bits::is_set(self.high, place);
            is_here.then(|| self.low_bits(place - step))
        };
        while low_at(place)? < wanted {
            place += 1;
        }
        let start = place - step;
        while low_at(place) == Some(wanted) {
            place += 1;
        }
        let end = place - step;
        if start == end || coded == rows {
            return Some(start..end);
        }
        let start = bits::select_one(self.starts, rows, start)?;
        let next = (start + 1..rows).find(|row| bits::is_set(self.starts, *row));
        Some(start..next.unwrap_or(rows))
    }

    #[inline]
    fn low_bits(&self, index: usize) -> u64 {
        let low = self.header.low;
        bits::read(self.packed, index * low as usize, low)
    }

    #[inline]
    fn link(&self, row: usize) -> TxLink {
        let Header { coded, low, base, width, .. } = self.header;
        let at = coded * low as usize + row * width as usize;
        TxLink::new(base + bits::read(self.packed, at, width))
    }

    /// Decodes all rows into `out`, which is cleared. Checks that they are in order and that
    /// nothing is left over.
    pub(crate) fn decode(&self, out: &mut Vec<Row>) -> Result<(), FormatError> {
        out.clear();
        self.decode_fingerprints(out)?;
        if self.header.coded < self.header.rows {
            self.repeat(out)?;
        }
        for (index, row) in out.iter_mut().enumerate() {
            row.link = self.link(index);
        }
        let in_order = out.is_sorted_by(|a, b| a.key() < b.key());
        let is_low = |row: &Row| row.link.to_u64() >> LINK_BITS == 0;
        if !in_order || !out.iter().all(is_low) {
            return Err(FormatError::Damaged { at: HEADER_LEN, what: "rows are out of order" });
        }
        Ok(())
    }

    /// Puts a row for each coded fingerprint into `out`.
    fn decode_fingerprints(&self, out: &mut Vec<Row>) -> Result<(), FormatError> {
        let Header { first, rows, coded, steps, low, .. } = self.header;
        let what = "the fingerprints of a leaf do not add up";
        let damaged = FormatError::Damaged { at: HEADER_LEN, what };
        let len = coded + steps;
        for start in (0..len).step_by(64) {
            let mut word = bits::word(self.high, start / 8);
            if len - start < 64 {
                word &= (1 << (len - start)) - 1;
            }
            while word != 0 {
                let (place, index) = (start + word.trailing_zeros() as usize, out.len());
                let above = ((place - index) as u64) << low | self.low_bits(index);
                let fingerprint = Fingerprint::from_bits(first + above).ok_or(damaged)?;
                out.push(Row { fingerprint, link: TxLink::default() });
                word &= word - 1;
            }
        }
        let is_first = out.first().is_some_and(|row| row.fingerprint.bits() == first);
        let is_last = bits::is_set(self.high, len - 1);
        let differ = coded == rows || out.is_sorted_by(|a, b| a.fingerprint < b.fingerprint);
        let adds_up = out.len() == coded && is_first && is_last && differ;
        if adds_up { Ok(()) } else { Err(damaged) }
    }

    /// Repeats fingerprints as often as they have rows, from the last on.
    fn repeat(&self, out: &mut Vec<Row>) -> Result<(), FormatError> {
        let Header { rows, coded, .. } = self.header;
        out.resize(rows, Row::default());
        let what = "the repeated fingerprints of a leaf do not add up";
        let damaged = FormatError::Damaged { at: HEADER_LEN, what };
        let mut index = coded;
        let mut repeated = Row::default();
        let mut is_next = true;
        for place in (0..rows).rev() {
            if is_next {
                index = index.checked_sub(1).ok_or(damaged)?;
                repeated = out.get(index).copied().unwrap_or_default();
            }
            is_next = bits::is_set(self.starts, place);
            if let Some(row) = out.get_mut(place) {
                *row = repeated;
            }
        }
        if index == 0 && is_next { Ok(()) } else { Err(damaged) }
    }
}

/// Links of one fingerprint in a leaf, from both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links<'a> {
    leaf: Leaf<'a>,
    next: usize,
    end: usize,
}

impl Iterator for Links<'_> {
    type Item = TxLink;

    #[inline]
    fn next(&mut self) -> Option<TxLink> {
        if self.next >= self.end {
            return None;
        }
        self.next += 1;
        Some(self.leaf.link(self.next - 1))
    }
}

impl DoubleEndedIterator for Links<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<TxLink> {
        if self.next >= self.end {
            return None;
        }
        self.end -= 1;
        Some(self.leaf.link(self.end))
    }
}

#[cfg(test)]
mod tests;

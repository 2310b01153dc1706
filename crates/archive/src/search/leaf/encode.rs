//! Makes a leaf of the first rows of a list: as many as fit.
//!
//! The rows are measured in strides, and the last stride row by row, until the leaf would be larger
//! than a page. What is in the header decides the length, so measuring writes nothing.

use varve_io::PAGE_PAYLOAD_LEN;

use super::{Header, ROWS_MAX};
use crate::search::bits::{self, BitWriter};
use crate::search::row::Row;

/// Between two rows at which the length of the leaf in the making is computed.
const STRIDE: usize = 32;

impl Header {
    fn encode(&self, out: &mut Vec<u8>) {
        let number = |number: usize| {
            u16::try_from(number).expect("a leaf has fewer rows and bits").to_le_bytes()
        };
        let width = |width: u32| u8::try_from(width).expect("a width is at most 64");
        let [first @ .., _, _, _] = self.first.to_le_bytes();
        let [base @ .., _] = self.base.to_le_bytes();
        out.extend_from_slice(&first);
        out.extend_from_slice(&number(self.rows));
        out.extend_from_slice(&number(self.coded));
        out.extend_from_slice(&number(self.steps));
        out.push(width(self.low));
        out.extend_from_slice(&base);
        out.push(width(self.width));
    }
}

/// Measures rows one after the other: the header of a leaf of those taken so far.
#[derive(Clone, Copy, Debug, Default)]
struct Measure {
    rows: usize,
    distinct: usize,
    first: u64,
    last: u64,
    least: u64,
    most: u64,
}

impl Measure {
    #[inline]
    fn take(&mut self, row: &Row) {
        let (fingerprint, link) = (row.fingerprint.bits(), row.link.to_u64());
        if self.rows == 0 {
            *self = Self { first: fingerprint, least: link, distinct: 1, ..Self::default() };
        } else {
            self.distinct += usize::from(fingerprint != self.last);
        }
        self.rows += 1;
        self.last = fingerprint;
        self.least = self.least.min(link);
        self.most = self.most.max(link);
    }

    /// The header of the shortest leaf of these rows.
    fn header(&self) -> Header {
        let (each, once) = (self.coding(self.rows), self.coding(self.distinct));
        if once.len() < each.len() { once } else { each }
    }

    /// The header for this number of coded fingerprints. With as many low bits as the mean gap has
    /// there are between one and two steps a fingerprint, and no other number of low bits takes
    /// less.
    fn coding(&self, coded: usize) -> Header {
        let Self { rows, first, last, least, most, .. } = *self;
        let span = last - first;
        let low = (span / (coded as u64).max(1)).checked_ilog2().unwrap_or(0);
        let steps = usize::try_from(span >> low).unwrap_or(usize::MAX);
        let width = u64::BITS - (most - least).leading_zeros();
        Header { first, rows, coded, steps, low, base: least, width }
    }
}

/// Appends a leaf of the first of `rows` to `out`, as many as fit; returns how many. The rows are
/// in order, no two alike.
pub(in crate::search) fn encode(rows: &[Row], out: &mut Vec<u8>) -> usize {
    debug_assert!(rows.is_sorted_by(|a, b| a < b), "rows come in order");
    let header = measure(rows);
    let rows = rows.get(..header.rows).unwrap_or_default();
    let start = out.len();
    header.encode(out);
    encode_bitmaps(&header, rows, out);
    let mut writer = BitWriter::new(out);
    for (_, above) in coded(&header, rows) {
        writer.push(above & bits::mask(header.low), header.low);
    }
    for row in rows {
        writer.push(row.link.to_u64() - header.base, header.width);
    }
    writer.finish();
    debug_assert_eq!(out.len() - start, header.len());
    rows.len()
}

/// The rows whose fingerprints are coded, and what these are above the first.
fn coded(header: &Header, rows: &[Row]) -> impl Iterator<Item = (usize, u64)> {
    let (first, all) = (header.first, header.coded == header.rows);
    let mut last = None;
    rows.iter().enumerate().filter_map(move |(place, row)| {
        let is_coded = all || last != Some(row.fingerprint);
        last = Some(row.fingerprint);
        is_coded.then(|| (place, row.fingerprint.bits() - first))
    })
}

/// The header of the largest leaf that the first of `rows` fill.
fn measure(rows: &[Row]) -> Header {
    let rows = rows.get(..ROWS_MAX).unwrap_or(rows);
    let mut fitting = Measure::default();
    for stride in rows.chunks(STRIDE) {
        let mut more = fitting;
        stride.iter().for_each(|row| more.take(row));
        if more.header().len() <= PAGE_PAYLOAD_LEN {
            fitting = more;
            continue;
        }
        for row in stride {
            let mut more = fitting;
            more.take(row);
            if more.header().len() > PAGE_PAYLOAD_LEN {
                break;
            }
            fitting = more;
        }
        break;
    }
    fitting.header()
}

fn encode_bitmaps(header: &Header, rows: &[Row], out: &mut Vec<u8>) {
    let (high_len, starts_len) = header.bitmaps();
    let at = out.len();
    out.resize(at + high_len + starts_len, 0);
    let bitmaps = out.get_mut(at..).unwrap_or_default();
    let (high, starts) = bitmaps.split_at_mut(high_len);
    for (index, (place, above)) in coded(header, rows).enumerate() {
        set(high, usize::try_from(above >> header.low).unwrap_or(usize::MAX) + index);
        if !starts.is_empty() {
            set(starts, place);
        }
    }
}

#[inline]
fn set(bitmap: &mut [u8], place: usize) {
    let byte = bitmap.get_mut(place / 8).expect("the bitmap was measured");
    *byte |= 1 << (place % 8);
}

//! The rows of one block, sorted, before the block has its links.
//!
//! The thread that checks a block builds its rows, in any order among blocks. The links of the
//! block's transactions are not known yet, so a row is a fingerprint and the position of the
//! transaction in its block, packed into one number:
//!
//! ```text
//!  63                                      24                     0
//!  ┌────────────────────────────────────────┬─────────────────────┐
//!  │ fingerprint, 40 bits                   │ position, 24 bits   │
//!  └────────────────────────────────────────┴─────────────────────┘
//! ```
//!
//! A block of more than 2²⁴ transactions has several *parts*, each with positions relative to its
//! first. [`SearchTable::append`](super::SearchTable::append) turns a part into a pane unchanged:
//! the position becomes the link relative to the pane's base.

use super::row::Fingerprint;

/// Bits of a position in a part, and of a link in a pane.
pub(super) const PLACE_BITS: u32 = u64::BITS - Fingerprint::BITS;
/// Positions that a part covers.
pub(super) const PART_LEN: u64 = 1 << PLACE_BITS;
/// Below this a comparison sort is faster.
const RADIX_MIN: usize = 512;
/// Bits of a fingerprint that one pass of the radix sort looks at.
const DIGIT: u32 = 10;
const _: () = assert!(Fingerprint::BITS.is_multiple_of(DIGIT));

/// The sorted rows of a block, built in any thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    parts: Vec<Part>,
}

/// Rows of transactions whose positions are close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The first position of the part.
    pub(super) start: u64,
    pub(super) rows: Vec<u64>,
}

impl Batch {
    /// Sorts the rows of a block: fingerprints and the positions of their transactions. Fastest
    /// when they arrive in the order of their transactions. Duplicates are dropped.
    #[must_use]
    pub fn new(rows: impl IntoIterator<Item = (Fingerprint, u32)>) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut current = None;
        for (fingerprint, position) in rows {
            let (number, place) = split(u64::from(position));
            if current != Some(number) {
                let part = part(&mut parts, number);
                current = Some(number);
                // The part that grows is the last.
                let last = parts.len() - 1;
                parts.swap(part, last);
            }
            if let Some(part) = parts.last_mut() {
                part.rows.push(fingerprint.bits() << PLACE_BITS | place);
            }
        }
        parts.sort_unstable_by_key(|part| part.start);
        for part in &mut parts {
            sort(&mut part.rows);
            part.rows.dedup();
        }
        Self { parts }
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.rows.len()).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.len() * size_of::<u64>()
    }

    pub(super) fn into_parts(self) -> Vec<Part> {
        self.parts
    }
}

/// The part of a position, and its place there.
const fn split(position: u64) -> (u64, u64) {
    (position >> PLACE_BITS, position & (PART_LEN - 1))
}

/// The index of the part with this number.
fn part(parts: &mut Vec<Part>, number: u64) -> usize {
    let start = number << PLACE_BITS;
    parts.iter().position(|part| part.start == start).unwrap_or_else(|| {
        parts.push(Part { start, rows: Vec::new() });
        parts.len() - 1
    })
}

/// Sorts rows. The radix passes over the fingerprint are stable, so rows that arrive ordered by
/// position stay so within a fingerprint.
fn sort(rows: &mut Vec<u64>) {
    if rows.len() < RADIX_MIN {
        return rows.sort_unstable();
    }
    let mut spare = vec![0; rows.len()];
    for pass in 0..Fingerprint::BITS / DIGIT {
        scatter(rows, &mut spare, PLACE_BITS + pass * DIGIT);
        std::mem::swap(rows, &mut spare);
    }
    if !rows.is_sorted() {
        rows.sort_unstable();
    }
}

/// Moves rows from one place to another, ordered by the digit at `shift`.
fn scatter(from: &[u64], to: &mut [u64], shift: u32) {
    let digit = |row: u64| (row >> shift & ((1 << DIGIT) - 1)) as usize;
    let mut next = [0_usize; 1 << DIGIT];
    for row in from {
        if let Some(count) = next.get_mut(digit(*row)) {
            *count += 1;
        }
    }
    let mut sum = 0;
    for count in &mut next {
        sum += std::mem::replace(count, sum);
    }
    for row in from {
        if let Some(place) = next.get_mut(digit(*row)) {
            if let Some(to) = to.get_mut(*place) {
                *to = *row;
            }
            *place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fingerprint(bits: u64) -> Fingerprint {
        Fingerprint::from_bits(bits & Fingerprint::MAX.bits()).unwrap()
    }

    /// The rows of a batch, as they will be when the block's first link is zero.
    fn rows(batch: Batch) -> Vec<(u64, u64)> {
        let rows = |part: Part| {
            assert!(part.rows.is_sorted_by(|a, b| a < b));
            let row = move |row| (row >> PLACE_BITS, part.start + (row & (PART_LEN - 1)));
            part.rows.into_iter().map(row)
        };
        batch.into_parts().into_iter().flat_map(rows).collect()
    }

    proptest! {
        #[test]
        fn a_batch_has_the_rows_sorted(
            made in prop::collection::vec((any::<u64>(), 0..3000_u32), 0..2000),
            in_order: bool,
        ) {
            let mut made = made;
            if in_order {
                made.sort_by_key(|(_, position)| *position);
            }
            let mut wanted: Vec<(u64, u64)> =
                made.iter().map(|(bits, at)| (fingerprint(*bits).bits(), u64::from(*at))).collect();
            wanted.sort_unstable();
            wanted.dedup();
            let batch = Batch::new(made.iter().map(|(bits, at)| (fingerprint(*bits), *at)));
            prop_assert_eq!(batch.len(), wanted.len());
            prop_assert_eq!(rows(batch), wanted);
        }
    }

    #[test]
    fn a_huge_block_has_parts() {
        let positions = [3 << 24, 5, (1 << 24) + 1, (1 << 24) - 1, 3 << 24, 1 << 24];
        let batch = Batch::new(positions.map(|position| (fingerprint(9), position)));
        assert_eq!(batch.parts.iter().map(|part| part.rows.len()).collect::<Vec<_>>(), [2, 2, 1]);
        let wanted = [5, (1 << 24) - 1, 1 << 24, (1 << 24) + 1, 3 << 24];
        assert_eq!(rows(batch), wanted.map(|position: u64| (9, position)));
    }
}

//! Young rows: a sorted list in memory, of 8 bytes a row.
//!
//! A pane is a batch with links: a row is the fingerprint and the link relative to the pane's base,
//! in one number, as [`Batch`](super::Batch) draws it. So a pane covers at most 2²⁴
//! links. It never changes; two panes of neighbouring links are merged into a new one.
//!
//! Fingerprints are evenly distributed, so a lookup interpolates the place of one from its value,
//! misses by about the square root of the number of rows, and gallops from there.

use std::ops::Range;

use super::batch::{PART_LEN, PLACE_BITS};
use super::row::{Fingerprint, Row};
use crate::link::TxLink;

/// The first step of a search around the guessed place.
const FIRST_STEP: usize = 16;

/// Sorted rows in memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pane {
    /// The links that its rows can have, and no other pane's.
    links: Range<u64>,
    rows: Vec<u64>,
}

impl Pane {
    /// A pane of rows that count links from `links.start` on.
    pub(super) fn new(links: Range<u64>, rows: Vec<u64>) -> Self {
        debug_assert!(links.end - links.start <= PART_LEN, "a link has 24 bits");
        debug_assert!(rows.is_sorted_by(|a, b| a < b), "rows are sorted");
        Self { links, rows }
    }

    pub(super) const fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) const fn links(&self) -> &Range<u64> {
        &self.links
    }

    /// About how many rows have links below `limit`.
    pub(super) fn rows_below(&self, limit: TxLink) -> usize {
        let Range { start, end } = self.links;
        let below = limit.to_u64().clamp(start, end) - start;
        let rows = self.rows.len() as u128 * u128::from(below) / u128::from((end - start).max(1));
        usize::try_from(rows).unwrap_or(usize::MAX)
    }

    pub(super) const fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<u64>()
    }

    /// The row in this place.
    #[inline]
    pub(super) fn row(&self, place: usize) -> Option<Row> {
        self.rows.get(place).map(|row| self.unpack(*row))
    }

    #[inline]
    fn unpack(&self, row: u64) -> Row {
        let fingerprint = Fingerprint::from_bits(row >> PLACE_BITS).unwrap_or_default();
        let link = TxLink::new(self.links.start + (row & (PART_LEN - 1)));
        Row { fingerprint, link }
    }

    /// The links of a fingerprint, ascending.
    pub(super) fn find(&self, fingerprint: Fingerprint) -> impl DoubleEndedIterator<Item = TxLink> {
        let from = fingerprint.bits() << PLACE_BITS;
        let start = self.lower_bound(from);
        let found = self.rows.get(start..).unwrap_or_default();
        let behind = |row: &&u64| **row >> PLACE_BITS == fingerprint.bits();
        let len = if found.first().as_ref().is_some_and(behind) {
            found.partition_point(|row| *row >> PLACE_BITS <= fingerprint.bits())
        } else {
            0
        };
        let found = found.get(..len).unwrap_or_default();
        found.iter().map(|row| self.unpack(*row).link)
    }

    /// The place of the first row of a fingerprint whose link is not below `link`.
    pub(super) fn seek(&self, fingerprint: Fingerprint, link: TxLink) -> usize {
        let place = link.to_u64().saturating_sub(self.links.start);
        let from = fingerprint.bits() << PLACE_BITS;
        // A place behind the last is that of the next fingerprint.
        from.checked_add(place.min(PART_LEN)).map_or(self.rows.len(), |row| self.lower_bound(row))
    }

    /// The place of the first row that is not below `row`.
    fn lower_bound(&self, row: u64) -> usize {
        let rows = self.rows.as_slice();
        let guess = (u128::from(row) * rows.len() as u128) >> u64::BITS;
        let guess = usize::try_from(guess).unwrap_or(usize::MAX).min(rows.len());
        let is_below = |place: usize| rows.get(place).is_some_and(|found| *found < row);
        let (mut low, mut high, mut step) = (0, rows.len(), FIRST_STEP);
        if is_below(guess) {
            low = guess + 1;
            while is_below(low.saturating_add(step)) {
                low += step + 1;
                step *= 4;
            }
            high = high.min(low.saturating_add(step));
        } else {
            high = guess;
            while let Some(place) = high.checked_sub(step) {
                if is_below(place) {
                    low = place + 1;
                    break;
                }
                high = place;
                step *= 4;
            }
        }
        low + rows.get(low..high).unwrap_or_default().partition_point(|found| *found < row)
    }

    /// Both panes as one, of which `self` has the lower links; `None` when they cover too many
    /// links.
    pub(super) fn merged(&self, above: &Self) -> Option<Self> {
        let links = self.links.start..above.links.end;
        if links.end - links.start > PART_LEN {
            return None;
        }
        let shift = above.links.start - links.start;
        Some(Self { links, rows: merge(&self.rows, &above.rows, shift) })
    }

    /// The rows with links from `start` on, as a pane.
    pub(super) fn without_below(&self, start: u64) -> Self {
        let links = start.clamp(self.links.start, self.links.end)..self.links.end;
        let shift = links.start - self.links.start;
        let rows = self.rows.iter().filter(|row| **row & (PART_LEN - 1) >= shift);
        Self { links, rows: rows.map(|row| row - shift).collect() }
    }
}

/// Merges rows, adding `shift` to the links of `above`.
fn merge(below: &[u64], above: &[u64], shift: u64) -> Vec<u64> {
    let mut out = Vec::with_capacity(below.len() + above.len());
    let (mut left, mut right) = (0, 0);
    while let (Some(a), Some(b)) = (below.get(left), above.get(right)) {
        let b = *b + shift;
        let is_left = *a < b;
        out.push(if is_left { *a } else { b });
        left += usize::from(is_left);
        right += usize::from(!is_left);
    }
    out.extend_from_slice(below.get(left..).unwrap_or_default());
    out.extend(above.get(right..).unwrap_or_default().iter().map(|row| row + shift));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pane(links: Range<u64>, rows: &[(u64, u64)]) -> Pane {
        let packed = |(bits, link): &(u64, u64)| bits << PLACE_BITS | (link - links.start);
        let mut rows: Vec<u64> = rows.iter().map(packed).collect();
        rows.sort_unstable();
        rows.dedup();
        Pane::new(links, rows)
    }

    fn fingerprint(bits: u64) -> Fingerprint {
        Fingerprint::from_bits(bits).unwrap()
    }

    fn rows(narrow: u32) -> impl Strategy<Value = Vec<(u64, u64)>> {
        let bits = (0..1_u64 << 40).prop_map(move |bits| bits >> narrow);
        prop::collection::vec((bits, 0..500_u64), 0..700)
    }

    proptest! {
        #[test]
        fn rows_are_found_in_merged_panes(
            (low, high) in prop_oneof![(rows(0), rows(0)), (rows(38), rows(38))],
            (top, cut) in (any::<bool>(), 900..2_300_u64),
        ) {
            let lift = |rows: &[(u64, u64)], by: u64| -> Vec<(u64, u64)> {
                let bits = |bits: u64| if top { Fingerprint::MAX.bits() - bits } else { bits };
                rows.iter().map(|(fingerprint, link)| (bits(*fingerprint), link + by)).collect()
            };
            let (low, high) = (lift(&low, 1_000), lift(&high, 1_700));
            let merged = pane(1_000..1_500, &low).merged(&pane(1_700..2_200, &high)).unwrap();
            let all = pane(1_000..2_200, &[low, high].concat());
            prop_assert_eq!(&merged, &all);
            let listed: Vec<Row> = (0..all.len()).map(|place| all.row(place).unwrap()).collect();
            for group in listed.chunk_by(|a, b| a.fingerprint == b.fingerprint) {
                let key = group[0].fingerprint;
                prop_assert!(all.find(key).eq(group.iter().map(|row| row.link)));
                let next = Fingerprint::from_bits(key.bits() + 1);
                let absent = next.filter(|next| listed.iter().all(|row| row.fingerprint != *next));
                prop_assert!(absent.is_none_or(|absent| all.find(absent).next().is_none()));
                let seek = all.seek(key, TxLink::new(cut));
                prop_assert_eq!(
                    seek,
                    listed.partition_point(|row| {
                        row.key() < Row { fingerprint: key, link: TxLink::new(cut) }.key()
                    })
                );
            }
            let from = all.without_below(cut);
            let kept = listed.iter().filter(|row| row.link.to_u64() >= cut);
            let left: Vec<Row> = (0..from.len()).map(|place| from.row(place).unwrap()).collect();
            prop_assert!(left.iter().eq(kept));
        }
    }

    #[test]
    fn panes_that_are_far_apart_stay_apart() {
        let (low, high) = (pane(0..10, &[(1, 2)]), pane(PART_LEN - 5..PART_LEN + 1, &[]));
        assert_eq!(low.merged(&high), None);
        let high = pane(PART_LEN - 5..PART_LEN, &[(1, PART_LEN - 1)]);
        let both = low.merged(&high).unwrap();
        let links: Vec<u64> = both.find(fingerprint(1)).map(TxLink::to_u64).collect();
        assert_eq!(links, [2, PART_LEN - 1]);
    }
}

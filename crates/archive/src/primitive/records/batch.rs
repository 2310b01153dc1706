//! Looking up many keys at once.
//!
//! A lookup waits for memory: for a cell of the head, then for one row after the other of a chain
//! that is scattered over the body. The waits of different keys have nothing to do with one
//! another, so here 32 keys go side by side: all their cells, then the first rows of all chains,
//! then the second. Before a round looks at its rows it touches them all, and the processor fetches
//! them together.

use std::hint::black_box;

use varve_io::GlobalOffset;

use super::{Link, RecordHead, Records, Row, State};
use crate::primitive::error::Result;
use crate::primitive::stage::UNLINKED;

/// Keys that go side by side: more than the fetches a processor has under way, and few enough for
/// their rows to stay in its nearest cache.
const SIDE_BY_SIDE: usize = 32;

/// A row that was found: the index of its key, its link and its value.
pub(crate) type Found<const V: usize> = (usize, Link, [u8; V]);

/// The way down one chain.
struct Walk {
    /// The index of the key.
    key: usize,
    /// Which of the key's chains this is, youngest first.
    rank: usize,
    /// The row to look at next.
    link: u64,
}

impl<const K: usize, const V: usize> Records<K, V> {
    /// Adds to `found` the rows that `wanted` takes for one of the keys with these hashes: in the
    /// order of the keys, those of a key newest first.
    pub(crate) fn search_many(
        &self,
        hashes: &[u64],
        wanted: impl Fn(usize, &Row<K, V>) -> bool,
        found: &mut Vec<Found<V>>,
    ) -> Result<()> {
        for (first, hashes) in (0..).step_by(SIDE_BY_SIDE).zip(hashes.chunks(SIDE_BY_SIDE)) {
            self.search_some(first, hashes, &wanted, found)?;
        }
        Ok(())
    }

    fn search_some(
        &self,
        first: usize,
        hashes: &[u64],
        wanted: &impl Fn(usize, &Row<K, V>) -> bool,
        found: &mut Vec<Found<V>>,
    ) -> Result<()> {
        let rows = self.rows();
        let mut walks = Vec::with_capacity(2 * SIDE_BY_SIDE);
        for (key, hash) in (first..).zip(hashes) {
            for (rank, top) in self.head().tops(*hash, rows).enumerate() {
                walks.push(Walk { key, rank, link: top? });
            }
        }
        // Behind the cells: what they name is in this state.
        let state = self.state.load();
        let mut matches = Vec::with_capacity(SIDE_BY_SIDE);
        for step in 0_u64.. {
            let Some(walk) = walks.first() else { break };
            if step > state.stage.end() {
                return Err(self.broken(walk.link));
            }
            walks.iter().for_each(|walk| touch(&state, walk.link));
            for walk in &mut walks {
                let linked = self.row_in(&state, walk.link)?;
                if linked.next == UNLINKED {
                    return Err(self.broken(walk.link));
                }
                if wanted(walk.key, &linked.row) {
                    let row = (walk.key, Link::of(walk.link), linked.row.value);
                    matches.push((walk.rank, step, row));
                }
                walk.link = linked.next;
            }
            walks.retain(|walk| walk.link != RecordHead::TERMINAL);
        }
        matches.sort_unstable_by_key(|(rank, step, (key, ..))| (*key, *rank, *step));
        found.extend(matches.into_iter().map(|(.., row)| row));
        Ok(())
    }
}

/// Reads the ends of a row, so that it comes to the cache. Whether it can be read is found out by
/// who needs it.
fn touch<const K: usize, const V: usize>(state: &State<K, V>, number: u64) {
    if number < state.stage.base() {
        let at = GlobalOffset::new(number * Row::<K, V>::LEN as u64);
        if let Ok(row) = state.body.get(at, Row::<K, V>::LEN) {
            black_box(row.first().copied());
            black_box(row.last().copied());
        }
    }
}

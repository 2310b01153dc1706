//! An array that grows without moving: shelves, each twice as long as the one before.
//!
//! ```text
//!  shelf 0   items 0 … F−1                F = `first`, a power of two
//!  shelf 1   items F … 3F−1
//!  shelf k   items F·(2^k − 1) … F·(2^(k+1) − 1) − 1
//! ```
//!
//! A shelf is created when its first item is needed; of two threads that create it at once, one
//! wins and the other uses the winner's. Nothing moves afterwards, so an item can be borrowed as
//! long as the whole, and no reader ever waits. Items start as the default value of their type.

use super::sync::OnceLock;

/// Enough shelves for any index: the last would hold more than 2^63 items.
const SHELVES: usize = 64;

/// Items at places 0, 1, 2, …
#[derive(Debug)]
pub(crate) struct Shelves<T> {
    first: u64,
    shelves: [OnceLock<Box<[T]>>; SHELVES],
}

impl<T: Default> Shelves<T> {
    /// No shelf yet; the first will hold at least `first` items.
    pub(crate) fn new(first: u64) -> Self {
        let shelves = std::array::from_fn(|_| OnceLock::default());
        Self { first: first.max(1).next_power_of_two(), shelves }
    }

    /// The item at `index`, if its shelf exists.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&T> {
        let (shelf, place) = self.place(index)?;
        self.shelves.get(shelf)?.get()?.get(place)
    }

    /// The item at `index`; creates its shelf when it is missing.
    ///
    /// # Panics
    ///
    /// When the index is beyond 2^63: callers count rows and pages, which are far fewer.
    pub(crate) fn grow(&self, index: u64) -> &T {
        let place = self.place(index).and_then(|(shelf, place)| {
            let slot = self.shelves.get(shelf)?;
            if slot.get().is_none() {
                let len = self.first.checked_shl(u32::try_from(shelf).ok()?)?;
                let made = (0..len).map(|_| T::default()).collect();
                // When another thread was first, its shelf is the one.
                let _ = slot.set(made);
            }
            slot.get()?.get(place)
        });
        place.expect("a shelf for every index that callers have")
    }

    /// Bytes of memory that the items take, used or not.
    pub(crate) fn memory(&self) -> usize {
        self.shelves.iter().filter_map(|shelf| shelf.get()).map(|shelf| size_of_val(&**shelf)).sum()
    }

    /// The shelf of an index and the place on it.
    #[inline]
    fn place(&self, index: u64) -> Option<(usize, usize)> {
        let shifted = index.checked_add(self.first)?;
        let shelf = shifted.ilog2() - self.first.ilog2();
        let place = shifted - (self.first << shelf);
        Some((usize::try_from(shelf).ok()?, usize::try_from(place).ok()?))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn every_index_has_its_own_place_and_keeps_it() {
        let shelves = Shelves::<AtomicU64>::new(3);
        assert!(shelves.get(0).is_none());
        for index in 0..1000 {
            shelves.grow(index).store(index, Ordering::Relaxed);
        }
        for index in 0..1000 {
            assert_eq!(shelves.get(index).unwrap().load(Ordering::Relaxed), index);
        }
        assert!(shelves.get(1 << 40).is_none());
        assert!(shelves.get(u64::MAX).is_none());
    }

    #[test]
    fn threads_that_grow_at_once_share_what_they_make() {
        let shelves = Shelves::<AtomicU64>::new(1);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for index in 0..5000 {
                        shelves.grow(index).fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        for index in 0..5000 {
            assert_eq!(shelves.get(index).unwrap().load(Ordering::Relaxed), 4);
        }
    }
}

//! Which bytes of a file are under a map and so must not change.
//!
//! One [`HeldRanges`] belongs to one file, however often it is opened. A change (write, cut) runs
//! with the list locked for reading, a new map with the list locked for writing, so neither
//! slips in between the check and the act of the other; changes do not wait for one another.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{Error, Result};
use crate::offset::FileOffset;

/// The ranges of one file under live maps.
#[derive(Debug, Default)]
pub(crate) struct HeldRanges(RwLock<Vec<Range<u64>>>);

impl HeldRanges {
    /// Runs `act` unless a live map overlaps `changed`. `action` and `path` are for the error.
    pub(crate) fn change(
        &self,
        action: &'static str,
        path: &Path,
        changed: Range<u64>,
        act: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let ranges = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let in_the_way = ranges
            .iter()
            .filter(|held| held.start < changed.end && changed.start < held.end)
            .map(|held| held.end)
            .max();
        match in_the_way {
            None => act(),
            Some(end) => {
                Err(Error::Mapped { action, path: path.to_path_buf(), end: FileOffset::new(end) })
            }
        }
    }

    /// Makes a map with `make` and holds `range` until the returned [`Hold`] is dropped.
    pub(crate) fn hold<T>(
        self: &Arc<Self>,
        range: Range<u64>,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Hold)> {
        let mut ranges = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let made = make()?;
        ranges.push(range.clone());
        drop(ranges);
        Ok((made, Hold { ranges: Arc::clone(self), range }))
    }
}

/// Keeps a range of a file from changing.
#[derive(Debug)]
pub(crate) struct Hold {
    ranges: Arc<HeldRanges>,
    range: Range<u64>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut ranges = self.ranges.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = ranges.iter().position(|range| *range == self.range) {
            ranges.swap_remove(index);
        }
    }
}

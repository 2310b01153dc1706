//! When a replay makes a checkpoint.
//!
//! After a 256th of the lag that a crash may leave, then after twice as much each time, up to an
//! eighth of it: with the usual lag of 256 MiB after 1, 2, 4 … 32 MiB of blocks. The first steps
//! are small, so that a process that is killed early has made progress; the later ones are large,
//! because each writes what the set has in memory.

/// Counts blocks to the next checkpoint of a replay.
pub(crate) struct Steps {
    /// Bytes of blocks since the last time, and when the next is.
    bytes: u64,
    next: u64,
    most: u64,
}

impl Steps {
    pub(crate) const fn new(lag: u64) -> Self {
        Self { bytes: 0, next: lag / 256, most: lag / 8 }
    }

    /// Counts a block; whether it is time.
    pub(crate) fn is_due(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        if self.bytes < self.next {
            return false;
        }
        (self.bytes, self.next) = (0, self.next.saturating_mul(2).min(self.most));
        true
    }
}

//! CRC32C (Castagnoli), chained over several pieces.
//!
//! Every format of this crate uses this one checksum. It is salted by what the bytes are part of
//! (store, position), so bytes that belong elsewhere do not verify: see each format. The crate
//! `crc32c` uses the CPU's instruction: 21 GB/s at 4 KiB and 28 GB/s at 1 MiB were measured on one
//! core, an order of magnitude above any disk.

/// A checksum over the bytes so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checksum(u32);

impl Checksum {
    /// The checksum of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(0)
    }

    /// The checksum with `bytes` added at the end.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        Self(crc32c::crc32c_append(self.0, bytes))
    }

    /// The checksum with an integer added, little-endian.
    #[must_use]
    pub fn with_u64(self, value: u64) -> Self {
        self.with(&value.to_le_bytes())
    }

    /// The value to store.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Which store bytes belong to: 16 bytes, the same in all files of one store and different in every
/// other. The caller draws it, since randomness is passed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoreId(pub [u8; 16]);

/// What a file holds, as the caller names it: eight bytes, checked when the file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind(pub [u8; 8]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_published_check_value_however_it_is_cut() {
        let whole = Checksum::new().with(b"123456789");
        assert_eq!(whole.get(), 0xe306_9283);
        let cut = Checksum::new().with(b"1234").with(b"56789");
        assert_eq!(cut.get(), whole.get());
    }
}

//! Fixed-width little-endian fields, one after the other: footers, manifests, owners' payloads.

use varve_io::FormatError;

/// Bytes that are taken field by field.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// The fields of these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, at: 0 }
    }

    /// Where the next field begins.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// The bytes not yet taken.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `N` bytes.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (field, rest) = self.rest.split_first_chunk().ok_or(self.short())?;
        self.rest = rest;
        self.at += N;
        Ok(*field)
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let (field, rest) = self.rest.split_at_checked(len).ok_or(self.short())?;
        self.rest = rest;
        self.at += len;
        Ok(field)
    }

    /// The next number of 32 bits.
    pub fn u32(&mut self) -> Result<u32, FormatError> {
        self.take().map(u32::from_le_bytes)
    }

    /// The next number of 64 bits.
    pub fn u64(&mut self) -> Result<u64, FormatError> {
        self.take().map(u64::from_le_bytes)
    }

    const fn short(&self) -> FormatError {
        FormatError::Damaged { at: self.at, what: "the bytes end within a field" }
    }
}

//! A cursor over bytes that are being decoded.
//!
//! Every read checks the remaining length and names the field, so an error says which field was
//! missing and at which byte. Nothing is copied.

use crate::error::{DecodeError, DecodeErrorKind};

/// Reads fields from the front of bytes.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, rest: bytes }
    }

    /// Starts at byte `offset`; at the end when there is no such byte.
    #[must_use]
    pub fn at(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, rest: bytes.get(offset..).unwrap_or_default() }
    }

    /// The offset of the next byte.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.bytes.len() - self.rest.len()
    }

    /// The bytes not yet read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// An error at the next byte.
    #[must_use]
    pub const fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        kind.at(self.offset())
    }

    /// The bytes from `start`, an earlier offset, to here.
    #[must_use]
    pub fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.offset()).unwrap_or_default()
    }

    /// The next `length` bytes.
    #[inline]
    pub fn take(&mut self, length: u64, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let split = usize::try_from(length).ok().and_then(|at| self.rest.split_at_checked(at));
        let Some((taken, rest)) = split else {
            return Err(self.error(DecodeErrorKind::UnexpectedEnd { what }));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<&'a [u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(self.error(DecodeErrorKind::UnexpectedEnd { what }));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(what).map(|[byte]| *byte)
    }

    /// The next two bytes, little-endian.
    #[inline]
    pub fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.array(what).map(|bytes| u16::from_le_bytes(*bytes))
    }

    /// The next four bytes, little-endian.
    #[inline]
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// The next eight bytes, little-endian.
    #[inline]
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Fails unless all bytes have been read.
    pub fn end(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.error(DecodeErrorKind::TrailingBytes)) }
    }
}

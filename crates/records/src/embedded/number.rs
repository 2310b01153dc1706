//! Numbers of the payloads: Core's VARINT, with counts that cannot claim memory.

use varve_types::{DecodeError, DecodeErrorKind, Reader, varint};

/// The next number, which must fit 32 bits.
pub(super) fn read_u32(reader: &mut Reader<'_>, what: &'static str) -> Result<u32, DecodeError> {
    let at = reader.clone();
    let count = varint::read(reader, what)?;
    u32::try_from(count).map_err(|_| at.error(DecodeErrorKind::CountTooLarge { what, count }))
}

/// The next number, a count of things that take at least `smallest` bytes each: no more than the
/// bytes that are left can hold.
pub(super) fn read_count(
    reader: &mut Reader<'_>,
    smallest: usize,
    what: &'static str,
) -> Result<usize, DecodeError> {
    let at = reader.clone();
    let count = varint::read(reader, what)?;
    let fits = usize::try_from(count).ok().filter(|n| *n <= reader.rest().len() / smallest);
    fits.ok_or_else(|| at.error(DecodeErrorKind::CountTooLarge { what, count }))
}

/// The bytes that a VARINT takes.
pub(super) const fn varint_len(mut number: u64) -> usize {
    let mut len = 1;
    while number > 0x7f {
        number = (number >> 7) - 1;
        len += 1;
    }
    len
}

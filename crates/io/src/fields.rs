//! Fixed-width little-endian fields at named places of a byte slice.
//!
//! Decoders are total: a slice that is too short reads as zero, and every decoder checks the length
//! first and the checksum next, so a zero from a short slice is never used.

/// The `N` bytes at `at`, or zeroes when the slice ends before.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let part = at.checked_add(N).and_then(|end| bytes.get(at..end));
    part.and_then(|part| part.try_into().ok()).unwrap_or([0; N])
}

/// The 32-bit field at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

/// The 64-bit field at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// Puts `value` at `at` of a header being built; the header's layout makes it fit.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(value.len())) {
        place.copy_from_slice(value);
    } else {
        debug_assert!(false, "field at {at} of {} bytes lies outside its header", value.len());
    }
}

//! Memory a disk can write into directly.
//!
//! `O_DIRECT` wants memory, offset and length to be multiples of the device's block. [`BLOCK`] is
//! 4 KiB, a multiple of every block size in use. An [`AlignedBuffer`] owns such memory at an
//! address that does not move when the buffer is moved, so it can be handed to the kernel and
//! taken back. It is held by a raw pointer, not a `Box`, so that no Rust reference claims the
//! bytes while the kernel writes them.

#![expect(unsafe_code, reason = "allocates with an alignment and lends the bytes as slices")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The unit of direct input and output, in bytes; also the size of a page of a page file.
pub const BLOCK: usize = 4096;

const _: () = assert!(BLOCK.is_power_of_two());

/// A fixed number of initialised bytes whose address is a multiple of [`BLOCK`].
///
/// ```
/// use varve_io::{AlignedBuffer, BLOCK};
/// let mut buffer = AlignedBuffer::zeroed(100);
/// buffer[0] = 7;
/// assert_eq!(buffer.len(), 100);
/// assert_eq!(buffer.as_ptr() as usize % BLOCK, 0);
/// ```
pub struct AlignedBuffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer is the only owner of its memory, as a `Vec<u8>` is.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared access only reads, as with a `Vec<u8>`.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// `len` bytes of zero.
    ///
    /// # Panics
    ///
    /// When `len` rounded up to a block exceeds the address space.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout has a size of at least one block, so it is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, len }
    }

    /// The memory behind `len` bytes: whole blocks, at least one.
    fn layout(len: usize) -> Layout {
        let size = len.max(1).checked_next_multiple_of(BLOCK);
        size.and_then(|size| Layout::from_size_align(size, BLOCK).ok())
            .expect("the program chooses the length, never a file")
    }

    /// The bytes from `from` on as raw memory for the kernel, and how many there are.
    pub(crate) fn raw_from(&mut self, from: usize) -> (*mut u8, usize) {
        let from = from.min(self.len);
        // SAFETY: `from` is at most the length, so the pointer stays within the allocation or
        // points one past it.
        (unsafe { self.start.as_ptr().add(from) }, self.len - from)
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: the memory came from `alloc_zeroed` with the layout of the same length, which
        // never changes, and nothing else frees it.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.len)) }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` bytes from `start` are allocated and were zeroed; `&self` keeps writers
        // out. While the kernel writes, the buffer is owned by the reader's slot, which does not
        // call this.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `&mut self` makes this the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer").field("len", &self.len).finish_non_exhaustive()
    }
}

/// True when a transfer between `offset` and the memory at `start` may go past the page cache.
pub(crate) fn is_aligned(offset: u64, start: *const u8, len: usize) -> bool {
    len != 0
        && offset.is_multiple_of(BLOCK as u64)
        && len.is_multiple_of(BLOCK)
        && start.addr().is_multiple_of(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_zero_and_stays_when_moved() {
        for len in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 5] {
            let mut buffer = AlignedBuffer::zeroed(len);
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer.fill(0xa5);
            let address = buffer.as_ptr();
            let moved = Box::new(buffer);
            assert_eq!(moved.as_ptr(), address);
            assert_eq!(address.addr() % BLOCK, 0);
            assert_eq!(moved.len(), len);
        }
    }

    #[test]
    fn alignment_asks_for_all_three() {
        let buffer = AlignedBuffer::zeroed(2 * BLOCK);
        let start = buffer.as_ptr();
        assert!(is_aligned(0, start, buffer.len()));
        assert!(is_aligned(8192, buffer[BLOCK..].as_ptr(), BLOCK));
        assert!(!is_aligned(512, start, BLOCK));
        assert!(!is_aligned(0, start, 100));
        assert!(!is_aligned(0, buffer[8..].as_ptr(), BLOCK));
        assert!(!is_aligned(0, start, 0));
    }
}

//! What happens when the system has no more memory to give.
//!
//! The standard library aborts the process then, with a core dump. A program that wraps its global
//! allocator in [`ReportingAllocator`] writes one line to standard error instead and ends with
//! exit code 1, running no destructor and writing nothing more: the stores are
//! left as after a crash, which they recover from.
//!
//! Nothing here allocates. A caller that would handle the failure itself (`Vec::try_reserve`)
//! cannot do so under this allocator.

#![expect(unsafe_code, reason = "implements a global allocator")]

use std::alloc::{GlobalAlloc, Layout};

use crate::fault::{decimal, write_and_exit};

/// The exit code of a process that ran out of memory: that of every failed command.
const EXIT_CODE: i32 = 1;

/// An allocator that ends the process with a sentence when `allocator` has no memory.
#[derive(Debug)]
pub struct ReportingAllocator<A> {
    /// Where memory comes from.
    pub allocator: A,
    /// What the user can do, for the end of the sentence.
    pub advice: &'static str,
}

impl<A> ReportingAllocator<A> {
    /// Passes on what the allocator gave, if it gave something.
    fn checked(&self, memory: *mut u8, size: usize) -> *mut u8 {
        if memory.is_null() {
            let mut digits = [0; 20];
            let digits = decimal(size as u64, &mut digits);
            let parts: [&[u8]; 5] = [
                b"error: out of memory: the system refused ",
                digits,
                b" more bytes; ",
                self.advice.as_bytes(),
                b"\n",
            ];
            write_and_exit(&parts, EXIT_CODE)
        }
        memory
    }
}

// SAFETY: every call goes to `allocator`, which keeps the contract, with its arguments unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for ReportingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        self.checked(unsafe { self.allocator.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        self.checked(unsafe { self.allocator.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        self.checked(unsafe { self.allocator.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`; the memory is of `allocator`.
        unsafe { self.allocator.dealloc(memory, layout) }
    }
}

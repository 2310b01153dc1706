//! Memory that was freed goes back to the system at once where there is little of it.
//!
//! The allocator keeps freed memory for a second, and some pages for each thread, in case they are
//! wanted again: in a sync that is more than a small `--memory` in all. It reads what to keep from
//! environment variables when the process begins, so the process begins again with those set.
//! Whoever has set one of them stays the master.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// With this much memory what the allocator keeps is a small part.
const ENOUGH: u64 = 1 << 30;
/// With less than this, pages are not even kept for the next thread: each comes from the system and
/// goes back to it.
const LITTLE: u64 = 256 << 20;

/// Freed memory goes back at once, and threads look for pages that they can give back more often.
const SOON: [(&str, &str); 3] = [
    ("MIMALLOC_PURGE_DELAY", "0"),
    ("MIMALLOC_PAGE_FULL_RETAIN", "0"),
    ("MIMALLOC_GENERIC_COLLECT", "100"),
];
const NO_ARENA: (&str, &str) = ("MIMALLOC_DISALLOW_ARENA_ALLOC", "1");

/// Sees to it that a process of so much memory keeps little that it has freed.
pub(crate) fn give_back_soon(memory: u64) {
    let is_set = |(name, _): &(&str, &str)| env::var_os(name).is_some();
    if memory >= ENOUGH || SOON.iter().any(is_set) {
        return;
    }
    if let Ok(program) = env::current_exe() {
        let mut arguments = env::args_os();
        let name = arguments.next().unwrap_or_else(|| program.clone().into_os_string());
        let no_arena = (memory < LITTLE).then_some(NO_ARENA);
        let mut again = Command::new(program);
        again.arg0(name).args(arguments).envs(SOON).envs(no_arena);
        // Where the program cannot be started again, it goes on with more memory.
        let _ = again.exec();
    }
}

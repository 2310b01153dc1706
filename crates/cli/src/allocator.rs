//! Freed memory goes back to the system at once when `--memory` is small.
//!
//! The allocator keeps freed memory for a second, and some pages for each thread, in case they are
//! needed again. During a sync that can exceed a small `--memory`. It reads its settings from
//! environment variables when the process starts, so the process starts itself again with those
//! set. A variable that the user has set is left as it is.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// With this much memory, the part that the allocator keeps does not matter.
const ENOUGH: u64 = 1 << 30;
/// With less than this, pages are not kept for the next thread either: each comes from the system
/// and goes back to it.
const LITTLE: u64 = 256 << 20;

/// Freed memory is released at once, and threads look more often for pages to release.
const EARLY: [(&str, &str); 3] = [
    ("MIMALLOC_PURGE_DELAY", "0"),
    ("MIMALLOC_PAGE_FULL_RETAIN", "0"),
    ("MIMALLOC_GENERIC_COLLECT", "100"),
];
const NO_ARENA: (&str, &str) = ("MIMALLOC_DISALLOW_ARENA_ALLOC", "1");

/// Starts the process again, with an allocator that keeps little freed memory, if `memory` is
/// small.
pub(crate) fn release_early(memory: u64) {
    let is_set = |(name, _): &(&str, &str)| env::var_os(name).is_some();
    if memory >= ENOUGH || EARLY.iter().any(is_set) {
        return;
    }
    if let Ok(program) = env::current_exe() {
        let mut arguments = env::args_os();
        let name = arguments.next().unwrap_or_else(|| program.clone().into_os_string());
        let no_arena = (memory < LITTLE).then_some(NO_ARENA);
        let mut again = Command::new(program);
        again.arg0(name).args(arguments).envs(EARLY).envs(no_arena);
        // If the program cannot be started again, it continues and uses more memory.
        let _ = again.exec();
    }
}

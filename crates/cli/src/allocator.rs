//! Memory that was freed goes back to the system at once where there is little of it.
//!
//! The allocator keeps freed memory for a second, in case it is wanted again: in a sync that is more
//! than a small `--memory` in all. It reads how long from an environment variable when the process
//! begins, so the process begins again with that set. Whoever has set it stays the master.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// For how many milliseconds mimalloc keeps freed memory.
const VARIABLE: &str = "MIMALLOC_PURGE_DELAY";
/// With this much memory a second of it is a small part.
const ENOUGH: u64 = 1 << 30;

/// Sees to it that a process of so much memory keeps nothing that it has freed.
pub(crate) fn give_back_soon(memory: u64) {
    if memory >= ENOUGH || env::var_os(VARIABLE).is_some() {
        return;
    }
    if let Ok(program) = env::current_exe() {
        let mut arguments = env::args_os();
        let name = arguments.next().unwrap_or_else(|| program.clone().into_os_string());
        // Where the program cannot be started again, it goes on with more memory.
        let _ = Command::new(program).arg0(name).args(arguments).env(VARIABLE, "0").exec();
    }
}

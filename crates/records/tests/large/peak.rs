//! The most memory that a step took.

use std::fs;
use std::time::Instant;

/// How a line about a step begins.
pub(crate) const STEP: &str = "step ";

/// Does something and returns how much memory the process had at most meanwhile, and how long it
/// took: `step NAME BYTES MILLISECONDS`.
pub(crate) fn step<T>(name: &str, act: impl FnOnce() -> T) -> T {
    // Makes the system forget the peak so far.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let begun = Instant::now();
    let done = act();
    println!("\n{STEP}{name} {} {}", peak(), begun.elapsed().as_millis());
    done
}

/// The most memory that the process had since the last step began, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

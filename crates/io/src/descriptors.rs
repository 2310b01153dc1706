//! How many files the process may hold open.
//!
//! A store keeps its files open: one for every gibibyte of blocks, two for every run of the unspent
//! set. A chain of 800 GB comes close to the 1,024 descriptors that systems let a process have at
//! first (the *soft* limit), while nearly all let it have many more when it asks (the *hard*
//! limit). So the first directory that is opened asks. Where that is refused, the store works as
//! long as the limit is enough, and the file that is one too many is an error that says so.

#![expect(unsafe_code, reason = "asks the system for its limits and sets one")]

use std::sync::Once;

/// Raises the limit on open files to what the system allows, once.
pub(crate) fn raise_limit() {
    static RAISED: Once = Once::new();
    RAISED.call_once(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the call fills the structure that it is given, which outlives it.
        let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
        if known && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            // SAFETY: the call reads the structure that it is given, which outlives it. A higher
            // limit takes nothing away from anyone.
            let _ = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        }
    });
}

//! How many files the process may hold open.
//!
//! A store keeps its files open: one for every gibibyte of blocks, two for every run of the unspent
//! set. A chain of 800 GB comes close to the usual default of 1,024 descriptors a process (the
//! *soft* limit); nearly all systems allow many more on request (the *hard* limit). So opening the
//! first directory raises the soft limit. If that is refused, the store works while the limit
//! suffices, and opening one file too many is an error that says so.

use std::sync::Once;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit on open files to what the system allows, once.
pub(crate) fn raise_limit() {
    static RAISED: Once = Once::new();
    RAISED.call_once(|| {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        // `None` means that there is no limit.
        if current.is_some_and(|current| maximum.is_none_or(|maximum| current < maximum)) {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        }
    });
}

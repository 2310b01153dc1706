//! How many files the process may hold open.
//!
//! A store keeps its files open: one for every gibibyte of blocks, two for every run of the unspent
//! set. A chain of 800 GB comes close to the 1,024 descriptors that systems let a process have at
//! first (the *soft* limit), while nearly all let it have many more when it asks (the *hard*
//! limit). So the first directory that is opened asks. Where that is refused, the store works as
//! long as the limit is enough, and the file that is one too many is an error that says so.

use std::sync::Once;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit on open files to what the system allows, once.
pub(crate) fn raise_limit() {
    static RAISED: Once = Once::new();
    RAISED.call_once(|| {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        // No number stands for no limit.
        if current.is_some_and(|current| maximum.is_none_or(|maximum| current < maximum)) {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        }
    });
}

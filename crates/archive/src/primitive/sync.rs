//! The shared memory that writers and readers of a table meet in.
//!
//! Two primitives carry the whole protocol: atomics (cells of heads, links of staged rows) and a
//! cell that is filled once (a staged row, a page of a head, a shelf of either). A build with
//! `--cfg loom` takes loom's in their place, so that the model checker can try every order in which
//! a reader may see what writers did: `tests/loom.rs`.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(loom)]
pub(crate) use once::OnceLock;

#[cfg(loom)]
mod once {
    use loom::sync::atomic::{AtomicBool, Ordering};

    /// The standard cell behind a flag that loom sees, with the orderings the standard promises.
    #[derive(Debug)]
    pub(crate) struct OnceLock<T> {
        full: AtomicBool,
        value: std::sync::OnceLock<T>,
    }

    impl<T> Default for OnceLock<T> {
        fn default() -> Self {
            Self { full: AtomicBool::new(false), value: std::sync::OnceLock::new() }
        }
    }

    impl<T> OnceLock<T> {
        pub(crate) fn get(&self) -> Option<&T> {
            if self.full.load(Ordering::Acquire) { self.value.get() } else { None }
        }

        /// A loser waits for the winner's flag, as the standard cell's does.
        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            let set = self.value.set(value);
            if set.is_ok() {
                self.full.store(true, Ordering::Release);
            } else {
                while !self.full.load(Ordering::Acquire) {
                    loom::thread::yield_now();
                }
            }
            set
        }
    }
}

//! The shared-memory primitives between the window's readers and its writer.
//!
//! Three primitives carry the whole protocol: atomics (slots of a table, deaths of entries), a cell
//! that is filled once (a batch of entries) and `Arc` (a version). A build with `--cfg loom`
//! replaces them by loom's, so that the model checker can try every order in which a reader may see
//! the writer's changes: `tests/loom.rs`.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

#[cfg(loom)]
pub(crate) use once::OnceLock;

#[cfg(loom)]
mod once {
    use loom::sync::atomic::{AtomicBool, Ordering};

    /// The standard cell guarded by a flag that loom sees, with the orderings the standard
    /// promises.
    pub(crate) struct OnceLock<T> {
        full: AtomicBool,
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self { full: AtomicBool::new(false), value: std::sync::OnceLock::new() }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            if self.full.load(Ordering::Acquire) { self.value.get() } else { None }
        }

        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            self.value.set(value)?;
            self.full.store(true, Ordering::Release);
            Ok(())
        }
    }
}

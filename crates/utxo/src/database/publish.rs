//! What readers see: the version that was published last, shared with them by one atomic pointer.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::version::Version;

/// Publishes appended blocks to readers, from any thread. Call it in the order of the blocks.
#[derive(Clone, Debug)]
pub(crate) struct Publisher {
    pub(super) published: Arc<ArcSwap<Version>>,
}

impl Publisher {
    /// Makes this version visible to readers.
    pub(crate) fn publish(&self, version: Arc<Version>) {
        debug_assert!(
            self.published.load().sequence() < version.sequence(),
            "blocks are published in their order"
        );
        self.published.store(version);
    }
}

/// Takes snapshots of a database from any thread, even after the database was dropped.
#[derive(Clone, Debug)]
pub struct Reader {
    pub(super) published: Arc<ArcSwap<Version>>,
}

impl Reader {
    /// The set as it is now. The snapshot never changes, and taking it never blocks.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Version> {
        self.published.load_full()
    }
}

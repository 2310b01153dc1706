//! The unspent set, after Hornet: a young window in memory, immutable sorted runs on disk.
//!
//! `docs/adr/0005-unspent-set.md` tells the whole design on a page.
//!
//! Must not know: the history of blocks, the archive, the records, HTTP or JSON. Layer 2.

#![forbid(unsafe_code)]

mod entry;
mod entry_list;
mod hasher;
mod pane;
mod sequence;
mod shard;
mod sync;
mod undo;
mod window;

pub use entry::Entry;
pub use entry_list::{EntryError, EntryList};
pub use hasher::OutpointHasher;
pub use pane::{Flush, FlushEntries, PaneId, PaneInfo};
pub use sequence::Sequence;
pub use undo::{UndoCheckpoint, UndoConfig, UndoError, UndoLog, UndoRecord};
pub use window::{
    FoundCoin, Location, Lookup, Spend, Step, StepError, Window, WindowConfig, WindowFile,
    WindowVersion, spends_of_disconnect,
};

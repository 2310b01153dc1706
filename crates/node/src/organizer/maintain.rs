//! Work that an operator asks for between syncs: compression of old blocks, and indexes that were
//! just chosen.
//!
//! Old blocks are compressed a file at a time. A file stays as it is until its compressed form is
//! durable and the manifest of the block store names that one, so a crash or a signal at any point
//! costs the file that was under way. Positions of blocks do not change: rows of the archive, which
//! point into blocks, and readers that hold bytes notice nothing.

use super::{Organizer, Report};
use crate::error::Error;

/// What [`Organizer::compact`] compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Files of blocks.
    pub files: u64,
    /// Their bytes before.
    pub bytes_before: u64,
    /// Their bytes after.
    pub bytes_after: u64,
}

impl Organizer {
    /// Compresses every file of blocks but the one that grows, merges the runs of each search
    /// table into one, and makes all of it durable. `progress` gets the bytes of blocks and then of
    /// tables that are done, and those that were to be.
    pub fn compact(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<Compacted, Error> {
        let mut compacted = Compacted::default();
        let all = self.stores.blocks.unpacked_bytes();
        progress(0, all);
        while let Some(job) = self.stores.blocks.pack_job()? {
            let before = compacted.bytes_before;
            let done = job.run_with(&mut |bytes| progress(before + bytes, all))?;
            compacted.files += 1;
            compacted.bytes_before += done.plain_bytes;
            compacted.bytes_after += done.packed_bytes;
            self.stores.blocks.finish_pack(done)?;
            progress(compacted.bytes_before, all);
        }
        assert_eq!(
            compacted.bytes_before, all,
            "one writer: no file was added or pruned meanwhile"
        );
        self.tidy(&|| false, &mut |done, more| progress(all + done, all + more))?;
        self.checkpoint()?;
        Ok(compacted)
    }

    /// Brings the chosen indexes to the tip, as the next sync would, and makes them durable.
    pub fn build_indexes(&mut self, report: &mut dyn FnMut(Report<'_>)) -> Result<(), Error> {
        self.catch_up_indexes(report)?;
        self.checkpoint()
    }
}

//! The disk, as the one who writes has it, and checkpoints of the index.
//!
//! A round of checkpoints begins when the log has grown by three times the size of the index, and
//! at least by `checkpoint_every`, since the last one. Then each group that is written copies
//! shards, as many as have the bytes of the group and at least one. So checkpoints add at most a
//! third to what is written, and recovery reads an amount of log in proportion to the index.

use varve_io::{GlobalOffset, Result};

use super::checkpoint::Checkpointer;
use super::index::{Index, SLOT_LEN};
use super::log::LogWriter;

/// What belongs to the one who writes.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) writer: LogWriter,
    checkpointer: Checkpointer,
    /// A round of checkpoints begins after so many bytes.
    checkpoint_every: u64,
    /// What the last group added to the log.
    added: u64,
}

impl Disk {
    pub(super) const fn new(
        writer: LogWriter,
        checkpointer: Checkpointer,
        checkpoint_every: u64,
    ) -> Self {
        Self { writer, checkpointer, checkpoint_every, added: 0 }
    }

    /// A group that began at `begun` was published, or failed.
    pub(super) fn written(&mut self, begun: GlobalOffset) {
        self.added = self.writer.end().since(begun).unwrap_or(0);
    }

    /// Recovery needs the log from here on.
    pub(super) const fn replay_from(&self) -> GlobalOffset {
        self.checkpointer.manifest().replay_from
    }

    /// Whether shards should be copied.
    pub(super) fn wants_checkpoint(&self, keys: usize) -> bool {
        let since = self.writer.end().since(self.checkpointer.manifest().durable).unwrap_or(0);
        let index = (keys * SLOT_LEN) as u64;
        self.checkpointer.is_busy() || since > self.checkpoint_every.max(3 * index)
    }

    /// Copies shards in proportion to the last group.
    pub(super) fn checkpoint_some(&mut self, index: &Index) -> Result<()> {
        let share = index.len() / index.shards().len().max(1) * SLOT_LEN;
        let share = share.max(1) as u64;
        for _ in 0..=self.added / share {
            if self.checkpoint(index)? {
                break;
            }
        }
        Ok(())
    }

    /// Copies the next shard; true when that was the last of the round.
    pub(super) fn checkpoint(&mut self, index: &Index) -> Result<bool> {
        self.checkpointer.step(index, self.writer.end(), self.writer.group())
    }

    /// Drops files that nobody needs; all before `cleaned` was moved.
    pub(super) fn prune(&mut self, cleaned: GlobalOffset) -> Result<()> {
        self.writer.prune(cleaned.min(self.replay_from()))
    }
}

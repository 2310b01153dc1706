//! Opening: the checkpoint of the index, then the log behind it.

use std::sync::Arc;

use varve_io::{FormatError, Result, Storage};
use varve_types::{Reader, varint};

use super::base::Base;
use super::checkpoint::{Checkpointer, Loaded, Manifest};
use super::clean::Cleaner;
use super::commit::Commit;
use super::entry::{ENTRY_HEAD_LEN, EntryHead, EntryKind};
use super::group::GroupFrame;
use super::index::Version;
use super::key::KeyHasher;
use super::log::{LogConfig, Replay, Warmer, open};
use super::maintain::Disk;
use super::{EmbeddedOptions, StoreKey};

/// Opens the store in a directory, or makes one.
pub(super) fn open_store(storage: &Arc<dyn Storage>, options: &EmbeddedOptions) -> Result<Commit> {
    // What an earlier process left is about to be built on.
    storage.sync_dir()?;
    let manifest = match Manifest::load(storage.as_ref())? {
        Some(manifest) => manifest,
        None => {
            let StoreKey { id, secret } = options.key;
            let manifest = Manifest::new(id, secret, options.shards.next_power_of_two());
            manifest.save(storage.as_ref())?;
            manifest
        }
    };
    let hasher = KeyHasher::new(&manifest.secret);
    let (checkpointer, loaded) = Checkpointer::open(Arc::clone(storage), manifest)?;
    let mut replayer = Replayer { loaded, hasher: &hasher, pending: Vec::new() };
    let EmbeddedOptions { segment_size, cache, .. } = *options;
    let config = LogConfig { store: manifest.store, segment_size, cache };
    let mut visit = |frame: &GroupFrame<'_>| replayer.frame(frame);
    let (from, durable) = (manifest.replay_from, manifest.durable);
    let replay = Replay { from, durable, visit: &mut visit };
    let (writer, log) = open(Arc::clone(storage), config, manifest.group, replay)?;
    let index = replayer.loaded.index;
    let disk = Disk::new(writer, checkpointer, options.checkpoint_every);
    let cleaner = Cleaner::new(&log, options.segment_size);
    Ok(Commit::new(Base { log, hasher, warmer: Warmer::default() }, index, disk, cleaner))
}

/// Notes in the index what the log says.
struct Replayer<'a> {
    loaded: Loaded,
    hasher: &'a KeyHasher,
    /// The entries of a group that is not whole yet.
    pending: Vec<(EntryHead, Version)>,
}

impl Replayer<'_> {
    fn frame(&mut self, frame: &GroupFrame<'_>) -> Result<(), FormatError> {
        for entry in frame.entries() {
            let (at, head, bytes) = entry?;
            let weight = weight(&head, bytes);
            let version = Version { at, marks: head.marks, kind: head.kind, weight };
            self.pending.push((head, version));
        }
        if frame.head.more {
            return Ok(());
        }
        for (head, version) in self.pending.drain(..) {
            let hash = self.hasher.hash(&head.key);
            let shard = self.loaded.index.shard_of(hash);
            let included = self.loaded.positions.get(shard).copied().unwrap_or_default();
            let known = version.at < included;
            if !known && !self.loaded.index.put(hash, head.key.part, head.before, &version) {
                let what = "an entry replaces one that is not there";
                return Err(FormatError::Damaged { at: 0, what });
            }
        }
        Ok(())
    }
}

/// The bytes of the log that an entry needs: its own, and those of a body elsewhere.
fn weight(head: &EntryHead, bytes: &[u8]) -> u32 {
    let mut weight = bytes.len() as u64;
    if head.kind == EntryKind::State {
        let mut reader = Reader::at(bytes, ENTRY_HEAD_LEN);
        let body = varint::read(&mut reader, "the position of the body");
        let body = body.and_then(|_| varint::read(&mut reader, "the length of the body"));
        weight += body.unwrap_or(0) + ENTRY_HEAD_LEN as u64;
    }
    u32::try_from(weight).unwrap_or(u32::MAX)
}

//! Opening: the checkpoint of the index, then the log behind it.

use std::sync::{Arc, RwLock};

use varve_io::{Error, FormatError, GlobalOffset, Result, Storage};
use varve_runs::{Kept, Manifest, RunError, RunNumber, Secret};
use varve_types::{Reader, varint};

use super::EmbeddedOptions;
use super::base::Base;
use super::checkpoint::{Checkpoint, IndexLog, MANIFEST};
use super::clean::Cleaner;
use super::commit::Commit;
use super::entry::{ENTRY_HEAD_LEN, EntryHead, EntryKind};
use super::group::GroupFrame;
use super::index::{Cold, Index, Moment, RowError, Version};
use super::keeper::{Keeper, State};
use super::key::KeyHasher;
use super::log::{LogConfig, Replay, Warmer, open};
use super::maintain::{Disk, UpkeepLimits};

/// Opens the store in a directory, or makes one.
pub(super) fn open_store(storage: &Arc<dyn Storage>, options: &EmbeddedOptions) -> Result<Commit> {
    // What an earlier process left is about to be built on.
    storage.sync_dir()?;
    let (manifest, checkpoint) =
        load_manifest(storage.as_ref(), options).map_err(RowError::from)?;
    let hasher = KeyHasher::new(&manifest.key.secret.to_bytes());
    let cold = Cold::open(storage.as_ref(), manifest.key, &manifest.runs)?;
    let mut index = Index::new(cold);
    let store = manifest.key.id;
    let (index_log, positions) =
        IndexLog::open(Arc::clone(storage), store, &checkpoint, &mut index)?;
    let mut replayer = Replayer { index, positions, hasher: &hasher, pending: Vec::new() };
    let EmbeddedOptions { segment_size, cache, checkpoint_every, memory, upkeep, .. } = *options;
    let config = LogConfig { store, segment_size, cache };
    let mut visit = |frame: &GroupFrame<'_>| replayer.frame(frame);
    let replay =
        Replay { from: checkpoint.replay_from, durable: checkpoint.durable, visit: &mut visit };
    let (writer, log) = open(Arc::clone(storage), config, checkpoint.group, replay)?;
    let mut index = replayer.index;
    index.set_moment(Moment { end: writer.end(), group: writer.group() });
    let index = Arc::new(RwLock::new(index));
    let (state, shared) = (State { manifest, checkpoint }, Arc::clone(&index));
    let keeper = Keeper::new(Arc::clone(storage), shared, state, index_log, memory / 2);
    let keeper = Arc::new(keeper);
    let limits = UpkeepLimits { checkpoint_every, memory };
    let disk = Disk::new(writer, keeper, limits, upkeep).map_err(|source| {
        let (action, path) = ("start a thread for", storage.path().to_path_buf());
        Error::Io { action, path, source }
    })?;
    let cleaner = Cleaner::new(&log, options.segment_size);
    Ok(Commit::new(Base { log, hasher, warmer: Warmer::default() }, index, disk, cleaner))
}

/// Loads the manifest, or makes that of an empty store, and removes files that it does not name.
fn load_manifest(
    storage: &dyn Storage,
    options: &EmbeddedOptions,
) -> Result<(Manifest, Checkpoint), RunError> {
    let decode = |manifest: Manifest| {
        let checkpoint = Checkpoint::decode(&manifest.owner)?;
        Ok((manifest, checkpoint))
    };
    if let Some((manifest, checkpoint)) = Manifest::load(storage, MANIFEST, decode)? {
        manifest.sweep(storage, &Kept::NOTHING, &[])?;
        return Ok((manifest, checkpoint));
    }
    let key = varve_runs::StoreKey { id: options.key.id, secret: Secret::new(options.key.secret) };
    let checkpoint = Checkpoint::default();
    let (next, runs, owner) = (RunNumber(1), Vec::new(), checkpoint.encode());
    let manifest = Manifest { key, next, runs, owner };
    manifest.store(storage, MANIFEST)?;
    Ok((manifest, checkpoint))
}

/// Notes in the index what the log says.
struct Replayer<'a> {
    index: Index,
    /// What each shard includes.
    positions: Vec<GlobalOffset>,
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
            let included = self.positions.get(hash.place().shard()).copied().unwrap_or_default();
            let known = version.at < included;
            if !known && !self.index.put(hash, head.key.part, head.before, &version) {
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

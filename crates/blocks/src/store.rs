//! The writer of the store.
//!
//! 1. **Append** puts the raw block into the log of blocks as one frame, keeps its row and the
//!    table of its transaction offsets in memory, and publishes the new count. Readers see it at
//!    once. A failure (a full disk, say) leaves everything as it was.
//! 2. **Sync** makes all blocks so far durable: one sync of one file. The owner records the
//!    returned [`Synced`] where it acknowledges the blocks.
//! 3. **Checkpoint** also moves the rows to the index on disk and replaces the manifest. It is for
//!    groups of blocks: what it has not reached is read again when the store is opened.
//! 4. **Truncate** removes blocks that no checkpoint has reached; **prune** removes whole segments
//!    of the oldest blocks; **pack** compresses them.
//!
//! The frames are authoritative and everything else follows from them. So the order of writing is
//! always: frames durable, then index, then manifest, then removal of what it does not list.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use varve_io::{
    Error as IoError, FRAME_HEADER_LEN, GlobalOffset, MappedLog, Segments, Storage, StoreId,
};
use varve_types::{Block, BlockHash, Format};

use crate::error::{Error, Result};
use crate::hash_table::Tag;
use crate::manifest::Manifest;
use crate::number::BlockNumber;
use crate::pack::{PackDone, PackJob};
use crate::packed::{self, Packed};
use crate::pending::{Pending, PendingBlock};
use crate::reader::{BlockReader, Shared};
use crate::row::BlockRow;
use crate::tx_offsets;
use crate::view::View;

/// The bytes of a file of tables of transaction offsets; a table is never split, so this is also
/// the longest. A block of 20 million transactions has one of 27 MB. (Small in tests, so that they
/// seal some.)
pub(crate) const OFFSETS_CAPACITY: u32 = if cfg!(test) { 2_048 } else { 32 << 20 };
/// The rows of a file of the index: 9 MiB, and 16 files for a million blocks.
pub(crate) const INDEX_ROWS: u32 = if cfg!(test) { 5 } else { 1 << 16 };

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The identity of the store: 16 bytes drawn when it is created, and never changed.
    pub store: StoreId,
    /// The key of its hash table: 16 bytes that nobody outside knows. May differ between openings.
    pub secret: [u8; 16],
    /// How the transactions of its chain are written.
    pub format: Format,
    /// The length at which a file of blocks is sealed, unless it holds a single block. May differ
    /// between openings.
    pub segment_size: u64,
}

impl Options {
    /// The usual length of a file of blocks: 1 GiB. A file stays open and takes one map, so a chain
    /// of 700 GB stays below the 1,024 open files that systems allow by default. A pruned store is
    /// better off with shorter files.
    pub const SEGMENT_SIZE: u64 = 1 << 30;

    /// Options with the usual length of files.
    #[must_use]
    pub const fn new(store: StoreId, secret: [u8; 16], format: Format) -> Self {
        Self { store, secret, format, segment_size: Self::SEGMENT_SIZE }
    }
}

/// How much of the store is durable: what the owner records when it acknowledges blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synced {
    /// How many blocks.
    pub count: u32,
    /// The end of the last of them in the log of blocks.
    pub position: GlobalOffset,
}

impl Synced {
    /// Nothing: for a store that does not exist yet.
    pub const NEW: Self = Self { count: 0, position: GlobalOffset::ZERO };
}

/// What pruning keeps: a block stays when either field covers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// All blocks from this one on.
    pub from: BlockNumber,
    /// The youngest blocks, at least this many bytes of them.
    pub bytes: u64,
}

/// The block store, owned by its one writer.
#[derive(Debug)]
pub struct BlockStore {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) options: Options,
    pub(crate) segments: Segments,
    pub(crate) index: MappedLog,
    pub(crate) offsets: MappedLog,
    /// What the stored manifest says.
    pub(crate) manifest: Manifest,
    pub(crate) shared: Arc<Shared>,
    /// Alive while a segment is being packed.
    pub(crate) packing: Weak<()>,
}

impl BlockStore {
    /// A reader of the blocks that are there now.
    #[must_use]
    pub fn reader(&self) -> BlockReader {
        BlockReader::new(&self.shared)
    }

    /// Adds a block and returns its number. A block whose hash is known is not added again: its
    /// number is returned. One whose bytes were pruned gets a new number, and is found under it.
    ///
    /// The hash covers the header only, so the caller compares the merkle root and the witness
    /// commitment first; otherwise anyone could substitute another body.
    pub fn append(&mut self, block: &Block<'_>) -> Result<BlockNumber> {
        let hash = block.hash();
        let view = self.shared.view.load_full();
        if let Some(known) = view.find(Tag::new(&self.options.secret, &hash), &hash)?
            && known >= self.reader().first_held()?
        {
            return Ok(known);
        }
        let pending = pending_block(block, hash, self.segments.end())?;
        if view.count() == BlockNumber::LIMIT {
            return Err(Error::TooBig { what: "the store has no number left for it" });
        }
        let places = self.segments.append(&[block.bytes()])?;
        assert_eq!(places, [pending.row.position], "a frame goes to the end of the log");
        Ok(self.publish(pending))
    }

    /// Makes all blocks so far durable.
    pub fn sync(&mut self) -> Result<Synced> {
        let position = self.segments.sync()?;
        Ok(Synced { count: self.count(), position })
    }

    /// Makes all blocks so far durable, and the index of them.
    pub fn checkpoint(&mut self) -> Result<Synced> {
        let packed = self.manifest.packed.clone();
        self.checkpoint_with(packed)
    }

    /// Removes all blocks but the first `count`. They must be newer than the last checkpoint, and
    /// the owner must first have lowered what it recorded as synced.
    ///
    /// Fails with [`varve_io::Error::Mapped`] when readers hold bytes of the file to be cut. The
    /// blocks are then gone from the store, but it accepts no others until the readers release
    /// them.
    pub fn truncate(&mut self, count: u32) -> Result<()> {
        let view = self.shared.view.load_full();
        let indexed = self.index_rows();
        if count >= view.count() {
            return Ok(());
        }
        if count < indexed {
            return Err(Error::Indexed { to: count, indexed });
        }
        let position = view.row(BlockNumber::new(count))?.position;
        // Recorded before anything is touched: readers check it last.
        let mut cuts = self.shared.cuts.load().as_ref().clone();
        cuts.push(count);
        self.shared.cuts.store(Arc::new(cuts));
        let mut cut = self.next_view(&view);
        cut.cuts += 1;
        cut.pending = view.pending.cut((count - view.indexed) as usize);
        cut.table = Arc::new(view.table().copy_below(count)).into();
        cut.verified = view.verified.cut(count);
        cut.count = count.into();
        self.shared.view.store(Arc::new(cut));
        Ok(self.segments.truncate(position)?)
    }

    /// Removes the files that hold nothing of what is to be kept, and returns the first block
    /// that is still held. Rows are kept for ever, and so is the file that grows.
    pub fn prune(&mut self, keep: Keep) -> Result<BlockNumber> {
        let view = self.shared.view.load_full();
        let held = self.reader().first_held()?;
        let end = self.segments.end();
        let position = match keep.from.get() < view.count() {
            true => view.row(keep.from)?.position,
            false => end,
        };
        let position = position.min(GlobalOffset::new(end.get().saturating_sub(keep.bytes)));
        let kept = self.manifest.packed.iter().filter(|range| range.end > position);
        let kept: Vec<_> = kept.cloned().collect();
        let plain = self.segments.reader().files();
        let goes = plain.first().is_some_and(|first| plain.len() > 1 && first.end <= position);
        if goes || kept.len() < self.manifest.packed.len() {
            // Rows cannot be made from bytes that are gone, so they are made durable first.
            self.checkpoint_with(kept)?;
            self.segments.prune(position)?;
        }
        let first = self.reader().first_held()?;
        assert!(first <= keep.from.max(held), "a block that is to be kept is still held");
        Ok(first)
    }

    /// The oldest plain segment, to be compressed, when it is sealed. There is one job at a time:
    /// `None` while another is neither finished nor dropped, because both would write the same
    /// file.
    pub fn pack_job(&mut self) -> Result<Option<PackJob>> {
        if self.packing.strong_count() > 0 {
            return Ok(None);
        }
        let segments = self.segments.reader();
        let files = segments.files();
        let [first, _, ..] = files.as_slice() else { return Ok(None) };
        let (storage, store) = (Arc::clone(&self.storage), self.options.store);
        let claim = Arc::new(());
        self.packing = Arc::downgrade(&claim);
        Ok(Some(PackJob { storage, segments, store, range: first.clone(), claim }))
    }

    /// The bytes of the segments that are sealed and not compressed.
    #[must_use]
    pub fn unpacked_bytes(&self) -> u64 {
        let files = self.segments.reader().files();
        let sealed = files.split_last().map_or(&[][..], |(_, sealed)| sealed);
        sealed.iter().map(|range| range.end.since(range.start).unwrap_or_default()).sum()
    }

    /// Replaces a plain segment by its packed form. Does nothing when the segment was pruned in the
    /// meantime.
    pub fn finish_pack(&mut self, done: PackDone) -> Result<()> {
        let range = done.range;
        assert!(range.start < range.end, "a packed segment holds a frame at least");
        if self.segments.start() != range.start {
            return remove_if_there(self.storage.as_ref(), &packed::file_name(range.start));
        }
        let mut packed = self.manifest.packed.clone();
        packed.push(range.clone());
        self.checkpoint_with(packed)?;
        self.segments.prune(range.end)?;
        Ok(())
    }

    /// The number of blocks.
    pub(crate) fn count(&self) -> u32 {
        self.shared.view.load().count()
    }

    /// Makes a block whose frame is written visible to readers.
    pub(crate) fn publish(&mut self, block: PendingBlock) -> BlockNumber {
        let view = self.roomy_view();
        let number = BlockNumber::new(view.count());
        assert!(view.indexed <= number.get(), "an indexed block was counted before");
        let tag = Tag::new(&self.options.secret, &block.row.hash);
        view.pending.set((number.get() - view.indexed) as usize, Arc::new(block));
        view.table().insert(tag, number);
        // Release: a reader that sees the count sees the row and finds the hash.
        view.count.store(number.get() + 1, Ordering::Release);
        number
    }

    /// The current view, or a larger one in its place when one of its parts is full.
    fn roomy_view(&self) -> Arc<View> {
        let view = self.shared.view.load_full();
        let count = view.count();
        let blocks = count as usize + 1;
        let waiting = (count - view.indexed) as usize;
        let fits = waiting < view.pending.room()
            && blocks <= view.table().room()
            && blocks <= view.verified.room();
        if fits {
            return view;
        }
        let mut next = self.next_view(&view);
        if waiting == next.pending.room() {
            next.pending = next.pending.grown();
        }
        if blocks > next.table().room() {
            next.table = Arc::new(next.table().copy_below(count)).into();
        }
        next.verified = next.verified.grown(blocks);
        self.shared.view.store(Arc::new(next));
        self.shared.view.load_full()
    }

    /// A view that is the same as `view`.
    fn next_view(&self, view: &View) -> View {
        View {
            cuts: view.cuts,
            indexed: view.indexed,
            index: self.index.reader().snapshot(),
            offsets: self.offsets.reader().snapshot(),
            pending: view.pending.clone(),
            table: Arc::clone(view.table()).into(),
            secret: view.secret,
            verified: view.verified.clone(),
            count: view.count().into(),
        }
    }

    /// How many rows the log of the index has; more than the manifest says after a checkpoint that
    /// failed halfway.
    fn index_rows(&self) -> u32 {
        let rows = self.index.end().get() / BlockRow::LEN as u64;
        u32::try_from(rows).expect("the store hands out numbers of 32 bits")
    }

    /// A checkpoint whose manifest lists these packed segments; those it no longer lists are
    /// removed. May be repeated after a failure.
    fn checkpoint_with(&mut self, packed: Vec<Range<GlobalOffset>>) -> Result<Synced> {
        let synced = self.sync()?;
        let view = self.shared.view.load_full();
        for number in self.index_rows()..synced.count {
            let index = (number - view.indexed) as usize;
            let block = view.pending.get(index).expect("what is not indexed is pending");
            let offsets_at = self.offsets.append(&block.offsets)?;
            self.index.append(&BlockRow { offsets_at, ..block.row.clone() }.encode())?;
        }
        assert_eq!(self.index_rows(), synced.count, "every block in the index has its row");
        let (index, offsets) = (self.index.sync()?, self.offsets.sync()?);
        if packed.len() > self.manifest.packed.len() {
            // The name of a packed file must be durable before the manifest lists it.
            self.storage.sync_dir()?;
        }
        assert!(
            packed.windows(2).all(|pair| matches!(pair, [old, young] if old.end == young.start)),
            "packed segments follow one another without gaps"
        );
        assert!(synced.position >= self.manifest.position, "the index never goes back");
        let store = self.options.store;
        let manifest = Manifest { store, position: synced.position, index, offsets, packed };
        let mut dropped = Vec::new();
        if manifest != self.manifest {
            let opened = self.open_packed(&manifest)?;
            manifest.replace(self.storage.as_ref())?;
            let before = std::mem::replace(&mut self.manifest, manifest).packed;
            self.shared.packed.store(Arc::new(opened));
            dropped
                .extend(before.into_iter().filter(|range| !self.manifest.packed.contains(range)));
        }
        let mut next = self.next_view(&view);
        next.indexed = synced.count;
        next.pending = Pending::default();
        self.shared.view.store(Arc::new(next));
        for range in dropped {
            remove_if_there(self.storage.as_ref(), &packed::file_name(range.start))?;
        }
        Ok(synced)
    }

    /// The packed segments that `manifest` names; those that are open stay so.
    pub(crate) fn open_packed(&self, manifest: &Manifest) -> Result<Vec<Arc<Packed>>> {
        let open = self.shared.packed.load();
        let named = manifest.packed.iter().map(|range| {
            match open.iter().find(|packed| packed.range() == range) {
                Some(packed) => Ok(Arc::clone(packed)),
                None => {
                    Packed::open(self.storage.as_ref(), self.options.store, range).map(Arc::new)
                }
            }
        });
        named.collect()
    }
}

/// The row and the table of a block whose frame goes to `position`.
pub(crate) fn pending_block(
    block: &Block<'_>,
    hash: BlockHash,
    position: GlobalOffset,
) -> Result<PendingBlock> {
    let starts: Vec<u64> = block.txs_with_offsets().map(|(offset, _)| offset as u64).collect();
    let length = block.bytes().len() as u64;
    let header = *block.header().bytes();
    let txs = u32::try_from(starts.len()).ok();
    let table = txs.and_then(|txs| tx_offsets::table_len(txs, length));
    let fits = table.is_some_and(|len| len as u64 <= u64::from(OFFSETS_CAPACITY));
    let table = if fits { tx_offsets::encode(&starts, length) } else { None };
    let (Some(txs), Some(offsets)) = (txs, table) else {
        return Err(Error::TooBig { what: "it has too many transactions, or none" });
    };
    let row = BlockRow { hash, header, position, length, offsets_at: GlobalOffset::ZERO, txs };
    Ok(PendingBlock { row, offsets })
}

/// The position after the block of this row.
pub(crate) const fn end_of(row: &BlockRow) -> GlobalOffset {
    row.position.plus(FRAME_HEADER_LEN as u64).plus(row.length)
}

fn remove_if_there(storage: &dyn Storage, name: &str) -> Result<()> {
    match storage.remove(name) {
        Ok(()) => Ok(storage.sync_dir()?),
        Err(IoError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;

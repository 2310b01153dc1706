//! Opening the store: the frames are authoritative, the rest is rebuilt from them.
//!
//! 1. The manifest says how far the index goes. The logs of rows and of tables are opened there,
//!    and whatever was written after it is cut off.
//! 2. The log of blocks is opened. Everything that the owner recorded as synced, or the manifest as
//!    indexed, must be there. What lies after it is kept as far as its frames verify, and made
//!    durable; a torn tail is cut.
//! 3. Files that the manifest does not list are removed: packed files of a process that died before
//!    its manifest, and plain files that a packed one replaced.
//! 4. The hash table is filled from the rows of the index, one after the other.
//! 5. The frames after the index are parsed, and their rows and tables rebuilt.

use std::sync::{Arc, OnceLock, Weak};

use varve_io::{
    Error as IoError, FileOffset, Kind, LogReader, MappedLog, MappedLogConfig, Segments,
    SegmentsConfig, SegmentsReader, Storage, StoreId, is_envelope, is_segment, remove_unnamed,
};
use varve_types::Block;

use crate::error::{Error, Result};
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::number::BlockNumber;
use crate::packed::{self, Packed};
use crate::pending::Pending;
use crate::reader::{BlockReader, Shared};
use crate::row::BlockRow;
use crate::store::{
    BlockStore, INDEX_ROWS, OFFSETS_CAPACITY, Options, Synced, end_of, pending_block,
};
use crate::verified::Verified;
use crate::view::View;

/// How the names of files of blocks begin.
const BLOCKS_PREFIX: &str = "blocks";
const INDEX_PREFIX: &str = "index";
const OFFSETS_PREFIX: &str = "offsets";

impl BlockStore {
    /// Opens the store in `storage`, creating it with the first block when there is none. `synced`
    /// is what the owner last recorded, [`Synced::NEW`] for a new store. The owner holds the lock
    /// of the directory.
    ///
    /// All blocks that were synced are there, under their numbers. Later blocks are there as well
    /// if they were written whole.
    pub fn open(storage: Arc<dyn Storage>, options: Options, synced: Synced) -> Result<Self> {
        let manifest = Manifest::load(storage.as_ref(), options.store)?;
        let Options { store, secret, .. } = options;
        let index = MappedLog::open(Arc::clone(&storage), index_log(store), manifest.index)?;
        let offsets = MappedLog::open(Arc::clone(&storage), offsets_log(store), manifest.offsets)?;
        let durable = synced.position.max(manifest.position);
        let segments = Segments::open(Arc::clone(&storage), block_log(&options), durable)?;
        let view = first_view(&index.reader(), &offsets.reader(), secret)?;
        view.filled_table()?;
        let shared = Arc::new(Shared {
            store,
            secret,
            segments: segments.reader(),
            view: Arc::new(view).into(),
            packed: Default::default(),
            cuts: Default::default(),
        });
        let packing = Weak::new();
        let mut opened =
            Self { storage, options, segments, index, offsets, manifest, shared, packing };
        opened.settle_packed()?;
        opened.read_on(synced)?;
        Ok(opened)
    }

    /// Removes everything that is derived from the frames, so that opening rebuilds it. Does
    /// nothing when some frames are pruned or packed, for then it could not be rebuilt. The caller
    /// holds the lock of the directory.
    pub fn forget_index(storage: &dyn Storage) -> Result<()> {
        let names = storage.list()?;
        let first = names.iter().find(|name| is_segment(BLOCKS_PREFIX, name));
        let is_packed = names.iter().any(|name| packed::is_file(name));
        let is_whole = first.is_some_and(|name| name.ends_with("-000000000000")) && !is_packed;
        if !is_whole {
            return Ok(());
        }
        // First the file that lists the others.
        if names.iter().any(|name| name == MANIFEST_FILE) {
            storage.remove(MANIFEST_FILE)?;
            storage.sync_dir()?;
        }
        let is_derived = |name: &str| {
            [INDEX_PREFIX, OFFSETS_PREFIX].iter().any(|prefix| is_segment(prefix, name))
        };
        for name in names.iter().filter(|name| is_derived(name)) {
            storage.remove(name)?;
        }
        Ok(storage.sync_dir()?)
    }

    /// Whether a block store writes files of this name.
    #[must_use]
    pub fn is_store_file(name: &str) -> bool {
        let is_log = |prefix: &&str| is_segment(prefix, name);
        is_envelope(MANIFEST_FILE, name)
            || [BLOCKS_PREFIX, INDEX_PREFIX, OFFSETS_PREFIX].iter().any(is_log)
            || packed::is_file(name)
    }

    /// Opens the packed segments and finishes what a crash interrupted.
    fn settle_packed(&mut self) -> Result<()> {
        let packed = self.open_packed(&self.manifest)?;
        let end = packed.last().map(|last| last.range().end);
        self.shared.packed.store(Arc::new(packed));
        if let Some(end) = end {
            let (start, last) = (self.segments.start(), self.segments.end());
            if end < start {
                let path = self.storage.path().join(BLOCKS_PREFIX);
                return Err(IoError::OutOfRange { path, at: end, start, end: last }.into());
            }
            self.segments.prune(end)?;
        }
        let names = self.manifest.packed.iter().map(|range| packed::file_name(range.start));
        let names: Vec<String> = names.collect();
        for name in self.storage.list()? {
            if packed::is_file(&name) && !names.contains(&name) {
                let is_next = name == packed::file_name(self.segments.start());
                let store = (self.options.store, 0);
                remove_unnamed(self.storage.as_ref(), &name, store, !is_next)?;
            }
        }
        Ok(self.storage.sync_dir()?)
    }

    /// Rebuilds the rows of the blocks after the index.
    fn read_on(&mut self, synced: Synced) -> Result<()> {
        let from = self.manifest.position;
        let view = self.shared.view.load_full();
        let last = view.count().checked_sub(1).map(|last| view.row(BlockNumber::new(last)));
        if last.transpose()?.is_some_and(|row| end_of(&row) != from) {
            let path = self.storage.path().join(MANIFEST_FILE);
            let what = "the manifest and the index end at different blocks";
            return Err(IoError::Corrupt { path, offset: FileOffset::ZERO, what }.into());
        }
        for frame in self.segments.reader().frames(from) {
            let frame = frame?;
            let number = BlockNumber::new(self.count());
            let block = Block::parse(&frame, self.options.format)
                .map_err(|source| Error::Undecodable { number, source })?;
            let pending = pending_block(&block, block.hash(), frame.at())?;
            self.publish(pending);
        }
        let count = self.count();
        if count < synced.count {
            Err(Error::Missing { count, synced: synced.count })
        } else {
            Ok(())
        }
    }
}

impl BlockReader {
    /// Opens a store that nobody writes to, and changes nothing. `None` when there is none, and
    /// when opening it for writing would have something to do: blocks that are not in the index.
    /// The owner holds the lock of the directory.
    ///
    /// No row is read: a query opens the files it needs. The first [`BlockReader::number_of`] reads
    /// the hashes of all blocks.
    pub fn at_rest(storage: &Arc<dyn Storage>, options: &Options) -> Result<Option<Self>> {
        let Options { store, secret, .. } = *options;
        let manifest = Manifest::load(storage.as_ref(), store)?;
        let config = block_log(options);
        let segments = SegmentsReader::at_rest(storage.as_ref(), &config, manifest.position)?;
        let log = |config, at| LogReader::at_rest(Arc::clone(storage), config, at);
        let index = log(index_log(store), manifest.index);
        let offsets = log(offsets_log(store), manifest.offsets);
        let view = first_view(&index, &offsets, secret)?;
        let packed = manifest.packed.iter();
        let packed = packed.map(|range| Packed::open(storage.as_ref(), store, range).map(Arc::new));
        let packed: Vec<_> = packed.collect::<Result<_>>()?;
        // A plain file that was packed is removed when the store is opened for writing.
        let end = packed.last().map(|last| last.range().end);
        let segments = segments
            .filter(|segments| view.count() > 0 && end.is_none_or(|end| end == segments.start()));
        let view = Arc::new(view).into();
        let (packed, cuts) = (Arc::new(packed).into(), Default::default());
        Ok(segments.map(|segments| {
            Self::new(&Arc::new(Shared { store, secret, segments, view, packed, cuts }))
        }))
    }
}

fn index_log(store: StoreId) -> MappedLogConfig {
    let row_len = u32::try_from(BlockRow::LEN).expect("144");
    let (prefix, kind) = (INDEX_PREFIX.to_owned(), Kind(*b"BLOCKIDX"));
    MappedLogConfig { prefix, kind, store, capacity: INDEX_ROWS * row_len }
}

fn offsets_log(store: StoreId) -> MappedLogConfig {
    let (prefix, kind) = (OFFSETS_PREFIX.to_owned(), Kind(*b"BLOCKTXO"));
    MappedLogConfig { prefix, kind, store, capacity: OFFSETS_CAPACITY }
}

fn block_log(options: &Options) -> SegmentsConfig {
    let Options { store, segment_size, .. } = *options;
    let (prefix, kind) = (BLOCKS_PREFIX.to_owned(), Kind(*b"BLOCKS\0\0"));
    SegmentsConfig { prefix, kind, store, segment_size }
}

/// The view of the rows in the index.
fn first_view(index: &LogReader, offsets: &LogReader, secret: [u8; 16]) -> Result<View> {
    let index = index.snapshot();
    let rows = u32::try_from(index.end().get() / BlockRow::LEN as u64)
        .map_err(|_| Error::TooBig { what: "the index has more rows than there are numbers" })?;
    Ok(View {
        cuts: 0,
        indexed: rows,
        index,
        offsets: offsets.snapshot(),
        pending: Pending::default(),
        table: OnceLock::new(),
        secret,
        verified: Verified::default().grown(rows as usize),
        count: rows.into(),
    })
}

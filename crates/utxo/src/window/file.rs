//! The window in a file, so that a clean reopening replays nothing.
//!
//! A page file (`varve_io`), whose pages from the second on hold one stream of bytes, integers
//! little-endian, padded with zeroes:
//!
//! ```text
//!  stream  │ sequence u32 │ panes u32 │ pane │ pane │ …         oldest first
//!  pane    │ first u32 │ last u32 │ height u32 │ steps u32 │ entries u64 │ chunk │ chunk │ …
//!  chunk   │ bytes u32 │ entries u32 │ the entries, as in `entry_list` │
//! ```
//!
//! Only living entries are written: there are no readers of earlier states after a restart. In the
//! loaded window all entries belong to one step, the one after which the file was written.
//!
//! The file is valid when the owner's manifest lists it, with its id and its number of pages. It
//! holds the state of that manifest's step; later steps are replayed from the chain.

use std::num::NonZeroUsize;
use std::path::Path;

use varve_io::{
    Error, FileId, Kind, PAGE_PAYLOAD_LEN, PageFile, PageFileWriter, PageNumber, Result, Storage,
};
use varve_runs::{Sequence, Stop};
use varve_types::{Height, Reader};

use super::{LOADED_BATCHES, PaneState, Step, Window, WindowConfig};
use crate::entry::Entry;
use crate::entry_list::{EntryList, write_entry};
use crate::hasher::OutpointHasher;
use crate::pane::{Pane, PaneInfo};
use crate::sync::Arc;

const KIND: Kind = Kind(*b"UTXOWIN1");
/// A chunk ends when it is longer than this.
const CHUNK: usize = 1 << 18;
/// Bytes of chunks that are loaded into one batch per shard: a quarter of its capacity. (Small in
/// tests, so that they load several.)
const BATCH: usize = if cfg!(test) { 1 << 14 } else { 1 << 30 };
const TOO_MANY: &str = "more entries than the pane says";

/// What a manifest needs to name a window file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowFile {
    /// The file's name.
    pub name: String,
    /// The id in its pages: another for every file.
    pub id: FileId,
    /// How many pages it has.
    pub pages: u64,
}

/// The window at one moment, to be written to a file beside the steps that follow.
#[derive(Debug)]
pub(crate) struct WindowImage {
    sequence: Sequence,
    panes: Vec<(Arc<Pane>, PaneInfo)>,
}

impl WindowImage {
    /// Writes the file `name` and syncs its data; the caller syncs the name. `None` when `stop` was
    /// set; then the file is incomplete.
    pub(crate) fn save(
        &self,
        storage: &dyn Storage,
        name: &str,
        id: FileId,
        stop: &Stop,
    ) -> Result<Option<WindowFile>> {
        let writer = PageFileWriter::create(storage, name, KIND, id)?;
        let mut out = Stream { writer, gathered: Vec::new() };
        out.put(&self.sequence.to_u32().to_le_bytes())?;
        let panes = u32::try_from(self.panes.len()).expect("panes of at least a step each");
        out.put(&panes.to_le_bytes())?;
        for (pane, info) in &self.panes {
            let steps = u32::try_from(info.steps).expect("at most 4,031 steps");
            for number in [info.first.to_u32(), info.last.to_u32(), info.height.to_u32(), steps] {
                out.put(&number.to_le_bytes())?;
            }
            out.put(&(info.living as u64).to_le_bytes())?;
            for shard in pane.shards() {
                if stop.is_set() {
                    return Ok(None);
                }
                out.put_chunks(shard.living(self.sequence).map(|seen| seen.entry()))?;
            }
        }
        let pages = out.finish()?;
        Ok(Some(WindowFile { name: name.to_owned(), id, pages }))
    }
}

impl Window {
    /// The window as it is now, for a file. Steps that follow do not change it: it includes what
    /// dies later and excludes what is added later.
    pub(crate) fn image(&self) -> WindowImage {
        let panes = self.panes.iter().map(|state| Arc::clone(&state.pane));
        WindowImage { sequence: self.sequence, panes: panes.zip(self.panes()).collect() }
    }

    /// Writes the window to the file `name` and syncs its data. The name is the caller's to sync.
    #[cfg(feature = "test-suite")]
    pub fn save(&self, storage: &dyn Storage, name: &str, id: FileId) -> Result<WindowFile> {
        let saved = self.image().save(storage, name, id, &Stop::never())?;
        Ok(saved.expect("the flag is never set"))
    }

    /// Loads a window that was saved. The number of shards may differ from then, the secret may
    /// not.
    pub fn load(
        storage: &dyn Storage,
        saved: &WindowFile,
        config: WindowConfig,
        hasher: OutpointHasher,
        workers: NonZeroUsize,
    ) -> Result<Self> {
        let file = PageFile::open(storage, &saved.name, (KIND, saved.id), saved.pages)?;
        let path = &storage.path().join(&saved.name);
        let mut source = Source { file: &file, path, page: PageNumber(0), rest: &[] };
        let sequence = Sequence::new(source.u32()?);
        let panes = source.u32()?;
        let mut window = Self::new(config, hasher, sequence);
        for number in 0..panes {
            if number > 0 {
                window.begin_pane();
            }
            window.load_pane(&mut source, workers)?;
        }
        window.publish();
        Ok(window)
    }

    /// Fills the youngest pane, which is new.
    fn load_pane(&mut self, source: &mut Source<'_>, workers: NonZeroUsize) -> Result<()> {
        let (first, last) = (Sequence::new(source.u32()?), Sequence::new(source.u32()?));
        let (height, steps) = (Height::new(source.u32()?), source.u32()? as usize);
        let mut missing = source.u64()?;
        let (mut batch_bytes, mut batches) = (0, 0);
        let (mut bytes, mut list) = (Vec::new(), EntryList::new());
        while missing > 0 {
            let count = source.chunk(&mut bytes, &mut list)?;
            missing = missing.checked_sub(count).ok_or_else(|| source.corrupt(TOO_MANY))?;
            let sequence = self.sequence;
            let step = Step { sequence, height, spends: &[], replaces: None };
            let adds = self.lay_out(sequence, list.iter());
            if self.stage(&step, adds, workers).is_some() {
                return Err(source.corrupt("entries that contradict one another"));
            }
            batch_bytes += bytes.len();
            if batch_bytes > BATCH {
                batch_bytes = 0;
                batches += 1;
                self.shards.iter_mut().for_each(|shard| shard.commit(false));
            }
            if batches >= LOADED_BATCHES {
                return Err(source.corrupt("a pane that is larger than a pane can be"));
            }
        }
        self.shards.iter_mut().for_each(|shard| shard.commit(false));
        if let Some(state) = self.panes.back_mut() {
            *state = PaneState { first, last, height, steps, ..state.clone() };
        }
        Ok(())
    }
}

/// The stream being written into pages.
struct Stream {
    writer: PageFileWriter,
    gathered: Vec<u8>,
}

impl Stream {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() < CHUNK {
            return Ok(());
        }
        let (pages, rest) = self.gathered.as_chunks::<PAGE_PAYLOAD_LEN>();
        for page in pages {
            self.writer.push(page)?;
        }
        let rest = rest.len();
        self.gathered.drain(..self.gathered.len() - rest);
        Ok(())
    }

    fn put_chunks<'e>(&mut self, entries: impl Iterator<Item = Entry<'e>>) -> Result<()> {
        let (mut chunk, mut count) = (Vec::with_capacity(CHUNK + CHUNK / 8), 0_u32);
        for entry in entries {
            write_entry(&entry, &mut chunk);
            count += 1;
            if chunk.len() >= CHUNK {
                self.put_chunk(&chunk, count)?;
                chunk.clear();
                count = 0;
            }
        }
        if count > 0 { self.put_chunk(&chunk, count) } else { Ok(()) }
    }

    fn put_chunk(&mut self, chunk: &[u8], count: u32) -> Result<()> {
        let len = u32::try_from(chunk.len()).expect("a script of at most 1 GiB ends the chunk");
        self.put(&len.to_le_bytes())?;
        self.put(&count.to_le_bytes())?;
        self.put(chunk)
    }

    fn finish(mut self) -> Result<u64> {
        for page in self.gathered.chunks(PAGE_PAYLOAD_LEN) {
            self.writer.push(page)?;
        }
        Ok(self.writer.finish()?.pages())
    }
}

/// The stream being read from pages.
struct Source<'f> {
    file: &'f PageFile,
    path: &'f Path,
    page: PageNumber,
    rest: &'f [u8],
}

impl Source<'_> {
    fn fill(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if self.rest.is_empty() {
                self.page = PageNumber(self.page.0 + 1);
                self.rest = self.file.resident(self.page)?;
            }
            let taken = out.len().min(self.rest.len());
            let (now, later) = out.split_at_mut(taken);
            let (bytes, rest) = self.rest.split_at(taken);
            now.copy_from_slice(bytes);
            (out, self.rest) = (later, rest);
        }
        Ok(())
    }

    fn u32(&mut self) -> Result<u32> {
        let mut bytes = [0; size_of::<u32>()];
        self.fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64> {
        let mut bytes = [0; size_of::<u64>()];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads a chunk into `bytes`, its entries into `list`, and returns their number.
    fn chunk(&mut self, bytes: &mut Vec<u8>, list: &mut EntryList) -> Result<u64> {
        let (len, count) = (self.u32()? as usize, u64::from(self.u32()?));
        let pages = self.file.pages().saturating_sub(self.page.0);
        if len as u64 > pages.saturating_mul(PAGE_PAYLOAD_LEN as u64) || count == 0 {
            return Err(self.corrupt("a chunk without entries, or longer than the file"));
        }
        bytes.clear();
        bytes.resize(len, 0);
        self.fill(bytes)?;
        list.clear();
        let mut reader = Reader::new(bytes);
        let decoded = list.read_many(count, &mut reader);
        decoded.map_err(|_| self.corrupt("an entry that does not decode"))?;
        reader.end().map_err(|_| self.corrupt("bytes after the entries of a chunk"))?;
        Ok(count)
    }

    fn corrupt(&self, what: &'static str) -> Error {
        Error::Corrupt { path: self.path.to_path_buf(), offset: self.page.offset(), what }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

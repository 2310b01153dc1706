//! The block files of a node, `blk*.dat`: a folder of them, a folder with `blocks/` in it, or one
//! file.
//!
//! 1. A walk over the heads of the records finds every header (`scan`) and puts parents first
//!    (`linker`). Headers are given during the walk.
//! 2. Where each block is stays in memory, about 100 bytes each, and a block that is wanted is read
//!    from there by one of two threads, a few blocks ahead of the receiver. One that has not been
//!    found yet, since the receiver knew its header before, is looked for to the end of the walk.
//! 3. With `follow` the folder is polled (`watch`), and the walk resumes where it stopped: in files
//!    that grow or were written over, and in new ones. What that costs depends on what is new, not
//!    on how many files there are.
//!
//! Files are plain, or XORed with the key in `xor.dat` beside them. Stale blocks are among the
//! others. What cannot be used is a [`Warning`]: a last record that is not all there, blocks whose
//! parents are in no file.

mod scan;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use varve_types::blk::XorKey;
use varve_types::{BlockHash, Header, Network};

use self::scan::{Framing, Location, Unread, Walk, failed, read_block};
use self::watch::{FileName, Watch};
use super::linker::{Found, Linker};
use super::pool::{AHEAD, Fetcher, Pool};
use super::queue::{Inbox, Weigh, queue};
use super::{Event, Giver, Source, SourceError, Warning};

const READERS: usize = 2;
/// How long a folder without news is left alone.
const POLL: Duration = Duration::from_millis(250);

/// A source over block files.
pub struct Directory {
    place: Place,
    framing: Framing,
    follow: bool,
    /// Every file that was ever there.
    walks: Vec<Walk>,
    /// Their paths.
    known: HashSet<Arc<Path>>,
    /// The files that are to be walked over, the next first.
    due: VecDeque<usize>,
    watch: Watch,
    linker: Linker<Location, Location>,
    events: VecDeque<Event>,
    fetched: Inbox<Done>,
    pool: Pool<Job>,
    /// Blocks asked of the pool and not given yet.
    owed: usize,
    /// Whether [`Event::HeadersDone`] has been given since the last news.
    done: bool,
    /// Whether the warnings about what is left out have been given.
    warned: bool,
}

/// What was named by the user.
enum Place {
    Folder(PathBuf),
    File(PathBuf),
}

struct Job {
    hash: BlockHash,
    path: Arc<Path>,
    at: Location,
}

/// A job that was done: the block, or `None` when it is not there any more.
struct Done {
    hash: BlockHash,
    result: Result<Option<Vec<u8>>, SourceError>,
}

impl Weigh for Done {
    fn weight(&self) -> u64 {
        self.result.as_ref().map_or(0, |bytes| bytes.as_ref().map_or(0, Vec::len) as u64)
    }
}

impl Directory {
    /// Opens a folder of block files, a folder that has `blocks/`, or one block file.
    pub fn open(path: &Path, network: Network, follow: bool) -> Result<Self, SourceError> {
        let metadata = fs::metadata(path).map_err(failed(path))?;
        let blocks = path.join("blocks");
        let (place, folder) = if metadata.is_dir() {
            let folder = if blocks.is_dir() { blocks } else { path.to_owned() };
            (Place::Folder(folder.clone()), folder)
        } else if metadata.is_file() {
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            (Place::File(path.to_owned()), folder)
        } else {
            return Err(SourceError::NotAFile { path: path.to_owned() });
        };
        let framing = Framing { network, key: read_key(&folder.join("xor.dat"))? };
        let (sender, fetched) = queue(AHEAD);
        let reader = |_| Reader { key: framing.key, open: None };
        let mut directory = Self {
            place,
            framing,
            follow,
            walks: Vec::new(),
            known: HashSet::new(),
            due: VecDeque::new(),
            watch: Watch::default(),
            linker: Linker::new(network.genesis_hash(), |location| *location),
            events: VecDeque::new(),
            fetched,
            pool: Pool::new((0..READERS).map(reader), &sender),
            owed: 0,
            done: false,
            warned: false,
        };
        directory.list()?;
        if directory.walks.is_empty() {
            return Err(SourceError::NoBlocks { path: folder });
        }
        directory.walk_to_first()?;
        Ok(directory)
    }

    /// Walks until there is a record. Whether the blocks are of another network shows in the first
    /// file that is not empty.
    fn walk_to_first(&mut self) -> Result<(), SourceError> {
        let mut empty = None;
        while let Some(index) = self.due.front().copied() {
            self.walk()?;
            let walk = self.walks.get(index).expect("a file of the list");
            if !walk.is_empty() || walk.unread(self.framing, |_| false)?.is_some() {
                return Ok(());
            }
            if self.due.front() == Some(&index) {
                continue;
            }
            match walk.why_empty(self.framing)? {
                error @ SourceError::Empty { .. } => empty = empty.or(Some(error)),
                // A file that a node has just begun may be anything.
                SourceError::WrongNetwork { found, .. } if self.follow && found.is_empty() => {}
                error => return Err(error),
            }
        }
        empty.filter(|_| !self.follow).map_or(Ok(()), Err)
    }

    /// Adds the files that are not in the list yet.
    fn list(&mut self) -> Result<(), SourceError> {
        let paths = match &self.place {
            Place::File(path) => vec![path.clone()],
            Place::Folder(folder) => {
                let (paths, entries) = block_files(folder).map_err(failed(folder))?;
                self.watch.listed(entries);
                paths
            }
        };
        paths.into_iter().for_each(|path| self.add(path));
        Ok(())
    }

    /// Adds a file, unless it is known.
    fn add(&mut self, path: PathBuf) {
        let path: Arc<Path> = Arc::from(path);
        if !self.known.insert(Arc::clone(&path)) {
            return;
        }
        let index = self.walks.len();
        let number = u32::try_from(index).expect("folders have fewer files");
        self.watch.added(FileName::of(&path), index);
        self.walks.push(Walk::new(path, number));
        self.due.push_back(index);
    }

    /// Takes a step of the walk. `false`: there is nothing to walk over.
    fn walk(&mut self) -> Result<bool, SourceError> {
        let Some(index) = self.due.front().copied() else { return Ok(false) };
        let newest = self.watch.newest() == Some(index);
        let (mut found, mut linked) = (Vec::new(), Vec::new());
        let walk = self.walks.get_mut(index).expect("files are known before they are due");
        if !walk.step(self.framing, newest, &mut found)? {
            self.due.pop_front();
        }
        let mut unknown = Vec::new();
        for found in found {
            unknown.extend(self.linker.push(found, &mut linked));
        }
        self.give(linked);
        // Most were only out of order, and have come behind their children.
        unknown.retain(|hash| !self.linker.is_linked(hash));
        self.events.extend(unknown.into_iter().map(|hash| Event::Parent { hash }));
        Ok(true)
    }

    fn give(&mut self, linked: Vec<Found<Location>>) {
        if linked.is_empty() {
            return;
        }
        self.done = false;
        let headers = linked.into_iter().map(|found| found.header).collect();
        self.events.push_back(Event::Headers { headers, giver: Giver::ONLY });
    }

    /// At the end of the walk.
    fn finish(&mut self) -> Result<(), SourceError> {
        if !self.follow && !self.warned {
            self.warned = true;
            for walk in &self.walks {
                let path = walk.path.to_path_buf();
                let unread = walk.unread(self.framing, |hash| self.linker.is_linked(hash))?;
                let bytes = walk.skipped(unread.is_some());
                let skipped = Warning::Skipped { path: path.clone(), bytes };
                let incomplete =
                    |Unread { offset, header }| Warning::Incomplete { path, offset, header };
                let warnings = (bytes > 0).then_some(skipped).into_iter();
                self.events.extend(warnings.chain(unread.map(incomplete)).map(Event::Warning));
            }
            let count = self.linker.waiting();
            let unlinked = (count > 0).then_some(Warning::Unlinked { count });
            self.events.extend(unlinked.map(Event::Warning));
        }
        if !self.done {
            self.done = true;
            self.events.push_back(Event::HeadersDone);
        }
        Ok(())
    }

    /// What the pool has fetched, within `timeout`.
    fn fetched(&mut self, timeout: Duration) -> Result<Option<Event>, SourceError> {
        let Ok(Done { hash, result }) = self.fetched.recv_timeout(timeout) else {
            assert!(!self.pool.has_ended(), "a thread that reads blocks has panicked");
            return Ok(None);
        };
        self.owed -= 1;
        Ok(Some(match result? {
            Some(bytes) => Event::Block { hash, bytes, giver: Giver::ONLY },
            None => Event::Missing { hash, giver: Giver::ONLY },
        }))
    }

    /// Waits, and looks for what is new.
    fn look_again(&mut self, timeout: Duration) -> Result<(), SourceError> {
        thread::sleep(timeout.min(POLL));
        // Before the next file is begun the last one is written to its end.
        let newest = self.watch.newest();
        self.due.extend(newest);
        if let Place::Folder(folder) = &self.place {
            let folder = folder.clone();
            while let Some(path) = self.watch.next_file(&folder).filter(|path| path.is_file()) {
                self.add(path);
            }
            let modified = fs::metadata(&folder).and_then(|metadata| metadata.modified()).ok();
            if self.watch.is_list_due(modified) {
                self.list()?;
            }
        }
        for index in self.watch.sweep(self.walks.len()) {
            let walk = self.walks.get(index).expect("a file of the list");
            if Some(index) != newest && walk.is_due()? {
                self.due.push_back(index);
            }
        }
        while self.walk()? {}
        Ok(())
    }
}

impl Source for Directory {
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError> {
        locator.iter().for_each(|hash| self.root(*hash));
        self.done = false;
        Ok(())
    }

    fn root(&mut self, hash: BlockHash) {
        let mut linked = Vec::new();
        self.linker.root(hash, &mut linked);
        self.give(linked);
    }

    fn want(&mut self, giver: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
        for hash in hashes {
            let mut at = self.linker.kept(hash);
            while at.is_none() && self.walk()? {
                at = self.linker.kept(hash);
            }
            match at.and_then(|at| Some((at, self.walks.get(at.file as usize)?))) {
                Some((at, walk)) => {
                    self.owed += 1;
                    self.pool.push([Job { hash: *hash, path: walk.path.clone(), at }]);
                }
                None => self.events.push_back(Event::Missing { hash: *hash, giver }),
            }
        }
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError> {
        let mut left = timeout;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if let Some(event) = self.fetched(Duration::ZERO)? {
                return Ok(event);
            }
            if self.walk()? {
                continue;
            }
            self.finish()?;
            if !self.events.is_empty() {
                continue;
            }
            if self.owed > 0 {
                return Ok(self.fetched(left)?.unwrap_or(Event::Idle));
            }
            if left.is_zero() {
                return Ok(Event::Idle);
            }
            if !self.follow {
                thread::sleep(left);
                return Ok(Event::Idle);
            }
            self.look_again(left)?;
            left = left.saturating_sub(POLL);
        }
    }

    fn bound(&mut self, queued: u64, _: u64) {
        self.fetched.bound(queued);
    }

    fn memory(&self) -> u64 {
        self.linker.memory()
    }

    /// There is nobody else to ask: the receiver knows what is invalid.
    fn blame(&mut self, _giver: Giver, _reason: &str) {}
}

/// Reads blocks in one thread, and keeps the last file open.
struct Reader {
    key: XorKey,
    open: Option<(Arc<Path>, File)>,
}

impl Fetcher<Job, Done> for Reader {
    fn room(&self) -> usize {
        1
    }

    fn fetch(&mut self, jobs: Vec<Job>) -> Option<Vec<Done>> {
        let done = |job: Job| Done { hash: job.hash, result: self.read(&job) };
        Some(jobs.into_iter().map(done).collect())
    }
}

impl Reader {
    /// Reads one block. A file that a node has pruned or written over meanwhile has none.
    fn read(&mut self, job: &Job) -> Result<Option<Vec<u8>>, SourceError> {
        // What the file that is open does not have may be in one that was put in its place.
        if let Some((path, file)) = &self.open
            && *path == job.path
            && let Ok(Some(bytes)) = read_from(file, job, self.key)
        {
            return Ok(Some(bytes));
        }
        let file = File::open(&job.path).map(|file| &self.open.insert((job.path.clone(), file)).1);
        match file.and_then(|file| read_from(file, job, self.key)) {
            Ok(found) => Ok(found),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Ok(None),
                _ => Err(failed(&job.path)(error)),
            },
        }
    }
}

/// The block at its place in a file; `None` when another is there.
fn read_from(file: &File, job: &Job, key: XorKey) -> io::Result<Option<Vec<u8>>> {
    let bytes = read_block(file, job.at, key)?;
    let header = bytes.first_chunk().map(Header::new);
    Ok(header.is_some_and(|header| header.hash() == job.hash).then_some(bytes))
}

/// The key of the block files beside `path`; none means plain files.
fn read_key(path: &Path) -> Result<XorKey, SourceError> {
    match fs::read(path) {
        Ok(bytes) => match <[u8; 8]>::try_from(bytes) {
            Ok(key) => Ok(XorKey::new(key)),
            Err(_) => Err(SourceError::BadKey { path: path.to_owned() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(XorKey::default()),
        Err(error) => Err(failed(path)(error)),
    }
}

/// The block files of a folder, in the order of their names, and how many entries it has. What
/// only has the name of one, a folder or a device, is none.
fn block_files(folder: &Path) -> io::Result<(Vec<PathBuf>, usize)> {
    let (mut paths, mut entries) = (Vec::new(), 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        entries += 1;
        let path = entry.path();
        if FileName::of(&path).is_some() && (entry.file_type()?.is_file() || path.is_file()) {
            paths.push(path);
        }
    }
    paths.sort_by_key(|path| FileName::of(path));
    Ok((paths, entries))
}

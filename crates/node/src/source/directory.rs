//! The block files of a node, `blk*.dat`: a folder of them, a folder with `blocks/` in it, or one
//! file.
//!
//! 1. A walk over the heads of the records finds every header (`scan`) and puts parents first
//!    (`linker`). Headers are given while the walk goes on.
//! 2. Where each block is stays in memory, about 100 bytes each, and a block that is wanted is read
//!    from there by one of two threads, a few blocks ahead of the receiver. One that has not been
//!    found yet, since the receiver knew its header before, is looked for to the end of the walk.
//! 3. With `follow` the walk goes on where it stopped: in files that grow or were written over, and
//!    in new ones.
//!
//! Files are plain, or XORed with the key in `xor.dat` beside them. Stale blocks are among the
//! others. What cannot be used is a [`Warning`]: a last record that is not all there, blocks whose
//! parents are in no file.

mod scan;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use varve_types::blk::XorKey;
use varve_types::{BlockHash, Header, Network};

use self::scan::{Framing, Location, Walk, failed, read_block};
use super::linker::{Found, Linker};
use super::pool::{Done, Fetch, Pool};
use super::{Event, Giver, Source, SourceError, Warning};

const READERS: usize = 2;
/// How long a folder without news is left alone.
const POLL: Duration = Duration::from_millis(250);

/// A source over block files.
pub struct Directory {
    place: Place,
    framing: Framing,
    follow: bool,
    walks: Vec<Walk>,
    /// The file being walked over.
    walking: usize,
    linker: Linker<Location, Location>,
    events: VecDeque<Event>,
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

impl Directory {
    /// Opens a folder of block files, a folder that has `blocks/`, or one block file.
    pub fn open(path: &Path, network: Network, follow: bool) -> Result<Self, SourceError> {
        let is_folder = fs::metadata(path).map_err(failed(path))?.is_dir();
        let blocks = path.join("blocks");
        let (place, folder) = if is_folder {
            let folder = if blocks.is_dir() { blocks } else { path.to_owned() };
            (Place::Folder(folder.clone()), folder)
        } else {
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            (Place::File(path.to_owned()), folder)
        };
        let framing = Framing { network, key: read_key(&folder.join("xor.dat"))? };
        let fetch = || -> Fetch<Job> {
            let mut open = None;
            Box::new(move |job| read(job, &mut open, framing.key))
        };
        let mut directory = Self {
            place,
            framing,
            follow,
            walks: Vec::new(),
            walking: 0,
            linker: Linker::new(network.genesis_hash(), |location| *location),
            events: VecDeque::new(),
            pool: Pool::new((0..READERS).map(|_| fetch())),
            owed: 0,
            done: false,
            warned: false,
        };
        directory.list()?;
        if directory.walks.is_empty() {
            return Err(SourceError::NoBlocks { path: folder });
        }
        // Whether the blocks are of another network shows at the first step.
        directory.walk()?;
        Ok(directory)
    }

    /// Adds the files that are not in the list yet.
    fn list(&mut self) -> Result<(), SourceError> {
        let mut paths = match &self.place {
            Place::File(path) => vec![path.clone()],
            Place::Folder(folder) => block_files(folder).map_err(failed(folder))?,
        };
        paths.retain(|path| !self.walks.iter().any(|walk| *walk.path == **path));
        for path in paths {
            let number = u32::try_from(self.walks.len()).expect("folders have fewer files");
            self.walks.push(Walk::new(Arc::from(path), number));
        }
        Ok(())
    }

    /// Takes a step of the walk. `false`: it is at the end of the last file.
    fn walk(&mut self) -> Result<bool, SourceError> {
        let newest = self.walking + 1 == self.walks.len();
        let Some(walk) = self.walks.get_mut(self.walking) else { return Ok(false) };
        let (mut found, mut linked) = (Vec::new(), Vec::new());
        if !walk.step(self.framing, newest, &mut found)? {
            let nothing = self.walking == 0 && walk.is_empty() && !self.follow;
            if nothing && walk.incomplete(self.framing)?.is_none() {
                let (path, network) = (walk.path.to_path_buf(), self.framing.network);
                return Err(SourceError::WrongNetwork { path, network });
            }
            self.walking += 1;
        }
        found.into_iter().for_each(|found| self.linker.push(found, &mut linked));
        self.give(linked);
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
                if walk.skipped() > 0 {
                    let (path, bytes) = (walk.path.to_path_buf(), walk.skipped());
                    self.events.push_back(Event::Warning(Warning::Skipped { path, bytes }));
                }
                if let Some(offset) = walk.incomplete(self.framing)? {
                    let path = walk.path.to_path_buf();
                    self.events.push_back(Event::Warning(Warning::Incomplete { path, offset }));
                }
            }
            if self.linker.waiting() > 0 {
                let count = self.linker.waiting();
                self.events.push_back(Event::Warning(Warning::Unlinked { count }));
            }
        }
        if !self.done {
            self.done = true;
            self.events.push_back(Event::HeadersDone);
        }
        Ok(())
    }

    /// What the pool has fetched, within `timeout`.
    fn fetched(&mut self, timeout: Duration) -> Result<Option<Event>, SourceError> {
        let Some(Done { job, result }) = self.pool.next(timeout) else { return Ok(None) };
        self.owed -= 1;
        let hash = job.hash;
        Ok(Some(match result? {
            Some(bytes) => Event::Block { hash, bytes, giver: Giver::ONLY },
            None => Event::Missing { hash },
        }))
    }

    /// Waits, and begins the walk again where it stopped.
    fn look_again(&mut self, timeout: Duration) -> Result<(), SourceError> {
        thread::sleep(timeout.min(POLL));
        self.list()?;
        self.walking = 0;
        while self.walk()? {}
        Ok(())
    }
}

impl Source for Directory {
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError> {
        let mut linked = Vec::new();
        locator.iter().for_each(|hash| self.linker.root(*hash, &mut linked));
        self.give(linked);
        self.done = false;
        Ok(())
    }

    fn want(&mut self, _: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
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
                None => self.events.push_back(Event::Missing { hash: *hash }),
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

    /// There is nobody else to ask: the receiver knows what is invalid.
    fn blame(&mut self, _giver: Giver, _reason: &str) {}
}

/// Reads one block. A file that a node has pruned or written over meanwhile has none.
fn read(
    job: &Job,
    open: &mut Option<(Arc<Path>, File)>,
    key: XorKey,
) -> Result<Option<Vec<u8>>, SourceError> {
    // What the file that is open does not have may be in one that was put in its place.
    if let Some((path, file)) = open
        && *path == job.path
        && let Ok(Some(bytes)) = read_from(file, job, key)
    {
        return Ok(Some(bytes));
    }
    let file = File::open(&job.path).map(|file| &open.insert((job.path.clone(), file)).1);
    match file.and_then(|file| read_from(file, job, key)) {
        Ok(found) => Ok(found),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Ok(None),
            _ => Err(failed(&job.path)(error)),
        },
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

/// The block files of a folder, in the order of their names.
fn block_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix("blk")?.strip_suffix(".dat"));
        if digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
            paths.push(folder.join(&name));
        }
    }
    // Names have at least five digits; a longer one is a later file.
    paths.sort_by(|a, b| (a.as_os_str().len(), a).cmp(&(b.as_os_str().len(), b)));
    Ok(paths)
}

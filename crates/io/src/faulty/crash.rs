//! What a power cut may leave.
//!
//! The model is strict POSIX, worse than any one filesystem, so that an engine that survives it
//! needs no particular one:
//!
//! - A write that was not synced is kept whole, lost, cut short, or kept in any subset of its
//!   512-byte sectors, independently of every other. That includes reordering: keeping a later
//!   write and losing an earlier one is what a disk that reorders them would leave.
//! - A length that was not synced may be kept although the bytes are lost: the hole then holds
//!   zeroes or garbage. It may be lost although the bytes were kept: the file then ends early.
//! - A cut (truncate) that was not synced may be undone.
//! - A created, renamed or removed name that was not followed by a directory sync may be undone,
//!   each independently, even when the file's data was synced. A rename is one step.
//! - After a *failed* sync the kernel may have dropped the dirty pages, so what was waiting for it
//!   may be lost even when a later sync succeeds. (Names and truncations differ: filesystems
//!   journal them and stop altogether when the journal fails, so a later successful sync covers
//!   them.)

use std::collections::BTreeSet;
use std::sync::Arc;

use super::image::{
    Change, Content, FileId, Image, Names, Node, change_content, change_names, overwrite, position,
};
use super::random::Random;

/// The unit a disk writes whole.
const SECTOR: usize = 512;

/// Which of the possible states a crash leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// Nothing that was not synced survives.
    LoseAll,
    /// Everything survives, as when only the process ended.
    KeepAll,
    /// One of the others, always the same for the same seed.
    Seed(u64),
}

impl Crash {
    /// The two extremes, and one way for each seed below `seeds`.
    pub fn ways(seeds: u64) -> impl Iterator<Item = Self> {
        [Self::LoseAll, Self::KeepAll].into_iter().chain((0..seeds).map(Self::Seed))
    }
}

/// The operations of a log up to some point, sorted by what is durable and what is not. Advancing
/// it is cheap, so a sweep over all points of a log reads the log once.
#[derive(Debug)]
pub(super) struct Replay {
    /// How many operations of the log are applied.
    at: usize,
    files: Vec<History<Content>>,
    dirs: Vec<History<Names>>,
}

impl Replay {
    pub(super) fn new(initial: &Image) -> Self {
        let files = initial.files().iter().cloned().map(History::new).collect();
        let dirs = initial.dirs().iter().cloned().map(History::new).collect();
        Self { at: 0, files, dirs }
    }

    /// Moves to the state after the first `n` operations of `log`, which began with `initial`.
    pub(super) fn seek(&mut self, initial: &Image, log: &[Change], n: usize) {
        if n < self.at {
            *self = Self::new(initial);
        }
        for change in log.get(self.at..n).unwrap_or_default() {
            self.add(change);
        }
        self.at = n;
    }

    fn add(&mut self, change: &Change) {
        match change {
            Change::Create { .. } => self.files.push(History::new(Content::default())),
            Change::MakeDir { .. } => self.dirs.push(History::new(Names::new())),
            _ => {}
        }
        if let Some(history) = change.file().and_then(|file| self.files.get_mut(file.0)) {
            match change {
                Change::Sync { done, .. } => history.sync(*done, change_content),
                _ => history.add(change),
            }
        }
        if let Some(history) = change.dir().and_then(|dir| self.dirs.get_mut(dir.0)) {
            match change {
                Change::SyncDir { done, .. } => history.sync(*done, change_names),
                _ => history.add(change),
            }
        }
    }

    /// The state that a crash at this point leaves.
    pub(super) fn image(&self, crash: Crash) -> Image {
        let mut random = Random::new(if let Crash::Seed(seed) = crash { seed } else { 0 });
        let dirs = self.dirs.iter().map(|dir| dir.crash_names(crash, &mut random));
        let dirs: Vec<Names> = dirs.collect();
        let named = named_files(&dirs);
        let files = self.files.iter().enumerate().map(|(index, file)| {
            let reachable = named.contains(&FileId(index));
            if reachable { file.crash_content(crash, &mut random) } else { Content::default() }
        });
        Image::new(files.collect(), dirs)
    }
}

fn named_files(dirs: &[Names]) -> BTreeSet<FileId> {
    let nodes = dirs.iter().flat_map(|names| names.values());
    let files = nodes.filter_map(|node| match node {
        Node::File(file) => Some(*file),
        Node::Dir(_) => None,
    });
    files.collect()
}

/// The durable state of a file or directory, and the changes made to it since.
#[derive(Debug)]
struct History<T> {
    durable: T,
    since: Vec<Pending>,
}

#[derive(Debug)]
struct Pending {
    change: Change,
    promise: Promise,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// Not synced yet.
    None,
    /// Synced: guaranteed to survive.
    Kept,
    /// A sync of it failed: no later sync guarantees it.
    Broken,
}

impl<T> History<T> {
    const fn new(durable: T) -> Self {
        Self { durable, since: Vec::new() }
    }

    fn add(&mut self, change: &Change) {
        let rot = matches!(change, Change::Flip { .. });
        let promise = if rot { Promise::Kept } else { Promise::None };
        self.since.push(Pending { change: change.clone(), promise });
    }

    /// Makes the unsynced changes durable; after a failed sync, marks data as never guaranteed.
    fn sync(&mut self, done: bool, apply: impl Fn(&mut T, &Change)) {
        for pending in &mut self.since {
            let data = matches!(pending.change, Change::Write { .. });
            match pending.promise {
                Promise::None if done => pending.promise = Promise::Kept,
                Promise::None if data => pending.promise = Promise::Broken,
                _ => {}
            }
        }
        let kept = self.since.iter().take_while(|p| p.promise == Promise::Kept).count();
        for pending in self.since.drain(..kept) {
            apply(&mut self.durable, &pending.change);
        }
    }
}

impl History<Names> {
    fn crash_names(&self, crash: Crash, random: &mut Random) -> Names {
        let mut names = self.durable.clone();
        for Pending { change, promise } in &self.since {
            let kept = match crash {
                _ if *promise == Promise::Kept => true,
                Crash::LoseAll => false,
                Crash::KeepAll => true,
                Crash::Seed(_) => random.one_in(2),
            };
            if kept {
                change_names(&mut names, change);
            }
        }
        names
    }
}

impl History<Content> {
    fn crash_content(&self, crash: Crash, random: &mut Random) -> Content {
        let mut content = self.durable.clone();
        // Where the guaranteed part ends: a crash may shorten the file to here.
        let mut floor = content.len();
        for Pending { change, promise } in &self.since {
            match crash {
                _ if *promise == Promise::Kept => {
                    change_content(&mut content, change);
                    floor = content.len();
                }
                Crash::LoseAll => {}
                Crash::KeepAll => change_content(&mut content, change),
                Crash::Seed(_) => maybe_change(&mut content, change, random),
            }
        }
        if matches!(crash, Crash::Seed(_)) && content.len() > floor && random.one_in(4) {
            let len = floor + random.below(content.len() - floor);
            Arc::make_mut(&mut content).truncate(len);
        }
        content
    }
}

/// Applies all, nothing or part of a change that was not synced.
fn maybe_change(content: &mut Content, change: &Change, random: &mut Random) {
    let Change::Write { at, bytes, .. } = change else {
        if random.one_in(2) {
            change_content(content, change);
        }
        return;
    };
    let content = Arc::make_mut(content);
    let at = position(*at);
    let end = at + bytes.len();
    match random.below(5) {
        0 => grow(content, at, random),
        1 => {}
        2 => return maybe_grow(content, end, random),
        3 => {
            let sectors = bytes.len() / SECTOR + 1;
            let kept = (random.below(sectors) * SECTOR).min(bytes.len());
            grow(content, at, random);
            overwrite(content, at, bytes.get(..kept).unwrap_or_default());
            return maybe_grow(content, end, random);
        }
        _ => return keep_sectors(content, at, bytes, random),
    }
    overwrite(content, at, bytes);
}

/// Keeps random sectors of a write, or the parts of them that the write covers.
fn keep_sectors(content: &mut Vec<u8>, at: usize, bytes: &[u8], random: &mut Random) {
    let mut from = 0;
    while from < bytes.len() {
        let sector_end = (at + from) / SECTOR * SECTOR + SECTOR;
        let to = (sector_end - at).min(bytes.len());
        if random.one_in(2) {
            grow(content, at + from, random);
            overwrite(content, at + from, bytes.get(from..to).unwrap_or_default());
        }
        from = to;
    }
    maybe_grow(content, at + bytes.len(), random);
}

/// The length may be kept where the bytes are not.
fn maybe_grow(content: &mut Vec<u8>, to: usize, random: &mut Random) {
    if random.one_in(2) {
        grow(content, to, random);
    }
}

/// Extends the content to `to` with what a disk may have there: zeroes or anything.
fn grow(content: &mut Vec<u8>, to: usize, random: &mut Random) {
    let garbage = random.one_in(2);
    while content.len() < to {
        let word = if garbage { random.next() } else { 0 };
        let missing = to - content.len();
        content.extend(word.to_le_bytes().into_iter().take(missing));
    }
}

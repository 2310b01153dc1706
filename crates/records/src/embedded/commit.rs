//! Group commit: how callers execute, write and wait.
//!
//! ```text
//!  caller A   execute ─┐                              ┌─ execute ──┐ …
//!  caller B            └ execute ─┐                   │            │
//!  caller C                       └ execute           │            │
//!                      group 1: A │ group 2: B, C     │            │
//!  the disk            write, sync 1 ─────────────────┴ write, sync 2 ─ …
//! ```
//!
//! 1. A caller executes its operations under the lock, on the overlay of the *open* group, which
//!    lies over the *flying* group, the one that is being written. So every operation sees all
//!    before it, durable or not.
//! 2. Then it waits for its group. A caller that waits while the disk is idle takes the disk: the
//!    open group becomes the flying one, and a new one is opened for those who come meanwhile.
//! 3. Outside the lock the group is encoded, written in one piece and synced once.
//! 4. It is published: the index notes all new places at once, readers see all of the group or
//!    nothing, and its callers return.
//!
//! When a group cannot be written, it fails, and so does the open one, which was built on it. The
//! log is as it was before, and none of their callers got an answer.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::sync::{RwLockReadGuard, RwLockWriteGuard};

use varve_io::Error;

use super::base::Base;
use super::clean::{self, Cleaned, Cleaner, Walked};
use super::fetch::Fetched;
use super::flush;
use super::index::{Index, Moment};
use super::key::Key;
use super::maintain::Disk;
use super::overlay::{BodyPlace, Overlay, Value};
use super::state::BodyAt;
use super::working::Work;
use crate::engine::EngineError;

type Fate = Arc<OnceLock<Result<(), EngineError>>>;

/// The engine's writing side, shared by all callers.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) base: Base,
    index: Arc<RwLock<Index>>,
    groups: Mutex<Groups>,
    changed: Condvar,
    /// Held while the front of the log is walked.
    pub(super) cleaner: Mutex<Cleaner>,
}

/// The two groups.
#[derive(Debug)]
struct Groups {
    open: Overlay,
    /// What becomes of the open group.
    fate: Fate,
    flying: Option<Arc<Overlay>>,
    /// The disk, while it is idle.
    disk: Option<Box<Disk>>,
    /// The thread that had the disk panicked.
    lost: bool,
    /// Why the upkeep after the last group failed.
    trouble: Option<EngineError>,
    cleaned: Cleaned,
}

impl Commit {
    pub(super) fn new(base: Base, index: Arc<RwLock<Index>>, disk: Disk, cleaner: Cleaner) -> Self {
        let (open, fate, flying) = (Overlay::default(), Fate::default(), None);
        let (to, replay_from) = (base.log.start(), disk.replay_from());
        let cleaned = Cleaned { to, replay_from, again: false };
        let disk = Some(Box::new(disk));
        let groups = Groups { open, fate, flying, disk, lost: false, trouble: None, cleaned };
        let groups = Mutex::new(groups);
        Self { base, index, groups, changed: Condvar::new(), cleaner: Mutex::new(cleaner) }
    }

    /// The index as it is published. A thread that panics while it publishes leaves a wrong one;
    /// nothing is served from it.
    pub(super) fn index(&self) -> Result<RwLockReadGuard<'_, Index>, EngineError> {
        self.index.read().map_err(|_| panicked())
    }

    fn index_mut(&self) -> Result<RwLockWriteGuard<'_, Index>, EngineError> {
        self.index.write().map_err(|_| panicked())
    }

    fn groups(&self) -> Result<MutexGuard<'_, Groups>, EngineError> {
        self.groups.lock().map_err(|_| panicked())
    }

    /// Executes operations and returns when all that they saw and wrote is durable. `fetch` brings
    /// what they need, and does so again when a run of the index is published before the lock is
    /// had: what it looked up there does not count then.
    pub(super) fn run<T>(
        &self,
        fetch: impl Fn() -> Result<Fetched, EngineError>,
        execute: impl FnOnce(&mut Work<'_>) -> Result<T, Error>,
    ) -> Result<T, EngineError> {
        let (mut groups, index, fetched) = loop {
            let fetched = fetch()?;
            let (groups, index) = (self.groups()?, self.index()?);
            if fetched.facts.hold_in(index.cold().epoch()) {
                break (groups, index, fetched);
            }
        };
        let Groups { open, flying, .. } = &mut *groups;
        let (flying, fetched) = (flying.as_deref(), &fetched);
        let done = execute(&mut Work { open, flying, index: &index, base: &self.base, fetched });
        drop(index);
        let done = done.map_err(storage)?;
        let fate = Arc::clone(&groups.fate);
        if groups.open.dirty() == 0 && groups.flying.is_none() {
            // Nothing changed, and nothing that was seen is still under way.
            groups.reset_open();
            return Ok(done);
        }
        self.wait(groups, &fate)?;
        Ok(done)
    }

    fn wait<'a>(
        &'a self,
        mut groups: MutexGuard<'a, Groups>,
        fate: &Fate,
    ) -> Result<(), EngineError> {
        loop {
            if let Some(fate) = fate.get() {
                return fate.clone();
            }
            groups = match groups.disk.take() {
                Some(disk) => self.fly(groups, disk)?,
                None => self.wait_for_disk(groups)?,
            };
        }
    }

    /// Waits until the disk comes back, or anything else happens.
    fn wait_for_disk<'a>(
        &self,
        groups: MutexGuard<'a, Groups>,
    ) -> Result<MutexGuard<'a, Groups>, EngineError> {
        if groups.lost {
            return Err(panicked());
        }
        self.changed.wait(groups).map_err(|_| panicked())
    }

    /// Writes the open group.
    fn fly<'a>(
        &'a self,
        mut groups: MutexGuard<'a, Groups>,
        mut disk: Box<Disk>,
    ) -> Result<MutexGuard<'a, Groups>, EngineError> {
        assert!(groups.flying.is_none(), "the holder of the disk writes one group at a time");
        let flying = Arc::new(std::mem::take(&mut groups.open));
        let fate = std::mem::take(&mut groups.fate);
        groups.flying = Some(Arc::clone(&flying));
        drop(groups);
        let watch = Watch::new(self);
        let written = flush::write(&mut disk.writer, &self.base, &flying);
        let mut groups = self.groups()?;
        groups.flying = None;
        match written {
            Ok(updates) => {
                let settled = self.publish(&updates, disk.moment(), &mut groups.open)?;
                groups.cleaned.to = groups.cleaned.to.max(flying.cleaned_to.unwrap_or_default());
                // Only the first to set it counts, and this is the first.
                let _ = fate.set(Ok(()));
                if let Err(error) = settled {
                    groups.fail_open(&storage(error));
                }
            }
            Err(error) => {
                let error = storage(error);
                let _ = fate.set(Err(error.clone()));
                groups.fail_open(&error);
            }
        }
        self.changed.notify_all();
        let cleaned = groups.cleaned.to;
        drop(groups);
        // What was written is durable and answered. That the log could not be tidied up is no
        // reason to call it failed: the next group tries again, and the status reports it.
        let maintained = disk.maintain(cleaned);
        let mut groups = self.groups()?;
        watch.give_back(&mut groups, disk);
        drop(groups);
        let walked = self.clean(clean::WALK);
        let mut groups = self.groups()?;
        groups.trouble = maintained.err().or(walked.err());
        Ok(groups)
    }

    /// Publishes the group in the index, and settles the open group on it. A failure of the
    /// latter is the inner result.
    fn publish(
        &self,
        updates: &[flush::Update],
        moment: Moment,
        open: &mut Overlay,
    ) -> Result<Result<(), Error>, EngineError> {
        let mut index = self.index_mut()?;
        for flush::Update { hash, part, before, version } in updates {
            let noted = index.put(*hash, *part, *before, version);
            assert!(noted, "a version is replaced where it was found");
        }
        index.set_moment(moment);
        // The lock is held, so nothing has moved from memory to a run since.
        Ok(self.settle(&index, open))
    }

    /// Notes in the open group where its base lies: in memory, as it was just published.
    fn settle(&self, index: &Index, open: &mut Overlay) -> Result<(), Error> {
        let nothing = Fetched::default();
        let flying = open.iter().filter(|(_, held)| held.flying).map(|(id, _)| id);
        let flying: Vec<_> = flying.collect();
        for id in flying {
            let held = open.get(id);
            let found = self.base.locate_among(index.in_memory(held.hash), &held.key, &nothing)?;
            let body = match &found {
                Some((version, entry)) => match self.base.decode(version.at, entry)? {
                    Value::Record(record) => body_at(&record.body),
                    _ => None,
                },
                None => None,
            };
            open.settle(id, found.map(|(version, _)| version), body);
        }
        Ok(())
    }

    /// What is known about cleaning at the beginning of a walk.
    pub(super) fn begin_cleaning(&self) -> Result<Cleaned, EngineError> {
        let mut groups = self.groups()?;
        let cleaned = groups.cleaned;
        groups.cleaned.again = false;
        Ok(cleaned)
    }

    /// Puts the newest versions of keys into the open group, as far as they lie before the
    /// boundary. False when a group failed since the walk began, or what was fetched is stale.
    pub(super) fn move_to_end(
        &self,
        keys: &[Key],
        walked: Walked,
        fetched: &Fetched,
    ) -> Result<bool, EngineError> {
        let mut groups = self.groups()?;
        if groups.cleaned.again {
            return Ok(false);
        }
        let index = self.index()?;
        if !fetched.facts.hold_in(index.cold().epoch()) {
            return Ok(false);
        }
        let Groups { open, flying, .. } = &mut *groups;
        let flying = flying.as_deref();
        let mut work = Work { open, flying, index: &index, base: &self.base, fetched };
        for key in keys {
            work.touch(*key, walked.boundary).map_err(storage)?;
        }
        groups.open.cleaned_to = Some(walked.end);
        Ok(true)
    }

    /// Drops log files that are no longer needed.
    pub(super) fn prune_log(&self) -> Result<(), EngineError> {
        let cleaned = self.groups()?.cleaned.to;
        self.with_disk(|disk| disk.prune(cleaned))
    }

    /// Notes why upkeep failed, or that it did not.
    pub(super) fn note_trouble(&self, trouble: Option<EngineError>) -> Result<(), EngineError> {
        self.groups()?.trouble = trouble;
        Ok(())
    }

    /// Whether a caller executes or publishes at this moment.
    #[cfg(all(test, not(feature = "weak-hash")))]
    pub(super) fn is_executing(&self) -> bool {
        self.groups.try_lock().is_err()
    }

    /// Why the upkeep after the last group failed, if it did.
    pub(super) fn trouble(&self) -> Result<Option<EngineError>, EngineError> {
        Ok(self.groups()?.trouble.clone())
    }

    /// Waits until the disk is idle and does something with it.
    pub(super) fn with_disk<T>(
        &self,
        act: impl FnOnce(&mut Disk) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let mut groups = self.groups()?;
        let mut disk = loop {
            match groups.disk.take() {
                Some(disk) => break disk,
                None => groups = self.wait_for_disk(groups)?,
            }
        };
        drop(groups);
        let watch = Watch::new(self);
        let done = act(&mut disk);
        let mut groups = self.groups()?;
        watch.give_back(&mut groups, disk);
        done
    }
}

impl Groups {
    /// Nothing of the open group has to be written, and nothing flies.
    fn reset_open(&mut self) {
        let open = std::mem::take(&mut self.open);
        self.cleaned.to = self.cleaned.to.max(open.cleaned_to.unwrap_or_default());
    }

    /// The open group cannot be written: it was built on what is not there.
    fn fail_open(&mut self, error: &EngineError) {
        self.open = Overlay::default();
        self.cleaned.again = true;
        // Only the first to set it counts, and this is the first.
        let _ = std::mem::take(&mut self.fate).set(Err(error.clone()));
    }
}

/// Wakes the waiters with an error when the thread that has the disk panics.
struct Watch<'a> {
    commit: &'a Commit,
    given_back: bool,
}

impl<'a> Watch<'a> {
    const fn new(commit: &'a Commit) -> Self {
        Self { commit, given_back: false }
    }

    fn give_back(mut self, groups: &mut Groups, disk: Box<Disk>) {
        groups.cleaned.replay_from = disk.replay_from();
        groups.disk = Some(disk);
        self.given_back = true;
        self.commit.changed.notify_all();
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.given_back {
            self.commit.groups.lock().unwrap_or_else(PoisonError::into_inner).lost = true;
            self.commit.changed.notify_all();
        }
    }
}

const fn body_at(place: &BodyPlace) -> Option<BodyAt> {
    match place {
        BodyPlace::At(at) => Some(*at),
        BodyPlace::New { .. } | BodyPlace::Moved(_) => None,
    }
}

/// A failure of the storage as an error of the engine.
pub(super) fn storage(error: Error) -> EngineError {
    match error {
        Error::Poisoned { cause } => EngineError::Poisoned { cause },
        error => EngineError::storage(error),
    }
}

pub(super) fn panicked() -> EngineError {
    EngineError::Poisoned { cause: "a thread panicked while it changed records".into() }
}

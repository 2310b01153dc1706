//! Group commit: who executes, who writes, who waits.
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
//! 2. Then it waits for its group. Whoever waits while the disk is idle takes the disk: the open
//!    group becomes the flying one, and a new one is opened for those who come meanwhile.
//! 3. Outside the lock the group is encoded, written in one piece and synced once.
//! 4. It is published: the index notes all new places at once, readers see all of the group or
//!    nothing, and everybody who waited for it goes.
//!
//! When a group cannot be written, it fails, and so does the open one, which was built on it. The
//! log is as it was before. Nobody was told anything else.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::sync::{RwLockReadGuard, RwLockWriteGuard};

use varve_io::Error;

use super::base::Base;
use super::flush;
use super::index::Index;
use super::maintain::Disk;
use super::overlay::{BodyPlace, Overlay, Value};
use super::state::BodyAt;
use super::working::Work;
use crate::engine::EngineError;

type Fate = Arc<OnceLock<Result<(), EngineError>>>;

/// Where callers meet.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) base: Base,
    index: RwLock<Index>,
    groups: Mutex<Groups>,
    changed: Condvar,
}

/// The two groups.
#[derive(Debug)]
struct Groups {
    open: Overlay,
    /// What becomes of the open group.
    fate: Fate,
    flying: Option<Arc<Overlay>>,
    /// The disk, when nobody has it.
    disk: Option<Box<Disk>>,
    /// The one who had the disk could not give it back.
    lost: bool,
}

impl Commit {
    pub(super) fn new(base: Base, index: Index, disk: Disk) -> Self {
        let (open, fate, flying) = (Overlay::default(), Fate::default(), None);
        let groups = Groups { open, fate, flying, disk: Some(Box::new(disk)), lost: false };
        let (index, groups) = (RwLock::new(index), Mutex::new(groups));
        Self { base, index, groups, changed: Condvar::new() }
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

    /// Executes operations and returns when all that they saw and wrote is durable.
    pub(super) fn run<T>(
        &self,
        execute: impl FnOnce(&mut Work<'_>) -> Result<T, Error>,
    ) -> Result<T, EngineError> {
        let mut groups = self.groups()?;
        let done = {
            let index = self.index()?;
            let Groups { open, flying, .. } = &mut *groups;
            let flying = flying.as_deref();
            execute(&mut Work { open, flying, index: &index, base: &self.base })
        };
        let done = done.map_err(storage)?;
        let fate = Arc::clone(&groups.fate);
        if groups.open.dirty() == 0 && groups.flying.is_none() {
            // Nothing changed, and nothing that was seen is still under way.
            groups.open = Overlay::default();
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
        let flying = Arc::new(std::mem::take(&mut groups.open));
        let fate = std::mem::take(&mut groups.fate);
        groups.flying = Some(Arc::clone(&flying));
        drop(groups);
        let watch = Watch::new(self);
        let begun = disk.writer.end();
        let written = flush::write(&mut disk.writer, &self.base, &flying);
        let mut groups = self.groups()?;
        groups.flying = None;
        match written {
            Ok(updates) => {
                self.publish(&updates)?;
                disk.published(flying.cleaned_to, begun);
                // Only the first to set it counts, and this is the first.
                let _ = fate.set(Ok(()));
                if let Err(error) = self.settle(&mut groups.open) {
                    groups.fail_open(&error);
                    disk.failed();
                }
            }
            Err(error) => {
                let error = storage(error);
                let _ = fate.set(Err(error.clone()));
                groups.fail_open(&error);
                disk.failed();
            }
        }
        self.changed.notify_all();
        drop(groups);
        let kept = self.maintain(&mut disk);
        let mut groups = self.groups()?;
        watch.give_back(&mut groups, disk);
        kept?;
        Ok(groups)
    }

    /// Lets everybody see the group.
    fn publish(&self, updates: &[flush::Update]) -> Result<(), EngineError> {
        let mut index = self.index_mut()?;
        for flush::Update { hash, part, before, version } in updates {
            let noted = index.put(*hash, *part, *before, version);
            assert!(noted, "a version is replaced where it was found");
        }
        Ok(())
    }

    /// Tells the open group where its base lies.
    fn settle(&self, open: &mut Overlay) -> Result<(), EngineError> {
        let index = self.index()?;
        let flying = open.iter().filter(|(_, held)| held.flying).map(|(id, _)| id);
        let flying: Vec<_> = flying.collect();
        for id in flying {
            let held = open.get(id);
            let found = self.base.locate(&index, &held.key, held.hash).map_err(storage)?;
            let body = match &found {
                Some((at, entry)) => match self.base.decode(*at, entry).map_err(storage)? {
                    Value::Record(record) => body_at(&record.body),
                    _ => None,
                },
                None => None,
            };
            open.settle(id, found.map(|(at, _)| at), body);
        }
        Ok(())
    }

    /// Does some of the work that keeps the log short and recovery quick.
    fn maintain(&self, disk: &mut Disk) -> Result<(), EngineError> {
        let index = self.index()?;
        if disk.wants_checkpoint(index.len()) {
            disk.checkpoint(&index).map_err(storage)?;
        }
        let live = index.live();
        drop(index);
        if let Some(walk) = disk.wants_cleaning(&self.base.log, live) {
            let mut groups = self.groups()?;
            let index = self.index()?;
            let Groups { open, flying, .. } = &mut *groups;
            let flying = flying.as_deref();
            let mut work = Work { open, flying, index: &index, base: &self.base };
            disk.clean(&mut work, walk).map_err(storage)?;
        }
        disk.prune().map_err(storage)
    }

    /// Waits until the disk is idle and does something with it.
    pub(super) fn with_disk<T>(
        &self,
        act: impl FnOnce(&mut Disk, &Index) -> Result<T, Error>,
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
        let index = self.index()?;
        let done = act(&mut disk, &index).map_err(storage);
        drop(index);
        let mut groups = self.groups()?;
        watch.give_back(&mut groups, disk);
        done
    }
}

impl Groups {
    /// The open group cannot be written: it was built on what is not there.
    fn fail_open(&mut self, error: &EngineError) {
        self.open = Overlay::default();
        // Only the first to set it counts, and this is the first.
        let _ = std::mem::take(&mut self.fate).set(Err(error.clone()));
    }
}

/// Tells those who wait for the disk when the one who has it does not give it back: after a panic,
/// its own or that of another.
struct Watch<'a> {
    commit: &'a Commit,
    given_back: bool,
}

impl<'a> Watch<'a> {
    const fn new(commit: &'a Commit) -> Self {
        Self { commit, given_back: false }
    }

    fn give_back(mut self, groups: &mut Groups, disk: Box<Disk>) {
        groups.disk = Some(disk);
        self.given_back = true;
        // Somebody may wait for it.
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

/// A failure of the storage, as the engine tells it.
pub(super) fn storage(error: Error) -> EngineError {
    match error {
        Error::Poisoned { cause } => EngineError::Poisoned { cause },
        error => EngineError::storage(error),
    }
}

fn panicked() -> EngineError {
    EngineError::Poisoned { cause: "a thread panicked while it changed records".into() }
}

//! Storage in memory that crashes, fails and corrupts on demand, reproducibly by seed.
//!
//! Every change is an operation in a log: write, cut, sync, create, rename, remove, directory sync.
//! What a reader sees is the log applied in full (`image`). What a *crash* leaves can be derived
//! from the log for every instant: [`FaultyStorage::crash`] gives, for operation number `n`, a
//! fresh storage holding one of the states that a power cut right after operation `n` may leave
//! (`crash` says which those are). A test runs its engine once, then opens it on the states of
//! every `n`, and asks whether all that was acknowledged by then is there:
//!
//! ```
//! use std::sync::Arc;
//! use varve_io::faulty::{Crash, FaultyStorage};
//! use varve_io::{Access, Caching, FileOffset, Storage};
//!
//! # fn main() -> varve_io::Result<()> {
//! let storage = FaultyStorage::new(1);
//! let file = storage.open("f", Access::Create, Caching::Buffered)?;
//! file.write_at(FileOffset::ZERO, b"precious")?;
//! file.sync()?;
//! storage.sync_dir()?;
//! let acknowledged = storage.operations();
//!
//! for n in 0..=storage.operations() {
//!     for crash in Crash::ways(20) {
//!         let after = storage.crash(n, crash);
//!         let found = after.open("f", Access::Read, Caching::Buffered);
//!         if n >= acknowledged {
//!             let mut bytes = [0; 8];
//!             found?.read_at(FileOffset::ZERO, &mut bytes)?;
//!             assert_eq!(&bytes, b"precious");
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A *killed process* is milder than a power cut: the system keeps what was written.
//! [`FaultyStorage::reopen`] is that. [`FaultyStorage::inject`] makes calls fail,
//! [`FaultyStorage::set_capacity`] fills the disk, [`FaultyStorage::flip_bit`] corrupts a file, and
//! [`FaultyStorage::hold`] makes the disk hang.

mod crash;
mod file;
mod gate;
mod image;
mod plan;
mod random;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crash::Crash;
pub use gate::Gate;
pub use plan::{Fault, FaultRule, Operation, When};

use crate::error::{Error, Result};
use crate::held::HeldRanges;
use crate::lock::LockGuard;
use crate::offset::FileOffset;
use crate::poison::Poison;
use crate::storage::{Access, Caching, File, Storage, check_name};
use crash::Replay;
use file::FaultyFile;
use gate::Gates;
use image::{Change, DirId, FileId, Image, Node};
use plan::FaultPlan;
use random::Random;

/// A directory in memory, with faults on demand.
#[derive(Debug)]
pub struct FaultyStorage {
    world: Arc<Mutex<World>>,
    dir: DirId,
    path: PathBuf,
    poison: Poison,
}

/// The disk behind a storage and all its files and directories.
#[derive(Debug)]
struct World {
    /// What was there before the first operation.
    initial: Image,
    /// Every operation since.
    log: Vec<Change>,
    /// The replay at the point of the last requested crash, from which the next one continues.
    replay: Replay,
    /// What readers see: `initial` with the whole log applied.
    live: Image,
    held: Vec<Arc<HeldRanges>>,
    locked: BTreeSet<DirId>,
    capacity: Option<u64>,
    plan: FaultPlan,
    gates: Arc<Gates>,
    random: Random,
}

impl World {
    fn new(image: Image, seed: u64) -> Self {
        let held = image.file_ids().map(|_| Arc::default()).collect();
        Self {
            initial: image.clone(),
            log: Vec::new(),
            replay: Replay::new(&image),
            live: image,
            held,
            locked: BTreeSet::new(),
            capacity: None,
            plan: FaultPlan::default(),
            gates: Arc::default(),
            random: Random::new(seed),
        }
    }

    /// Makes a change that readers see at once, and remembers it.
    fn record(&mut self, change: Change) {
        self.live.apply(&change);
        self.log.push(change);
    }

    /// The fault, if any, that the plan has for this call.
    fn fault(&mut self, operation: Operation, path: &Path) -> Option<Fault> {
        self.plan.next(operation, &path.to_string_lossy(), &mut self.random)
    }

    /// How many of `len` bytes at `offset` of a file the disk has space for.
    fn space(&self, file: FileId, offset: FileOffset, len: usize) -> usize {
        let Some(capacity) = self.capacity else { return len };
        let held = self.live.content(file).len() as u64;
        let free = capacity.saturating_sub(self.live.used());
        let limit = held.saturating_add(free).saturating_sub(offset.get());
        usize::try_from(limit).map_or(len, |limit| limit.min(len))
    }
}

impl FaultyStorage {
    /// An empty storage. The seed decides which calls random faults strike and the lengths of
    /// partial transfers; without faults, storages of different seeds behave the same.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::of_world(World::new(Image::default(), seed))
    }

    fn of_world(world: World) -> Self {
        Self::at_root(Arc::new(Mutex::new(world)))
    }

    fn at_root(world: Arc<Mutex<World>>) -> Self {
        let path = PathBuf::from("faulty");
        Self { world, dir: DirId::ROOT, path, poison: Poison::default() }
    }

    /// The number of operations so far.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.world().log.len()
    }

    /// The root directory of a state that a power cut right after operation `n` may leave.
    /// Operations are counted from 1, so 0 is before the first.
    #[must_use]
    pub fn crash(&self, n: usize, crash: Crash) -> Self {
        let mut world = self.world();
        let World { initial, log, replay, .. } = &mut *world;
        replay.seek(initial, log, n.min(log.len()));
        let image = replay.image(crash);
        drop(world);
        let seed = if let Crash::Seed(seed) = crash { seed } else { 0 };
        Self::of_world(World::new(image, seed))
    }

    /// The same disk seen by a new process: everything written is there, nothing is poisoned,
    /// locks are free. Faults that were injected stay.
    #[must_use]
    pub fn reopen(&self) -> Self {
        self.world().locked.clear();
        Self::at_root(Arc::clone(&self.world))
    }

    /// Adds a fault to the plan.
    pub fn inject(&self, rule: FaultRule) {
        self.world().plan.add(rule);
    }

    /// Forgets all faults that have not struck.
    pub fn clear_faults(&self) {
        self.world().plan = FaultPlan::default();
    }

    /// Holds up calls of this kind on files whose path contains `path_contains`, until the gate is
    /// dropped. Other calls proceed.
    #[must_use]
    pub fn hold(&self, operation: Operation, path_contains: &str) -> Gate {
        self.world().gates.close(operation, path_contains)
    }

    /// Limits the bytes of all files together; a write past it stops there with a full disk.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.world().capacity = bytes;
    }

    /// Flips one bit of a stored file, durably and for all later readers. `name` may be a path with
    /// `/` below this directory. False when there is no such file or byte.
    #[must_use]
    pub fn flip_bit(&self, name: &str, at: FileOffset, bit: u8) -> bool {
        let mut world = self.world();
        let node = name.split('/').try_fold(Node::Dir(self.dir), |node, part| match node {
            Node::Dir(dir) => world.live.lookup(dir, part),
            Node::File(_) => None,
        });
        let Some(Node::File(file)) = node else { return false };
        if at.get() >= world.live.content(file).len() as u64 {
            return false;
        }
        world.record(Change::Flip { file, at: at.get(), mask: 1 << (bit % 8) });
        true
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // A panic in a test must not cause a second panic here.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The injected fault, if any, for an operation that succeeds or fails as a whole.
    fn refuse(&self, operation: Operation, action: &'static str, name: &str) -> Result<()> {
        let path = self.path.join(name);
        pass(&self.world, operation, &path);
        let error = match self.world().fault(operation, &path) {
            None | Some(Fault::Short | Fault::Interrupted | Fault::BitFlip) => return Ok(()),
            Some(fault) => fault.error(),
        };
        Err(Error::from_io(action, &path, error))
    }
}

impl Storage for FaultyStorage {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str, access: Access, _caching: Caching) -> Result<Arc<dyn File>> {
        check_name(name)?;
        if access.writes() {
            self.poison.check()?;
        }
        self.refuse(Operation::Open, "open", name)?;
        let path = self.path.join(name);
        let mut world = self.world();
        let found = world.live.lookup(self.dir, name);
        let file = match (found, access) {
            (Some(Node::Dir(_)), _) => return Err(Error::AlreadyExists { path }),
            (Some(Node::File(_)), Access::Create) => return Err(Error::AlreadyExists { path }),
            (Some(Node::File(file)), _) => file,
            (None, Access::Read | Access::Write) => return Err(Error::NotFound { path }),
            (None, Access::Create | Access::Replace) => {
                let file = world.live.next_file();
                world.record(Change::Create { dir: self.dir, name: name.to_owned(), file });
                world.held.push(Arc::default());
                file
            }
        };
        let held = world.held.get(file.0).map(Arc::clone).unwrap_or_default();
        drop(world);
        let world = Arc::clone(&self.world);
        let poison = self.poison.clone();
        let file = FaultyFile { world, file, path, access, held, poison };
        if access == Access::Replace && file.size()? > 0 {
            file.truncate(FileOffset::ZERO)?;
        }
        Ok(Arc::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.poison.check()?;
        check_name(from)?;
        check_name(to)?;
        self.refuse(Operation::Rename, "rename", from)?;
        let mut world = self.world();
        let Some(Node::File(file)) = world.live.lookup(self.dir, from) else {
            return Err(Error::NotFound { path: self.path.join(from) });
        };
        let (from, to) = (from.to_owned(), to.to_owned());
        world.record(Change::Rename { dir: self.dir, from, to, file });
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.poison.check()?;
        self.refuse(Operation::Remove, "remove", name)?;
        let mut world = self.world();
        let Some(Node::File(_)) = world.live.lookup(self.dir, name) else {
            return Err(Error::NotFound { path: self.path.join(name) });
        };
        world.record(Change::Remove { dir: self.dir, name: name.to_owned() });
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.world().live.files_in(self.dir))
    }

    fn list_others(&self) -> Result<Vec<String>> {
        Ok(self.world().live.dirs_in(self.dir))
    }

    fn sync_dir(&self) -> Result<()> {
        self.poison.check()?;
        let refused = self.refuse(Operation::SyncDir, "sync", "");
        let done = refused.is_ok();
        self.world().record(Change::SyncDir { dir: self.dir, done });
        self.poison.after_sync(refused)
    }

    fn directory(&self, name: &str) -> Result<Arc<dyn Storage>> {
        check_name(name)?;
        let path = self.path.join(name);
        let mut world = self.world();
        let dir = match world.live.lookup(self.dir, name) {
            Some(Node::Dir(dir)) => dir,
            Some(Node::File(_)) => return Err(Error::AlreadyExists { path }),
            None => {
                let made = world.live.next_dir();
                let parent = self.dir;
                world.record(Change::MakeDir { dir: parent, name: name.to_owned(), made });
                world.record(Change::SyncDir { dir: parent, done: true });
                made
            }
        };
        drop(world);
        let (world, poison) = (Arc::clone(&self.world), self.poison.clone());
        Ok(Arc::new(Self { world, dir, path, poison }))
    }

    fn lock(&self) -> Result<LockGuard> {
        if !self.world().locked.insert(self.dir) {
            let path = self.path.join(crate::lock::LOCK_FILE);
            return Err(Error::Locked { path, holder: "this test".to_owned() });
        }
        Ok(LockGuard::new(Unlock { world: Arc::clone(&self.world), dir: self.dir }))
    }
}

/// Waits at a gate that is closed for this call, without holding the world's lock.
fn pass(world: &Mutex<World>, operation: Operation, path: &Path) {
    let gates = Arc::clone(&world.lock().unwrap_or_else(PoisonError::into_inner).gates);
    gates.pass(operation, &path.to_string_lossy());
}

struct Unlock {
    world: Arc<Mutex<World>>,
    dir: DirId,
}

impl Drop for Unlock {
    fn drop(&mut self) {
        self.world.lock().unwrap_or_else(PoisonError::into_inner).locked.remove(&self.dir);
    }
}

#[cfg(test)]
mod tests;

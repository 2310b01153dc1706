//! A file of the faulty storage.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::image::{Change, FileId, position};
use super::plan::{Fault, Operation};
use super::{World, pass};
use crate::error::{Error, Result};
use crate::held::HeldRanges;
use crate::map::Map;
use crate::offset::FileOffset;
use crate::poison::Poison;
use crate::storage::{Access, File};
use crate::transfer::{read_full, write_full};

#[derive(Debug)]
pub(super) struct FaultyFile {
    pub(super) world: Arc<Mutex<World>>,
    pub(super) file: FileId,
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) held: Arc<HeldRanges>,
    pub(super) poison: Poison,
}

impl FaultyFile {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One step of a read: as many bytes as the plan lets through.
    fn read_step(&self, at: FileOffset, rest: &mut [u8]) -> io::Result<usize> {
        let mut world = self.world();
        let fault = world.fault(Operation::Read, &self.path);
        let content = world.live.content(self.file);
        let available = content.get(position(at.get())..).unwrap_or_default();
        let mut count = available.len().min(rest.len());
        if let Some(fault @ (Fault::Io | Fault::NoSpace | Fault::Interrupted)) = fault {
            return Err(fault.error());
        }
        let source = available.get(..count).unwrap_or_default();
        rest.iter_mut().zip(source).for_each(|(to, from)| *to = *from);
        if fault == Some(Fault::Short) && count > 1 {
            count = 1 + world.random.below(count - 1);
        }
        if fault == Some(Fault::BitFlip) {
            let bit = world.random.below(count * 8);
            if let Some(byte) = rest.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
        Ok(count)
    }

    /// One step of a write. `failing` remembers an error that strikes after a part was written.
    fn write_step(
        &self,
        at: FileOffset,
        rest: &[u8],
        failing: &mut Option<Fault>,
    ) -> io::Result<usize> {
        if let Some(fault) = failing.take() {
            return Err(fault.error());
        }
        let mut world = self.world();
        let fault = world.fault(Operation::Write, &self.path);
        let mut count = world.space(self.file, at, rest.len());
        if count < rest.len() {
            *failing = Some(Fault::NoSpace);
        }
        match fault {
            Some(Fault::Interrupted) => return Err(Fault::Interrupted.error()),
            Some(Fault::Short) if count > 1 => count = 1 + world.random.below(count - 1),
            Some(fault @ (Fault::Io | Fault::NoSpace)) => {
                count = world.random.below(count);
                *failing = Some(fault);
            }
            _ => {}
        }
        if count == 0
            && let Some(fault) = failing.take()
        {
            return Err(fault.error());
        }
        let bytes = rest.get(..count).unwrap_or_default().into();
        world.record(Change::Write { file: self.file, at: at.get(), bytes });
        Ok(count)
    }

    /// A file opened for reading refuses changes, as the system does.
    fn check_writable(&self) -> Result<()> {
        self.poison.check()?;
        if self.access.writes() {
            return Ok(());
        }
        let error = io::Error::from_raw_os_error(libc::EBADF);
        Err(Error::from_io("write to", &self.path, error))
    }
}

impl File for FaultyFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn size(&self) -> Result<u64> {
        Ok(self.world().live.content(self.file).len() as u64)
    }

    fn read_at(&self, offset: FileOffset, bytes: &mut [u8]) -> Result<()> {
        pass(&self.world, Operation::Read, &self.path);
        read_full(&self.path, offset, bytes, |at, rest| self.read_step(at, rest))
    }

    fn write_at(&self, offset: FileOffset, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        pass(&self.world, Operation::Write, &self.path);
        let changed = offset.get()..offset.plus(bytes.len() as u64).get();
        self.held.change("write to", &self.path, changed, || {
            let mut failing = None;
            let result = write_full(&self.path, offset, bytes, |at, rest| {
                self.write_step(at, rest, &mut failing)
            });
            self.poison.after_write(result)
        })
    }

    fn truncate(&self, len: FileOffset) -> Result<()> {
        self.check_writable()?;
        pass(&self.world, Operation::Truncate, &self.path);
        self.held.change("cut", &self.path, len.get()..u64::MAX, || {
            let mut world = self.world();
            let result = match world.fault(Operation::Truncate, &self.path) {
                Some(fault @ (Fault::Io | Fault::NoSpace)) => {
                    Err(Error::from_io("cut", &self.path, fault.error()))
                }
                _ => {
                    world.record(Change::Truncate { file: self.file, len: len.get() });
                    Ok(())
                }
            };
            self.poison.after_write(result)
        })
    }

    fn sync(&self) -> Result<()> {
        self.poison.check()?;
        pass(&self.world, Operation::Sync, &self.path);
        let mut world = self.world();
        let result = match world.fault(Operation::Sync, &self.path) {
            Some(fault @ (Fault::Io | Fault::NoSpace)) => {
                Err(Error::from_io("sync", &self.path, fault.error()))
            }
            _ => Ok(()),
        };
        world.record(Change::Sync { file: self.file, done: result.is_ok() });
        self.poison.after_sync(result)
    }

    fn map(&self, offset: FileOffset, len: u64) -> Result<Map> {
        let end = offset.plus(len);
        let (bytes, hold) = self.held.hold(offset.get()..end.get(), || {
            let world = self.world();
            let content = world.live.content(self.file);
            let found = content.get(position(offset.get())..position(end.get()));
            found.map(<[u8]>::to_vec).ok_or_else(|| Error::UnexpectedEnd {
                path: self.path.clone(),
                len: FileOffset::new(content.len() as u64),
                wanted: end,
            })
        })?;
        Ok(Map::of_memory(bytes, Some(hold)))
    }

    fn descriptor(&self, _aligned: bool) -> Option<BorrowedFd<'_>> {
        None
    }
}

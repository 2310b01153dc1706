//! One opener per directory.
//!
//! The lock is the system's (`flock`), on a file named `lock` that stays when the lock is gone. The
//! system drops the lock when the holder closes the file or dies, however it dies, so a file left
//! by a dead process blocks nobody. The lock belongs to the opening, not to the process, so a
//! second opener in the same process is refused too. The text in the file is for people: it lets a
//! refused opener name the holder.
//!
//! ```text
//! varve lock 1\n
//! pid 4711\n
//! command varve serve\n         program name and first argument, at most 120 bytes
//! ```
//!
//! Only the first argument is kept: later ones may hold addresses and passwords.

use std::any::Any;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::{Error, Result};

/// The name of the lock file in its directory.
pub const LOCK_FILE: &str = "lock";

const FIRST_LINE: &str = "varve lock 1";
const COMMAND_MAX: usize = 120;

/// Holds a directory until dropped.
pub struct LockGuard {
    _held: Box<dyn Any + Send + Sync>,
}

impl LockGuard {
    /// A guard that releases by dropping `held`.
    pub(crate) fn new(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard").finish_non_exhaustive()
    }
}

/// Who holds a lock, as written in the lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// Its program name and first argument.
    pub command: String,
}

impl Holder {
    /// This process.
    #[must_use]
    pub fn current() -> Self {
        let mut arguments = std::env::args_os();
        let program = arguments.next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
        let first = arguments.next().unwrap_or_default();
        let command = format!("{program} {}", first.to_string_lossy());
        let command = command.trim().chars().filter(|c| !c.is_control());
        let mut length = 0;
        let command = command.take_while(|c| {
            length += c.len_utf8();
            length <= COMMAND_MAX
        });
        Self { pid: std::process::id(), command: command.collect() }
    }

    /// The text of the lock file.
    #[must_use]
    pub fn encode(&self) -> String {
        format!("{FIRST_LINE}\npid {}\ncommand {}\n", self.pid, self.command)
    }

    /// Reads the text of a lock file; `None` when it is something else, or half written.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let pid = lines.next()?.strip_prefix("pid ")?.parse().ok()?;
        let command = lines.next()?.strip_prefix("command ")?.to_owned();
        Some(Self { pid, command })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} (`{}`)", self.pid, self.command)
    }
}

/// Locks `directory`, writing this process's name into the lock file.
pub(crate) fn acquire(directory: &Path) -> Result<LockGuard> {
    let path = directory.join(LOCK_FILE);
    let failed = |action, error| Error::from_io(action, &path, error);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&path)
        .map_err(|e| failed("open", e))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = read_holder(&mut file)
                .map_or_else(|| "an unknown process".to_owned(), |holder| holder.to_string());
            return Err(Error::Locked { path, holder });
        }
        Err(TryLockError::Error(error)) => return Err(failed("lock", error)),
    }
    file.set_len(0).map_err(|e| failed("write", e))?;
    file.rewind().map_err(|e| failed("write", e))?;
    file.write_all(Holder::current().encode().as_bytes()).map_err(|e| failed("write", e))?;
    Ok(LockGuard::new(file))
}

fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.take(512).read_to_string(&mut text).ok()?;
    Holder::decode(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_survives_its_text_and_damage_is_nobody() {
        let holder = Holder { pid: 4711, command: "varve serve".to_owned() };
        let text = holder.encode();
        assert_eq!(Holder::decode(&text), Some(holder));
        for end in 0..text.len() {
            assert_eq!(Holder::decode(&text[..end]), None, "cut at {end}");
        }
        assert_eq!(Holder::decode("pid 1\ncommand x\n"), None);
        assert!(Holder::current().encode().is_ascii());
    }

    #[test]
    fn a_second_opener_in_the_process_is_refused_and_told_by_whom() {
        let dir = tempfile::tempdir().unwrap();
        let first = acquire(dir.path()).unwrap();
        let Err(Error::Locked { holder, .. }) = acquire(dir.path()) else { panic!("not refused") };
        assert!(holder.contains(&format!("process {}", std::process::id())), "{holder}");
        drop(first);
        drop(acquire(dir.path()).unwrap());
    }
}

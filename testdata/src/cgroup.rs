//! A memory limit that counts the page cache too.
//!
//! A control group for the child alone: version 1 (`memory.limit_in_bytes`) or 2 (`memory.max`),
//! whichever the machine has mounted and lets us use. The parent creates the group, the child
//! enters it before anything else, and the parent removes it. Where none can be created, a test is
//! skipped, and a measurement runs without it and says `unlimited`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Groups that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A group with a limit, removed when it is dropped.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    peak: &'static str,
}

impl Cgroup {
    /// Makes a group with this limit; `None` where that is not possible.
    #[must_use]
    pub fn new(limit: u64) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("varve-{}-{number}", std::process::id());
        for Candidate { parent, version } in candidates(&mounts, &own) {
            let (file, peak) = match version {
                Version::One => ("memory.limit_in_bytes", "memory.max_usage_in_bytes"),
                Version::Two => ("memory.max", "memory.peak"),
            };
            if version == Version::Two {
                // Refused where the group has processes; then the next candidate is tried.
                let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory");
            }
            let path = parent.join(&name);
            if fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Self { path, peak };
            if fs::write(group.path.join(file), limit.to_string()).is_ok() {
                return Some(group);
            }
        }
        None
    }

    /// Its path, for [`enter`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The most memory that was in use, page cache included.
    #[must_use]
    pub fn peak(&self) -> Option<u64> {
        fs::read_to_string(self.path.join(self.peak)).ok()?.trim().parse().ok()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel may take a moment to notice that the last process is gone.
        for _ in 0..50 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        eprintln!("could not remove {}; remove it by hand", self.path.display());
    }
}

/// Moves this process into a group.
pub fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// The command, to be run in this group.
#[must_use]
pub fn inside(group: &Cgroup, command: &Command) -> Command {
    let mut inside = Command::new("sh");
    inside.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(group.path());
    inside.arg(command.get_program()).args(command.get_args());
    inside
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    parent: PathBuf,
    version: Version,
}

/// Candidate parent groups: our own, then the root, of every hierarchy that may count memory.
fn candidates(mounts: &str, own: &str) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (_, Some(mount), Some(kind), Some(options)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let version = match kind {
            "cgroup" if options.split(',').any(|option| option == "memory") => Version::One,
            "cgroup2" => Version::Two,
            _ => continue,
        };
        let own = own.lines().find_map(|line| own_group(line, version)).unwrap_or("/");
        let mount = Path::new(mount);
        let below = mount.join(own.trim_start_matches('/'));
        if below != mount {
            candidates.push(Candidate { parent: below, version });
        }
        candidates.push(Candidate { parent: mount.to_owned(), version });
    }
    candidates
}

/// The group in a line of `/proc/self/cgroup`, if it is of this hierarchy.
fn own_group(line: &str, version: Version) -> Option<&str> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
    let is_it = match version {
        Version::One => controllers.split(',').any(|controller| controller == "memory"),
        Version::Two => number == "0" && controllers.is_empty(),
    };
    is_it.then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_in_both_versions() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let own = "4:memory:/a/b\n1:cpu:/\n0::/\n";
        let at = |parent: &str, version| Candidate { parent: parent.into(), version };
        let expected = [
            at("/sys/fs/cgroup/memory/a/b", Version::One),
            at("/sys/fs/cgroup/memory", Version::One),
            at("/sys/fs/cgroup/unified", Version::Two),
        ];
        assert_eq!(candidates(mounts, own), expected);
        assert_eq!(candidates("", ""), []);
        assert_eq!(candidates("a b\n", "x"), []);
    }
}

//! A PostgreSQL server of a test, on a loopback port that is free, in a temporary folder.
//!
//! The programs are those of the system: `initdb` and `postgres` in the folder that
//! `VARVE_POSTGRES_BIN` names, below `/usr/lib/postgresql`, or on the PATH. Without them a test
//! says that it is skipped. The server refuses to run as root; then it runs as the user `postgres`.
//!
//! A server ends with the process that started it, however that ends: a shell beside it waits for
//! the end of a pipe that the process holds.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::Disk;
use crate::postgres::PostgresEngine;

/// Waits for a server are cut into pieces this long.
const PAUSE: Duration = Duration::from_millis(50);

/// A server.
#[derive(Debug)]
pub struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    running: Mutex<Option<Child>>,
    /// The end of its pipe ends the server.
    _janitor: Child,
}

impl Server {
    /// Starts a server of this test's own; `None` when there is none to start.
    ///
    /// # Panics
    ///
    /// When the programs are there and do not work.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: PostgreSQL is not installed (Debian: apt install postgresql)");
            return None;
        };
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("varve-postgres-{}-{number}", id()));
        fs::create_dir(&folder).expect("a temporary folder can be made");
        if let Some((user, group)) = other_user() {
            chown(&folder, Some(user), Some(group)).expect("root may give folders away");
        }
        let mut initdb = command(&programs.join("initdb"), &folder);
        initdb.args(["-U", "varve", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"]);
        let output = initdb.arg(folder.join("data")).output().expect("initdb runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let free = TcpListener::bind("127.0.0.1:0").expect("there is a loopback device");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let janitor = janitor(&folder);
        let server = Self { programs, folder, port, running: Mutex::default(), _janitor: janitor };
        server.restart();
        Some(server)
    }

    /// A server that the tests of this process share.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// The port that it listens on.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a schema.
    #[must_use]
    pub fn url(&self, schema: &str) -> String {
        format!("postgres://varve@127.0.0.1:{}/postgres?schema={schema}", self.port)
    }

    /// Records in a schema that nobody has used.
    pub fn disk(&self) -> PostgresDisk {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        PostgresDisk { url: self.url(&format!("test_{number}")) }
    }

    /// Kills the server as `kill -9` does, and waits until it is gone.
    pub fn kill(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut child) = running.take() {
            child.kill().expect("it is a child");
            child.wait().expect("it is a child");
        }
    }

    /// Starts the server where it was killed, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not answer in a minute.
    pub fn restart(&self) {
        self.kill();
        let log = File::options().append(true).create(true).open(self.folder.join("log"));
        let mut start = command(&self.programs.join("postgres"), &self.folder);
        start.arg("-D").arg(self.folder.join("data")).args(["-p", &self.port.to_string()]);
        start.args(["-h", "127.0.0.1", "-N", "200", "-c", "shared_buffers=64MB"]);
        start.args(["-c", "deadlock_timeout=50ms", "-k"]).arg(&self.folder);
        start.stdin(Stdio::null()).stdout(Stdio::null());
        start.stderr(log.expect("the folder can be written"));
        // The backends of a server that was killed may hold on to it for a moment.
        for _ in 0..20 {
            let child = start.spawn().expect("postgres runs");
            *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
            if self.answers() {
                return;
            }
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        panic!("PostgreSQL does not start: {log}");
    }

    /// From here on every user but the owner needs a password.
    ///
    /// # Panics
    ///
    /// When the folder of the server cannot be written.
    pub fn require_password(&self) {
        let rules = "host all varve 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
        let file = self.folder.join("data/pg_hba.conf");
        fs::write(file, rules).expect("the folder can be written");
        self.restart();
    }

    /// Runs a statement as the owner of the server.
    ///
    /// # Panics
    ///
    /// When the server refuses it.
    pub fn execute(&self, statement: &str) {
        let mut psql = command(&self.programs.join("psql"), &self.folder);
        psql.args(["-X", "-q", "-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "varve"]);
        let output = psql.args(["-d", "postgres", "-c", statement]).output().expect("psql runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn answers(&self) -> bool {
        for _ in 0..600 {
            let mut ready = command(&self.programs.join("pg_isready"), &self.folder);
            ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if ready.status().is_ok_and(|status| status.success()) {
                return true;
            }
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = running.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)));
            if ended {
                break;
            }
            drop(running);
            thread::sleep(PAUSE);
        }
        thread::sleep(PAUSE);
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Records in a schema of a server.
#[derive(Clone, Debug)]
pub struct PostgresDisk {
    /// Where they are.
    pub url: String,
}

impl Disk for PostgresDisk {
    type Engine = PostgresEngine;

    fn open(&self) -> PostgresEngine {
        PostgresEngine::open(&self.url).expect("the server runs")
    }
}

/// Removes the folder, and what still runs in it, when the pipe ends.
fn janitor(folder: &Path) -> Child {
    let script = "cat > /dev/null; pid=$(head -n 1 \"$0/data/postmaster.pid\" 2> /dev/null); \
                  test -n \"$pid\" && kill -QUIT $pid; sleep 1; rm -rf \"$0\"";
    let mut shell = command(Path::new("sh"), Path::new("/"));
    shell.args(["-c", script]).arg(folder);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Of a group of its own, so that what interrupts the test does not interrupt it.
    shell.process_group(0).spawn().expect("there is a shell")
}

/// A command in a folder, as the user that PostgreSQL accepts.
fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    if let Some((user, group)) = other_user() {
        command.uid(user).gid(group);
    }
    command
}

/// The user `postgres`, when this process is root's.
fn other_user() -> Option<(u32, u32)> {
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let users = fs::read_to_string("/etc/passwd").ok().filter(|_| root)?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The folder of the newest programs.
fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("VARVE_POSTGRES_BIN") {
        return Some(named.into());
    }
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let installed = installed.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = installed.chain(std::env::split_paths(&path));
    let complete = |folder: &PathBuf| {
        ["initdb", "postgres", "psql", "pg_isready"].iter().all(|name| folder.join(name).exists())
    };
    found.filter(complete).max()
}

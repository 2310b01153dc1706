//! The local socket: a command on a folder that another process holds is run by that process.
//!
//! ```text
//!  varve tx …          ─ DATADIR/socket ─►   varve serve, varve sync
//!  the asking process                        the process that holds the folder
//!
//!  ─► one line of JSON: version, arguments, folder of relative paths        [`Request`]
//!  ◄─ frames:  kind 1 B │ length u32 LE │ bytes
//!              1 standard output   2 standard error   0 the end: one byte, the exit code
//! ```
//!
//! The holder runs the command by the code that would have run it in the asking process, so an
//! answer is the same bytes in both. What runs it is a function that the command passes in: this
//! module carries bytes.
//!
//! Who may ask: the user of the holder, and root. The socket has mode 0600, and the holder looks at
//! the user of each connection besides. The socket is bound under another name and renamed when its
//! mode is set, which also replaces one that a killed process left: whoever binds holds the
//! folder's lock, so no living process serves the old one. A file of that name that is no socket is
//! left alone.
//!
//! A path of a socket has at most 107 bytes. A longer one is reached through the open folder:
//! `/proc/self/fd/N/socket`.

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

/// The name of the socket in its folder.
const SOCKET: &str = "socket";
/// Its name until it has its mode.
const SOCKET_TEMPORARY: &str = "socket.tmp";
/// The longest path that fits into a socket's address, with its final zero.
const PATH_MAX: usize = 107;
/// A command line is shorter than this.
const REQUEST_MAX: u64 = 1 << 20;
/// Bytes of a frame at most.
const FRAME_MAX: usize = 1 << 20;
/// Commands that run at the same time; others wait.
const COMMANDS: usize = 16;
/// How long one end waits for the other to send its request, or to read its answer.
const PATIENCE: Duration = Duration::from_secs(60);

const END: u8 = 0;
const OUTPUT: u8 = 1;
const REPORT: u8 = 2;

/// A command that another process is asked to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// The version of the asking program, which the holder must have too.
    pub version: String,
    /// The command and its flags, without the name of the program.
    pub arguments: Vec<String>,
    /// Where relative paths of the arguments start.
    pub directory: PathBuf,
    /// Whether the answer is JSON, however that was set.
    pub json: bool,
}

/// Why a command was not run by the holder.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The socket cannot be made or reached.
    #[error("cannot use {}: {source}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is a file of the socket's name.
    #[error(
        "{} is no socket, so other commands cannot ask this process; move it away and start again",
        path.display()
    )]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The answer ended before its end.
    #[error("the process that holds the folder did not finish its answer; ask again")]
    CutOff,
}

/// What the holder writes an answer to.
#[derive(Debug)]
pub struct Reply(UnixStream);

impl Reply {
    /// Sends bytes of standard output.
    pub fn output(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(OUTPUT, bytes)
    }

    /// Sends bytes of standard error.
    pub fn report(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(REPORT, bytes)
    }

    /// Another handle on the same connection.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    fn send(&mut self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(FRAME_MAX) {
            let length = u32::try_from(part.len()).expect("a part has at most FRAME_MAX bytes");
            let [a, b, c, d] = length.to_le_bytes();
            self.0.write_all(&[kind, a, b, c, d])?;
            self.0.write_all(part)?;
        }
        Ok(())
    }
}

/// Runs a command of a request, writes its answer, and returns its exit code.
pub type Execute = dyn Fn(&Request, &mut Reply) -> u8 + Send + Sync;

/// The holder's end of the socket, until it is dropped.
#[derive(Debug)]
pub struct LocalServer {
    folder: PathBuf,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

/// The number of commands that run, and whether no more are taken.
#[derive(Debug, Default)]
struct Shared {
    is_closed: AtomicBool,
    running: Mutex<usize>,
    ended: Condvar,
}

impl LocalServer {
    /// Makes the socket in a folder that this process holds, and runs what comes in.
    pub fn start(folder: &Path, execute: Arc<Execute>) -> Result<Self, LocalError> {
        let path = folder.join(SOCKET);
        let failed = |source| LocalError::Socket { path: path.clone(), source };
        let listener = bind(folder, &path)?;
        let shared = Arc::new(Shared::default());
        let accepting = {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name("varve-local".to_owned());
            thread.spawn(move || accept(&listener, &shared, &execute)).map_err(failed)?
        };
        Ok(Self { folder: folder.to_owned(), shared, accepting: Some(accepting) })
    }

    /// Takes no more commands, and waits for those that run, for as long as `patience`.
    pub fn stop(mut self, patience: Duration) {
        self.close();
        let end = Instant::now() + patience;
        let mut running = self.shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.ended.wait_timeout(running, left);
            running = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn close(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        self.shared.is_closed.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        drop(connect(&self.folder));
        // What it panicked with ended the process, or is a test's.
        let _ = accepting.join();
        let _ = fs::remove_file(self.folder.join(SOCKET));
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.close();
    }
}

fn bind(folder: &Path, path: &Path) -> Result<UnixListener, LocalError> {
    let failed = |source| LocalError::Socket { path: path.to_owned(), source };
    let temporary = folder.join(SOCKET_TEMPORARY);
    for name in [path, &temporary] {
        let is_other = fs::symlink_metadata(name).is_ok_and(|found| !found.file_type().is_socket());
        if is_other {
            return Err(LocalError::NotASocket { path: name.to_owned() });
        }
    }
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let listener =
        reach(folder, SOCKET_TEMPORARY, |path| UnixListener::bind(path)).map_err(failed)?;
    fs::set_permissions(&temporary, Permissions::from_mode(0o600)).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)?;
    Ok(listener)
}

fn connect(folder: &Path) -> io::Result<UnixStream> {
    reach(folder, SOCKET, |path| UnixStream::connect(path))
}

/// Calls `act` with a path of the socket that is short enough.
fn reach<T>(folder: &Path, name: &str, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = folder.join(name);
    if path.as_os_str().len() <= PATH_MAX {
        return act(&path);
    }
    let open = File::open(folder)?;
    act(&Path::new("/proc/self/fd").join(open.as_raw_fd().to_string()).join(name))
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>, execute: &Arc<Execute>) {
    while !shared.is_closed.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            // Too many open files: some will be closed.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if shared.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let mut running = shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running >= COMMANDS && !shared.is_closed.load(Ordering::Relaxed) {
            let waited = shared.ended.wait_timeout(running, Duration::from_millis(100));
            running = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *running += 1;
        drop(running);
        let turn = Turn(Arc::clone(shared));
        let execute = Arc::clone(execute);
        let thread = thread::Builder::new().name("varve-command".to_owned());
        // Without a thread the connection is closed, and the asking process says so.
        let _ = thread.spawn(move || {
            serve(stream, execute.as_ref());
            drop(turn);
        });
    }
}

/// Counts a command while it runs.
struct Turn(Arc<Shared>);

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.ended.notify_all();
    }
}

/// Runs the command of one connection. One that cannot be read is closed.
fn serve(stream: UnixStream, execute: &Execute) {
    let user = socket_peercred(&stream).map(|credentials| credentials.uid);
    if !user.is_ok_and(|user| user.is_root() || user == geteuid()) {
        return;
    }
    let timeouts =
        stream.set_read_timeout(Some(PATIENCE)).and(stream.set_write_timeout(Some(PATIENCE)));
    let Ok(incoming) = timeouts.and_then(|()| stream.try_clone()) else { return };
    let mut line = Vec::new();
    let read = BufReader::new(incoming).take(REQUEST_MAX).read_until(b'\n', &mut line);
    let request = read.ok().and_then(|_| serde_json::from_slice::<Request>(&line).ok());
    let Some(request) = request else { return };
    let mut reply = Reply(stream);
    let code = if request.version == env!("CARGO_PKG_VERSION") {
        execute(&request, &mut reply)
    } else {
        let (ours, theirs) = (env!("CARGO_PKG_VERSION"), &request.version);
        let sentence = format!(
            "error: the folder is held by a process of version {ours}, and this is version \
             {theirs}; restart that process\n"
        );
        // Whoever does not read it is gone.
        let _ = reply.report(sentence.as_bytes());
        1
    };
    let _ = reply.send(END, &[code]);
}

/// Whether there is a socket in a folder, which a living process may or may not listen on.
#[must_use]
pub fn exists(folder: &Path) -> bool {
    let found = fs::symlink_metadata(folder.join(SOCKET));
    found.is_ok_and(|found| found.file_type().is_socket())
}

/// Asks the process that holds a folder to run a command, and copies its answer. Returns the exit
/// code, or `None` when no process listens there.
///
/// # Errors
///
/// When the socket cannot be used, or the answer ends before its end. What of the answer was copied
/// stays copied.
pub fn ask(
    folder: &Path,
    request: &Request,
    output: &mut dyn Write,
    report: &mut dyn Write,
) -> Result<Option<u8>, LocalError> {
    let path = folder.join(SOCKET);
    let failed = |source| LocalError::Socket { path: path.clone(), source };
    let mut stream = match connect(folder) {
        Ok(stream) => stream,
        Err(error) if is_nobody(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut line = serde_json::to_vec(request).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    // A holder that is about to end closes without an answer.
    stream.write_all(&line).map_err(|_| LocalError::CutOff)?;
    let mut bytes = Vec::new();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).map_err(|_| LocalError::CutOff)?;
        let [kind, a, b, c, d] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > FRAME_MAX {
            return Err(LocalError::CutOff);
        }
        bytes.resize(length, 0);
        stream.read_exact(&mut bytes).map_err(|_| LocalError::CutOff)?;
        let copied = match (kind, bytes.first()) {
            (END, Some(code)) => return Ok(Some(*code)),
            (OUTPUT, _) => output.write_all(&bytes),
            (REPORT, _) => report.write_all(&bytes),
            _ => return Err(LocalError::CutOff),
        };
        copied.map_err(failed)?;
    }
}

/// Whether nobody listens: there is no socket, or one that a killed process left.
fn is_nobody(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | ConnectionRefused | NotADirectory)
}

#[cfg(test)]
mod tests;

//! A wire that can be cut: between an engine and its server, at the moment of a COMMIT.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What happens to the next COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It is passed on.
    Nothing,
    /// It never reaches the server.
    Before,
    /// The server gets it, and its answer is lost.
    After,
}

/// A proxy in front of a server.
pub(super) struct Proxy {
    port: u16,
    state: Arc<State>,
}

struct State {
    server: u16,
    cut: Mutex<Cut>,
    /// New connections are refused.
    closed: AtomicBool,
    cuts: AtomicU32,
}

impl Proxy {
    pub(super) fn new(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Mutex::new(Cut::Nothing);
        let (closed, cuts) = (AtomicBool::new(false), AtomicU32::new(0));
        let state = Arc::new(State { server, cut, closed, cuts });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                if state.closed.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", state.server)) else { continue };
                let (back_from, back_to) = (server.try_clone(), client.try_clone());
                let (back_from, back_to) = (back_from.unwrap(), back_to.unwrap());
                thread::spawn(move || pass(back_from, back_to, |_| Cut::Nothing));
                thread::spawn(move || pass(client, server, |bytes| state.next(bytes)));
            }
        });
        Self { port, state }
    }

    pub(super) fn url(&self, schema: &str) -> String {
        let port = self.port;
        format!("postgres://varve@127.0.0.1:{port}/postgres?schema={schema}&connections=2")
    }

    /// Cuts the wire at the next COMMIT, and lets nobody connect again if `close` says so.
    pub(super) fn cut(&self, cut: Cut, close: bool) {
        *self.state.cut.lock().unwrap() = cut;
        self.state.closed.store(close, Ordering::SeqCst);
    }

    /// How often the wire was cut.
    pub(super) fn cuts(&self) -> u32 {
        self.state.cuts.load(Ordering::SeqCst)
    }
}

impl State {
    fn next(&self, bytes: &[u8]) -> Cut {
        if !bytes.windows(7).any(|part| part == b"COMMIT\0") {
            return Cut::Nothing;
        }
        let cut = std::mem::replace(&mut *self.cut.lock().unwrap(), Cut::Nothing);
        if cut != Cut::Nothing {
            self.cuts.fetch_add(1, Ordering::SeqCst);
        }
        cut
    }
}

/// Passes bytes on until one side ends, or until they are cut.
fn pass(mut from: TcpStream, mut to: TcpStream, next: impl Fn(&[u8]) -> Cut) {
    // A batch of the tests fits, so a COMMIT is never in two pieces.
    let mut buffer = vec![0; 1 << 20];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let cut = next(&buffer[..count]);
        if cut == Cut::After {
            // The answer is lost first, so that it cannot arrive.
            let _ = from.shutdown(Shutdown::Both);
        }
        if cut == Cut::Before || to.write_all(&buffer[..count]).is_err() || cut == Cut::After {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    // What was written is delivered before the end is.
    let _ = to.shutdown(Shutdown::Write);
}

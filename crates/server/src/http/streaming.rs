//! Bodies that are produced while they are sent, in memory that does not grow with them.
//!
//! A thread writes chunks into a short queue, and the connection takes them out. A client that
//! reads slowly makes the writer wait; one that does not read is cut off (`stall`), and a writer
//! whose reader is gone ends at its next chunk.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;

use super::answer::Refusal;
use super::api::{Api, Shared};
use crate::log::{self, Level};

/// Bytes of a chunk.
const CHUNK: usize = 64 << 10;
/// Chunks that wait.
const QUEUE: usize = 4;
/// Bodies that are produced at the same time. They have places of their own: a client that reads
/// slowly must not hold a turn that others wait for.
pub(crate) const STREAMS: usize = 8;
/// How long a body may take.
const LONGEST: Duration = Duration::from_secs(600);

/// Writes a body.
#[derive(Debug)]
pub(crate) struct Writer {
    chunk: Vec<u8>,
    queue: mpsc::Sender<io::Result<Bytes>>,
    items: u64,
    begun: Instant,
}

impl Writer {
    /// Appends bytes; false when nobody reads any more.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.chunk.extend_from_slice(bytes);
        self.chunk.len() < CHUNK || self.send()
    }

    /// Appends an item of a JSON array; false when nobody reads any more.
    pub(crate) fn item(&mut self, item: &impl Serialize) -> bool {
        self.chunk.push(if self.items == 0 { b'[' } else { b',' });
        self.items += 1;
        serde_json::to_writer(&mut self.chunk, item).is_ok()
            && (self.chunk.len() < CHUNK || self.send())
    }

    /// Appends a line of JSON; false when nobody reads any more.
    pub(crate) fn line(&mut self, line: &impl Serialize) -> bool {
        let written = serde_json::to_writer(&mut self.chunk, line).is_ok();
        written && self.bytes(b"\n")
    }

    /// Cuts the body off: the client sees that its end is missing.
    pub(crate) fn fail(&mut self, why: &str) {
        log::event(Level::Error, "http_cut_off", &json!({ "error": why }));
        self.chunk.clear();
        let _ = self.queue.blocking_send(Err(io::Error::other("cut off")));
    }

    fn send(&mut self) -> bool {
        if self.chunk.is_empty() {
            return true;
        }
        if self.begun.elapsed() > LONGEST {
            self.fail("the client reads too slowly");
            return false;
        }
        let chunk = std::mem::take(&mut self.chunk);
        self.queue.blocking_send(Ok(Bytes::from(chunk))).is_ok()
    }
}

/// A body that `write` produces in a thread that may block; refused when there are too many.
pub(crate) fn body(
    api: &Shared,
    write: impl FnOnce(&Api, &mut Writer) + Send + 'static,
) -> Result<Body, Refusal> {
    let place = Arc::clone(&api.streams).try_acquire_owned();
    let place = place.map_err(|_| Refusal::unavailable("too many long answers; try again"))?;
    let (queue, mut chunks) = mpsc::channel(QUEUE);
    let api = Shared::clone(api);
    let produce = move || {
        let mut writer = Writer { chunk: Vec::new(), queue, items: 0, begun: Instant::now() };
        write(&api, &mut writer);
        writer.send();
        drop(place);
    };
    // The thread ends by itself when it is done or nobody reads.
    drop(tokio::task::spawn_blocking(produce));
    Ok(Body::from_stream(futures_util::stream::poll_fn(move |context| chunks.poll_recv(context))))
}

/// A body that is a JSON array of what `write` appends.
pub(crate) fn json_array(
    api: &Shared,
    write: impl FnOnce(&Api, &mut Writer) + Send + 'static,
) -> Result<Body, Refusal> {
    body(api, |api, writer| {
        write(api, writer);
        let end: &[u8] = if writer.items == 0 { b"[]" } else { b"]" };
        writer.bytes(end);
    })
}

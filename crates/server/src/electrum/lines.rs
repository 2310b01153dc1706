//! Lines from a stream, with bounds on their length and on the time they take.
//!
//! The buffer of a connection that rests is small. It grows as a line does; beyond [`FREE`] bytes
//! the memory comes out of a budget that all connections share, for as long as the line is in the
//! buffer. A line that is not finished in time, or is too long, ends the connection.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::limits::Limits;

/// Bytes that every connection may have without asking.
const FREE: usize = 16 << 10;
/// What a buffer begins with.
const FIRST: usize = 1 << 10;
/// The most that a buffer grows by at once.
const STEP: usize = 256 << 10;

/// Complete lines, without their ends.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    lines: Vec<Range<usize>>,
    /// The memory of the bytes, where they are many.
    _room: Option<OwnedSemaphorePermit>,
}

impl Lines {
    /// One message that came whole.
    pub(super) fn one(bytes: Vec<u8>) -> Self {
        let whole = 0..bytes.len();
        Self { bytes, lines: vec![whole], _room: None }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn get(&self, place: usize) -> Option<&[u8]> {
        self.bytes.get(self.lines.get(place)?.clone())
    }
}

/// Why no more lines come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client has closed its side, or the connection broke.
    Closed,
    /// Nothing came for too long, or a line took too long.
    TimedOut,
    /// A line is longer than the limit.
    TooLong,
}

/// Reads lines from a stream.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    stream: R,
    buffer: Vec<u8>,
    /// How far the buffer was searched for the end of a line.
    searched: usize,
    limits: Limits,
    budget: Arc<Semaphore>,
    room: Option<OwnedSemaphorePermit>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(stream: R, limits: Limits, budget: Arc<Semaphore>) -> Self {
        Self { stream, buffer: Vec::new(), searched: 0, limits, budget, room: None }
    }

    /// Waits for at least one line, and returns all that have come.
    pub(super) async fn next(&mut self) -> Result<Lines, End> {
        let mut begun = None;
        loop {
            if let Some(lines) = self.take_lines() {
                return Ok(lines);
            }
            if self.buffer.len() > self.limits.request {
                return Err(End::TooLong);
            }
            if self.buffer.is_empty() {
                self.fill(Instant::now() + self.limits.idle).await?;
            } else {
                let begun = *begun.get_or_insert_with(Instant::now);
                self.fill(begun + self.limits.line).await?;
            }
        }
    }

    async fn fill(&mut self, end: Instant) -> Result<(), End> {
        self.grow(end).await?;
        let read = timeout_at(end, self.stream.read_buf(&mut self.buffer)).await;
        match read.map_err(|_| End::TimedOut)? {
            Ok(0) | Err(_) => Err(End::Closed),
            Ok(_) => Ok(()),
        }
    }

    /// Makes room for more, out of the budget when it is much.
    async fn grow(&mut self, end: Instant) -> Result<(), End> {
        if self.buffer.len() < self.buffer.capacity() {
            return Ok(());
        }
        let more = self.buffer.capacity().clamp(FIRST, STEP);
        if self.buffer.capacity() + more > FREE {
            let bytes = u32::try_from(more).unwrap_or(u32::MAX);
            let room = Arc::clone(&self.budget).acquire_many_owned(bytes);
            let room = timeout_at(end, room).await.map_err(|_| End::TimedOut)?;
            let room = room.map_err(|_| End::Closed)?;
            match &mut self.room {
                Some(all) => all.merge(room),
                none @ None => *none = Some(room),
            }
        }
        self.buffer.reserve_exact(more);
        Ok(())
    }

    /// Takes the complete lines out of the buffer, which keeps the rest.
    fn take_lines(&mut self) -> Option<Lines> {
        let new = self.buffer.get(self.searched..)?;
        let last = new.iter().rposition(|byte| *byte == b'\n').map(|at| at + self.searched);
        self.searched = self.buffer.len();
        let last = last?;
        let rest = self.buffer.get(last + 1..).unwrap_or_default().to_vec();
        self.searched = 0;
        let mut bytes = std::mem::replace(&mut self.buffer, rest);
        bytes.truncate(last);
        let mut lines = Vec::new();
        let mut begin = 0;
        for line in bytes.split(|byte| *byte == b'\n') {
            let end = begin + line.len();
            // Empty lines keep a connection alive, and are no requests.
            if !line.trim_ascii().is_empty() {
                lines.push(begin..end);
            }
            begin = end + 1;
        }
        Some(Lines { bytes, lines, _room: self.room.take() })
    }

    /// Reads what still comes, for a second at most.
    pub(super) async fn discard(&mut self) {
        let mut sink = [0; 4096];
        let all = async { while matches!(self.stream.read(&mut sink).await, Ok(1..)) {} };
        let _ = timeout(Duration::from_secs(1), all).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    fn reader(
        limits: Limits,
        budget: usize,
    ) -> (tokio::io::DuplexStream, LineReader<tokio::io::DuplexStream>) {
        let (client, server) = tokio::io::duplex(1 << 20);
        (client, LineReader::new(server, limits, Arc::new(Semaphore::new(budget))))
    }

    fn all(lines: &Lines) -> Vec<&str> {
        (0..lines.len())
            .map(|place| std::str::from_utf8(lines.get(place).unwrap()).unwrap())
            .collect()
    }

    #[tokio::test]
    async fn lines_come_whole_however_they_are_cut() {
        let (mut client, mut reader) = reader(Limits::default(), 0);
        client.write_all(b"one\ntwo\r\n\n  \nthr").await.unwrap();
        assert_eq!(all(&reader.next().await.unwrap()), ["one", "two\r"]);
        client.write_all(b"ee").await.unwrap();
        client.write_all(b"\nfour").await.unwrap();
        assert_eq!(all(&reader.next().await.unwrap()), ["three"]);
        drop(client);
        assert_eq!(reader.next().await.unwrap_err(), End::Closed, "a line without its end is none");
    }

    #[tokio::test]
    async fn too_long_too_slow_and_out_of_budget() {
        let limits =
            Limits { request: 100_000, line: Duration::from_millis(50), ..Limits::default() };
        let (mut client, mut long) = reader(limits, 1 << 20);
        client.write_all(&vec![b'x'; 300_000]).await.unwrap();
        assert_eq!(long.next().await.unwrap_err(), End::TooLong);
        let (mut client, mut slow) = reader(limits, 1 << 20);
        client.write_all(b"{").await.unwrap();
        assert_eq!(slow.next().await.unwrap_err(), End::TimedOut);
        let (mut client, mut starved) = reader(limits, 10);
        client.write_all(&vec![b'x'; 50_000]).await.unwrap();
        assert_eq!(starved.next().await.unwrap_err(), End::TimedOut, "the budget is used up");
    }

    #[tokio::test]
    async fn a_long_line_gives_its_memory_back() {
        let limits = Limits::default();
        let (mut client, mut reader) = reader(limits, 1 << 20);
        let mut long = vec![b'x'; 200_000];
        long.push(b'\n');
        client.write_all(&long).await.unwrap();
        let lines = reader.next().await.unwrap();
        assert_eq!(lines.get(0).unwrap().len(), 200_000);
        assert!(reader.budget.available_permits() < 1 << 20);
        drop(lines);
        assert_eq!(reader.budget.available_permits(), 1 << 20);
        assert!(reader.buffer.capacity() < FREE);
    }
}

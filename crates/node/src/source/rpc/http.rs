//! The subset of HTTP that it takes to talk to a node.
//!
//! Requests are of version 1.0 with `Connection: keep-alive`: a node then gives the length of its
//! answer. An answer in chunks, or one that ends with the connection, is understood as well: a
//! proxy may send it.
//!
//! ```text
//! POST / HTTP/1.0            HTTP/1.1 200 OK
//! Authorization: Basic …     Content-Length: 42
//! Content-Length: 17
//!                            42 bytes
//! 17 bytes
//! ```
//!
//! Waiting is bounded everywhere. A connection is opened within [`CONNECT`]. A read returns every
//! [`TICK`] to look whether the source was dropped. After [`QUIET`] without a byte the silence is
//! reported, and after [`ANSWER`], plus the time that the bytes so far take at [`SLOWEST`], the
//! request fails.
//!
//! There is no TLS: the interface of a node has none, and belongs on a loopback address.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::link::{Link, Stop, TICK, Trouble};

/// How long a connection may take, over all addresses of a host.
const CONNECT: Duration = Duration::from_secs(2);
/// How long a server may be silent before that is reported.
const QUIET: Duration = Duration::from_secs(2);
/// How long an answer may take, and how many bytes of it must come in a second.
const ANSWER: Duration = Duration::from_secs(60);
const SLOWEST: u64 = 16 << 10;
/// The longest head of an answer.
const MAX_HEAD: u64 = 16 << 10;
/// How much a body grows by before its bytes are there: a length is not believed.
const STEP: u64 = 1 << 20;

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum HttpError {
    Stop(Stop),
    /// Nobody listens, or the connection ended or stalled.
    Unreachable(String),
    /// What came is not HTTP.
    Bad(&'static str),
    /// The answer has more bytes than are taken.
    TooLong,
}

impl From<Stop> for HttpError {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// A connection to one server, made when it is needed.
pub(super) struct Http {
    link: Arc<Link>,
    /// The longest body that is taken.
    limit: u64,
    stream: Option<BufReader<Patient>>,
}

impl Http {
    /// Will connect to the address of `link`.
    pub(super) const fn new(link: Arc<Link>, limit: u64) -> Self {
        Self { link, limit, stream: None }
    }

    /// Sends a request: a POST when there is a body. `login` is `user:password`.
    pub(super) fn request(
        &mut self,
        path: &str,
        login: Option<&str>,
        body: Option<&[u8]>,
    ) -> Result<Answer, HttpError> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let mut request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nConnection: keep-alive\r\n",
            self.link.address
        );
        if let Some(login) = login {
            request += &format!("Authorization: Basic {}\r\n", BASE64_STANDARD.encode(login));
        }
        if let Some(body) = body {
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        request += "\r\n";
        let request = [request.as_bytes(), body.unwrap_or_default()].concat();
        // A connection that was kept may have been closed meanwhile: then once more on a new one.
        if let Some(mut stream) = self.stream.take() {
            stream.get_mut().restart();
            match self.exchange(stream, &request) {
                Err(HttpError::Unreachable(_)) => {}
                other => return other,
            }
        }
        let stream = Patient::connect(&self.link)?;
        self.exchange(BufReader::with_capacity(1 << 16, stream), &request)
    }

    fn exchange(
        &mut self,
        mut stream: BufReader<Patient>,
        request: &[u8],
    ) -> Result<Answer, HttpError> {
        let answer = stream.get_mut().stream.write_all(request);
        let answer =
            answer.map_err(Failure::Io).and_then(|()| read_answer(&mut stream, self.limit));
        if let Some(stop) = stream.get_mut().stop.take() {
            return Err(HttpError::Stop(stop));
        }
        let (answer, keep) = answer.map_err(Failure::judge)?;
        if keep {
            self.stream = Some(stream);
        }
        Ok(answer)
    }
}

/// Why an answer could not be read.
enum Failure {
    Io(io::Error),
    Bad(&'static str),
    TooLong,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Failure {
    fn judge(self) -> HttpError {
        match self {
            // A line of the head that is not text.
            Self::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                HttpError::Bad("answers with something that is not HTTP")
            }
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                HttpError::Unreachable("the connection ended before the answer".to_owned())
            }
            Self::Io(error) => HttpError::Unreachable(error.to_string()),
            Self::Bad(what) => HttpError::Bad(what),
            Self::TooLong => HttpError::TooLong,
        }
    }
}

/// A socket whose reads end when the source is dropped or the server stalls.
struct Patient {
    stream: TcpStream,
    link: Arc<Link>,
    /// When the request was sent, and when the last byte came.
    begin: Duration,
    last: Duration,
    /// Bytes of the answer.
    received: u64,
    /// Why the last read failed, when the source is to end.
    stop: Option<Stop>,
}

impl Patient {
    fn connect(link: &Arc<Link>) -> Result<Self, HttpError> {
        let unreachable = |error: io::Error| HttpError::Unreachable(error.to_string());
        let addresses: Vec<_> = link.address.to_socket_addrs().map_err(unreachable)?.collect();
        let share = CONNECT / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let mut last = HttpError::Unreachable("the host has no address".to_owned());
        for address in addresses {
            let connect = || -> io::Result<TcpStream> {
                let stream = TcpStream::connect_timeout(&address, share)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TICK))?;
                stream.set_write_timeout(Some(ANSWER))?;
                Ok(stream)
            };
            match connect() {
                Ok(stream) => {
                    let (link, now) = (Arc::clone(link), (link.clock)());
                    let (begin, last) = (now, now);
                    return Ok(Self { stream, link, begin, last, received: 0, stop: None });
                }
                Err(error) => last = unreachable(error),
            }
        }
        Err(last)
    }

    /// A new request goes over the same connection.
    fn restart(&mut self) {
        let now = (self.link.clock)();
        (self.begin, self.last, self.received) = (now, now, 0);
    }

    /// Whether to keep waiting; notes why not.
    fn wait(&mut self) -> io::Result<()> {
        let quiet = (self.link.clock)().saturating_sub(self.last);
        let stopped = if self.link.is_closed() {
            Err(Stop::Closed)
        } else if quiet >= QUIET {
            let seconds = QUIET.as_secs();
            let reason = format!("it has not answered for {seconds} s");
            self.link.trouble(&Trouble::Unreachable(reason))
        } else {
            Ok(())
        };
        stopped.map_err(|stop| {
            self.stop = Some(stop);
            io::Error::from(io::ErrorKind::ConnectionAborted)
        })
    }
}

impl Read for Patient {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.stream.read(bytes);
            let now = (self.link.clock)();
            let allowed = ANSWER.saturating_add(Duration::from_secs(self.received / SLOWEST));
            match read {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    self.wait()?;
                }
                Ok(count) => {
                    self.received += count as u64;
                    self.last = now;
                    if now.saturating_sub(self.begin) <= allowed {
                        return Ok(count);
                    }
                }
                failed => return failed,
            }
            if now.saturating_sub(self.begin) > allowed {
                return Err(io::Error::other("it takes too long to answer"));
            }
        }
    }
}

type Stream = BufReader<Patient>;

/// Reads an answer, and whether the connection can be used again.
fn read_answer(stream: &mut Stream, limit: u64) -> Result<(Answer, bool), Failure> {
    let head = read_head(stream)?;
    let mut body = Vec::new();
    match head.length {
        Length::Chunked => read_chunks(stream, limit, &mut body)?,
        Length::Bytes(length) if length > limit => return Err(Failure::TooLong),
        Length::Bytes(length) => read_body(stream, length, &mut body)?,
        Length::ToTheEnd => {
            let taken = stream.take(limit.saturating_add(1)).read_to_end(&mut body)? as u64;
            if taken > limit {
                return Err(Failure::TooLong);
            }
        }
    }
    let keep = head.keep && head.length != Length::ToTheEnd;
    Ok((Answer { status: head.status, body }, keep))
}

/// How the end of an answer is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Bytes(u64),
    Chunked,
    ToTheEnd,
}

/// What is needed of the head of an answer.
struct Head {
    status: u16,
    length: Length,
    keep: bool,
}

fn read_head(stream: &mut Stream) -> Result<Head, Failure> {
    let mut lines = stream.take(MAX_HEAD);
    let mut line = String::new();
    if lines.read_line(&mut line)? == 0 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let status = line.split(' ').nth(1).and_then(|status| status.trim().parse().ok());
    let status = status.filter(|_| line.starts_with("HTTP/1."));
    let status = status.ok_or(Failure::Bad("answers with something that is not HTTP"))?;
    let mut head = Head { status, length: Length::ToTheEnd, keep: true };
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Err(Failure::Bad("sends an answer whose head does not end"));
        }
        let Some((name, value)) = line.split_once(':') else { break };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" if head.length == Length::ToTheEnd => {
                let length = value.parse();
                head.length = Length::Bytes(
                    length.map_err(|_| Failure::Bad("sends a length that is not a number"))?,
                );
            }
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => {
                head.length = Length::Chunked;
            }
            "transfer-encoding" => return Err(Failure::Bad("sends a compressed answer")),
            "connection" => head.keep = value.eq_ignore_ascii_case("keep-alive"),
            _ => {}
        }
    }
    let ends = line.trim().is_empty();
    ends.then_some(head).ok_or(Failure::Bad("answers with something that is not HTTP"))
}

fn read_body(stream: &mut Stream, length: u64, body: &mut Vec<u8>) -> Result<(), Failure> {
    let mut left = length;
    while left > 0 {
        let step = STEP.min(left);
        if (stream.take(step).read_to_end(body)? as u64) < step {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        left -= step;
    }
    Ok(())
}

/// `SIZE CRLF bytes CRLF` for each chunk, the size in hexadecimal; `0 CRLF`, trailers and an empty
/// line at the end.
fn read_chunks(stream: &mut Stream, limit: u64, body: &mut Vec<u8>) -> Result<(), Failure> {
    let bad = || Failure::Bad("sends an answer in chunks that are none");
    let line = |stream: &mut Stream| -> Result<String, Failure> {
        let mut line = String::new();
        match stream.take(MAX_HEAD).read_line(&mut line)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ => Ok(line),
        }
    };
    loop {
        let head = line(stream)?;
        let size = head.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| bad())?;
        if size == 0 {
            break;
        }
        if size > limit - body.len() as u64 {
            return Err(Failure::TooLong);
        }
        read_body(stream, size, body)?;
        if !line(stream)?.trim().is_empty() {
            return Err(bad());
        }
    }
    for _ in 0..MAX_HEAD {
        if line(stream)?.trim().is_empty() {
            return Ok(());
        }
    }
    Err(bad())
}

#[cfg(test)]
mod tests;

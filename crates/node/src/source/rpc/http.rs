//! As much of HTTP as it takes to talk to a node.
//!
//! Requests are of version 1.0 with `Connection: keep-alive`: a server then gives the length of its
//! answer, or closes the connection behind it, and never sends it in chunks.
//!
//! ```text
//! POST / HTTP/1.0            HTTP/1.1 200 OK
//! Authorization: Basic …     Content-Length: 42
//! Content-Length: 17
//!                            42 bytes
//! 17 bytes
//! ```
//!
//! There is no TLS: the interface of a node has none, and belongs on a loopback address.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};

const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest head of an answer.
const MAX_HEAD: u64 = 16 << 10;
/// How much a body grows by before its bytes are there: a length is not believed.
const STEP: u64 = 1 << 20;

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// A connection to one server, made when it is needed.
pub(super) struct Http {
    address: String,
    /// The longest body that is taken.
    limit: u64,
    stream: Option<BufReader<TcpStream>>,
}

impl Http {
    /// Will connect to `host:port`.
    pub(super) const fn new(address: String, limit: u64) -> Self {
        Self { address, limit, stream: None }
    }

    /// Sends a request: a POST when there is a body. `login` is `user:password`.
    pub(super) fn request(
        &mut self,
        path: &str,
        login: Option<&str>,
        body: Option<&[u8]>,
    ) -> io::Result<Answer> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let mut request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nConnection: keep-alive\r\n",
            self.address
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
        if let Some(stream) = self.stream.take()
            && let Ok(answer) = self.exchange(stream, &request)
        {
            return Ok(answer);
        }
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        self.exchange(BufReader::with_capacity(1 << 16, stream), &request)
    }

    fn exchange(&mut self, mut stream: BufReader<TcpStream>, request: &[u8]) -> io::Result<Answer> {
        stream.get_mut().write_all(request)?;
        let head = read_head(&mut stream)?;
        let mut body = Vec::new();
        match head.length {
            Some(length) if length > self.limit => return Err(bad("the answer is too long")),
            Some(length) => read_body(&mut stream, length, &mut body)?,
            None => {
                stream.by_ref().take(self.limit).read_to_end(&mut body)?;
            }
        }
        if head.keep && head.length.is_some() {
            self.stream = Some(stream);
        }
        Ok(Answer { status: head.status, body })
    }
}

/// What is needed of the head of an answer.
struct Head {
    status: u16,
    length: Option<u64>,
    keep: bool,
}

fn read_head(stream: &mut BufReader<TcpStream>) -> io::Result<Head> {
    let mut lines = stream.by_ref().take(MAX_HEAD);
    let mut line = String::new();
    if lines.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.filter(|_| line.starts_with("HTTP/1."));
    let mut head = Head {
        status: status.ok_or_else(|| bad("the answer is not HTTP"))?,
        length: None,
        keep: true,
    };
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Err(bad("the head of the answer does not end"));
        }
        let Some((name, value)) = line.split_once(':') else { break };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                head.length = Some(value.parse().map_err(|_| bad("a length that is none"))?);
            }
            "connection" => head.keep = value.eq_ignore_ascii_case("keep-alive"),
            "transfer-encoding" => return Err(bad("an answer in chunks, which 1.0 has not")),
            _ => {}
        }
    }
    if line.trim().is_empty() { Ok(head) } else { Err(bad("a line of the head is none")) }
}

fn read_body(stream: &mut BufReader<TcpStream>, length: u64, body: &mut Vec<u8>) -> io::Result<()> {
    while (body.len() as u64) < length {
        let step = STEP.min(length - body.len() as u64);
        if (stream.by_ref().take(step).read_to_end(body)? as u64) < step {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

fn bad(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server that gives each answer on a connection of its own and then closes it.
    fn serve(answers: Vec<&'static str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1000]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn answers_with_and_without_a_length_and_closed_connections() {
        let address = serve(vec![
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nConnection: keep-alive\r\n\r\nabc",
            "HTTP/1.0 404 No\r\n\r\nto the end",
        ]);
        let mut http = Http::new(address, 100);
        let answer = http.request("/", Some("a:b"), Some(b"{}")).unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &b"abc"[..]));
        let answer = http.request("/", None, None).unwrap();
        assert_eq!((answer.status, &answer.body[..]), (404, &b"to the end"[..]));
    }

    #[test]
    fn hostile_answers_are_errors() {
        let answers = [
            "HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 OK\r\n\r\n",
            "SSH-2.0\r\n",
            "",
        ];
        let mut http = Http::new(serve(answers.to_vec()), 100);
        for answer in answers {
            assert!(http.request("/", None, None).is_err(), "{answer}");
        }
    }
}

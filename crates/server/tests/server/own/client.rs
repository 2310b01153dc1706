//! The least of an HTTP client: one request a connection.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Sends a request and reads its head.
fn send(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, Vec<(String, String)>, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    (status, headers, reader)
}

pub(crate) fn request(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    let (status, headers, mut reader) = send(address, method, path, headers, body);
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = Vec::new();
    match length.map(|(_, length)| length.parse().unwrap()) {
        Some(length) => {
            body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
        }
        None => {
            reader.read_to_end(&mut body).unwrap();
        }
    }
    Response { status, headers, body }
}

pub(crate) fn get(address: &str, path: &str) -> Response {
    request(address, "GET", path, &[], &[])
}

/// A stream of server-sent events.
pub(crate) struct EventStream(BufReader<TcpStream>);

/// An event: its id, its name and its data.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl EventStream {
    pub(crate) fn open(address: &str, path: &str, headers: &[(&str, &str)]) -> Self {
        let (status, _, reader) = send(address, "GET", path, headers, &[]);
        assert_eq!(status, 200);
        Self(reader)
    }

    /// The next event. Lines of chunks and comments are passed over.
    pub(crate) fn next(&mut self) -> Event {
        let (mut id, mut name) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream has ended");
            match line.trim_end().split_once(':') {
                Some(("id", value)) => id = value.trim().to_owned(),
                Some(("event", value)) => name = value.trim().to_owned(),
                Some(("data", value)) => {
                    let data = serde_json::from_str(value).unwrap();
                    return Event { id, name, data };
                }
                _ => {}
            }
        }
    }
}

//! Matches of tip filters on their way to the reference server: one `POST` of JSON each.
//!
//! The server is spoken to in plain HTTP: it runs on the same machine or behind a proxy.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATH: &str = "/api/v1/tip-filter/matches";
/// How long a delivery may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read: its first line is what counts.
const LONGEST_ANSWER: usize = 1_024;

/// Where a reference server is: `http://HOST:PORT`, and the path below which its API is, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceServer {
    /// Host and port.
    authority: String,
    /// With a slash before and none behind; empty for none.
    below: String,
}

/// A text that names no reference server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} names no reference server; write it as in http://127.0.0.1:47126")]
pub struct ParseReferenceServerError {
    text: String,
}

impl FromStr for ReferenceServer {
    type Err = ParseReferenceServerError;

    fn from_str(text: &str) -> Result<Self, ParseReferenceServerError> {
        let wrong = || ParseReferenceServerError { text: text.to_owned() };
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let (authority, below) = rest.split_once('/').unwrap_or((rest, ""));
        let below = below.trim_end_matches('/');
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let has_host = !authority.is_empty() && !authority.starts_with(':');
        if !has_host || !is_plain(rest) || authority.contains('@') {
            return Err(wrong());
        }
        let port = authority.rsplit_once(':').map(|(_, port)| port);
        let has_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:80") };
        let below = if below.is_empty() { String::new() } else { format!("/{below}") };
        Ok(Self { authority, below })
    }
}

impl fmt::Display for ReferenceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.below)
    }
}

/// The matches of one block, or of unconfirmed transactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Batch {
    /// `null` for unconfirmed transactions.
    pub(super) block_id: Option<String>,
    pub(super) entries: Vec<Entry>,
}

/// The matches of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) account_id: i64,
    pub(super) matches: Vec<TipMatch>,
}

/// An input or output that pushes a watched item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TipMatch {
    pub(super) push_data_hash_hex: String,
    pub(super) transaction_id: String,
    pub(super) transaction_index: u32,
    pub(super) flags: u8,
}

impl ReferenceServer {
    /// Hands a batch over. Any answer but a 2xx is an error.
    pub(super) async fn deliver(&self, batch: &Batch) -> io::Result<()> {
        let body = serde_json::to_vec(batch)?;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the reference server is too slow");
        timeout(PATIENCE, self.post(&body)).await.map_err(late)?
    }

    async fn post(&self, body: &[u8]) -> io::Result<()> {
        let mut stream = TcpStream::connect(&self.authority).await?;
        let head = format!(
            "POST {}{PATH} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            self.below,
            self.authority,
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::new();
        let mut reader = stream.take(LONGEST_ANSWER as u64);
        while !answer.contains(&b'\n') {
            if reader.read_buf(&mut answer).await? == 0 {
                break;
            }
        }
        if is_success(&answer) {
            return Ok(());
        }
        let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        Err(io::Error::other(format!("the reference server answered {line:?}")))
    }
}

/// Whether an answer begins with `HTTP/1.x 2..`.
fn is_success(answer: &[u8]) -> bool {
    let mut words = answer.split(|byte| *byte == b' ');
    let is_http = words.next().is_some_and(|word| word.starts_with(b"HTTP/1."));
    is_http && words.next().is_some_and(|code| code.len() >= 3 && code.starts_with(b"2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_reference_server_is() {
        for (text, shown) in [
            ("http://127.0.0.1:47126", "http://127.0.0.1:47126"),
            ("http://example.org", "http://example.org:80"),
            ("http://[::1]:8080/conduit/", "http://[::1]:8080/conduit"),
        ] {
            assert_eq!(text.parse::<ReferenceServer>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "127.0.0.1:1",
            "https://host:1",
            "http://",
            "http://:80",
            "http://u@h:1",
            "http://host:1/a b",
        ] {
            assert!(text.parse::<ReferenceServer>().is_err(), "{text}");
        }
    }

    #[test]
    fn answers_that_mean_success() {
        assert!(is_success(b"HTTP/1.1 200 OK\r\n"));
        assert!(is_success(b"HTTP/1.0 204 No Content\r\n"));
        for other in ["", "HTTP/1.1 500 no\r\n", "HTTP/1.1 2", "SMTP 220 hello", "HTTP/1.1"] {
            assert!(!is_success(other.as_bytes()), "{other}");
        }
    }
}

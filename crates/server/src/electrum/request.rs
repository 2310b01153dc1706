//! A line of a client: one request, a notification, or a batch of them.
//!
//! ```text
//! {"jsonrpc": "2.0", "id": 7, "method": "blockchain.block.header", "params": [5]}
//! {"id": 7, "method": "blockchain.block.header", "params": {"height": 5}}
//! [{…}, {…}]
//! ```
//!
//! A request without `id` is a notification and gets no answer. Nothing is copied: id and
//! parameters are slices of the line, and parameters are read when the method knows what it wants.
//! Values are skipped without recursion, so nesting costs nothing but its bytes.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fault::Fault;

/// The longest id that is repeated in an answer.
const MAX_ID: usize = 256;

/// A request as it was sent.
#[derive(Debug, Deserialize)]
pub struct Request<'a> {
    /// What the answer repeats; `None` in a notification.
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
    /// The method.
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    /// An array or an object; `None` when there are none.
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
}

/// A value that is there, be it null.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// What a line holds.
#[derive(Debug)]
pub enum Line<'a> {
    /// One request, or why it is none.
    One(Result<Request<'a>, Fault>),
    /// Several, which are answered together.
    Batch(Vec<&'a RawValue>),
}

impl<'a> Line<'a> {
    /// Reads a line. A batch of more than `max_batch` requests is refused as a whole.
    #[must_use]
    pub fn parse(line: &'a [u8], max_batch: usize) -> Self {
        let is_batch = line.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
        if !is_batch {
            return Self::One(Request::parse(line));
        }
        match serde_json::from_slice::<Vec<&RawValue>>(line) {
            Err(_) => Self::One(Err(Fault::parse())),
            Ok(batch) if batch.is_empty() => {
                Self::One(Err(Fault::invalid_request("an empty batch")))
            }
            Ok(batch) if batch.len() > max_batch => Self::One(Err(Fault::bad(format!(
                "a batch of {} requests; the limit is {max_batch}",
                batch.len()
            )))),
            Ok(batch) => Self::Batch(batch),
        }
    }
}

impl<'a> Request<'a> {
    /// Reads one request.
    pub fn parse(text: &'a [u8]) -> Result<Self, Fault> {
        let request: Self = serde_json::from_slice(text).map_err(|error| {
            if error.is_data() {
                Fault::invalid_request(
                    "a request is an object with a method, and perhaps id, params",
                )
            } else {
                Fault::parse()
            }
        })?;
        match request.id.map(|id| id.get().as_bytes()) {
            Some([b'{' | b'[' | b't' | b'f', ..]) => {
                Err(Fault::invalid_request("an id is a number, a string or null"))
            }
            Some(id) if id.len() > MAX_ID => Err(Fault::invalid_request("the id is too long")),
            _ => Ok(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Result<(Option<String>, String), Fault> {
        let Line::One(request) = Line::parse(line.as_bytes(), 3) else { panic!("{line}") };
        let request = request?;
        Ok((request.id.map(|id| id.get().to_owned()), request.method.into_owned()))
    }

    fn code(line: &str) -> i32 {
        one(line).unwrap_err().code
    }

    #[test]
    fn ids_are_repeated_as_they_were_written() {
        for id in ["7", "\"a b\"", "null", "-1.50", "1e400"] {
            let line = format!(r#" {{"method":"m","id":{id} }}"#);
            assert_eq!(one(&line).unwrap(), (Some(id.to_owned()), "m".to_owned()));
        }
        assert_eq!(one(r#"{"method":"m"}"#).unwrap().0, None);
    }

    #[test]
    fn what_is_no_request_has_its_code() {
        for line in ["", "{", "nonsense", "[1,", "{\"method\":\"m\"} x", "\u{0}", "[}"] {
            assert_eq!(code(line), -32700, "{line}");
        }
        let long = format!(r#"{{"method":"m","id":"{}"}}"#, "x".repeat(300));
        for line in ["{}", "7", "\"x\"", r#"{"method":5}"#, "[]", long.as_str()] {
            assert_eq!(code(line), -32600, "{line}");
        }
        for id in ["{}", "[]", "true"] {
            assert_eq!(code(&format!(r#"{{"method":"m","id":{id}}}"#)), -32600);
        }
        assert_eq!(code("[1,2,3,4]"), 1, "more than the limit of a batch");
    }

    #[test]
    fn deep_nesting_is_skipped_without_recursion() {
        let deep = "[".repeat(1_000_000);
        assert_eq!(code(&format!(r#"{{"method":"m","params":{deep}}}"#)), -32700);
        let closed = format!("{deep}{}", "]".repeat(1_000_000));
        assert!(one(&format!(r#"{{"method":"m","params":{closed}}}"#)).is_ok());
    }
}

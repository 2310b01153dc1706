//! What a request is answered with: bytes, and the headers that every answer has.
//!
//! | header | says |
//! |---|---|
//! | `x-varve-tip` | `HEIGHT:HASH` of the tip that the answer was read at |
//! | `cache-control` | five years for what cannot change, seconds for what can |
//! | `etag` | what an unchangeable answer is known by; `if-none-match` then gets a 304 |
//!
//! A refusal is plain text, as Esplora's are, with the status that fits.

use std::fmt::Display;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::json;
use varve::{Error, Tip};

use crate::log::{self, Level};

/// The header that names the tip of an answer.
pub(crate) const TIP_HEADER: &str = "x-varve-tip";

pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain";
pub(crate) const BINARY: &str = "application/octet-stream";

/// Blocks on top after which an answer about a block is taken to be final, as Esplora does.
const FINAL_DEPTH: u32 = 10;

/// How long an answer may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// It changes something, or is different each time.
    Never,
    /// It may change with the next block or transaction.
    Seconds(u32),
    /// It never changes.
    Forever,
}

impl Cache {
    /// Of what may change at any time.
    pub(crate) const SHORT: Self = Self::Seconds(10);

    /// Of what depends on a block of the confirmed chain staying there.
    pub(crate) fn of_height(height: u32, tip: Tip) -> Self {
        let depth = tip.height.to_u32().saturating_sub(height);
        if depth >= FINAL_DEPTH { Self::Forever } else { Self::SHORT }
    }

    fn value(self) -> HeaderValue {
        match self {
            Self::Never => HeaderValue::from_static("no-store"),
            Self::Seconds(seconds) => text_value(&format!("public, max-age={seconds}")),
            Self::Forever => HeaderValue::from_static("public, max-age=157784630, immutable"),
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    kind: &'static str,
    body: Body,
    cache: Cache,
    etag: Option<String>,
    tip: Option<Tip>,
}

impl Answer {
    fn new(status: StatusCode, kind: &'static str, body: Body) -> Self {
        Self { status, kind, body, cache: Cache::SHORT, etag: None, tip: None }
    }

    /// A value in JSON.
    pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => Self::new(StatusCode::OK, JSON, Body::from(bytes)),
            Err(error) => Refusal::internal(&error).into(),
        }
    }

    /// A line of text.
    pub(crate) fn text(text: impl Display) -> Self {
        Self::new(StatusCode::OK, TEXT, Body::from(text.to_string()))
    }

    /// Bytes.
    pub(crate) fn binary(bytes: impl Into<Body>) -> Self {
        Self::new(StatusCode::OK, BINARY, bytes.into())
    }

    /// A body that is produced while it is sent.
    pub(crate) fn stream(kind: &'static str, body: Body) -> Self {
        Self::new(StatusCode::OK, kind, body)
    }

    /// Bytes that something else owns, without copying them.
    pub(crate) fn owned(bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::binary(Bytes::from_owner(bytes))
    }

    pub(crate) fn cached(self, cache: Cache) -> Self {
        Self { cache, ..self }
    }

    /// An answer that never changes, known by this.
    pub(crate) fn unchanging(self, etag: impl Display) -> Self {
        Self { etag: Some(format!("\"{etag}\"")), ..self.cached(Cache::Forever) }
    }

    /// Read at this tip, unless it says itself at which.
    pub(crate) fn at(self, tip: Tip) -> Self {
        Self { tip: self.tip.or(Some(tip)), ..self }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> axum::response::Response {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::CACHE_CONTROL, self.cache.value());
        if let Some(etag) = self.etag {
            headers.insert(header::ETAG, text_value(&etag));
        }
        if let Some(tip) = self.tip {
            headers.insert(TIP_HEADER, text_value(&format!("{}:{}", tip.height, tip.hash)));
        }
        response
    }
}

/// A header's value of characters that we chose.
fn text_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Why a request is not answered.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    text: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// There is no such thing.
    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// The request makes no sense.
    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// Not now, or not with this node.
    pub(crate) fn unavailable(text: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// A fault of ours. The client learns that there is one, the operator reads which.
    pub(crate) fn internal(error: &dyn Display) -> Self {
        log::event(Level::Error, "http_failed", &json!({ "error": error.to_string() }));
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error; the server's log says which")
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let answer = Self::new(refusal.status, TEXT, Body::from(refusal.text));
        answer.cached(Cache::Never)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> axum::response::Response {
        Answer::from(self).into_response()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Pruned { .. } => Self::new(StatusCode::GONE, error.to_string()),
            Error::NotStored { .. } | Error::Refused { .. } | Error::UnknownOutput { .. } => {
                Self::not_found(error.to_string())
            }
            Error::ScriptsNotBegun | Error::Busy => Self::unavailable(error.to_string()),
            other => Self::internal(&other),
        }
    }
}

impl From<varve::types::DecodeError> for Refusal {
    fn from(error: varve::types::DecodeError) -> Self {
        Self::internal(&error)
    }
}

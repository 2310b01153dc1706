//! What a request of the own API is answered with, and what a query may say.

use std::fmt::Display;

use axum::Json;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::{IntoResponses, ToSchema};
use varve::types::DecodeError;
use varve::{Error, Height};

/// The tip that an answer was read at.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(super) struct Tip {
    /// Its height.
    pub(super) height: u32,
    /// Its hash.
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    pub(super) hash: varve::BlockHash,
}

impl From<varve::Tip> for Tip {
    fn from(tip: varve::Tip) -> Self {
        Self { height: tip.height.to_u32(), hash: tip.hash }
    }
}

/// An answer, which is never kept: the next block may change it.
#[derive(Debug)]
pub(super) struct Reply<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        uncached(Json(self.0).into_response())
    }
}

fn uncached(mut response: Response) -> Response {
    let value = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, value);
    response
}

/// Why a request is not answered.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    error: String,
}

/// The body of a refusal.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorAnswer {
    /// What failed, on what, and what to do.
    error: String,
}

/// The refusals that every endpoint has.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes responses, and is never made")]
pub(super) enum Refusals {
    /// The request makes no sense: the error says what of it.
    #[response(status = 400)]
    Bad(ErrorAnswer),
    /// There is no such thing.
    #[response(status = 404)]
    NotFound(ErrorAnswer),
    /// The bytes that the answer needs were pruned.
    #[response(status = 410)]
    Pruned(ErrorAnswer),
    /// The answer would be too long.
    #[response(status = 413)]
    TooLarge(ErrorAnswer),
    /// The node does not keep what the answer needs, or has too much to do.
    #[response(status = 503)]
    Unavailable(ErrorAnswer),
}

impl Refused {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }

    pub(super) fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(super) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// A fault of ours. The client learns that there is one, the operator reads which.
    fn internal(error: &dyn Display) -> Self {
        eprintln!("http: a request failed: {error}");
        let text = "internal error; the server's log says which";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self { status, error } = self;
        uncached((status, Json(ErrorAnswer { error })).into_response())
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Pruned { .. } => StatusCode::GONE,
            Error::NotStored { .. } | Error::Refused { .. } | Error::UnknownOutput { .. } => {
                StatusCode::NOT_FOUND
            }
            Error::AboveTip { .. } => StatusCode::BAD_REQUEST,
            Error::ScriptsNotBegun | Error::NoScripts | Error::Busy => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            other => return Self::internal(other),
        };
        Self::new(status, error.to_string())
    }
}

impl From<DecodeError> for Refused {
    fn from(error: DecodeError) -> Self {
        Self::internal(&error)
    }
}

/// What stands behind the question mark, refused as everything else is.
#[derive(Debug)]
pub(super) struct Asked<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(rejection) => Err(Refused::bad(rejection.body_text())),
        }
    }
}

/// A height in a query.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct AtHeight(u32);

impl From<AtHeight> for Height {
    fn from(AtHeight(height): AtHeight) -> Self {
        Self::new(height)
    }
}

/// A hash in a path.
pub(super) fn hash<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, Refused> {
    text.parse().map_err(|_| Refused::bad(format!("{what} is a hash of 64 hexadecimal digits")))
}
